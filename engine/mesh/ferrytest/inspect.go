package ferrytest

import (
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// byHand are the Timetables of a cluster.
type byHand struct {
	from *snapshot.Cluster
	refs []snapshot.Ref
}

var _ snapshot.ByHand = (*byHand)(nil)

func inspect(c *snapshot.Cluster, plane snapshot.Plane) snapshot.ByHand {
	h := &byHand{from: c}
	for _, o := range c.OfMeshes[Timetable] {
		if !plane.Generated(o.GetLabels(), c.Name) {
			h.refs = append(h.refs, snapshot.Ref{Kind: Timetable, Cluster: c.Name, Namespace: o.GetNamespace(), Name: o.GetName()})
		}
	}
	return h
}

// strip leaves the name of a Timetable, which says what it is for.
func strip(o snapshot.APIObject) {
	o.SetLabels(nil)
	o.SetAnnotations(nil)
}

// Holds implements snapshot.ByHand.
func (h *byHand) Holds(c *snapshot.Cluster) bool {
	return snapshot.SameSlice(h.from.OfMeshes[Timetable], c.OfMeshes[Timetable])
}

// Empty implements snapshot.ByHand.
func (h *byHand) Empty() bool { return len(h.refs) == 0 }

// Routes implements snapshot.ByHand.
func (h *byHand) Routes(of *snapshot.HostQuery) []snapshot.Intersection {
	var out []snapshot.Intersection
	for _, ref := range h.refs {
		if strings.HasPrefix(of.Host, ref.Name+"."+ref.Namespace+".") {
			out = append(out, snapshot.Intersection{Ref: ref, What: "also says when requests for " + of.Host + " cross", Hint: "delete it"})
		}
	}
	return out
}

// Connections implements snapshot.ByHand: a Timetable says nothing of them.
func (h *byHand) Connections(*snapshot.HostQuery) []snapshot.Intersection { return nil }

// Endpoints implements snapshot.ByHand.
func (h *byHand) Endpoints(*snapshot.HostQuery) []snapshot.Intersection { return nil }

// Takers implements snapshot.ByHand.
func (h *byHand) Takers(*snapshot.HostQuery, *snapshot.PodQuery) []snapshot.Intersection { return nil }

// Access implements snapshot.ByHand.
func (h *byHand) Access(*discoveryv1.KubeService, *snapshot.MeshPlan) []snapshot.Intersection {
	return nil
}

// Tries implements snapshot.ByHand.
func (h *byHand) Tries(*discoveryv1.KubeService, *snapshot.MeshPlan) bool { return false }

// Hides implements snapshot.ByHand.
func (h *byHand) Hides(*snapshot.HostQuery, *snapshot.PodQuery) (snapshot.Intersection, bool) {
	return snapshot.Intersection{}, false
}

// Unknowns implements snapshot.ByHand.
func (h *byHand) Unknowns(*snapshot.PodQuery) (snapshot.Unknowns, snapshot.Ref, bool) {
	return snapshot.UnknownsPassed, snapshot.Ref{}, false
}

// HidesAll implements snapshot.ByHand.
func (h *byHand) HidesAll(string, *snapshot.MeshPlan) []snapshot.Intersection { return nil }

// InAmbient implements snapshot.ByHand.
func (h *byHand) InAmbient(*snapshot.HostQuery, *discoveryv1.KubeService) []snapshot.Intersection {
	return nil
}

// RoutesFor implements snapshot.ByHand.
func (h *byHand) RoutesFor(*snapshot.HostQuery, *snapshot.PodQuery) []snapshot.HandRoutes { return nil }

// ConnectionFor implements snapshot.ByHand.
func (h *byHand) ConnectionFor(*snapshot.HostQuery, *snapshot.PodQuery, string) (snapshot.HandConnection, bool) {
	return snapshot.HandConnection{}, false
}

// AtGateway implements snapshot.ByHand.
func (h *byHand) AtGateway(*snapshot.PodQuery, *snapshot.HostQuery) ([]snapshot.GatewayEntry, string) {
	return nil, ""
}

// SubsetLabels implements snapshot.ByHand.
func (h *byHand) SubsetLabels(*snapshot.HostQuery, *snapshot.PodQuery, string) (map[string]string, bool) {
	return nil, false
}

// Filters implements snapshot.ByHand.
func (h *byHand) Filters(*snapshot.PodQuery, snapshot.ProxySide) []snapshot.Intersection { return nil }

// Guards implements snapshot.ByHand.
func (h *byHand) Guards(*snapshot.PodQuery) []snapshot.Guard { return nil }

// HasFilters implements snapshot.ByHand.
func (h *byHand) HasFilters() bool { return false }

// Egress implements snapshot.ByHand.
func (h *byHand) Egress(*snapshot.PodQuery) []snapshot.Intersection { return nil }
