package discovery

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// StoredNames are the names of the stored Meshes, Workloads and Destinations, with the
// source of each. A name belongs to its source as long as the object is stored. The
// zero StoredNames are none.
type StoredNames struct {
	meshes       []*discoveryv1.Mesh
	workloads    []*discoveryv1.Workload
	destinations []*discoveryv1.Destination
	// sources are by kind and name.
	sources map[snapshot.Kind]map[string]snapshot.Ref
	// hashed are names, ascending, that do not end in what their parts end in: all
	// that have a hash, and those that were too long.
	hashed map[snapshot.Ref][]string
}

// The source of a discovered object is the control plane, controller or Service of
// which it says that it was made; without a name for a Mesh, whose own name has it. It
// is empty if the object does not say.

func meshSource(o *discoveryv1.Mesh) snapshot.Ref {
	_, at := snapshot.MeshType(&o.Spec)
	if at.Cluster == "" {
		return snapshot.Ref{}
	}
	return snapshot.Ref{Kind: snapshot.Mesh, Cluster: at.Cluster, Namespace: at.Namespace}
}

func workloadSource(o *discoveryv1.Workload) snapshot.Ref {
	if o.Spec.Kubernetes == nil {
		return snapshot.Ref{}
	}
	c := &o.Spec.Kubernetes.Controller
	return snapshot.Ref{Kind: snapshot.Workload, Cluster: c.ClusterName, Namespace: c.Namespace, Name: c.Name}
}

// destinationSource is the Destination itself if a user wrote it.
func destinationSource(o *discoveryv1.Destination) snapshot.Ref {
	switch {
	case o.Spec.KubeService != nil:
		s := &o.Spec.KubeService.Ref
		return snapshot.Ref{Kind: snapshot.Destination, Cluster: s.ClusterName, Namespace: s.Namespace, Name: s.Name}
	case o.Spec.ExternalService != nil:
		return snapshot.RefOf(snapshot.Destination, o)
	}
	return snapshot.Ref{}
}

// SourceChanged reports whether a discovered object has another source than the stored
// one, or none. Only a translation without the stored objects can give it such a name.
func SourceChanged(before, now metav1.Object) bool {
	was := sourceOf(before)
	return was.Cluster != "" && was != sourceOf(now)
}

func sourceOf(o metav1.Object) snapshot.Ref {
	switch o := o.(type) {
	case *discoveryv1.Mesh:
		return meshSource(o)
	case *discoveryv1.Workload:
		return workloadSource(o)
	case *discoveryv1.Destination:
		return destinationSource(o)
	}
	return snapshot.Ref{}
}

// Update is the names of what is stored now: n itself as long as no name appears,
// disappears or gets another source, and no Destination gets another mesh or owner. It costs
// little where only statuses changed.
func (n *StoredNames) Update(m *snapshot.Management) *StoredNames {
	if sameNames(n.meshes, m.Meshes, sameSource(meshSource)) && sameNames(n.workloads, m.Workloads, sameSource(workloadSource)) &&
		sameNames(n.destinations, m.Destinations, sameDestination) {
		n.meshes, n.workloads, n.destinations = m.Meshes, m.Workloads, m.Destinations // the next comparison is by pointer
		return n
	}
	out := &StoredNames{
		meshes: m.Meshes, workloads: m.Workloads, destinations: m.Destinations,
		sources: map[snapshot.Kind]map[string]snapshot.Ref{}, hashed: map[snapshot.Ref][]string{},
	}
	namespace := Options{Namespace: m.Namespace}.namespace()
	addNames(out, snapshot.Mesh, namespace, m.Meshes, meshSource)
	addNames(out, snapshot.Workload, namespace, m.Workloads, workloadSource)
	addNames(out, snapshot.Destination, namespace, m.Destinations, destinationSource)
	return out
}

// sameNames compares two lists by name, and otherwise by same.
func sameNames[T interface {
	comparable
	named
}](a, b []T, same func(a, b T) bool) bool {
	return snapshot.SameSlice(a, b) || slices.EqualFunc(a, b, func(a, b T) bool {
		return a == b || a.GetName() == b.GetName() && same(a, b)
	})
}

func sameSource[T any](source func(T) snapshot.Ref) func(a, b T) bool {
	return func(a, b T) bool { return source(a) == source(b) }
}

