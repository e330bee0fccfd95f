package policy

import (
	"slices"
	"strconv"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// unidentifiedCallers are those that present no identity although access to a Destination is allowed
// by identity, and what allows it so.
func unidentifiedCallers(d *snapshot.DestinationPlan) (callers []snapshot.UnidentifiedCallers, requires snapshot.Ref) {
	if d == nil || d.Callers == nil || len(d.Callers.Unidentified) == 0 {
		return nil, snapshot.Ref{}
	}
	requires, ok := identityRequired(d)
	if !ok {
		return nil, snapshot.Ref{}
	}
	return d.Callers.Unidentified, requires
}

// sameUnidentified reports whether the issues about callers without identity are the same for two
// plans of a Destination, of which the first may be nil.
func sameUnidentified(was, is *snapshot.DestinationPlan) bool {
	before, requiredBy := unidentifiedCallers(was)
	after, requiresNow := unidentifiedCallers(is)
	undeniedBefore, deniedBy := undeniedCallers(was)
	undenied, deniesNow := undeniedCallers(is)
	return requiredBy == requiresNow && slices.Equal(before, after) && deniedBy == deniesNow && slices.Equal(undeniedBefore, undenied)
}

// undeniedCallers are those that present no identity although some are denied by identity, and what denies them so.
func undeniedCallers(d *snapshot.DestinationPlan) (callers []snapshot.UnidentifiedCallers, denies snapshot.Ref) {
	if d == nil || d.Denials == nil || len(d.Denials.Unidentified) == 0 {
		return nil, snapshot.Ref{}
	}
	at := slices.IndexFunc(d.Denials.Rules, func(rule snapshot.EffectiveRule) bool { return !rule.Anyone })
	return d.Denials.Unidentified, d.Denials.Rules[at].Policy
}

// identityRequired returns why callers of a Destination need an identity; false if they
// need none.
func identityRequired(d *snapshot.DestinationPlan) (snapshot.Ref, bool) {
	if d.Mesh == nil || !d.Mesh.Dialect.SPIFFE || d.Open() != snapshot.OpenNot {
		return snapshot.Ref{}, false
	}
	for _, rule := range d.Access {
		if !rule.Anyone {
			return rule.Origin.Ref, true
		}
	}
	if d.Mesh.DenyByDefault != nil && len(d.Access) == 0 {
		return d.Mesh.DenyByDefault.Ref, true
	}
	return snapshot.Ref{}, false
}

// tlsIssues warns the author of a TrafficPolicy that its TLS mode takes the callers'
// identity.
func tlsIssues(d *snapshot.DestinationPlan, policy snapshot.Ref) []snapshot.Issue {
	var issues []snapshot.Issue
	add := func(callers []snapshot.UnidentifiedCallers, by snapshot.Ref, consequence string) {
		callers = slices.DeleteFunc(slices.Clone(callers), func(u snapshot.UnidentifiedCallers) bool { return u.TLS.Origin.Ref != policy })
		if len(callers) == 0 {
			return
		}
		issues = append(issues, snapshot.Warnf(snapshot.CallersUnidentified, "use ISTIO_MUTUAL, or exclude the service from the policy",
			"with policy.mtls.istio.tlsMode %s callers in %s present no identity: "+consequence,
			callers[0].TLS.Value, meshesOf(callers), by.Name, by.Namespace,
		).At("policy.mtls.istio.tlsMode").CausedBy(by))
	}
	callers, requires := unidentifiedCallers(d)
	consequence := "AccessPolicy %s.%s allows none of them"
	if requires.Kind == snapshot.VirtualMesh {
		consequence = "VirtualMesh %s.%s denies them access"
	}
	add(callers, requires, consequence)
	undenied, denies := undeniedCallers(d)
	add(undenied, denies, "AccessPolicy %s.%s denies none of them")
	return issues
}

// identityLostIssues warns the author of an AccessPolicy that callers have no identity by
// which it could allow them: once for each object that sets such a TLS mode.
func identityLostIssues(d *snapshot.DestinationPlan, rule *snapshot.AccessRule) []snapshot.Issue {
	var issues []snapshot.Issue
	callers, _ := unidentifiedCallers(d)
	for len(callers) > 0 && !rule.Anyone {
		first := callers[0].TLS
		var same, rest []snapshot.UnidentifiedCallers
		for _, u := range callers {
			if u.TLS.Origin.Ref == first.Origin.Ref {
				same = append(same, u)
			} else {
				rest = append(rest, u)
			}
		}
		callers = rest
		issues = append(issues, snapshot.Warnf(snapshot.CallersUnidentified, "set TLS mode ISTIO_MUTUAL there, or exclude the service from one of the two",
			"the policy allows no caller in %s: %s %s.%s sets TLS mode %s, with which callers present no identity",
			meshesOf(same), first.Origin.Ref.Kind, first.Origin.Ref.Name, first.Origin.Ref.Namespace, first.Value).At("sourceSelector").CausedBy(first.Origin.Ref))
	}
	return issues
}

// meshesOf names the first mesh, and counts the others.
func meshesOf(callers []snapshot.UnidentifiedCallers) string {
	text := "mesh " + callers[0].Mesh.Name
	if more := len(callers) - 1; more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}
