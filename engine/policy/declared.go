package policy

import (
	"reflect"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// What VirtualMeshes in mode DECLARED import is what these declare (networkingv1.FederationModeDeclared):
//
//   - a ServiceDependency: that the workloads which it selects, gateways too, call the Destinations which it selects. Without
//     destinationSelectors, that is everything.
//   - a TrafficPolicy: that callers of a Destination in its clusters call its targets, too. It does so until the status of the
//     Destination says that another version of the policy is in force: what a route needs goes after the route.
//   - a TrafficPolicy or an AccessPolicy that names both sides, the clusters of callers and Destinations in kubeServiceRefs. What
//     selects by labels or namespaces is a rule for whoever calls, and declares nothing.
//
// A VirtualDestination has entries of its own, whose endpoints are the gateways or pods of the services behind it: it needs no
// import of these.

// declared is the Planner's cache of Needs.
type declared struct {
	needs *virtualmesh.Needs
	// of are the needs of each object, found in inv.
	of  map[any]*virtualmesh.Needs
	inv *inventory.Inventory
}

// updateNeeds returns what is declared; nil if no VirtualMesh asks for it. Without a change, it is the same as before.
func updateNeeds(r *reconciler, inv *inventory.Inventory) *virtualmesh.Needs {
	was, last, next := &r.declared, &r.last, &r.next
	if !slices.ContainsFunc(next.virtualMeshes, virtualmesh.Declares) {
		r.declared = declared{}
		return nil
	}
	if was.needs != nil && was.inv == inv && last.scope.Equal(&next.scope) && snapshot.SameSlice(last.dependencies, next.dependencies) &&
		snapshot.SameSlice(last.traffic, next.traffic) && snapshot.SameSlice(last.access, next.access) && snapshot.SameSlice(last.stored, next.stored) {
		return was.needs
	}
	now := declared{of: map[any]*virtualmesh.Needs{}, inv: inv, needs: &virtualmesh.Needs{}}
	add := func(object any, namespace string, find func(*virtualmesh.Needs)) {
		if !next.scope.Counts(namespace) {
			return
		}
		found := was.of[object]
		if found == nil || was.inv != inv {
			found = &virtualmesh.Needs{}
			find(found)
		}
		now.of[object] = found
		now.needs.Calls, now.needs.Detours = append(now.needs.Calls, found.Calls...), append(now.needs.Detours, found.Detours...)
	}
	for _, o := range next.dependencies {
		if o.InCluster != "" {
			continue // what is federated is not for users of a workload cluster to say
		}
		add(o, o.Namespace, func(n *virtualmesh.Needs) { dependencyNeeds(n, inv, o) })
	}
	for _, p := range next.traffic {
		if p.InCluster != "" {
			continue
		}
		add(p, p.Namespace, func(n *virtualmesh.Needs) { trafficNeeds(n, inv, p) })
	}
	for _, p := range next.access {
		if p.InCluster != "" {
			continue
		}
		add(p, p.Namespace, func(n *virtualmesh.Needs) { accessNeeds(n, inv, p) })
	}
	now.needs.Detours = append(now.needs.Detours, detoursInForce(r, inv)...)
	if was.inv == inv && was.needs.Same(now.needs) {
		now.needs = was.needs
	}
	r.declared = now
	return now.needs
}

func dependencyNeeds(n *virtualmesh.Needs, inv *inventory.Inventory, o *enterprisev1beta1.ServiceDependency) {
	c := &virtualmesh.Call{
		Origins:    originsOf(snapshot.RefOf(snapshot.ServiceDependency, o), "destinationSelectors"),
		Meshes:     inv.MeshesOfCallers(o.Spec.SourceSelectors),
		Everything: len(o.Spec.DestinationSelectors) == 0,
	}
	if !c.Everything {
		c.Destinations, _ = inv.SelectDestinations(o.Spec.DestinationSelectors)
	}
	if len(c.Meshes) > 0 {
		n.Calls = append(n.Calls, c)
	}
}

func trafficNeeds(n *virtualmesh.Needs, inv *inventory.Inventory, p *networkingv1.TrafficPolicy) {
	ref := snapshot.RefOf(snapshot.TrafficPolicy, p)
	addNamed(n, inv, ref, sourceClusters(&p.Spec), p.Spec.DestinationSelector)
	if len(targets(p.Spec.Policy)) > 0 {
		selected, _ := inv.SelectDestinations(p.Spec.DestinationSelector)
		n.Detours = append(n.Detours, detours(inv, ref, &p.Spec, selected)...)
	}
}

func accessNeeds(n *virtualmesh.Needs, inv *inventory.Inventory, p *networkingv1.AccessPolicy) {
	var clusters []string
	for _, s := range p.Spec.SourceSelector {
		if s.KubeIdentityMatcher != nil {
			clusters = append(clusters, s.KubeIdentityMatcher.Clusters...)
		}
		if s.KubeServiceAccountRefs == nil {
			continue
		}
		for _, account := range s.KubeServiceAccountRefs.ServiceAccounts {
			if account.ClusterName != "" {
				clusters = append(clusters, account.ClusterName)
			}
		}
	}
	addNamed(n, inv, snapshot.RefOf(snapshot.AccessPolicy, p), clusters, p.Spec.DestinationSelector)
}

// addNamed adds the call of a policy that names both sides.
func addNamed(n *virtualmesh.Needs, inv *inventory.Inventory, ref snapshot.Ref, clusters []string, selectors []commonv1.DestinationSelector) {
	var named []int
	for _, s := range selectors {
		if s.KubeServiceRefs == nil {
			continue
		}
		for _, service := range s.KubeServiceRefs.Services {
			if at, ok := inv.IndexOfService(service); ok {
				named = append(named, at)
			}
		}
	}
	if len(clusters) == 0 || len(named) == 0 {
		return
	}
	slices.Sort(clusters)
	slices.Sort(named)
	n.Calls = append(n.Calls, &virtualmesh.Call{
		Origins: originsOf(ref, "destinationSelector"), Clusters: slices.Compact(clusters), Destinations: slices.Compact(named),
	})
}

func originsOf(ref snapshot.Ref, field string) []snapshot.Origin {
	return []snapshot.Origin{{Ref: ref, Field: field}}
}

// detours are where a spec sends requests for the selected Destinations.
func detours(inv *inventory.Inventory, ref snapshot.Ref, spec *networkingv1.TrafficPolicySpec, selected []int) []*virtualmesh.Detour {
	var out []*virtualmesh.Detour
	for _, part := range []struct {
		field string
		of    networkingv1.Policy
	}{
		{trafficShift.field, networkingv1.Policy{TrafficShift: spec.Policy.TrafficShift}},
		{mirror.field, networkingv1.Policy{Mirror: spec.Policy.Mirror}},
	} {
		d := &virtualmesh.Detour{Origin: snapshot.Origin{Ref: ref, Field: part.field}, Clusters: onlyClusters(spec), Selected: selected}
		for _, t := range targets(&part.of) {
			if at, ok := inv.IndexOfService(serviceOf(&t)); ok {
				d.Targets = append(d.Targets, at)
			}
		}
		if len(d.Targets) > 0 && len(selected) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// detoursInForce are those of specs of policies that were in force when the statuses of Destinations were written, and are not
// the latest ones: either the latest is not in force, or the status is behind.
func detoursInForce(r *reconciler, inv *inventory.Inventory) []*virtualmesh.Detour {
	latest := map[commonv1.ObjectRef]*networkingv1.TrafficPolicy{}
	for _, p := range r.next.traffic {
		if p.InCluster == "" && r.next.scope.Counts(p.Namespace) {
			latest[commonv1.ObjectRef{Name: p.Name, Namespace: p.Namespace}] = p
		}
	}
	var out []*virtualmesh.Detour
	for _, d := range r.next.stored {
		for i := range d.Status.AppliedTrafficPolicies {
			a := &d.Status.AppliedTrafficPolicies[i]
			p := latest[a.Ref]
			if p == nil || a.ClusterName != "" || len(targets(a.Spec.Policy)) == 0 || reflect.DeepEqual(&a.Spec, &p.Spec) {
				continue
			}
			if at, ok := inv.IndexOf(snapshot.RefOf(snapshot.Destination, d)); ok {
				out = append(out, detours(inv, snapshot.RefOf(snapshot.TrafficPolicy, p), &a.Spec, []int{at})...)
			}
		}
	}
	return out
}
