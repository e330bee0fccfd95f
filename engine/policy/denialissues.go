package policy

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// denialIssues are those of a policy that denies on a Destination: what it cannot deny, and what it denies beyond what is written.
func denialIssues(r *reconciler, b *accessBinding, i int, mesh *snapshot.MeshPlan) []snapshot.Issue {
	d, state := r.env.inv.Destinations[i], r.states[i]
	if issues := inexpressible(r.env, b.rule, i); len(issues) > 0 {
		if slices.ContainsFunc(slices.Concat(state.denials, state.rules), func(rule *snapshot.AccessRule) bool { return rule.Origin.Ref == b.ref }) {
			return lastGoodIssues(issues, nil, false)
		}
		return issues
	}
	return slices.Concat(deniedIdentityLost(state.plan, b.rule), plainTextIssues(r.env, b.rule, d, mesh), relayedGatewayIssues(b.rule, d, mesh),
		deniedBeside(r.env, b, i), deniedPathIssues(b.rule, mesh), deniedConnectionIssues(b.rule, d.Spec.KubeService, mesh),
		bareIssues(d, mesh), deniedPortIssues(b.rule, d), ambientDenialIssues(b, d, mesh, state.denials))
}

// deniedIdentityLost warns the author of a policy that callers have no identity by which it could deny them: once for each object that
// sets such a TLS mode.
func deniedIdentityLost(d *snapshot.DestinationPlan, rule *snapshot.AccessRule) (issues []snapshot.Issue) {
	if d == nil || d.Denials == nil || rule.Anyone {
		return nil
	}
	var seen []snapshot.Ref
	for _, u := range d.Denials.Unidentified {
		by := u.TLS.Origin.Ref
		if slices.Contains(seen, by) {
			continue
		}
		seen = append(seen, by)
		same := slices.DeleteFunc(slices.Clone(d.Denials.Unidentified), func(o snapshot.UnidentifiedCallers) bool { return o.TLS.Origin.Ref != by })
		issues = append(issues, snapshot.Warnf(snapshot.CallersUnidentified, "set TLS mode ISTIO_MUTUAL there, or exclude the service from one of the two",
			"the policy denies no caller in %s: %s %s.%s sets TLS mode %s, with which callers present no identity",
			meshesOf(same), by.Kind, by.Name, by.Namespace, u.TLS.Value).At("sourceSelector").CausedBy(by))
	}
	return issues
}

// plainTextIssues warn that pods of a service take connections without mutual TLS, whose callers nobody can tell.
func plainTextIssues(env *environment, rule *snapshot.AccessRule, d *discoveryv1.Destination, mesh *snapshot.MeshPlan) []snapshot.Issue {
	k := d.Spec.KubeService
	if rule.Anyone || len(rule.Sources) == 0 || !mesh.Dialect.SPIFFE || takesMutualOnly(env, k, mesh) {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.CallersUnidentified, cmp.Or(mesh.Dialect.MutualHint, "have its pods take mutual TLS only")+"; or instead of denying some, allow the others",
		"service %s also takes connections without mutual TLS: their callers present no identity, and the policy does not deny them", inventory.ServiceName(k.Ref)).At("sourceSelector").CausedBy(inventory.DestinationRef(d))}
}

// takesMutualOnly reports whether users' objects have all pods of a service refuse connections without mutual TLS.
func takesMutualOnly(env *environment, k *discoveryv1.KubeService, mesh *snapshot.MeshPlan) bool {
	hand := env.byHand.on(mesh)
	if hand == nil {
		return false
	}
	of := &snapshot.PodQuery{Mesh: mesh, Namespace: k.Ref.Namespace}
	var ports []uint32
	for i := range k.EndpointSubsets {
		part := &k.EndpointSubsets[i]
		for j := range part.Endpoints {
			of.Pods = append(of.Pods, part.Endpoints[j].Labels)
		}
		for _, p := range part.Ports {
			ports = append(ports, p.Port)
		}
	}
	if len(of.Pods) == 0 { // those that will be
		of.Pods = append(of.Pods, k.WorkloadSelectorLabels)
		for _, p := range k.Ports {
			pod, _ := snapshot.PodPort(k, p)
			ports = append(ports, pod)
		}
	}
	guards := hand.Guards(of)
	return len(guards) > 0 && !slices.ContainsFunc(guards, func(g snapshot.Guard) bool {
		return slices.ContainsFunc(ports, func(port uint32) bool {
			tls, _ := g.TLS(port)
			return tls != snapshot.TLSMutual && tls != snapshot.TLSUnmet
		})
	})
}

