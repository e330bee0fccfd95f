package explain

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// LossKind says what a Loss is.
type LossKind string

// The kinds of losses, as people write them before a name.
const (
	// LoseCluster: nothing in a cluster answers.
	LoseCluster LossKind = "cluster"
	// LoseRegion: no pod on the nodes of a region answers.
	LoseRegion LossKind = "region"
	// LoseService: no pod behind a service answers.
	LoseService LossKind = "service"
	// LoseSubset: no pod of a subset of a service answers.
	LoseSubset LossKind = "subset"
	// LoseWorkload: no pod of a workload answers.
	LoseWorkload LossKind = "workload"
)

// LossKinds are all, in the order in which a name without a kind is looked for.
func LossKinds() []LossKind {
	return []LossKind{LoseCluster, LoseRegion, LoseService, LoseSubset, LoseWorkload}
}

// Loss is something that does not answer any more. What was written for it stays: an outage is no edit.
type Loss struct {
	Kind LossKind `json:"kind"`
	// Name is that of the cluster, the region, the service or the workload.
	Name string `json:"name"`
	// Ref is the Destination or Workload; zero for clusters and regions.
	Ref snapshot.Ref `json:"ref,omitzero"`
	// Subset is that of the service.
	Subset string `json:"subset,omitempty"`
	// Pods is how many ready pods are lost that are behind services.
	Pods int `json:"pods"`

	labels map[string]string
}

// Text is the loss in words: "cluster cluster-2", "subset version-v3 of service reviews-bookinfo-cluster-2".
func (l *Loss) Text() string {
	if l.Kind == LoseSubset {
		return fmt.Sprintf("subset %s of service %s", l.Subset, l.Name)
	}
	return string(l.Kind) + " " + l.Name
}

// FindLosses lists what people may mean by a name: KIND/NAME, or NAME of any kind. A subset is SERVICE:SUBSET. Of several, the
// name is ambiguous.
func FindLosses(x *Index, name string) []Loss {
	kind, rest, found := strings.Cut(name, "/")
	if slices.Contains(LossKinds(), LossKind(kind)) && found {
		return findLosses(x, LossKind(kind), rest)
	}
	var out []Loss
	for _, kind := range LossKinds() {
		out = append(out, findLosses(x, kind, name)...)
	}
	return out
}

func findLosses(x *Index, kind LossKind, name string) (out []Loss) {
	switch kind {
	case LoseCluster:
		if x.clusters[name] != nil {
			out = append(out, Loss{Kind: kind, Name: name})
		}
	case LoseRegion:
		if slices.Contains(Regions(x), name) {
			out = append(out, Loss{Kind: kind, Name: name})
		}
	case LoseService:
		for _, ref := range x.Find(snapshot.Destination, name) {
			out = append(out, Loss{Kind: kind, Name: ref.Name, Ref: ref})
		}
	case LoseWorkload:
		for _, ref := range x.Find(snapshot.Workload, name) {
			out = append(out, Loss{Kind: kind, Name: ref.Name, Ref: ref})
		}
	case LoseSubset:
		service, subset, found := strings.Cut(name, ":")
		if !found {
			return nil
		}
		for _, ref := range x.Find(snapshot.Destination, service) {
			if with, known := subsetLabels(x.unwritten.viewsOf(x.destinations[ref]), subset); known && subset != "" {
				out = append(out, Loss{Kind: kind, Name: ref.Name, Ref: ref, Subset: subset, labels: with})
			}
		}
	}
	return out
}

