package policy

import (
	"slices"
	"strconv"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// unidentified are callers of a Destination that present no identity, although access
// to it is allowed by identity.
type unidentified struct {
	mesh snapshot.Ref
	mode networkingv1.TLSMode
	// by is what sets the mode.
	by snapshot.Ref
	// requires is the first AccessPolicy that names callers, or the VirtualMesh that
	// denies access by default.
	requires snapshot.Ref
}

// unidentifiedCallers are those of a Destination, its own mesh first.
func unidentifiedCallers(d *snapshot.DestinationPlan) []unidentified {
	requires, ok := identityRequired(d)
	if !ok {
		return nil
	}
	var out []unidentified
	for _, v := range d.Views {
		if tls := d.WithoutIdentity(v.Mesh); tls != nil {
			out = append(out, unidentified{mesh: v.Mesh.Ref, mode: tls.Value, by: tls.Origin.Ref, requires: requires})
		}
	}
	return out
}

// identityRequired returns why callers of a Destination need an identity; false if they
// need none.
func identityRequired(d *snapshot.DestinationPlan) (snapshot.Ref, bool) {
	if d.Mesh == nil || !d.Mesh.Dialect.SPIFFE || d.Mesh.Open || d.Mesh.IsOpenGateway(inventory.ServiceRef(d.Destination)) {
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
func tlsIssues(callers []unidentified, policy snapshot.Ref) []snapshot.Issue {
	callers = slices.DeleteFunc(slices.Clone(callers), func(u unidentified) bool { return u.by != policy })
	if len(callers) == 0 {
		return nil
	}
	first := callers[0]
	consequence := "AccessPolicy %s.%s allows none of them"
	if first.requires.Kind == snapshot.VirtualMesh {
		consequence = "VirtualMesh %s.%s denies them access"
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.CallersUnidentified, "use ISTIO_MUTUAL, or exclude the service from the policy",
		"with policy.mtls.istio.tlsMode %s callers in %s present no identity: "+consequence,
		first.mode, meshesOf(callers), first.requires.Name, first.requires.Namespace,
	).At("policy.mtls.istio.tlsMode").CausedBy(first.requires)}
}

// identityLostIssues warns the author of an AccessPolicy that callers have no identity by
// which it could allow them: once for each object that sets such a TLS mode.
func identityLostIssues(callers []unidentified, rule *snapshot.AccessRule) []snapshot.Issue {
	var issues []snapshot.Issue
	for len(callers) > 0 && !rule.Anyone {
		first := callers[0]
		var same, rest []unidentified
		for _, u := range callers {
			if u.by == first.by {
				same = append(same, u)
			} else {
				rest = append(rest, u)
			}
		}
		callers = rest
		issues = append(issues, snapshot.Warnf(snapshot.CallersUnidentified, "set TLS mode ISTIO_MUTUAL there, or exclude the service from one of the two",
			"the policy allows no caller in %s: %s %s.%s sets TLS mode %s, with which callers present no identity",
			meshesOf(same), first.by.Kind, first.by.Name, first.by.Namespace, first.mode).At("sourceSelector").CausedBy(first.by))
	}
	return issues
}

// meshesOf names the first mesh, and counts the others.
func meshesOf(callers []unidentified) string {
	text := "mesh " + callers[0].mesh.Name
	if more := len(callers) - 1; more > 0 {
		text += " and " + strconv.Itoa(more) + " more"
	}
	return text
}