// relayedGatewayIssues warn of a policy that names the gateways of a Limited mesh: to its services, these stand for callers of other
// members, whom the policy does not mean.
func relayedGatewayIssues(rule *snapshot.AccessRule, d *discoveryv1.Destination, mesh *snapshot.MeshPlan) []snapshot.Issue {
	if !mesh.Limited || rule.Anyone {
		return nil
	}
	for _, gw := range mesh.Gateways {
		for _, identity := range gw.Identities {
			_, path, _ := strings.Cut(identity, "/ns/")
			namespace, account, _ := strings.Cut(path, "/sa/")
			if !slices.ContainsFunc(rule.Sources, func(s snapshot.Source) bool { return namesGateway(s, mesh, namespace, account) }) {
				continue
			}
			return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported, "deny callers of other members by their own clusters and namespaces; give gateways that take requests from outside a service account of their own",
				"gateway %s/%s is not denied as a caller of service %s: with limited trust, it stands for all callers of other members there",
				namespace, account, inventory.ServiceName(d.Spec.KubeService.Ref)).At("sourceSelector")}
		}
	}
	return nil
}

// namesGateway reports whether a source names the namespace of a gateway, or its service account.
func namesGateway(s snapshot.Source, mesh *snapshot.MeshPlan, namespace, account string) bool {
	if len(s.Identities) == 0 {
		return slices.Contains(s.Namespaces, namespace)
	}
	return inventory.Includes(s.Namespaces, namespace) && slices.ContainsFunc(s.Identities, func(id snapshot.Identity) bool {
		_, ok := mesh.Names(id)
		return ok && id.Namespace == namespace && (id.ServiceAccount == "" || id.ServiceAccount == account)
	})
}

// deniedBeside warns that pods of a service are also behind others, which the policy does not select: what is denied at a pod is denied
// by whatever name it is called.
func deniedBeside(env *environment, b *accessBinding, i int) []snapshot.Issue {
	d := env.inv.Destinations[i]
	for _, group := range env.shared.of[i] {
		for _, other := range env.shared.groups[group] {
			if _, selected := slices.BinarySearch(b.selected, other); other == i || selected {
				continue
			}
			o := env.inv.Destinations[other]
			return []snapshot.Issue{snapshot.Warnf(snapshot.PodsShared, "select both services, or give the services different pods",
				"service %s has pods that are also those of service %s: what the policy denies is denied there as well",
				inventory.ServiceName(d.Spec.KubeService.Ref), inventory.ServiceName(o.Spec.KubeService.Ref)).
				At("destinationSelector").CausedBy(inventory.DestinationRef(o))}
		}
	}
	return nil
}

// deniedPathIssues warn of paths that requests reach by another spelling, because the proxies of a mesh compare it before the
// application decodes it.
func deniedPathIssues(rule *snapshot.AccessRule, mesh *snapshot.MeshPlan) []snapshot.Issue {
	passes := mesh.PassingPaths()
	at := slices.IndexFunc(rule.Paths, func(path string) bool { return strings.HasPrefix(path, "/") && path != "/*" })
	if at < 0 || len(passes) == 0 || slices.ContainsFunc(rule.Paths, func(path string) bool { return path == "*" || path == "/*" }) {
		return nil
	}
	to, _, _ := strings.Cut(strings.TrimSuffix(rule.Paths[at], "*"), "{")
	examples := make([]string, 0, len(passes))
	for _, up := range passes {
		examples = append(examples, "/x/"+up+to[1:])
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.PathsNotNormalized,
		"set pathNormalization.normalization to "+snapshot.PathsDecoded+" in the meshConfig of mesh "+mesh.Ref.Name+"; or allow the paths that are meant to be called instead",
		"mesh %s normalizes paths as %s, so that %s does not deny %s, which lead there in an application that decodes them",
		mesh.Ref.Name, mesh.PathNormalization, rule.Paths[at], strings.Join(examples, ", ")).At("allowedPaths")}
}

