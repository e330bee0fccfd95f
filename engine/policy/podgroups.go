package policy

import (
	"maps"
	"slices"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// podPlaces indexes the workloads of each namespace by the labels of their pods:
// by labels only can a mesh be told which pods are meant.
type podPlaces struct {
	gateways map[int]bool
	// members are the workloads of a namespace but for gateways, and labelled
	// those of them with a label, both ascending.
	members  map[inventory.Namespace][]int
	labelled map[inventory.Namespace]map[[2]string][]int
}

func newPodPlaces(w *world) *podPlaces {
	p := &podPlaces{
		gateways: w.topology.GatewayWorkloads(), members: map[inventory.Namespace][]int{}, labelled: map[inventory.Namespace]map[[2]string][]int{},
	}
	for i, workload := range w.inv.Workloads {
		k := workload.Spec.Kubernetes
		if k == nil || p.gateways[i] {
			continue
		}
		at := inventory.NamespaceOf(k)
		p.members[at] = append(p.members[at], i)
		if p.labelled[at] == nil {
			p.labelled[at] = map[[2]string][]int{}
		}
		for name, value := range k.PodLabels {
			label := [2]string{name, value}
			p.labelled[at][label] = append(p.labelled[at][label], i)
		}
	}
	return p
}

// covered lists the workloads whose pods have all labels of a workload's: what a
// selector of these labels selects.
func (p *podPlaces) covered(w *world, i int) []int {
	k := w.inv.Workloads[i].Spec.Kubernetes
	at := inventory.NamespaceOf(k)
	among := p.members[at]
	for name, value := range k.PodLabels {
		if with := p.labelled[at][[2]string{name, value}]; len(with) < len(among) {
			among = with
		}
	}
	var out []int
	for _, other := range among {
		if inventory.MatchLabels(k.PodLabels, w.inv.Workloads[other].Spec.Kubernetes.PodLabels) {
			out = append(out, other)
		}
	}
	return out
}

// standing is how the workloads of a namespace that depend on something can be
// told of it.
type standing struct {
	groups []*podGroup
	of     map[int]*podGroup // by workload
	// issues are by workload; an error keeps it from being in a group.
	issues map[int][]snapshot.Issue
}

// podGroup is a set of workloads whose pods one selector selects, and no other's.
type podGroup struct {
	root    int // whose labels select them
	members []int
	egress  *egress
}

// stand groups the workloads of the places where something changed.
func (d *dependencies) stand(r *round, dirty map[inventory.Namespace]bool) {
	of := map[int][]*dependencyBinding{}
	byPlace := map[inventory.Namespace][]int{}
	for _, b := range d.bindings {
		for _, i := range b.workloads {
			if len(of[i]) == 0 {
				at := inventory.NamespaceOf(r.world.inv.Workloads[i].Spec.Kubernetes)
				byPlace[at] = append(byPlace[at], i)
			}
			of[i] = append(of[i], b)
		}
	}
	for at := range dirty {
		delete(d.standing, at)
		if selected := byPlace[at]; len(selected) > 0 {
			slices.Sort(selected)
			d.standing[at] = d.places.group(r.world, selected, of)
		}
	}
	for _, s := range d.standing {
		for _, g := range s.groups {
			g.egress = d.egressOf(r.world, g.members, of)
		}
	}
}

// group sorts selected workloads of one namespace into groups such that no pod
// is in two: where two selectors take the same pod, it is undefined which one
// holds; broader labels give way to narrower ones then. Whoever selects a workload
// by its labels also selects those whose pods have these and more, so a group
// never holds a workload about which nothing is said.
func (p *podPlaces) group(w *world, selected []int, of map[int][]*dependencyBinding) *standing {
	s := &standing{of: map[int]*podGroup{}, issues: map[int][]snapshot.Issue{}}
	covered := map[int][]int{}
	var left []int
	for _, i := range selected {
		if issue := unfit(w, i); issue != nil {
			s.issues[i] = append(s.issues[i], *issue)
			continue
		}
		covered[i] = p.covered(w, i)
		left = append(left, i)
	}
	for {
		roots := rootsOf(w, left, covered)
		clashing := clashes(roots, covered)
		if len(clashing) == 0 {
			for _, root := range roots {
				if issues := w.otherSidecars(root, covered[root]); s.tell(covered[root], issues) {
					s.add(w, root, covered[root], of)
				}
			}
			return s
		}
		for _, root := range slices.Sorted(maps.Keys(clashing)) {
			labels := w.inv.Workloads[root].Spec.Kubernetes.PodLabels
			left = slices.DeleteFunc(left, func(i int) bool {
				same := maps.Equal(w.inv.Workloads[i].Spec.Kubernetes.PodLabels, labels)
				if same {
					s.issues[i] = append(s.issues[i], w.takenTwice(clashing[root]))
				}
				return same
			})
		}
	}
}

// unfit says why a workload's proxies cannot be told anything at all.
func unfit(w *world, i int) *snapshot.Issue {
	o := w.inv.Workloads[i]
	mesh := w.topology.Mesh(o.Spec.Mesh)
	var issue snapshot.Issue
	switch {
	case mesh == nil || mesh.Mesh.Spec.Istio == nil:
		issue = snapshot.Errorf(snapshot.FieldUnsupported, "restrict sourceSelectors to workloads of Istio meshes",
			"mesh %s cannot limit what its proxies know of", o.Spec.Mesh.Name)
	case len(o.Spec.Kubernetes.PodLabels) == 0:
		issue = snapshot.Errorf(snapshot.WorkloadsAlike, "give its pod template a label of its own",
			"its pods have no labels by which they could be told from others")
	default:
		return nil
	}
	return &issue
}

func (w *world) takenTwice(other int) snapshot.Issue {
	return snapshot.Errorf(snapshot.WorkloadsAlike, "give its pod template a label of its own",
		"a selector of its labels also takes the pods of workload %s, which those of another one take, too", w.inv.Workloads[other].Name)
}

// rootsOf are the workloads, one of each that are labelled the same, whose labels
// are no more than another's.
func rootsOf(w *world, left []int, covered map[int][]int) []int {
	under := map[int]bool{}
	for _, i := range left {
		for _, other := range covered[i] {
			wider := len(w.inv.Workloads[other].Spec.Kubernetes.PodLabels) > len(w.inv.Workloads[i].Spec.Kubernetes.PodLabels)
			if wider || other > i {
				under[other] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(left), func(i int) bool { return under[i] })
}

// clashes are the roots that cover a workload which another root covers, with
// one such workload each.
func clashes(roots []int, covered map[int][]int) map[int]int {
	by := map[int]int{}
	out := map[int]int{}
	for _, root := range roots {
		for _, i := range covered[root] {
			if first, ok := by[i]; ok {
				out[first], out[root] = i, i
			} else {
				by[i] = root
			}
		}
	}
	return out
}

// otherSidecars lists the Sidecars of users that hold, or no longer do, for the
// pods of a group.
func (w *world) otherSidecars(root int, members []int) []snapshot.Issue {
	at := inventory.NamespaceOf(w.inv.Workloads[root].Spec.Kubernetes)
	hand := w.byHand[at.Cluster]
	if hand == nil {
		return nil
	}
	var issues []snapshot.Issue
	for _, o := range hand.sidecars[at.Name] {
		by := snapshot.Ref{Kind: snapshot.Sidecar, Cluster: at.Cluster, Namespace: at.Name, Name: o.Name}
		want := o.Spec.GetWorkloadSelector().GetLabels()
		if len(want) == 0 {
			issues = append(issues, w.handIssue(by, "no longer holds for its pods: one that selects pods comes before one for a whole namespace", "say in ServiceDependencies what the workload calls, or select others"))
			continue
		}
		if slices.ContainsFunc(members, func(i int) bool { return inventory.MatchLabels(want, w.inv.Workloads[i].Spec.Kubernetes.PodLabels) }) {
			issues = append(issues, w.handIssue(by, "selects the same pods, and the mesh takes the older of the two", "remove it, or let it select others"))
		}
	}
	return issues
}

// tell gives issues to the members of a group, and reports whether it may be.
func (s *standing) tell(members []int, issues []snapshot.Issue) bool {
	for _, i := range members {
		s.issues[i] = append(s.issues[i], issues...)
	}
	return !snapshot.HasErrors(issues)
}

// add makes a group, and tells its members where they get what others need.
func (s *standing) add(w *world, root int, members []int, of map[int][]*dependencyBinding) {
	group := &podGroup{root: root, members: members}
	s.groups = append(s.groups, group)
	all := map[*dependencyBinding]bool{}
	for _, i := range members {
		for _, b := range of[i] {
			all[b] = true
		}
	}
	for _, i := range members {
		s.of[i] = group
		if len(of[i]) < len(all) {
			other := members[0]
			if other == i {
				other = members[1]
			}
			s.issues[i] = append(s.issues[i], snapshot.Warnf(snapshot.WorkloadsAlike, "give the pod templates labels that tell them apart",
				"its pods cannot be told from those of workload %s: both know of what either depends on", w.inv.Workloads[other].Name))
		}
	}
}
