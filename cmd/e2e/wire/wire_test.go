package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
)

// wireCase is a part of a test on a running demo. They run one after another.
type wireCase struct {
	name string
	run  func(*testing.T, *environment)
}

func wire(t *testing.T, cases []wireCase) {
	t.Helper()
	wireOn(t, newEnvironment(t), cases)
}

func wireOn(t *testing.T, e *environment, cases []wireCase) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, e) })
	}
}

// TestSmoke is what every change is tested with.
func TestSmoke(t *testing.T) {
	t.Parallel()
	wire(t, []wireCase{
		{"shares of a shift", shares},
		{"access of all pairs", access},
		{"failover of a VirtualDestination", failoverHTTP},
		{"transitions of a shift", transition},
		{"no configuration was refused", refused},
	})
}

// TestPolicies sees each field of the policies in what requests get.
func TestPolicies(t *testing.T) {
	shard.Only(t, shard.Wire)
	t.Parallel()
	wire(t, []wireCase{
		{"fields of a TrafficPolicy", trafficPolicyFields},
		{"answers of why", answers},
		{"what stands open", openings},
		{"what proxies hold", proxiesHeld},
		{"gRPC and TCP", protocols},
		{"ServiceDependencies", dependencies},
		{"lies are noticed", lies},
		{"a shift loses a target", lostTargets},
		{"transitions of a shift", transitions},
		{"outliers", outliers},
		{"a shift changes its targets", retargeted},
		{"what a shift needs goes and comes", membership},
		{"a VirtualDestination moves", moved},
		{"control planes end under load", controlPlanes},
		{"no configuration was refused", refused},
	})
}

// TestTraffic compares what proxies count with what was sent.
func TestTraffic(t *testing.T) {
	shard.Only(t, shard.WireTraffic)
	t.Parallel()
	wire(t, []wireCase{
		{"requests are counted", counted},
		{"how long requests take", latencies},
		{"what is denied is refused and counted", denials},
		{"what fails is counted by its reason", failuresCounted},
		{"serve ends", serveEnds},
		{"no right, no data", notCounted},
	})
}

// TestAudits compares what proxies say that they would refuse with what was sent.
func TestAudits(t *testing.T) {
	shard.Only(t, shard.WireTrust)
	t.Parallel()
	wire(t, []wireCase{
		{"who is denied", audits},
		{"who is let in", auditsAllowance},
	})
}

// TestTrafficPushed compares what proxies send by themselves to the agent of their cluster with what was sent.
func TestTrafficPushed(t *testing.T) {
	shard.Only(t, shard.WireTraffic)
	t.Parallel()
	wireOn(t, startEnvironment(t, demo.Options{Relay: true}), []wireCase{
		{"a proxy is read by mutual TLS", readSecurely},
		{"proxies are told to send", pushes},
		{"requests are counted", countedPushed},
		{"the agent ends", agentEnds},
		{"a proxy ends", proxyEnds},
		{"requests are logged", loggedPushed},
		{"records select requests", recordsSelect},
		{"no configuration was refused", refused},
	})
}

// TestTrust replaces pods, certificates and roots.
func TestTrust(t *testing.T) {
	shard.Only(t, shard.WireTrust)
	t.Parallel()
	wire(t, []wireCase{
		{"shares of a shift", shares},
		{"pods change", pods},
		{"whose certificate", whose},
		{"attacks", attacks},
		{"what no change touched goes", uncontrol},
		{"the root is exchanged", exchanged},
		{"no configuration of the new proxies was refused", refused},
		{"the meshes leave their common root", apart}, // and stay apart
		{"gateways trust each other", limited},
		{"no configuration of any proxy was refused", refused},
	})
}

// refused asks the Envoys of all pods of the demo how many configurations they have
// refused.
func refused(t *testing.T, e *environment) {
	t.Helper()
	e.accepts(t, 13)
}

// accepts checks that the Envoys of so many pods have refused no configuration. It waits for
// that number: pods that the case before replaced may still be ending.
func (e *environment) accepts(t *testing.T, count int) {
	t.Helper()
	var pods []proxies.Pod
	waittest.NoError(t, fmt.Sprintf("%d pods are there", count), func() (err error) {
		if pods, err = e.pods(t.Context()); err != nil || len(pods) == count {
			return err
		}
		names := make([]string, len(pods))
		for i := range pods {
			names[i] = pods[i].Cluster + " " + pods[i].Pod
		}
		return fmt.Errorf("%d: %s", len(pods), strings.Join(names, ", "))
	})
	for _, p := range pods {
		stats, err := e.plane.Stats(t.Context(), p, "update_rejected")
		require.NoError(t, err)
		assert.Contains(t, stats, "cluster_manager.cds.update_rejected")
		for name, count := range stats {
			assert.Zero(t, count, "%s of pod %s", name, p.Pod)
		}
	}
}
