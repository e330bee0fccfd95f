// Package check finds out how a management plane and its clusters are, as seen from here: it asks
// API servers, and dials gateways. What follows from that is decided in package explain, by
// Index.Checkup; so that a command, the dashboard and tests judge alike.
//
//	check.go     the management cluster and the registered ones
//	gateways.go  the addresses of gateways
//	relay.go     the address at which agents find meshctl serve
//	proxies.go   what proxies hold
//	hosts.go     how gateways are for the proxies of other clusters
//	pre.go       whether meshctl can be installed, and clusters registered
package check

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options say what is checked.
type Options struct {
	Config *rest.Config
	// Context is the name of the management cluster's context, for messages.
	Context string
	// Namespace of the management plane.
	Namespace string
	// Version of this program, without build details; empty if it has none.
	Version   string
	UserAgent string
	// Timeout bounds each request to the management cluster, and the check of each
	// registered one.
	Timeout time.Duration
	// Proxies is how many pairs of a caller and a service are looked at in proxies, drawn with Seed.
	Proxies int
	Seed    uint64
	// Detours lead to clusters whose stored address cannot be dialled from here; nil for none.
	Detours *registration.Detours
}

// clusterType is the custom resource type of registrations, which every management cluster has.
var clusterType = snapshot.KubernetesCluster.GroupVersionResource().GroupResource().String()

// unreadHint is what to do about a management cluster that cannot be read.
func unreadHint(err error) string {
	return snapshot.Sentences(kube.NextStep(err), "or choose another context with --context")
}

// Facts asks the management cluster and all registered ones, at the same time: the timeout bounds each
// of them, but for a management cluster that hangs, which takes registration.DefaultTimeout. What
// cannot be found out is a fact, too.
func Facts(ctx context.Context, o Options) (*explain.CheckFacts, error) {
	facts := &explain.CheckFacts{Now: time.Now()}
	client, err := kube.NewClientset(kube.Unlimited(o.Config))
	if err != nil {
		return nil, err
	}
	var versions *registration.InstalledVersions
	var clusters []registration.ClusterStatus
	var notRead, notListed error
	group := errgroup.Group{}
	group.Go(func() error {
		bounded, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		versions, notRead = registration.Versions(bounded, registration.VersionsOptions{
			Config: o.Config, Context: o.Context, Namespace: o.Namespace, Timeout: o.Timeout,
		})
		return nil
	})
	group.Go(func() error {
		clusters, notListed = registration.List(ctx, registration.ListOptions{
			MgmtConfig: o.Config, MgmtContext: o.Context, MgmtNamespace: o.Namespace, Timeout: o.Timeout, UserAgent: o.UserAgent, Detours: o.Detours,
		})
		return nil
	})
	group.Go(func() error {
		bounded, cancel := context.WithTimeout(ctx, o.Timeout)
		defer cancel()
		serving, err := cluster.ReadServing(bounded, client, o.Namespace)
		if err != nil {
			serving.Reason = kube.Message(err)
		}
		facts.Serving = serving
		return nil
	})
	_ = group.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	switch {
	case notRead != nil:
		facts.Unread, facts.UnreadHint = splitHint(notRead), unreadHint(notRead)
		return facts, nil //nolint:nilerr // that is what was found out
	case slices.Contains(versions.Types.Missing, clusterType):
		facts.Unread = "there is no management plane in it: the custom resource types are not installed"
		facts.UnreadHint = "choose the context of the management cluster with --context, or run `meshctl install`"
		return facts, nil
	case notListed != nil:
		facts.Unread, facts.UnreadHint = splitHint(notListed), "use a context that may list Secrets, Meshes and KubernetesClusters in namespace "+o.Namespace
		return facts, nil //nolint:nilerr // so it is here
	}
	addVersions(facts, versions, o.Version)
	for i := range clusters {
		facts.Clusters = append(facts.Clusters, checkedCluster(&clusters[i]))
	}
	facts.Relay = relayFrom(ctx, facts.Clusters, o)
	return facts, nil
}

// splitHint leaves out the hint that the errors of registration end in: the check has its own.
func splitHint(err error) string {
	var unreachable *registration.UnreachableError
	if errors.As(err, &unreachable) {
		return kube.Reason(unreachable.Server, unreachable.Err)
	}
	return kube.Text(err)
}

func addVersions(facts *explain.CheckFacts, v *registration.InstalledVersions, version string) {
	facts.Kubernetes = "Kubernetes " + v.Kubernetes
	facts.TypesCurrent, facts.TypesOther, facts.TypesMissing = v.Types.Current, v.Types.Other, v.Types.Missing
	if s := v.Server; s != nil {
		facts.Installed, facts.Ready, facts.Replicas = true, int(s.Ready), int(s.Replicas)
	}
	types := *v
	types.Types = registration.InstalledTypes{} // a check of their own
	facts.Skew = types.Skew(version)
}

func checkedCluster(s *registration.ClusterStatus) explain.CheckedCluster {
	out := explain.CheckedCluster{
		Name: s.Name, Health: s.Health, Reasons: s.Reasons, Version: s.Version, Server: s.Server, Latency: s.Latency,
		Served: s.Serve == registration.ServeReaches, NotServed: s.Serve == registration.ServeFails, ServeMessage: s.ServeMessage,
		Connection: s.Connection,
	}
	if s.Expires != nil {
		out.Expires = *s.Expires
	}
	return out
}
