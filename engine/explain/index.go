package explain

import (
	"slices"
	"strings"
	"time"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Index is a State indexed for questions.
type Index struct {
	state               *snapshot.State
	clusters            map[string]*snapshot.Cluster
	meshes              map[snapshot.Ref]*snapshot.MeshPlan
	destinations        map[snapshot.Ref]*snapshot.DestinationPlan
	workloads           map[snapshot.Ref]*discoveryv1.Workload
	virtualMeshes       map[snapshot.Ref]*snapshot.VirtualMeshPlan
	sidecars            map[snapshot.Ref]*snapshot.SidecarPlan // of each workload that has one
	dependencies        map[snapshot.Ref]*snapshot.DependencyPlan
	virtualDestinations map[snapshot.Ref]*snapshot.VirtualDestinationPlan
	policies            map[snapshot.Ref]*snapshot.PolicyPlan
	issues              issueBook
	statuses            map[snapshot.Ref]*snapshot.Status
	kinds               map[snapshot.Kind]describedKind
	outside             *outside
	unwritten           unwritten
	// audited is what would be if all that is audited was enforced; nil if nothing is.
	audited *Index
	// stored are the statuses that a server has written; nil if none is looked
	// at. See NewLive.
	stored map[snapshot.Ref]*storedStatus
	// unread: the clusters themselves were not read; see NewStored.
	unread bool
	// departed are the Destinations that the server does not count any more, or not yet, with that as a sentence. See findDeparted.
	departed map[snapshot.Ref]string
	// pending are policies and VirtualMeshes of which the server has not processed
	// the latest version.
	pending map[snapshot.Ref]bool

	// drifts are the generated objects that are not as they should be, by themselves and by
	// what they were made of and for; unobserved are the clusters of which that is not known,
	// with the reason. See Observe.
	drifts     map[snapshot.Ref][]snapshot.Drift
	unobserved map[string]string
	// down are the gateways that do not answer, by assumption; see Outage.
	down map[snapshot.Ref]bool
	// sight is Evidence, indexed; nil if nobody counts. See WithEvidence.
	sight *sight
	// created is when the generated objects of which age decides were.
	created map[snapshot.Ref]time.Time
}

// New indexes a State. It does not change it.
func New(state *snapshot.State) *Index {
	x := &Index{
		state:               state,
		clusters:            map[string]*snapshot.Cluster{},
		meshes:              map[snapshot.Ref]*snapshot.MeshPlan{},
		destinations:        map[snapshot.Ref]*snapshot.DestinationPlan{},
		workloads:           map[snapshot.Ref]*discoveryv1.Workload{},
		virtualMeshes:       map[snapshot.Ref]*snapshot.VirtualMeshPlan{},
		sidecars:            map[snapshot.Ref]*snapshot.SidecarPlan{},
		dependencies:        map[snapshot.Ref]*snapshot.DependencyPlan{},
		virtualDestinations: map[snapshot.Ref]*snapshot.VirtualDestinationPlan{},
		policies:            make(map[snapshot.Ref]*snapshot.PolicyPlan, len(state.Plan.Policies)),
		issues:              newIssueBook(state),
		statuses:            map[snapshot.Ref]*snapshot.Status{},
		kinds:               map[snapshot.Kind]describedKind{},
	}
	for _, c := range state.Input.Clusters {
		x.clusters[c.Name] = c
	}
	for _, m := range state.Plan.Meshes {
		x.meshes[m.Ref] = m
	}
	x.outside = newOutside(state, x.clusters)
	x.unwritten = newUnwritten(state.Output)
	for d := range state.Plan.Destinations.All() {
		x.destinations[d.Ref] = d
		x.outside.addRestricted(d)
	}
	for _, v := range state.Plan.VirtualMeshes {
		x.virtualMeshes[v.Ref] = v
	}
	for _, p := range state.Plan.Dependencies {
		x.dependencies[p.Ref] = p
	}
	for _, v := range state.Plan.VirtualDestinations {
		x.virtualDestinations[v.Ref] = v
	}
	for _, p := range state.Plan.Policies {
		x.policies[p.Ref] = p
	}
	for _, s := range state.Plan.Sidecars {
		for _, ref := range s.Workloads {
			if x.sidecars[ref] == nil {
				x.sidecars[ref] = s
			}
		}
	}
	for _, o := range state.Plan.Workloads {
		x.workloads[snapshot.RefOf(snapshot.Workload, o)] = o
	}
	for s := range state.Output.Statuses.All() {
		x.statuses[s.Ref] = s
	}
	for _, k := range describedKinds(x) {
		x.kinds[k.kind] = k
	}
	if state.Audited != nil {
		x.audited = New(state.Audited)
	}
	return x
}

// sortedRefs are the keys of a map, ascending.
func sortedRefs[T any](m map[snapshot.Ref]T) []snapshot.Ref {
	refs := make([]snapshot.Ref, 0, len(m))
	for ref := range m {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, snapshot.Ref.Compare)
	return refs
}

// Find lists the objects of a kind that people may mean by a name: the one of
// exactly that name or, of policies, that identity, or else those of whose source it is the name, written
// reviews, reviews.bookinfo or reviews.bookinfo.cluster-1.
func (x *Index) Find(kind snapshot.Kind, name string) []snapshot.Ref {
	var exact, called []snapshot.Ref
	for _, ref := range x.Refs(kind) {
		if ref.Name == name || ref.Cluster == "" && ref.Namespace+"/"+ref.Name == name || ref.Kind.Info().Access&snapshot.InClusters != 0 && ref.Identity() == name {
			exact = append(exact, ref)
		}
		source := x.source(ref)
		if source == name || strings.HasPrefix(source, name+".") {
			called = append(called, ref)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return called
}

// Called are the names by which people may call an object, beside its own: those that Find takes.
func (x *Index) Called(ref snapshot.Ref) []string {
	source := x.source(ref)
	if source == ref.Name {
		return nil
	}
	var out []string
	for i, letter := range source {
		if letter == '.' {
			out = append(out, source[:i])
		}
	}
	return append(out, source)
}

// source is <name>.<namespace>.<cluster> of the object that ref was discovered from.
func (x *Index) source(ref snapshot.Ref) string {
	switch ref.Kind {
	case snapshot.Destination:
		if d := x.destinations[ref].Destination; d.Spec.KubeService != nil {
			s := d.Spec.KubeService.Ref
			return s.Name + "." + s.Namespace + "." + s.ClusterName
		}
	case snapshot.Workload:
		if k := x.workloads[ref].Spec.Kubernetes; k != nil {
			return k.Controller.Name + "." + k.Controller.Namespace + "." + k.Controller.ClusterName
		}
	}
	return ref.Name
}

// frozenReason says why nothing is changed in a cluster; empty if something may be.
func (x *Index) frozenReason(cluster string) string {
	if o := outageOf(x, cluster); o != nil {
		return o.What
	}
	return ""
}

// outageOf is why nothing is changed in a cluster; nil if something may be.
func outageOf(x *Index, cluster string) *snapshot.Outage {
	if x.unread || onlyByAgent(x, cluster) {
		return x.storedOutage(cluster)
	}
	c := x.clusters[cluster]
	if c == nil {
		return snapshot.NewOutage(cluster, "", "not registered")
	}
	o := c.Outage()
	if o != nil && o.What == "" {
		o.What = "nothing was read from it yet"
	}
	return o
}

// clusterOfWorkload is the cluster of a Workload; empty if it has none.
func (x *Index) clusterOfWorkload(workload snapshot.Ref) string {
	if o := x.workloads[workload]; o != nil && o.Spec.Kubernetes != nil {
		return o.Spec.Kubernetes.Controller.ClusterName
	}
	return ""
}

// clusterOf is the cluster of a Destination's Service; empty if it has none.
func (x *Index) clusterOf(destination snapshot.Ref) string {
	if d := x.destinations[destination]; d != nil && d.Destination.Spec.KubeService != nil {
		return d.Destination.Spec.KubeService.Ref.ClusterName
	}
	return ""
}
