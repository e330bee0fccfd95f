package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// planVirtualMeshes adds to VirtualMeshes the hand-written objects that also decide about the names of services that they
// federate. Registration refuses new ones to editors of namespaces; these stood before, or an administrator wrote them.
func (r assembler) planVirtualMeshes() []*snapshot.VirtualMeshPlan {
	r.updateShadowed()
	if len(r.shadowed)+len(r.hidden) == 0 {
		return r.env.topology.VirtualMeshes
	}
	of := map[snapshot.Ref][]snapshot.Issue{}
	for _, issues := range r.shadowed {
		of[issues[0].Ref] = append(of[issues[0].Ref], issues...)
	}
	for _, issue := range r.hidden {
		of[issue.Ref] = append(of[issue.Ref], issue)
	}
	out := slices.Clone(r.env.topology.VirtualMeshes)
	for i, vm := range out {
		if more := of[vm.Ref]; len(more) > 0 {
			slices.SortFunc(more, snapshot.Issue.Compare)
			more = slices.Compact(more) // of revisions in one cluster
			with := *vm
			with.Issues = append(slices.Clip(vm.Issues), more...)
			out[i] = r.reuseVirtualMesh(&with)
		}
	}
	return out
}

// reuseVirtualMesh returns the plan of before if it says the same.
func (r assembler) reuseVirtualMesh(now *snapshot.VirtualMeshPlan) *snapshot.VirtualMeshPlan {
	if r.rebuilt {
		return now
	}
	for _, was := range r.plan.VirtualMeshes {
		if was.Ref == now.Ref && slices.Equal(was.Issues, now.Issues) {
			return was
		}
	}
	return now
}

// updateShadowed finds the hand-written objects for the host names of federated services. It looks at all only if such an
// object changed, or the environment did.
func (r *reconciler) updateShadowed() {
	mark := func(i int, d *snapshot.DestinationPlan) {
		delete(r.shadowed, i)
		if issues := r.env.shadowIssues(d); len(issues) > 0 {
			r.shadowed[i] = issues
		}
	}
	if r.rebuilt || r.handWrittenChanged || r.shadowed == nil {
		r.shadowed = map[int][]snapshot.Issue{}
		for i, s := range r.states {
			mark(i, s.plan)
		}
		r.hidden = hidingIssues(r.env)
		return
	}
	for i, d := range r.changed {
		mark(i, d)
	}
}

// hidingIssues reports what hides federated services from callers of a member, or keeps these from calling them.
func hidingIssues(env *environment) (issues []snapshot.Issue) {
	for _, vm := range env.topology.VirtualMeshes {
		for _, member := range vm.Members {
			if !slices.ContainsFunc(vm.Loads, func(l snapshot.ProxyLoad) bool { return l.Mesh == member.Ref }) {
				continue
			}
			if member.PlainBy != "" {
				issues = append(issues, snapshot.Warnf(snapshot.CallersUnidentified, "turn it on, or set TLS mode ISTIO_MUTUAL in a TrafficPolicy for these services",
					"%s: its callers present no identity, and gateways of other members refuse them", member.PlainBy).On(vm.Ref, member.Ref))
			}
			if unknown := member.Dialect.Unknown; unknown != nil {
				if by := unknown(member, nil, ""); by != "" {
					issues = append(issues, snapshot.Warnf(snapshot.HostsHidden, "change it: services of other clusters are ServiceEntries in that namespace", "%s", by).On(vm.Ref, member.Ref))
				}
			}
			hand := env.byHand.on(member)
			if hand == nil {
				continue
			}
			for _, x := range hand.HidesAll(member.HostnameSuffix, member) {
				issue := handWrittenWarning(x).On(vm.Ref, member.Ref)
				issue.Code = snapshot.HostsHidden
				issues = append(issues, issue)
			}
		}
	}
	return issues
}

// shadowIssues reports the objects for the host name of a service, in its own mesh, whose gateways use the name, too, and in
// those that call it by that.
func (env *environment) shadowIssues(d *snapshot.DestinationPlan) []snapshot.Issue {
	if d.Federation == nil {
		return nil
	}
	var issues []snapshot.Issue
	for _, mesh := range append([]*snapshot.MeshPlan{d.Mesh}, d.Federation.To...) {
		for _, x := range env.byHand.hostIntersections(d.Federation.Hostname, mesh, mesh.Namespace) {
			x.Hint = "delete it: names below " + d.Mesh.HostnameSuffix + " are for meshctl"
			issues = append(issues, handWrittenWarning(x).On(d.Federation.Origin.Ref, d.Ref))
		}
		hand := env.byHand.on(mesh)
		if hand == nil || mesh == d.Mesh { // gateways listen where their Gateways say
			continue
		}
		of := &snapshot.HostQuery{Host: d.Federation.Hostname, Mesh: mesh, Home: mesh.Namespace, Generated: true, Addresses: snapshot.AddressList(d.Federation.Address)}
		for _, x := range takers(env, hand, d.Destination, of) {
			issues = append(issues, handWrittenWarning(x).On(d.Federation.Origin.Ref, d.Ref))
		}
	}
	return issues
}
