package policy

import (
	"maps"
	"slices"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// podIndex indexes the workloads of each namespace by the labels of their pods,
// because a Sidecar selects pods by labels only.
type podIndex struct {
	gateways map[int]bool
	// members are the workloads of a namespace except gateways, and labelled those of
	// them with a label, both ascending.
	members  map[inventory.Namespace][]int
	labelled map[inventory.Namespace]map[[2]string][]int
}

func newPodIndex(env *environment) *podIndex {
	p := &podIndex{
		gateways: env.topology.GatewayWorkloads(), members: map[inventory.Namespace][]int{}, labelled: map[inventory.Namespace]map[[2]string][]int{},
	}
	for i, workload := range env.inv.Workloads {
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

// selected lists the workloads whose pods have all labels of a workload: what a
// selector with these labels selects.
func (p *podIndex) selected(env *environment, i int) []int {
	k := env.inv.Workloads[i].Spec.Kubernetes
	at := inventory.NamespaceOf(k)
	among := p.members[at]
	for name, value := range k.PodLabels {
		if with := p.labelled[at][[2]string{name, value}]; len(with) < len(among) {
			among = with
		}
	}
	var out []int
	for _, other := range among {
		if inventory.MatchLabels(k.PodLabels, env.inv.Workloads[other].Spec.Kubernetes.PodLabels) {
			out = append(out, other)
		}
	}
	return out
}

// namespaceGroups are the groups of the workloads of a namespace that
// ServiceDependencies select.
type namespaceGroups struct {
	groups  []*podGroup
	groupOf map[int]*podGroup // by workload
	// issues are by workload; a workload with an error is in no group.
	issues map[int][]snapshot.Issue
}

// podGroup is a set of workloads whose pods one selector selects, and no others.
type podGroup struct {
	root    int // the workload whose labels are the selector
	members []int
	egress  *egress
}

// updateGroups groups the workloads of the changed namespaces.
func (d *dependencies) updateGroups(r *reconciler, dirty map[inventory.Namespace]bool) {
	of := map[int][]*dependencyBinding{}
	byNamespace := map[inventory.Namespace][]int{}
	for _, b := range d.bindings {
		for _, i := range b.workloads {
			if len(of[i]) == 0 {
				at := inventory.NamespaceOf(r.env.inv.Workloads[i].Spec.Kubernetes)
				byNamespace[at] = append(byNamespace[at], i)
			}
			of[i] = append(of[i], b)
		}
	}
	for at := range dirty {
		delete(d.groups, at)
		if selected := byNamespace[at]; len(selected) > 0 {
			slices.Sort(selected)
			d.groups[at] = d.pods.groupByAuthority(r.env, selected, of)
		}
	}
	for _, s := range d.groups {
		for _, g := range s.groups {
			g.egress = d.egressOf(r.env, g.members, of)
		}
	}
}

// groupByAuthority groups the workloads of one namespace that ServiceDependencies of the management cluster select, and then the others:
// what users of the cluster select changes no group of the former.
func (p *podIndex) groupByAuthority(env *environment, selected []int, of map[int][]*dependencyBinding) *namespaceGroups {
	byHub := func(i int) bool {
		return slices.ContainsFunc(of[i], func(b *dependencyBinding) bool { return b.ref.Cluster == "" })
	}
	if !slices.ContainsFunc(selected, func(i int) bool { return !byHub(i) }) {
		return p.groupWorkloads(env, selected, of)
	}
	s := p.groupWorkloads(env, slices.DeleteFunc(slices.Clone(selected), func(i int) bool { return !byHub(i) }), of)
	var left []int
	for _, i := range selected {
		if byHub(i) || s.groupOf[i] != nil {
			continue
		}
		among := p.selected(env, i)
		if at := slices.IndexFunc(among, func(other int) bool { return s.groupOf[other] != nil || byHub(other) }); at >= 0 {
			s.issues[i] = append(s.issues[i], env.overlapIssue(among[at]))
			continue
		}
		left = append(left, i)
	}
	others := p.groupWorkloads(env, left, of)
	s.groups = append(s.groups, others.groups...)
	maps.Copy(s.groupOf, others.groupOf)
	for i, issues := range others.issues {
		s.issues[i] = append(s.issues[i], issues...)
	}
	return s
}

// groupWorkloads groups selected workloads of one namespace so that no pod is in two
// groups: if two Sidecars select a pod, it is undefined which one applies. Of two
// overlapping selectors the broader one is dropped. A selector with the labels of a
// selected workload may select others, too; these join its group.
func (p *podIndex) groupWorkloads(env *environment, selected []int, of map[int][]*dependencyBinding) *namespaceGroups {
	s := &namespaceGroups{groupOf: map[int]*podGroup{}, issues: map[int][]snapshot.Issue{}}
	selections := map[int][]int{}
	var left []int
	for _, i := range selected {
		if issue := unsupportedWorkload(env, i); issue != nil {
			s.issues[i] = append(s.issues[i], *issue)
			continue
		}
		selections[i] = p.selected(env, i)
		left = append(left, i)
	}
	for {
		roots := rootsOf(env, left, selections)
		clashing := overlaps(roots, selections)
		if len(clashing) == 0 {
			for _, root := range roots {
				issues := env.sidecarIssues(root, selections[root])
				for _, i := range selections[root] {
					s.issues[i] = append(s.issues[i], issues...)
				}
				s.addGroup(env, root, selections[root], of)
			}
			return s
		}
		for _, root := range slices.Sorted(maps.Keys(clashing)) {
			labels := env.inv.Workloads[root].Spec.Kubernetes.PodLabels
			left = slices.DeleteFunc(left, func(i int) bool {
				same := maps.Equal(env.inv.Workloads[i].Spec.Kubernetes.PodLabels, labels)
				if same {
					s.issues[i] = append(s.issues[i], env.overlapIssue(clashing[root]))
				}
				return same
			})
		}
	}
}

// limitsProxies reports whether the proxies of a mesh can be limited.
func limitsProxies(mesh *snapshot.MeshPlan) bool {
	ok, _ := mesh.Dialect.Supports(snapshot.ServiceDependency, "")
	return ok
}

// unsupportedWorkload says why a workload's proxies cannot be limited; nil if they
// can.
func unsupportedWorkload(env *environment, i int) *snapshot.Issue {
	o := env.inv.Workloads[i]
	mesh := env.topology.Mesh(o.Spec.Mesh)
	var issue snapshot.Issue
	switch {
	case mesh == nil || !limitsProxies(mesh):
		issue = snapshot.Errorf(snapshot.FieldUnsupported, "restrict sourceSelectors to workloads of other meshes",
			"mesh %s cannot limit what its proxies are configured with", o.Spec.Mesh.Name).At("sourceSelectors")
	case len(o.Spec.Kubernetes.PodLabels) == 0:
		issue = snapshot.Errorf(snapshot.WorkloadsAlike, "add a distinguishing label to its pod template",
			"its pods have no labels to select them by")
	default:
		return nil
	}
	return &issue
}

func (env *environment) overlapIssue(other int) snapshot.Issue {
	return snapshot.Errorf(snapshot.WorkloadsAlike, "add a distinguishing label to its pod template",
		"a selector with its labels also selects the pods of workload %s, which another selector selects, too", env.inv.Workloads[other].Name).
		CausedBy(snapshot.RefOf(snapshot.Workload, env.inv.Workloads[other]))
}

// rootsOf are the workloads whose labels do not include those of another one; one of
// each set with equal labels.
func rootsOf(env *environment, left []int, selections map[int][]int) []int {
	under := map[int]bool{}
	for _, i := range left {
		for _, other := range selections[i] {
			wider := len(env.inv.Workloads[other].Spec.Kubernetes.PodLabels) > len(env.inv.Workloads[i].Spec.Kubernetes.PodLabels)
			if wider || other > i {
				under[other] = true
			}
		}
	}
	return slices.DeleteFunc(slices.Clone(left), func(i int) bool { return under[i] })
}

// overlaps are the roots whose selectors select a common workload, with one such
// workload each.
func overlaps(roots []int, selections map[int][]int) map[int]int {
	by := map[int]int{}
	out := map[int]int{}
	for _, root := range roots {
		for _, i := range selections[root] {
			if first, ok := by[i]; ok {
				out[first], out[root] = i, i
			} else {
				by[i] = root
			}
		}
	}
	return out
}

// sidecarIssues reports the hand-written Sidecars that apply to the pods of a group,
// or no longer do.
func (env *environment) sidecarIssues(root int, members []int) []snapshot.Issue {
	at := inventory.NamespaceOf(env.inv.Workloads[root].Spec.Kubernetes)
	var issues []snapshot.Issue
	for _, mesh := range env.meshesOf(members) {
		of := &snapshot.PodQuery{Mesh: mesh, Namespace: at.Name}
		for _, member := range members {
			of.Pods = append(of.Pods, env.inv.Workloads[member].Spec.Kubernetes.PodLabels)
		}
		if hand := env.byHand.of[at.Cluster].on(mesh); hand != nil {
			for _, x := range hand.Egress(of) {
				issues = append(issues, handWrittenWarning(x))
			}
		}
	}
	return issues
}

// addGroup makes a group. It warns members that get what only others depend on.
func (s *namespaceGroups) addGroup(env *environment, root int, members []int, of map[int][]*dependencyBinding) {
	group := &podGroup{root: root, members: members}
	s.groups = append(s.groups, group)
	all := map[*dependencyBinding]bool{}
	for _, i := range members {
		for _, b := range of[i] {
			all[b] = true
		}
	}
	for _, i := range members {
		s.groupOf[i] = group
		if len(of[i]) < len(all) {
			other := members[0]
			if other == i {
				other = members[1]
			}
			s.issues[i] = append(s.issues[i], snapshot.Warnf(snapshot.WorkloadsAlike, "add distinguishing labels to the pod templates",
				"its pods cannot be distinguished from those of workload %s: both are configured with the dependencies of either", env.inv.Workloads[other].Name).
				CausedBy(snapshot.RefOf(snapshot.Workload, env.inv.Workloads[other])))
		}
	}
}
