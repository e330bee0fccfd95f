package policy

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// filtered finds, for the policies of one pass, the objects that users wrote which change what proxies do with requests, and are not
// evaluated: no policy is in force as it says where they apply. Nil if there are none.
type filtered struct {
	env *environment
	// hand is what users wrote for the meshes that have such objects.
	hand map[commonv1.ObjectRef]snapshot.ByHand
	// to and from are those that apply to a Destination and to a workload, by index.
	to, from map[int][]snapshot.Intersection
	// index has the workloads of these meshes, and fromMesh what applies to any of a mesh.
	index    map[snapshot.Ref]int
	fromMesh map[commonv1.ObjectRef][]snapshot.Intersection
}

// withFilters are the hand-written filters by mesh. They are looked for again if such an object
// changed, or the environment did.
func withFilters(r *reconciler) map[commonv1.ObjectRef]snapshot.ByHand {
	if !r.rebuilt && !r.handWrittenChanged && r.filters != nil {
		return r.filters
	}
	r.filters = map[commonv1.ObjectRef]snapshot.ByHand{}
	for _, mesh := range r.env.topology.Meshes {
		if of := r.env.byHand.of[mesh.Cluster].on(mesh); of != nil && of.HasFilters() {
			r.filters[commonv1.ObjectRef{Name: mesh.Ref.Name, Namespace: mesh.Ref.Namespace}] = of
		}
	}
	return r.filters
}

func newFiltered(r *reconciler) *filtered {
	hand := withFilters(r)
	if len(hand) == 0 {
		return nil
	}
	f := &filtered{
		env: r.env, hand: hand, to: map[int][]snapshot.Intersection{}, from: map[int][]snapshot.Intersection{},
		index: map[snapshot.Ref]int{}, fromMesh: map[commonv1.ObjectRef][]snapshot.Intersection{},
	}
	for i, w := range r.env.inv.Workloads {
		if w.Spec.Kubernetes != nil && hand[w.Spec.Mesh] != nil {
			f.index[snapshot.RefOf(snapshot.Workload, w)] = i
		}
	}
	return f
}

// found is an object, and to what of a policy it applies.
type found struct {
	snapshot.Intersection
	destinations int
	first        string
	callers      bool
}

// issues are those about a policy that selects some Destinations and callers: one for each object. With more callers than are listed,
// those of all workloads of the calling meshes are taken.
func (f *filtered) issues(ref snapshot.Ref, selected []int, callers inventory.WorkloadList) (issues []snapshot.Issue) {
	if f == nil || len(selected) == 0 {
		return nil
	}
	var all []*found
	at := func(x snapshot.Intersection) *found {
		if i := slices.IndexFunc(all, func(o *found) bool { return o.Ref == x.Ref }); i >= 0 {
			return all[i]
		}
		all = append(all, &found{Intersection: x})
		return all[len(all)-1]
	}
	for _, i := range selected {
		for _, x := range f.ofDestination(i) {
			one := at(x)
			if one.destinations++; one.first == "" {
				one.first = inventory.ServiceName(f.env.inv.Destinations[i].Spec.KubeService.Ref)
			}
		}
	}
	for _, x := range f.ofCallers(selected, callers) {
		at(x).callers = true
	}
	slices.SortFunc(all, func(a, b *found) int { return a.Ref.Compare(b.Ref) })
	for _, one := range all {
		issues = append(issues, handWrittenWarning(snapshot.Intersection{
			Ref: one.Ref, What: "applies to " + one.whom() + ", and " + one.What, Hint: cmp.Or(one.Hint, "nothing says what it does: send requests, or read its configuration"),
		}).On(ref, snapshot.Ref{}))
	}
	return issues
}

