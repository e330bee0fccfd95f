package policy

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about pods in ambient mode. Nothing is translated for services all of whose pods are in it. Of other services, what is
// written for the pods with sidecars is not always what holds for those in ambient mode: the proxy of their node enforces an
// AuthorizationPolicy with a selector by identities and ports; an ALLOW rule with methods or paths matches no call there (Istio,
// ambient.handleRule).

// ambientRefusal is why no policy can be in force on a Destination; false if one can.
func ambientRefusal(d *discoveryv1.Destination, mesh *snapshot.MeshPlan) (snapshot.Issue, bool) {
	k := d.Spec.KubeService
	if !snapshot.AllAmbient(k) {
		return snapshot.Issue{}, false
	}
	hint := mesh.Ambient().Policy
	if !k.Ambient.Mode.IsAmbient() {
		hint = "select the services behind it instead"
	}
	return snapshot.Errorf(snapshot.AmbientMode, hint, "service %s: %s, for which nothing is translated yet",
		inventory.ServiceName(k.Ref), snapshot.AmbientText(k)).At("destinationSelector"), true
}

// ambientIssues say how far an AccessPolicy holds for those pods of a Destination that are in ambient mode. Rules are those in force.
func ambientIssues(b *accessBinding, d *discoveryv1.Destination, mesh *snapshot.MeshPlan, rules []*snapshot.AccessRule) []snapshot.Issue {
	k := d.Spec.KubeService
	if k == nil || k.Ambient == nil {
		return waypointIssues(b, k)
	}
	requests := len(b.rule.Methods)+len(b.rule.Paths) > 0
	var issues []snapshot.Issue
	add := func(issue snapshot.Issue) { issues = append(issues, issue.At("destinationSelector")) }
	kept := !snapshot.AllAmbient(k)
	if refusal, refused := ambientRefusal(d, mesh); refused {
		add(refusal)
		if kept = slices.Contains(rules, b.rule); kept {
			add(snapshot.Warnf(snapshot.AmbientMode, "write the AuthorizationPolicy that is meant by hand, and then exclude the service from the policy",
				"service %s: what was written for the policy while its pods had sidecars stays, as it protects them: ztunnel enforces it by identities and ports", inventory.ServiceName(k.Ref)))
		}
	} else {
		add(snapshot.Warnf(snapshot.AmbientMode, "have sidecars injected into all of its pods, or into none",
			"service %s: %s, where ztunnel enforces the policy by identities and ports only", inventory.ServiceName(k.Ref), snapshot.AmbientText(k)))
	}
	if !kept {
		return issues
	}
	if requests {
		add(snapshot.Warnf(snapshot.AmbientClosed, "allow all methods and paths, or have sidecars injected into its pods; for requests, ambient mode has waypoints",
			"service %s: allowedMethods and allowedPaths let nobody in at its pods in ambient mode, as ztunnel sees connections and no requests", inventory.ServiceName(k.Ref)))
	}
	if snapshot.HasWaypoint(k) && !b.rule.Anyone {
		add(snapshot.Warnf(snapshot.AmbientClosed, "allow the service account of the waypoint as well, and decide about callers at the waypoint",
			"service %s: requests that come through waypoint %s/%s present its identity, and not that of the callers", inventory.ServiceName(k.Ref), k.Ambient.Waypoint.Namespace, k.Ambient.Waypoint.Name))
	}
	return issues
}

// waypointIssues say that the pods of a service, which have sidecars, see a waypoint where gateways call for others.
func waypointIssues(b *accessBinding, k *discoveryv1.KubeService) []snapshot.Issue {
	if k == nil || k.UseWaypoint == "" || !k.IngressUseWaypoint || b.rule.Anyone {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.AmbientClosed, "allow the service account of the waypoint as well, and decide about callers at the waypoint; or have gateways call the service directly",
		"service %s: gateways send requests through waypoint %s, so that they present its identity, and not that of the callers", inventory.ServiceName(k.Ref), k.UseWaypoint).
		At("destinationSelector")}
}

// keptRules are those of some rules that are in force on a Destination. On one all of whose pods are in ambient mode, those are that
// were in force before, while its pods had sidecars: the same object is enforced for them now, and to withdraw it would open them.
func keptRules(r *reconciler, i int, rules []*snapshot.AccessRule) []*snapshot.AccessRule {
	d := r.env.inv.Destinations[i]
	if !snapshot.AllAmbient(d.Spec.KubeService) {
		return rules
	}
	stored := find(r.next.stored, d)
	return slices.DeleteFunc(rules, func(rule *snapshot.AccessRule) bool {
		return stored == nil || !slices.ContainsFunc(stored.Status.AppliedAccessPolicies, func(a discoveryv1.AppliedAccessPolicy) bool { return isApplied(&a, rule.Origin.Ref) })
	})
}

// ambientCallers warns the author of a policy of callers in ambient mode that it selects. Of a TrafficPolicy they do not know: what
// proxies of callers do is not done for them. By an AccessPolicy they are known only where they present an identity, which they do
// where pods take HBONE: those in ambient mode, and those with sidecars that have the label networking.istio.io/tunnel (Istio,
// ambient.setTunnelProtocol). Does is what an AccessPolicy does with them; empty for a TrafficPolicy.
func ambientCallers(env *environment, policy snapshot.Ref, selected []int, does string, matches func(*discoveryv1.KubernetesWorkload) bool) []snapshot.Issue {
	meshes := map[commonv1.ObjectRef]bool{}
	for _, i := range selected { // callers of other meshes come through gateways, which ambient mode does not pass
		if d := env.inv.Destinations[i]; d.Spec.Mesh != nil && !snapshot.AllAmbient(d.Spec.KubeService) {
			meshes[*d.Spec.Mesh] = true
		}
	}
	var namespaces []string
	var hints snapshot.AmbientHints
	count := 0
	for mesh := range meshes {
		if of := env.topology.Mesh(mesh).Ambient(); of != (snapshot.AmbientHints{}) {
			hints = of // one kind of mesh has them
		}
		for _, k := range env.inv.AmbientWorkloads(mesh) {
			if matches(k) {
				namespaces = append(namespaces, k.Controller.Namespace+" of "+k.Controller.ClusterName)
				count++
			}
		}
	}
	if count == 0 {
		return nil
	}
	who := snapshot.Count(count, "workload") + " in ambient mode (" + snapshot.NamespacesText(namespaces) + ")"
	if does != "" {
		return []snapshot.Issue{snapshot.Warnf(snapshot.AmbientMode, hints.Identity,
			"it %s %s: they present an identity only to pods that take HBONE, and to others come as anyone does", does, who).At("sourceSelector").On(policy, snapshot.Ref{})}
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.AmbientMode, "give the callers sidecars; or write an HTTPRoute for the service, and a waypoint",
		"requests of %s take no route and no setting of it: their proxy is ztunnel, which sees connections and no requests", who).At("sourceSelector").On(policy, snapshot.Ref{})}
}