// sameDestination compares all that names and lastMeshOf follow from.
func sameDestination(a, b *discoveryv1.Destination) bool {
	noProxies := func(d *discoveryv1.Destination) bool {
		return d.Spec.KubeService != nil && d.Spec.KubeService.NoProxies
	}
	return destinationSource(a) == destinationSource(b) && noProxies(a) == noProxies(b) && a.Namespace == b.Namespace && maps.Equal(a.Labels, b.Labels) &&
		(a.Spec.Mesh == b.Spec.Mesh || a.Spec.Mesh != nil && b.Spec.Mesh != nil && *a.Spec.Mesh == *b.Spec.Mesh)
}

func addNames[T object](n *StoredNames, kind snapshot.Kind, namespace string, list []T, source func(T) snapshot.Ref) {
	sources := make(map[string]snapshot.Ref, len(list))
	endings := map[string][]string{} // by cluster
	for _, o := range list {
		from := source(o)
		if o.GetNamespace() != namespace || from == (snapshot.Ref{}) {
			continue
		}
		if _, ok := endings[from.Cluster]; !ok {
			endings[from.Cluster] = nameEndings(kind, from.Cluster)
		}
		name := o.GetName()
		sources[name] = from
		if !slices.ContainsFunc(endings[from.Cluster], func(e string) bool { return strings.HasSuffix(name, e) }) && !endsInKind(o, from.Cluster) {
			n.hashed[from] = append(n.hashed[from], name)
		}
	}
	n.sources[kind] = sources
}

// endsInKind reports whether an object is a Workload whose name ends in a kind that nameEndings does not know.
func endsInKind(o object, cluster string) bool {
	wl, is := o.(*discoveryv1.Workload)
	if !is || wl.Spec.Kubernetes.ControllerKind == "" {
		return false
	}
	return strings.HasSuffix(wl.Name, "-"+snapshot.Sanitize(cluster)+"-"+strings.ToLower(wl.Spec.Kubernetes.ControllerKind))
}

// nameEndings are what names of a kind end in, unless they have a hash.
func nameEndings(kind snapshot.Kind, cluster string) []string {
	ending := "-" + snapshot.Sanitize(cluster)
	if kind != snapshot.Workload {
		return []string{ending}
	}
	var out []string
	for _, controller := range controllerKinds {
		out = append(out, ending+"-"+strings.ToLower(controller.String()))
	}
	return out
}

// source is the one of the object that is stored under a name; false if there is none.
func (n *StoredNames) source(kind snapshot.Kind, name string) (snapshot.Ref, bool) {
	source, ok := n.sources[kind][name]
	return source, ok
}

// sourcesIn are the names of the sources of the stored objects of a kind in a namespace of
// a cluster.
func (n *StoredNames) sourcesIn(kind snapshot.Kind, cluster, namespace string) map[string]bool {
	out := map[string]bool{}
	if n == nil {
		return out
	}
	for _, source := range n.sources[kind] {
		if source.Cluster == cluster && source.Namespace == namespace {
			out[source.Name] = true
		}
	}
	return out
}

// names are those under which a source may be stored: the one that its parts join to,
// the one that it has within its cluster, and those with a hash.
func (n *StoredNames) names(c *claim) []string {
	var out []string
	for _, name := range append([]string{c.joined, c.given}, n.hashed[c.source]...) {
		if source, ok := n.source(c.kind, name); ok && source == c.source && (name == c.joined || name == c.given || isHashedName(name, c.joined)) {
			out = append(out, name)
		}
	}
	return out
}

// concern reports whether an object of a cluster may get another name than it has
// there: because it is stored under another one, or another object under its name.
func (n *StoredNames) concern(d *snapshot.Discovered) bool {
	return concerns(n, snapshot.Mesh, d.Meshes, meshSource) || concerns(n, snapshot.Workload, d.Workloads, workloadSource) ||
		concerns(n, snapshot.Destination, d.Destinations, destinationSource)
}

func concerns[T named](n *StoredNames, kind snapshot.Kind, list []T, source func(T) snapshot.Ref) bool {
	sources := n.sources[kind]
	for _, o := range list {
		at, stored := sources[o.GetName()]
		if stored && at != source(o) || !stored && len(n.hashed) > 0 && len(n.hashed[source(o)]) > 0 {
			return true
		}
	}
	return false
}
