package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// notSet is the reason of a cluster that has a KubernetesCluster, but for which
// Set was not called.
const notSet = "its kubeconfig Secret has not been read"

// inputCache is the last Input that was returned, to share what did not change.
type inputCache struct {
	dirty atomic.Bool
	last  *snapshot.Input
	// management receives the current lists; view is the copy that readers have.
	management snapshot.Management
	view       *snapshot.Management
	// unknown are stubs of clusters with a KubernetesCluster for which Set was not
	// called.
	unknown map[string]*snapshot.Cluster
}

// Input returns everything as it is now, or nil before Changed was first
// signalled. It is immutable, and shares with the last one the pointers and slices
// of what did not change.
func (s *Source) Input() *snapshot.Input {
	if !s.ready.Load() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cache := &s.input
	if !cache.dirty.Swap(false) && cache.last != nil {
		return cache.last
	}
	next := &snapshot.Input{
		Management: s.managementView(), Roots: s.roots, Logging: s.logging, RefuseIntersecting: s.options.RefuseIntersecting, Version: s.options.Version,
	}
	if s.options.Statuses {
		next.RefuseIntersecting = next.Management.Server().DisallowIntersectingConfig
	}
	var broken []snapshot.Failure
	next.Clusters, broken = s.clusterViews(next.Management)
	next.Failures = sortedFailures(s.failures, s.management.failures(""), broken)
	if last := cache.last; last != nil {
		if slices.Equal(last.Clusters, next.Clusters) {
			next.Clusters = last.Clusters
		}
		if equality.Semantic.DeepEqual(last.Failures, next.Failures) {
			next.Failures = last.Failures
		}
		if last.Management == next.Management && snapshot.SameSlice(last.Clusters, next.Clusters) && snapshot.SameSlice(last.Failures, next.Failures) &&
			snapshot.SameSlice(last.Roots, next.Roots) && last.Logging == next.Logging {
			return last
		}
	}
	cache.last = next
	return next
}

func (s *Source) managementView() *snapshot.Management {
	cache := &s.input
	if s.management.copyTo(&cache.management) || cache.view == nil {
		view := cache.management
		cache.view = &view
	}
	return cache.view
}

// clusterViews lists the clusters that were set, and those that are registered
// but were not: without them, their objects would count as deleted. It also lists
// the objects that cannot be processed.
func (s *Source) clusterViews(management *snapshot.Management) ([]*snapshot.Cluster, []snapshot.Failure) {
	clusters := make([]*snapshot.Cluster, 0, len(s.clusters))
	var broken []snapshot.Failure
	for _, c := range s.clusters {
		view, failures := c.current()
		clusters = append(clusters, view)
		broken = append(broken, failures...)
		broken = append(broken, unreadPolicies(management, view)...)
		broken = append(broken, unsentKinds(management, view)...)
	}
	unknown := map[string]*snapshot.Cluster{}
	for _, registered := range management.KubernetesClusters {
		name, domain := registered.Name, registered.Spec.ClusterDomain
		if s.clusters[name] != nil {
			continue
		}
		stub := s.input.unknown[name]
		if stub == nil || stub.Domain != domain {
			stub = &snapshot.Cluster{Name: name, Domain: domain, Sync: snapshot.Unsynced, Reason: notSet}
		}
		unknown[name] = stub
		clusters = append(clusters, stub)
	}
	s.input.unknown = unknown
	slices.SortFunc(clusters, func(a, b *snapshot.Cluster) int { return strings.Compare(a.Name, b.Name) })
	return clusters, broken
}

// sortedFailures is one list of all failures, ascending by Ref.
func sortedFailures(lists ...[]snapshot.Failure) []snapshot.Failure {
	all := slices.Concat(lists...)
	slices.SortFunc(all, func(a, b snapshot.Failure) int {
		return cmp.Or(a.Ref.Compare(b.Ref), cmp.Compare(a.What, b.What))
	})
	return all
}

// unreadPolicies says of a cluster that it has policies which are to count, and which may not be read.
func unreadPolicies(m *snapshot.Management, c *snapshot.Cluster) (out []snapshot.Failure) {
	for _, kind := range c.Denied {
		info := kind.Info()
		if info.Access&snapshot.InClusters == 0 || slices.Contains(c.Unsent, kind) || !virtualmesh.PoliciesCountIn(m, c.Name) {
			continue
		}
		out = append(out, snapshot.Failure{
			Ref: snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: m.Namespace, Name: c.Name},
			Reason: snapshot.Reason{
				Code: snapshot.PermissionsMissing,
				What: fmt.Sprintf("meshctl's account on the cluster is not allowed to list %s.%s: those that were read before stay in force, and no others are", info.Resource, info.Group),
				Hint: "register the cluster again",
			},
		})
	}
	return out
}

// unsentKinds says of a cluster which kinds its agent is too old to send. Policies count only where Settings say so.
func unsentKinds(m *snapshot.Management, c *snapshot.Cluster) []snapshot.Failure {
	var names []string
	for _, kind := range c.Unsent {
		if info := kind.Info(); info.Access&snapshot.InClusters == 0 || virtualmesh.PoliciesCountIn(m, c.Name) {
			names = append(names, strings.TrimSuffix(info.Resource+"."+info.Group, "."))
		}
	}
	if len(names) == 0 {
		return nil
	}
	agent := "its agent"
	if c.Relay != nil && c.Relay.Version != "" {
		agent += " (version " + c.Relay.Version + ")"
	}
	return []snapshot.Failure{{
		Ref: snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: m.Namespace, Name: c.Name},
		Reason: snapshot.Reason{
			Code: snapshot.VersionSkew,
			What: agent + " is older than meshctl serve and does not send " + strings.Join(names, ", ") + ": what users write of them there is in no answer, and has no effect on what is written",
			Hint: "run the agent from an image of the newer version: register the cluster again with --agent-image",
		},
	}}
}