// Subsets names the subsets of services as FindLosses takes them, ascending.
func Subsets(x *Index) []string {
	names := map[string]bool{}
	for ref, d := range x.destinations {
		for _, v := range x.unwritten.viewsOf(d) {
			for _, s := range v.Subsets {
				names[ref.Name+":"+s.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Regions are the regions of services and nodes, ascending.
func Regions(x *Index) []string {
	names := map[string]bool{}
	for _, d := range x.destinations {
		if k := d.Destination.Spec.KubeService; k != nil && k.Region != "" {
			names[k.Region] = true
		}
	}
	for _, c := range x.clusters {
		for _, n := range c.Nodes {
			names[n.Labels[corev1.LabelTopologyRegion]] = true
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// Outage is a State in which some pods do not answer, and all else is as it was written last.
type Outage struct {
	Losses []Loss

	state *snapshot.State
	// clusters are lost as a whole, with all callers there; callers are workloads that are lost by themselves.
	clusters map[string]bool
	callers  map[snapshot.Ref]bool
	// gateways are the Destinations of gateways that had pods and have none.
	gateways map[snapshot.Ref]bool
	// unsure are the clusters of which it is not known which pods are in a region that is lost, ascending.
	unsure []string
}

// podAt is the address of a pod in a cluster.
type podAt struct{ cluster, address string }

// NewOutage takes away what is lost.
func NewOutage(x *Index, losses []Loss) *Outage {
	o := &Outage{Losses: slices.Clone(losses), clusters: map[string]bool{}, callers: map[snapshot.Ref]bool{}, gateways: map[snapshot.Ref]bool{}}
	zones := zonesOf(x)
	lost := map[podAt]bool{}
	for i := range o.Losses {
		l := &o.Losses[i]
		switch l.Kind {
		case LoseCluster:
			o.clusters[l.Name] = true
		case LoseWorkload:
			o.callers[l.Ref] = true
		}
		of := map[podAt]bool{}
		for _, d := range x.destinations {
			for _, e := range endpointsOf(d, nil) {
				if o.takes(x, l, d, &e, zones) {
					at := podAt{x.clusterOf(d.Ref), e.IpAddress}
					of[at], lost[at] = true, true
				}
			}
		}
		l.Pods = len(of)
	}
	slices.Sort(o.unsure)
	o.unsure = slices.Compact(o.unsure)
	o.state = o.without(x, lost)
	return o
}

// takes reports whether an endpoint of a service is among what is lost.
func (o *Outage) takes(x *Index, l *Loss, d *snapshot.DestinationPlan, e *discoveryv1.Endpoint, zones map[podAt]string) bool {
	k := d.Destination.Spec.KubeService
	switch l.Kind {
	case LoseCluster:
		return k.Ref.ClusterName == l.Name
	case LoseRegion:
		region := k.Region
		if zone := e.SubLocality; zone != nil && zones[podAt{k.Ref.ClusterName, zone.Zone}] != "" {
			region = zones[podAt{k.Ref.ClusterName, zone.Zone}]
		} else if region == l.Name {
			o.unsure = append(o.unsure, k.Ref.ClusterName)
		}
		return region == l.Name
	case LoseService:
		return d.Ref == l.Ref
	case LoseSubset:
		return d.Ref == l.Ref && hasLabels(e.Labels, l.labels)
	case LoseWorkload:
		w := x.workloads[l.Ref].Spec.Kubernetes
		return w != nil && w.Controller.ClusterName == k.Ref.ClusterName && w.Controller.Namespace == k.Ref.Namespace && maps.Equal(e.Labels, w.PodLabels)
	}
	return false
}

// zonesOf are the regions of zones, by cluster and zone.
func zonesOf(x *Index) map[podAt]string {
	out := map[podAt]string{}
	for _, c := range x.clusters {
		for _, n := range c.Nodes {
			if zone := n.Labels[corev1.LabelTopologyZone]; zone != "" {
				out[podAt{c.Name, zone}] = cmp.Or(out[podAt{c.Name, zone}], n.Labels[corev1.LabelTopologyRegion])
			}
		}
	}
	return out
}

// without is the State with services that lack some pods.
func (o *Outage) without(x *Index, lost map[podAt]bool) *snapshot.State {
	state, plan := *x.state, *x.state.Plan
	changed, i := map[int]*snapshot.DestinationPlan{}, -1
	for d := range x.state.Plan.Destinations.All() {
		i++
		k := d.Destination.Spec.KubeService
		if k == nil || !slices.ContainsFunc(endpointsOf(d, nil), func(e discoveryv1.Endpoint) bool { return lost[podAt{k.Ref.ClusterName, e.IpAddress}] }) {
			continue
		}
		own, destination, service := *d, d.Destination.DeepCopy(), k.DeepCopy()
		left := 0
		for j := range service.EndpointSubsets {
			part := &service.EndpointSubsets[j]
			part.Endpoints = slices.DeleteFunc(part.Endpoints, func(e discoveryv1.Endpoint) bool { return lost[podAt{k.Ref.ClusterName, e.IpAddress}] })
			left += len(part.Endpoints)
		}
		destination.Spec.KubeService, own.Destination = service, destination
		changed[i] = &own
		if left == 0 && isPassage(x, d.Ref) {
			o.gateways[d.Ref] = true
		}
	}
	plan.Destinations = plan.Destinations.With(changed)
	state.Plan = &plan
	for _, m := range x.state.Plan.Meshes {
		for j := range m.Gateways {
			if g := &m.Gateways[j]; o.takesGateway(x, m, g) {
				o.gateways[g.Destination] = true
			}
		}
	}
	return &state
}

// takesGateway reports whether a gateway is among what is lost by its name: the ready pods of gateways may not be known.
func (o *Outage) takesGateway(x *Index, m *snapshot.MeshPlan, g *snapshot.GatewayPlan) bool {
	return o.clusters[m.Cluster] || slices.ContainsFunc(o.Losses, func(l Loss) bool {
		if l.Kind != LoseWorkload {
			return l.Kind == LoseService && l.Ref == g.Destination
		}
		d, w := x.destinations[g.Destination], x.workloads[l.Ref].Spec.Kubernetes
		known := d != nil && len(endpointsOf(d, nil)) > 0 // then it counts which are left
		return !known && w != nil && w.Controller.ClusterName == m.Cluster && w.Controller.Namespace == g.Service.Namespace && hasLabels(w.PodLabels, g.Selector)
	})
}

// isPassage reports whether a Destination is a gateway for calls between clusters.
func isPassage(x *Index, ref snapshot.Ref) bool {
	return slices.ContainsFunc(x.state.Plan.Meshes, func(m *snapshot.MeshPlan) bool {
		return slices.ContainsFunc(m.Gateways, func(g snapshot.GatewayPlan) bool { return g.Destination == ref })
	})
}

// Index answers questions about the Outage. Build is New, NewLive or NewStored.
func (o *Outage) Index(build func(*snapshot.State) *Index) *Index {
	y := build(o.state)
	y.down = o.gateways
	return y
}

// gatewaysDown says that none of some gateways answers, because of an Outage or as none of their pods is ready; empty if one may.
func gatewaysDown(x *Index, gateways []snapshot.GatewayPlan) string {
	if len(gateways) == 0 || slices.ContainsFunc(gateways, func(g snapshot.GatewayPlan) bool { return !g.NoPods && !x.down[g.Destination] }) {
		return ""
	}
	names := make([]string, len(gateways))
	for i := range gateways {
		names[i] = gateways[i].Destination.Name
	}
	return "no pod of the gateways on the way is ready: " + firstOf(names)
}

// NoteAssumed notes what an answer assumes.
func NoteAssumed(x *Index, w *Why, losses []Loss) {
	if w == nil {
		return
	}
	for i := range losses {
		l := &losses[i]
		w.Notes = append(w.Notes, "assumed not to answer: "+l.Text())
		if l.Ref == w.From || l.Kind == LoseCluster && l.Name == x.clusterOfWorkload(w.From) {
			w.Notes = append(w.Notes, "the callers are lost, too: this is what would become of their requests if they were not")
		}
	}
}