// deniedConnectionIssues warn of conditions on requests where proxies see connections: they deny all of these (Istio, authz/model,
// rule.checkError).
func deniedConnectionIssues(rule *snapshot.AccessRule, service *discoveryv1.KubeService, mesh *snapshot.MeshPlan) []snapshot.Issue {
	field := "allowedMethods"
	if len(rule.Methods) == 0 {
		field = "allowedPaths"
	}
	if len(rule.Methods)+len(rule.Paths) == 0 {
		return nil
	}
	var all []string
	for i := range service.Ports {
		p := &service.Ports[i]
		if (p.Protocol == "" || p.Protocol == "TCP") && (len(rule.Ports) == 0 || slices.Contains(rule.Ports, p.Port)) && !mesh.Dialect.IsHTTP(p) {
			all = append(all, strconv.FormatUint(uint64(p.Port), 10))
		}
	}
	if len(all) == 0 {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported,
		"list in allowedPorts the ports that carry HTTP, and name these after their protocol, such as http or grpc",
		"all connections to port %s of service %s are denied, whatever %s says: proxies see no requests there", strings.Join(all, ", "), inventory.ServiceName(service.Ref), field).At(field)}
}

// deniedPortIssues warn that some pods listen where others do for a port that is denied.
func deniedPortIssues(rule *snapshot.AccessRule, d *discoveryv1.Destination) (issues []snapshot.Issue) {
	service := d.Spec.KubeService
	for _, port := range rule.Ports {
		at := slices.IndexFunc(service.Ports, func(p discoveryv1.KubeServicePort) bool { return p.Port == port })
		if at < 0 {
			continue
		}
		for _, number := range snapshot.PodNumbers(service, service.Ports[at]) {
			if other := snapshot.TakenBy(service, service.Ports[at], number, rule.Ports); other != 0 {
				issues = append(issues, snapshot.Warnf(snapshot.PortsDiffer, "have all pods of the Service listen on one port for each of its ports, or deny both ports",
					"port %d of service %s is denied as well on some pods: they listen for it on %d, where others listen for port %d", other, inventory.ServiceName(service.Ref), number, port).At("allowedPorts"))
				break
			}
		}
	}
	return issues
}

// ambientDenialIssues say how far a policy that denies holds for those pods of a Destination that are in ambient mode. Rules are those
// in force. Its node's proxy leaves out of a DENY rule what it cannot tell, so that it denies more (Istio, ambient.handleRule).
func ambientDenialIssues(b *accessBinding, d *discoveryv1.Destination, mesh *snapshot.MeshPlan, rules []*snapshot.AccessRule) (issues []snapshot.Issue) {
	k := d.Spec.KubeService
	byIdentity := !b.rule.Anyone
	add := func(issue snapshot.Issue) { issues = append(issues, issue.At("destinationSelector")) }
	waypoint := func(name string) {
		add(snapshot.Warnf(snapshot.AmbientMode, "deny the callers at the waypoint as well, in an AuthorizationPolicy for it",
			"service %s: requests that come through waypoint %s present its identity, and the policy does not deny them", inventory.ServiceName(k.Ref), name))
	}
	if k == nil || k.Ambient == nil {
		if k != nil && k.UseWaypoint != "" && k.IngressUseWaypoint && byIdentity {
			waypoint(k.UseWaypoint)
		}
		return issues
	}
	kept := !snapshot.AllAmbient(k)
	if refusal, refused := ambientRefusal(d, mesh); refused {
		add(refusal)
		if kept = slices.ContainsFunc(rules, func(rule *snapshot.AccessRule) bool { return rule.Origin.Ref == b.ref }); kept {
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
	if len(b.rule.Methods)+len(b.rule.Paths) > 0 {
		add(snapshot.Warnf(snapshot.AmbientClosed, "deny all methods and paths, or have sidecars injected into its pods; for requests, ambient mode has waypoints",
			"service %s: at its pods in ambient mode, the policy denies whatever methods and paths its callers ask for, as ztunnel sees connections and no requests", inventory.ServiceName(k.Ref)))
	}
	if snapshot.HasWaypoint(k) && byIdentity {
		waypoint(k.Ambient.Waypoint.Namespace + "/" + k.Ambient.Waypoint.Name)
	}
	return issues
}
