package inventory

import (
	"maps"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Inventory indexes what was discovered in all clusters. It never changes once built.
type Inventory struct {
	// Meshes, Workloads and Destinations are ascending by name.
	Meshes       []*discoveryv1.Mesh
	Workloads    []*discoveryv1.Workload
	Destinations []*discoveryv1.Destination

	services map[serviceKey]int
	// aliases are the Services that only stand for other names.
	aliases  map[serviceKey]snapshot.Alias
	domains  map[string]string
	accounts map[string]map[accountNamespace]bool
	// workloadsOf is the number of workloads of each mesh, and ambientOf are the indexes of those of them that are in ambient mode.
	workloadsOf map[commonv1.ObjectRef]int
	ambientOf   map[commonv1.ObjectRef][]int
	// asking are the meshes with workloads that have DNS servers resolve hosts if it is for the settings of the mesh.
	asking map[commonv1.ObjectRef]bool

	workloadIndex, destinationIndex namespaceIndex
}

// serviceKey names a Service.
type serviceKey struct{ cluster, namespace, name string }

// accountNamespace is a namespace with workloads that run under an account.
type accountNamespace struct{ cluster, namespace string }

// New indexes what was discovered. The clusters give the DNS domains.
func New(discovered []*snapshot.Discovered, clusters []*snapshot.Cluster) *Inventory {
	inv := &Inventory{
		domains:  make(map[string]string, len(clusters)),
		accounts: map[string]map[accountNamespace]bool{},
		aliases:  map[serviceKey]snapshot.Alias{},

		workloadsOf: map[commonv1.ObjectRef]int{},
		ambientOf:   map[commonv1.ObjectRef][]int{},
		asking:      map[commonv1.ObjectRef]bool{},
	}
	for _, c := range clusters {
		inv.domains[c.Name] = c.DomainOrDefault()
	}
	var meshes, workloads, destinations int
	for _, d := range discovered {
		meshes, workloads, destinations = meshes+len(d.Meshes), workloads+len(d.Workloads), destinations+len(d.Destinations)
	}
	inv.Meshes = make([]*discoveryv1.Mesh, 0, meshes)
	inv.Workloads = make([]*discoveryv1.Workload, 0, workloads)
	inv.Destinations = make([]*discoveryv1.Destination, 0, destinations)
	for _, d := range discovered {
		inv.Meshes = append(inv.Meshes, d.Meshes...)
		inv.Workloads = append(inv.Workloads, d.Workloads...)
		inv.Destinations = append(inv.Destinations, d.Destinations...)
		for _, a := range d.Aliases {
			inv.aliases[serviceKey{d.Cluster, a.Namespace, a.Name}] = a
		}
	}
	slices.SortFunc(inv.Meshes, func(a, b *discoveryv1.Mesh) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(inv.Workloads, func(a, b *discoveryv1.Workload) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(inv.Destinations, func(a, b *discoveryv1.Destination) int { return strings.Compare(a.Name, b.Name) })
	inv.fill()
	return inv
}

func (inv *Inventory) fill() {
	inv.services = make(map[serviceKey]int, len(inv.Destinations))
	inv.workloadIndex, inv.destinationIndex = indexWorkloads(inv.Workloads), indexDestinations(inv.Destinations)
	for i, d := range inv.Destinations {
		if d.Spec.KubeService == nil {
			continue
		}
		ref := d.Spec.KubeService.Ref
		inv.services[serviceKey{ref.ClusterName, ref.Namespace, ref.Name}] = i
	}
	for i, w := range inv.Workloads {
		inv.workloadsOf[w.Spec.Mesh]++
		if k := w.Spec.Kubernetes; k != nil && k.DataPlaneMode.IsAmbient() {
			inv.ambientOf[w.Spec.Mesh] = append(inv.ambientOf[w.Spec.Mesh], i)
		}
		if asksServers(w.Spec.Kubernetes) {
			inv.asking[w.Spec.Mesh] = true
		}
		if k := w.Spec.Kubernetes; k != nil && k.ServiceAccountName != "" {
			at := accountNamespace{k.Controller.ClusterName, k.Controller.Namespace}
			places := inv.accounts[k.ServiceAccountName]
			if places == nil {
				places = map[accountNamespace]bool{}
				inv.accounts[k.ServiceAccountName] = places
			}
			places[at] = true
		}
	}
}

// IndexOf finds the index of a Destination.
func (inv *Inventory) IndexOf(ref snapshot.Ref) (int, bool) {
	return slices.BinarySearchFunc(inv.Destinations, ref.Name, func(d *discoveryv1.Destination, name string) int {
		return strings.Compare(d.Name, name)
	})
}

// IndexOfService finds the index of a Service's Destination.
func (inv *Inventory) IndexOfService(ref commonv1.ClusterObjectRef) (int, bool) {
	i, ok := inv.services[serviceKey{ref.ClusterName, ref.Namespace, ref.Name}]
	return i, ok
}

// NotDiscovered is the issue with a field that names a Service which is no Destination. The hint is for one of which no more is known.
func (inv *Inventory) NotDiscovered(field string, ref commonv1.ClusterObjectRef, hint string) snapshot.Issue {
	if a, ok := inv.aliases[serviceKey{ref.ClusterName, ref.Namespace, ref.Name}]; ok {
		what, next := a.Reason()
		return snapshot.Errorf(snapshot.NoDestination, next, "%s: service %s is no destination: %s", field, ServiceName(ref), what).At(field)
	}
	if meant := inv.nearest(ref); meant != "" {
		hint = "did you mean " + meant + "? If not, " + hint
	}
	return snapshot.Errorf(snapshot.DestinationNotFound, hint, "%s: service %s was not discovered", field, ServiceName(ref)).At(field)
}

// nearest is the service that is meant by a reference to none: one with a similar name in the same namespace and cluster, in that order
// one of the same name elsewhere; empty if there is none.
func (inv *Inventory) nearest(ref commonv1.ClusterObjectRef) string {
	var beside []string
	elsewhere := -1
	for i := range inv.destinationIndex {
		b := &inv.destinationIndex[i]
		switch sameName, sameCluster := b.namespace.Name == ref.Namespace, b.namespace.Cluster == ref.ClusterName; {
		case sameName && sameCluster:
			for _, member := range b.members {
				beside = append(beside, inv.Destinations[member].Spec.KubeService.Ref.Name)
			}
		case sameName || sameCluster:
			if at, ok := inv.services[serviceKey{b.namespace.Cluster, b.namespace.Name, ref.Name}]; ok && (elsewhere < 0 || at < elsewhere) {
				elsewhere = at
			}
		}
	}
	if name := snapshot.Nearest(ref.Name, beside); name != "" {
		return name
	}
	if elsewhere >= 0 {
		return ServiceName(inv.Destinations[elsewhere].Spec.KubeService.Ref)
	}
	return ""
}

// LocalFQDN is the name of a Service in its own cluster.
func (inv *Inventory) LocalFQDN(ref commonv1.ClusterObjectRef) string {
	return ref.Name + "." + ref.Namespace + ".svc." + inv.Domain(ref.ClusterName)
}

// Domain is the DNS suffix of a cluster's Services.
func (inv *Inventory) Domain(cluster string) string {
	if domain := inv.domains[cluster]; domain != "" {
		return domain
	}
	return "cluster.local"
}

// Clusters are the names of all clusters, ascending.
func (inv *Inventory) Clusters() []string { return slices.Sorted(maps.Keys(inv.domains)) }

// NamespacesOf are the namespaces of a cluster in which workloads run under a service
// account, ascending.
func (inv *Inventory) NamespacesOf(account, cluster string) []string {
	var out []string
	for at := range inv.accounts[account] {
		if at.cluster == cluster {
			out = append(out, at.namespace)
		}
	}
	slices.Sort(out)
	return out
}

// DestinationRef refers to a Destination.
func DestinationRef(d *discoveryv1.Destination) snapshot.Ref {
	return snapshot.RefOf(snapshot.Destination, d)
}

// ServiceRef refers to the Service behind a Destination.
func ServiceRef(d *discoveryv1.Destination) snapshot.Ref {
	s := d.Spec.KubeService.Ref
	return snapshot.Ref{Kind: snapshot.Service, Cluster: s.ClusterName, Namespace: s.Namespace, Name: s.Name}
}

// ServiceName is how messages name a Service: name.namespace.cluster.
func ServiceName(ref commonv1.ClusterObjectRef) string {
	return ref.Name + "." + ref.Namespace + "." + ref.ClusterName
}
