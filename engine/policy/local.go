package policy

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// Local policies are those that users of a registered cluster wrote there. What they say is bounded before anything else reads it:
// the spec that is bound and accepted is one about their own namespace (reach.go). A policy of the management cluster has precedence
// (overrule.go).

// maxLocal is how many policies of a kind count in a namespace of a registered cluster, the oldest first.
const maxLocal = 100

// maxLocalOf is maxLocal, or maxLocalRecords for AccessLogRecords.
func maxLocalOf(kind snapshot.Kind) int {
	if kind == snapshot.AccessLogRecord {
		return maxLocalRecords
	}
	return maxLocal
}

// policyObject is a policy of any kind.
type policyObject interface {
	comparable
	metav1.Object
	FoundIn() string
}

// policies are all policies of a kind, ascending by Ref.
type policies[P policyObject] struct {
	// all are as they are bound, and read are the same as they were read, with their statuses.
	all, read []P
	// hub are those of the management cluster, and hubRead the list that hub stands for.
	hub, hubRead []P
	found        map[snapshot.Ref]*localPolicy[P]
	// beyond are those of which nothing changed but what is said of them: what was edited is beyond their reach.
	beyond map[snapshot.Ref]bool
}

// localPolicy is a policy of a registered cluster.
type localPolicy[P policyObject] struct {
	read, is P
	// issues are with what it asks for beyond its reach, and with its number.
	issues []snapshot.Issue
	excess bool
}

// localKind is what differs between the kinds.
type localKind[P policyObject] struct {
	kind snapshot.Kind
	list func(*snapshot.Cluster) []P
	same func(a, b P) bool
	// bound returns a copy that asks for nothing beyond its reach, and what was left out.
	bound func(p P, in reach) (P, []snapshot.Issue)
}

var (
	localTraffic = localKind[*networkingv1.TrafficPolicy]{
		snapshot.TrafficPolicy, func(c *snapshot.Cluster) []*networkingv1.TrafficPolicy { return c.TrafficPolicies }, sameTraffic, boundTraffic,
	}
	localAccess = localKind[*networkingv1.AccessPolicy]{
		snapshot.AccessPolicy, func(c *snapshot.Cluster) []*networkingv1.AccessPolicy { return c.AccessPolicies }, sameAccess, boundAccess,
	}
	localVirtuals = localKind[*enterprisev1beta1.VirtualDestination]{
		snapshot.VirtualDestination, func(c *snapshot.Cluster) []*enterprisev1beta1.VirtualDestination { return c.VirtualDestinations }, sameVirtualDestination,
		boundVirtualDestination,
	}
	localDependencies = localKind[*enterprisev1beta1.ServiceDependency]{
		snapshot.ServiceDependency, func(c *snapshot.Cluster) []*enterprisev1beta1.ServiceDependency { return c.ServiceDependencies }, sameDependency, boundDependency,
	}
)

// next are the policies of an Input, of which hub is the list of the management cluster. Those that are equal to the last ones are
// the same.
func (last *policies[P]) next(in *snapshot.Input, hub []P, scope *virtualmesh.Scope, of localKind[P]) policies[P] {
	n := policies[P]{hub: reuseUnchanged(last.hub, last.hubRead, hub, of.same), hubRead: hub, found: map[snapshot.Ref]*localPolicy[P]{}, beyond: map[snapshot.Ref]bool{}}
	n.all, n.read = n.hub, n.hubRead
	if in.Management.Itself() == "" && !slices.ContainsFunc(in.Clusters, func(c *snapshot.Cluster) bool { return len(of.list(c)) > 0 }) {
		return n
	}
	n.all, n.read = nil, nil
	twins := twinsOf(in, hub, of)
	for i, p := range n.hub {
		ref := snapshot.Ref{Kind: of.kind, Namespace: p.GetNamespace(), Name: p.GetName()}
		if there, twice := twins.of(ref, p.GetUID()); !twice || !countsThere(scope, there) {
			n.all, n.read = append(n.all, p), append(n.read, n.hubRead[i])
		}
	}
	for _, c := range in.Clusters {
		list := of.list(c)
		excess := excessOf(list, maxLocalOf(of.kind))
		for _, p := range list {
			ref := snapshot.Ref{Kind: of.kind, Cluster: c.Name, Namespace: p.GetNamespace(), Name: p.GetName()}
			if there, twice := twins.of(ref, p.GetUID()); twice && (there != ref || !countsThere(scope, ref)) {
				continue // it counts as the one of the management cluster
			}
			was := last.found[ref]
			if was == nil || was.excess != excess[p] || was.read != p && !(sameMetadata(was.read, p) && of.same(was.read, p)) {
				now := newLocalPolicy(p, ref, excess[p], of)
				if was != nil && sameMetadata(was.is, now.is) && of.same(was.is, now.is) {
					now.is, n.beyond[ref] = was.is, true // plans refer to it
				}
				was = now
			}
			was = &localPolicy[P]{p, was.is, was.issues, was.excess}
			n.found[ref] = was
			n.all, n.read = append(n.all, was.is), append(n.read, p)
		}
	}
	sortTogether(n.all, n.read)
	if slices.Equal(last.all, n.all) && len(n.beyond) == 0 {
		n.all = last.all
	}
	return n
}

