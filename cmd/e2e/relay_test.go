package e2e

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// TestMainJobOverRelay is TestMainJob where cluster-2 is reached through its agent. The agent's permissions, and the Secrets that it
// reads, are compared with the audit log.
func TestMainJobOverRelay(t *testing.T) {
	shard.Only(t, shard.Clusters)
	t.Parallel()
	w := newEnvironment(t, withBookinfo)
	w.joins()
	w.translates()
	w.describes()
	w.verifies()
	w.edits()
	w.reportsProblems()
	w.resistsTenant()
	w.reportsCeasedPolicy()
	w.freezes()
	w.stillReportsCeasedPolicy()
	w.verifies()
	w.agentUsesAllPermissions()
	w.deregisters()
	w.serveUsesAllPermissions()
	w.stopServe()
}

// joins registers cluster-1 with a credential, and cluster-2 to be reached through its agent, which it returns, with the address of the hub.
func (w *environment) joins() (agent *process, hub string) {
	w.t.Helper()
	w.must("cluster", "register", "cluster-1", "--remote-context", "cluster-1", "--mgmt-context", "cluster-1")
	hub = sandboxtest.Address(w.t)
	w.flags = []string{"--relay-bind", hub}
	w.startServe()
	w.keepIstiod(w.cluster("cluster-1"))
	w.keepIstiod(w.cluster("cluster-2"))
	w.startAgent(w.cluster("cluster-1"))
	registered := make(chan result, 1)
	// The command makes the account of the agent, and waits until that is connected.
	go func() {
		registered <- w.run("cluster", "register", "cluster-2", "--relay", "--relay-server", hub, "--remote-context", "cluster-2", "--mgmt-context", "cluster-1")
	}()
	agent = w.startAgent(w.cluster("cluster-2"), "--relay-server", hub)
	r := <-registered
	require.Zero(w.t, r.code, "%s%s", r.stdout, r.stderr)
	assert.Contains(w.t, r.stderr, "Cluster cluster-2 is reached through its agent.")
	list := w.must("cluster", "list", "--mgmt-context", "cluster-1").stdout
	assert.Regexp(w.t, connected, list)
	_, err := w.object("cluster-1", core("secrets"), mgmt, "cluster-2")
	assert.True(w.t, apierrors.IsNotFound(err), "no credential of the cluster is stored: %v", err)
	return agent, hub
}

// withRelayed reads the clusters of an Input that are reached through their agents, as these do: they tell nobody but serve.
func (w *environment) withRelayed(ctx context.Context, in *snapshot.Input) (*snapshot.Input, error) {
	out := *in
	out.Clusters = slices.Clone(in.Clusters)
	for _, kc := range in.Management.KubernetesClusters {
		at := slices.IndexFunc(out.Clusters, func(c *snapshot.Cluster) bool { return c.Name == kc.Name })
		if kc.Status.Connection == nil || at < 0 {
			continue
		}
		read, err := w.readAsAgent(ctx, kc.Name, snapshot.Plane{Namespace: mgmt, ID: in.Management.PlaneID})
		if err != nil {
			return nil, err
		}
		read.Domain = out.Clusters[at].Domain
		out.Clusters[at] = read
	}
	return &out, nil
}

func (w *environment) readAsAgent(ctx context.Context, cluster string, plane snapshot.Plane) (*snapshot.Cluster, error) {
	config, err := w.cluster(cluster).Config()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	local := watch.NewLocal(watch.LocalOptions{Name: cluster, Plane: plane, Config: config, Log: slog.New(slog.DiscardHandler)})
	ended := make(chan struct{})
	go func() { defer close(ended); local.Run(ctx) }()
	defer func() { cancel(); <-ended }()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-local.Changed():
		}
		if read, _ := local.Cluster(); read.Sync == snapshot.Synced {
			out := *read
			return &out, nil
		}
	}
}

// verifies: what serve has, what the agent reports and what is in the cluster are the same.
func (w *environment) verifies() {
	w.t.Helper()
	r := w.must("cluster", "verify", "cluster-2", "--mgmt-context", "cluster-1")
	assert.Contains(w.t, r.stderr, "all sides have the same")
}

// agentUsesAllPermissions compares the permissions of the agent of cluster-2 with the audit log: every permission is used, no request was
// denied, and it has read no Secrets but those of its own and, once it gives the mesh its certificates, those of istiod.
func (w *environment) agentUsesAllPermissions() {
	w.t.Helper()
	own := []string{mgmt + "/" + snapshot.RelayClientSecret, mgmt + "/" + snapshot.RelayTokenSecret}
	assert.ElementsMatch(w.t, own, w.secretsRead("cluster-2"), "Secrets that an agent reads that only speaks for its cluster")
	w.apply("cluster-1", []byte(sharedTrust))
	w.awaitTrust("")
	w.deletesPolicies()
	mesh := "istiod-istio-system-cluster-2"
	w.until("the agent has left the mesh", func(ctx context.Context) error {
		switch _, err := w.clients["cluster-2"].Get(ctx, certificates("certificaterequests"), mgmt, mesh); {
		case err == nil:
			return errors.New("its request for a certificate is still there")
		case !apierrors.IsNotFound(err):
			return err
		}
		return w.hasLeft(w.cluster("cluster-2"))
	})
	rarely := []string{
		"update certificaterequests.certificates.mesh.gloo.solo.io", // for another certificate of the same mesh
		"get daemonsets.apps", "patch daemonsets.apps", "get statefulsets.apps", "patch statefulsets.apps", // restarts of what bookinfo has none of
		"delete clusterroles.rbac.authorization.k8s.io", // its own ones, when it leaves
	}
	rare := func(permission string) bool { return slices.Contains(rarely, permission) }
	granted := w.withoutAbsent("cluster-2", grantedBy(w.rolesOf("cluster-2", func(string) bool { return true })))
	assert.Subset(w.t, granted, rarely)
	assert.Equal(w.t, slices.DeleteFunc(granted, rare), slices.DeleteFunc(w.used("cluster-2", mgmt, "meshctl-agent"), rare), "granted and used permissions of the agent")
	assert.ElementsMatch(w.t, append(own, mgmt+"/"+mesh, "istio-system/cacerts", "istio-system/cacerts-before-meshctl", "istio-system/istio-ca-secret"),
		w.secretsRead("cluster-2"), "Secrets that an agent reads that also gives the mesh its certificates")
}

// secretsRead are the Secrets that the agent of a cluster has read, as namespace/name; one that it named none of lacks the name.
func (w *environment) secretsRead(cluster string) []string {
	w.t.Helper()
	all := map[string]bool{}
	for _, event := range w.audited(cluster, mgmt, "meshctl-agent") {
		if event.ObjectRef.Resource != "secrets" || !slices.Contains([]string{"get", "list", "watch"}, event.Verb) {
			continue
		}
		name := event.ObjectRef.Name
		if _, selected, found := strings.Cut(event.RequestURI, "fieldSelector=metadata.name%3D"); found && name == "" {
			name, _, _ = strings.Cut(selected, "&")
		}
		all[event.ObjectRef.Namespace+"/"+name] = true
	}
	return slices.Sorted(maps.Keys(all))
}
