package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/access"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// denied says which policies deny a call, and what would have to be taken out of them.
func (q adviser) denied(out *Outcome, d *snapshot.DestinationPlan, port uint32, group *podGroup, decision *access.Decision) {
	out.Verdict, out.Denied = Refused, decision.Denied
	out.Reason = policiesText(decision.Denied) + verb(len(decision.Denied), " denies it", " deny it")
	by := decision.Denier.Policy
	for _, o := range group.denying {
		if o != d && !deniesOn(d, by) && deniesOn(o, by) {
			out.Reason += ": the pods of " + d.Ref.Name + " are also those of " + o.Ref.Name
			break
		}
	}
	if len(decision.By) > 0 {
		out.Reason += ", although " + policiesText(decision.By) + verb(len(decision.By), " allows it", " allow it")
	}
	if len(decision.Denied) == 1 && (len(decision.By) > 0 || decision.Open != snapshot.OpenNot) {
		out.Change = q.narrower(by, port)
	}
	if out.Change == nil {
		out.Reason += "; to allow it, delete " + verb(len(decision.Denied), "that policy", "those policies") + ", or select other callers or services there"
	}
}

// deniesOn reports whether a policy denies something on a Destination.
func deniesOn(d *snapshot.DestinationPlan, policy snapshot.Ref) bool {
	return d.Denials != nil && slices.ContainsFunc(d.Denials.Policies, func(r *snapshot.AccessRule) bool { return r.Origin.Ref == policy })
}

// narrower is the one value to be taken out of a policy that denies a call, so that it does not any more: of those that it lists as they
// are, beside others. Nil if there is none.
func (q adviser) narrower(ref snapshot.Ref, port uint32) *Addition {
	p := q.policies[ref]
	if p == nil {
		return nil
	}
	policy, ok := p.Policy.(*networkingv1.AccessPolicy)
	if !ok || !policy.Spec.Denies() {
		return nil
	}
	request, in := q.request.proxied(), "in "+kindAndName(ref)+", remove "
	for _, try := range []*Addition{
		{Caller: q.account(), Text: in + q.caller() + " from spec.sourceSelector"},
		{Method: request.Method, Text: in + request.Method + " from spec.allowedMethods"},
		{Path: request.PathOnly(), Text: in + request.PathOnly() + " from spec.allowedPaths"},
		{Port: port, Text: in + numbers([]uint32{port}) + " from spec.allowedPorts"},
	} {
		spec := policy.Spec.DeepCopy()
		if try.Removes, try.Policy = true, ref; !try.removeFrom(spec) {
			continue
		}
		try.Text += q.alsoOpens(ref)
		return try
	}
	return nil
}

// removeFrom takes what is named out of a spec. It reports whether that was possible: an empty list would be for everything.
func (a *Addition) removeFrom(spec *networkingv1.AccessPolicySpec) bool {
	switch {
	case a.Caller != (commonv1.ClusterObjectRef{}):
		return removeAccount(spec, a.Caller)
	case a.Method != "":
		return removeOne(&spec.AllowedMethods, a.Method)
	case a.Path != "":
		return removeOne(&spec.AllowedPaths, a.Path)
	case a.Port != 0:
		return removeOne(&spec.AllowedPorts, a.Port)
	}
	return false
}

// removeOne removes an element of a list with several.
func removeOne[T comparable](list *[]T, element T) bool {
	left := slices.DeleteFunc(slices.Clone(*list), func(e T) bool { return e == element })
	if len(left) == 0 || len(left) == len(*list) {
		return false
	}
	*list = left
	return true
}

// removeAccount removes a service account that is named in full, if others are left.
func removeAccount(spec *networkingv1.AccessPolicySpec, account commonv1.ClusterObjectRef) bool {
	var left []commonv1.IdentitySelector
	removed := false
	for _, s := range spec.SourceSelector {
		refs := s.KubeServiceAccountRefs
		if refs == nil || !slices.Contains(refs.ServiceAccounts, account) {
			left = append(left, s)
			continue
		}
		removed = true
		if accounts := refs.DeepCopy(); removeOne(&accounts.ServiceAccounts, account) {
			s.KubeServiceAccountRefs = accounts
			left = append(left, s)
		}
	}
	if len(left) == 0 || !removed {
		return false
	}
	spec.SourceSelector = left
	return true
}

// noteUndenied adds to an answer that policies deny the callers by an identity that they do not present.
func (q adviser) noteUndenied(out *Outcome, d *snapshot.DestinationPlan, port uint32, group *podGroup) {
	if out.Verdict != Allowed || len(group.denying) == 0 {
		return
	}
	call := q.callTo(d, port, group)
	if known := group.allows(d, q.mesh, &call); len(known.Denied) > 0 {
		out.Reason += "; " + policiesText(known.Denied) + verb(len(known.Denied), " denies", " deny") + " the service account of the callers, which present no identity to the pods"
	}
}

// callTo is the request as pods of a group see it, with the identity of the callers.
func (q adviser) callTo(d *snapshot.DestinationPlan, port uint32, group *podGroup) snapshot.Call {
	request := q.request.proxied()
	request.Path = d.Mesh.ComparedPath(request.Path)
	return snapshot.Call{
		HTTP: isHTTPPort(d, port), Method: request.Method, Path: request.PathOnly(), Query: queryOf(request.Path), Headers: request.Headers,
		PodPort: group.port, Caller: callerOf(q.workload, q.mesh, true),
	}
}