// whom says to what it applies.
func (o *found) whom() string {
	pods := ""
	switch {
	case o.destinations == 1:
		pods = "pods of " + o.first
	case o.destinations > 1:
		pods = fmt.Sprintf("pods of %s and %d more", o.first, o.destinations-1)
	}
	switch {
	case !o.callers:
		return pods
	case pods == "":
		return "callers"
	}
	return pods + " and to callers"
}

// ofCallers are those that apply to callers of a policy.
// podPorts are the ports of the pods of a service.
func podPorts(k *discoveryv1.KubeService) (ports []uint32) {
	for i := range k.EndpointSubsets {
		for _, p := range k.EndpointSubsets[i].Ports {
			ports = append(ports, p.Port)
		}
	}
	return ports
}

func (f *filtered) ofCallers(selected []int, listed inventory.WorkloadList) (out []snapshot.Intersection) {
	if listed.Count <= len(listed.First) {
		for _, ref := range listed.First {
			if i, known := f.index[ref]; known {
				out = append(out, f.ofCaller(i)...)
			}
		}
		return out
	}
	for mesh := range f.env.topology.CallingMeshes(selected) {
		if f.hand[mesh] == nil {
			continue
		}
		all, known := f.fromMesh[mesh]
		if !known {
			for _, i := range f.index {
				if f.env.inv.Workloads[i].Spec.Mesh == mesh {
					all = append(all, f.ofCaller(i)...)
				}
			}
			slices.SortFunc(all, func(a, b snapshot.Intersection) int { return a.Ref.Compare(b.Ref) })
			all = slices.CompactFunc(all, func(a, b snapshot.Intersection) bool { return a.Ref == b.Ref })
			f.fromMesh[mesh] = all
		}
		out = append(out, all...)
	}
	return out
}

func (f *filtered) ofDestination(i int) []snapshot.Intersection {
	if known, ok := f.to[i]; ok {
		return known
	}
	d := f.env.inv.Destinations[i]
	mesh := f.env.topology.MeshOf(d)
	var out []snapshot.Intersection
	if mesh != nil && f.hand[*d.Spec.Mesh] != nil {
		out = f.hand[*d.Spec.Mesh].Filters(&snapshot.PodQuery{Mesh: mesh, Namespace: d.Spec.KubeService.Ref.Namespace, Pods: podsOfService(d.Spec.KubeService), Ports: podPorts(d.Spec.KubeService)}, snapshot.SideInbound)
	}
	f.to[i] = out
	return out
}

// podsOfService are the labels of the pods of a service: of those that are ready, or else those that will be.
func podsOfService(k *discoveryv1.KubeService) (pods []map[string]string) {
	for i := range k.EndpointSubsets {
		if part := &k.EndpointSubsets[i]; !part.NoProxy {
			for j := range part.Endpoints {
				pods = append(pods, part.Endpoints[j].Labels)
			}
		}
	}
	if len(pods) == 0 && len(k.EndpointSubsets) == 0 {
		pods = append(pods, k.WorkloadSelectorLabels)
	}
	return pods
}

func (f *filtered) ofCaller(i int) []snapshot.Intersection {
	if known, ok := f.from[i]; ok {
		return known
	}
	w := f.env.inv.Workloads[i]
	k, side := w.Spec.Kubernetes, snapshot.SideOutbound
	if k.Gateway {
		side = snapshot.SideGateway
	}
	out := f.hand[w.Spec.Mesh].Filters(&snapshot.PodQuery{
		Mesh: f.env.topology.Mesh(w.Spec.Mesh), Namespace: k.Controller.Namespace, Pods: append([]map[string]string{k.PodLabels}, k.OtherPodLabels...),
	}, side)
	f.from[i] = out
	return out
}

// filterRecord is what was found about a policy.
type filterRecord struct{ issues []snapshot.Issue }

// update takes what is found now, and reports whether it differs.
func (r *filterRecord) update(now []snapshot.Issue) bool {
	if reflect.DeepEqual(r.issues, now) {
		return false
	}
	r.issues = now
	return true
}