// newLocalPolicy bounds a policy.
func newLocalPolicy[P policyObject](p P, ref snapshot.Ref, excess bool, of localKind[P]) *localPolicy[P] {
	is, issues := of.bound(p, reachOf(ref))
	if excess {
		issues = append(issues, snapshot.Errorf(snapshot.BudgetExceeded, "delete policies that are not needed, or write one for several",
			"it has no effect: namespace %s of cluster %s has more than %d policies of kind %s, and it is not among the oldest", ref.Namespace, ref.Cluster, maxLocalOf(of.kind), ref.Kind))
	}
	for i := range issues {
		issues[i] = issues[i].On(ref, snapshot.Ref{})
	}
	return &localPolicy[P]{p, is, issues, excess}
}

// twins are the policies that are read twice: of the management cluster, and of a registered one that is the same cluster. Each counts as
// one of both, never as two, which would both write its status.
type twins struct {
	// itself is the name under which the management cluster is registered; empty if that is not noted.
	itself string
	// byUID are the policies of the management cluster as what they are in a cluster of which registration noted nothing.
	byUID map[types.UID]snapshot.Ref
}

func twinsOf[P policyObject](in *snapshot.Input, hub []P, of localKind[P]) twins {
	t := twins{itself: in.Management.Itself(), byUID: map[types.UID]snapshot.Ref{}}
	if t.itself != "" {
		return t
	}
	uids := make(map[types.UID]bool, len(hub))
	for _, p := range hub {
		uids[p.GetUID()] = p.GetUID() != "" // files have none
	}
	for _, c := range in.Clusters {
		if !in.Management.MayBe(c.Name) {
			continue
		}
		for _, p := range of.list(c) {
			if _, known := t.byUID[p.GetUID()]; uids[p.GetUID()] && !known {
				t.byUID[p.GetUID()] = snapshot.Ref{Kind: of.kind, Cluster: c.Name, Namespace: p.GetNamespace(), Name: p.GetName()}
			}
		}
	}
	return t
}

// of returns what a policy is in the registered cluster, if it is read twice.
func (t *twins) of(ref snapshot.Ref, uid types.UID) (there snapshot.Ref, twice bool) {
	if t.itself == "" {
		there, twice = t.byUID[uid]
		return there, twice
	}
	twice = ref.Cluster == "" || ref.Cluster == t.itself
	ref.Cluster = t.itself
	return ref, twice
}

// countsThere reports whether a policy that is read twice counts as one of the registered cluster: its namespace counts there, and not as
// one of the management cluster.
func countsThere(scope *virtualmesh.Scope, there snapshot.Ref) bool {
	return !scope.Counts(there.Namespace) && scope.CountsPolicy(there)
}

// excessOf are the policies of a cluster that do not count, because their namespace has too many older ones.
func excessOf[P policyObject](list []P, most int) map[P]bool {
	out := map[P]bool{}
	for len(list) > 0 {
		n := 1
		for n < len(list) && list[n].GetNamespace() == list[0].GetNamespace() {
			n++
		}
		if n > most {
			oldest := slices.Clone(list[:n])
			slices.SortFunc(oldest, func(a, b P) int { return inventory.CompareAge(a, b) })
			for _, p := range oldest[most:] {
				out[p] = true
			}
		}
		list = list[n:]
	}
	return out
}

// sortTogether sorts all ascending by Ref, and read in the same order.
func sortTogether[P policyObject](all, read []P) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		return cmp.Or(snapshot.CompareNames(all[i], all[j]), cmp.Compare(all[i].FoundIn(), all[j].FoundIn()))
	})
	a, r := slices.Clone(all), slices.Clone(read)
	for to, from := range order {
		all[to], read[to] = a[from], r[from]
	}
}

// localIssues are what there is to say of each policy of a registered cluster as a whole.
func localIssues(n *inputs) map[snapshot.Ref][]snapshot.Issue {
	out := make(map[snapshot.Ref][]snapshot.Issue, len(n.ofTraffic.found)+len(n.ofAccess.found)+len(n.ofVirtuals.found)+len(n.ofDependencies.found))
	addIssues(out, n.ofTraffic.found)
	addIssues(out, n.ofAccess.found)
	addIssues(out, n.ofVirtuals.found)
	addIssues(out, n.ofDependencies.found)
	return out
}

func addIssues[P policyObject](to map[snapshot.Ref][]snapshot.Issue, found map[snapshot.Ref]*localPolicy[P]) {
	for ref, p := range found {
		to[ref] = p.issues
	}
}

// localAddresses are the virtual addresses of the VirtualDestinations of registered clusters, as their statuses say.
func localAddresses(of policies[*enterprisev1beta1.VirtualDestination]) map[snapshot.Ref]string {
	out := map[snapshot.Ref]string{}
	for ref, p := range of.found {
		if p.read.Status.Address != "" {
			out[ref] = p.read.Status.Address
		}
	}
	return out
}
