package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// grants is the result for the AccessPolicies on Destinations that share service
// accounts.
type grants struct {
	issues map[grantKey][]snapshot.Issue
	grants map[grantKey][]*snapshot.Grant
	rules  map[grantKey]*snapshot.AccessRule
}

type grantKey struct {
	binding     *accessBinding
	destination int
}

// inForceOn lists what is in force on one Destination, in the order of its policies.
func (g *grants) inForceOn(i int, policies []*accessBinding) (rules []*snapshot.AccessRule, granted []*snapshot.Grant) {
	for _, b := range policies {
		key := grantKey{b, i}
		if !snapshot.HasErrors(g.issues[key]) {
			rules = append(rules, g.rules[key])
			granted = append(granted, g.grants[key]...)
		}
	}
	return rules, granted
}

// evaluate evaluates the AccessPolicies on a group of Destinations, oldest
// first. A policy that would allow more than is written, alone or together with an
// older one, is rejected on all Destinations that share the account.
func (a *accounts) evaluate(members []int, attached []*attachments) *grants {
	out := &grants{issues: map[grantKey][]snapshot.Issue{}, grants: map[grantKey][]*snapshot.Grant{}, rules: map[grantKey]*snapshot.AccessRule{}}
	var policies []*accessBinding
	for _, i := range members {
		policies = append(policies, attached[i].access...)
	}
	slices.SortFunc(policies, func(a, b *accessBinding) int {
		return cmp.Or(compareAuthority(a.ref, b.ref), inventory.CompareAge(a.policy, b.policy))
	})
	policies = slices.Compact(policies)
	for _, b := range policies {
		for _, i := range members {
			if _, selected := slices.BinarySearch(b.selected, i); selected {
				key := grantKey{b, i}
				out.grants[key], out.issues[key] = a.grantsOn(b, i)
				out.rules[key] = a.callersIn(b, a.dialect(i), a.topology.MeshOf(a.inv.Destinations[i])).rule
			}
		}
	}
	out.refuseKeptOut(a, members, attached)
	held := map[snapshot.Account][]*snapshot.Grant{}
	for _, b := range policies {
		var asked []*snapshot.Grant
		var at []grantKey
		for _, i := range members {
			key := grantKey{b, i}
			if out.rules[key] != nil && !snapshot.HasErrors(out.issues[key]) {
				at = append(at, key)
				asked = append(asked, out.grants[key]...)
			}
		}
		if len(at) == 0 {
			continue
		}
		if issue, ok := grantConflict(a.dialect(members[0]), asked, held); ok {
			for _, key := range at {
				out.issues[key] = append(out.issues[key], issue)
			}
			continue
		}
		for _, g := range asked {
			// One grant of each policy is enough: the others have the same callers,
			// routes and ports.
			if at := held[g.To]; len(at) == 0 || at[len(at)-1].Rule != g.Rule {
				held[g.To] = append(at, g)
			}
		}
	}
	return out
}

// grantConflict finds a conflict among a policy's own grants, or with older ones.
func grantConflict(dialect *snapshot.Dialect, asked []*snapshot.Grant, held map[snapshot.Account][]*snapshot.Grant) (snapshot.Issue, bool) {
	first := map[snapshot.Account]*snapshot.Grant{}
	for _, g := range asked {
		// All earlier grants to the account have the ports of the first one.
		switch other := first[g.To]; {
		case other == nil:
			first[g.To] = g
		case !slices.Equal(other.Ports, g.Ports):
			return snapshot.Errorf(snapshot.FieldUnsupported, "use different service accounts for the services, or write a policy for each",
				"its ports differ between services that share service account %s", accountName(g.To)).At("allowedPorts"), true
		default:
			continue // the same callers, routes and ports as the first
		}
		for _, older := range held[g.To] {
			if dialect.Beside == nil {
				continue
			}
			if reason := dialect.Beside(older, g); reason != "" {
				ref := older.Rule.Origin.Ref
				return snapshot.Errorf(snapshot.FieldConflict, "give both the same callers, or the same paths, methods and ports; or write them as one policy",
					"it conflicts with the older %s %s.%s on service account %s: %s", ref.Kind, ref.Name, ref.Namespace, accountName(g.To), reason).CausedBy(ref), true
			}
		}
	}
	return snapshot.Issue{}, false
}

// grantsOn expands a policy on one Destination to grants, without regard to other
// policies.
func (a *accounts) grantsOn(b *accessBinding, i int) ([]*snapshot.Grant, []snapshot.Issue) {
	d := a.inv.Destinations[i]
	mesh, dialect := a.topology.MeshOf(d), a.dialect(i)
	service := d.Spec.KubeService
	if mesh.Open {
		support, _ := dialect.Of(snapshot.AccessPolicy, "destinationSelector", snapshot.OpenMesh)
		hint := "configure the mesh to deny what no policy allows"
		if s := mesh.AccessSetting; s != nil {
			hint += fmt.Sprintf(": %s in %s %s.%s", s.Field, s.Ref.Kind, s.Ref.Name, s.Ref.Namespace)
		}
		return nil, []snapshot.Issue{snapshot.Errorf(snapshot.FieldUnsupported, hint,
			"mesh %s allows all callers: %s", mesh.Ref.Name, support.Note).At("destinationSelector")}
	}
	if issues := b.unsupportedFields(dialect); snapshot.HasErrors(issues) {
		return nil, issues // it denies
	}
	to := a.accountsOf(i)
	if len(to) == 0 {
		return nil, []snapshot.Issue{snapshot.Errorf(snapshot.SelectsNothing, "start its pods, or select the services with the pods",
			"no workload of the mesh was discovered behind service %s, so there is no service account to allow access to", inventory.ServiceName(service.Ref)).At("destinationSelector")}
	}
	for _, account := range to {
		if other := a.uncovered(b, accountKey{*d.Spec.Mesh, account}); other != (snapshot.Ref{}) {
			return nil, []snapshot.Issue{snapshot.Errorf(snapshot.FieldUnsupported, "use different service accounts for the services, or select all of them",
				"it would also apply to workload %s, which runs under the same service account %s", other.Name, accountName(account)).At("destinationSelector").CausedBy(other)}
		}
	}
	from := a.callersIn(b, dialect, mesh)
	issues := slices.Clone(from.issues)
	if len(from.accounts) == 0 {
		return nil, append(issues, snapshot.Warnf(snapshot.SelectsNothing, "correct sourceSelector; until then the policy allows no caller",
			"sourceSelector matches no service account of mesh %s", mesh.Ref.Name).At("sourceSelector"))
	}
	ports, portIssues := a.grantedPorts(b, i)
	issues = append(issues, portIssues...)
	if snapshot.HasErrors(portIssues) {
		return nil, issues
	}
	var out []*snapshot.Grant
	for _, account := range to {
		g := &snapshot.Grant{Rule: from.rule, To: account, From: from.accounts, Ports: ports}
		if dialect.Inexpressible != nil && len(out) == 0 {
			for _, v := range dialect.Inexpressible(g) {
				support, _ := dialect.Of(snapshot.AccessPolicy, v.Path, v.Case)
				if issue, ok := supportIssue(dialect, support, v.Case, v.Path+" "+v.Value); ok {
					issues = append(issues, issue)
				}
			}
		}
		out = append(out, g)
	}
	return out, issues
}

// uncovered finds a workload that runs under an account and serves Destinations, none
// of which the policy selects; the zero Ref if there is none.
func (a *accounts) uncovered(b *accessBinding, account accountKey) snapshot.Ref {
	if ref, ok := b.uncovered[account]; ok {
		return ref
	}
	var ref snapshot.Ref
	for _, x := range a.pods[account] {
		if !slices.ContainsFunc(a.destinationsOf[x], func(i int) bool {
			_, selected := slices.BinarySearch(b.selected, i)
			return selected
		}) {
			ref = snapshot.RefOf(snapshot.Workload, a.inv.Workloads[x])
			break
		}
	}
	if b.uncovered == nil {
		b.uncovered = map[accountKey]snapshot.Ref{}
	}
	b.uncovered[account] = ref
	return ref
}

// grantedPorts are the pod ports that a policy opens; nil for all. A policy with
// conditions on requests opens only ports on which the proxy sees requests.
func (a *accounts) grantedPorts(b *accessBinding, i int) ([]uint32, []snapshot.Issue) {
	spec, service := &b.policy.Spec, a.inv.Destinations[i].Spec.KubeService
	narrow := len(spec.AllowedPaths)+len(spec.AllowedMethods) > 0
	condition := "allowedPaths"
	if len(spec.AllowedPaths) == 0 {
		condition = "allowedMethods"
	}
	if len(spec.AllowedPorts) == 0 && (!narrow || !a.anyConnections(i)) {
		return nil, nil
	}
	asked := spec.AllowedPorts
	if len(asked) == 0 {
		for _, p := range service.Ports {
			asked = append(asked, p.Port)
		}
	}
	var open []uint32
	var closed []string
	for _, port := range asked {
		pod := port
		if at := slices.IndexFunc(service.Ports, func(p discoveryv1.KubeServicePort) bool { return p.Port == port }); at >= 0 {
			pod, _ = snapshot.PodPort(service, service.Ports[at])
		}
		if narrow && a.carriesConnections(i, pod) {
			closed = append(closed, strconv.FormatUint(uint64(port), 10))
		} else {
			open = append(open, pod)
		}
	}
	if len(open) == 0 {
		return nil, []snapshot.Issue{snapshot.Errorf(snapshot.FieldUnsupported, "remove allowedPaths and allowedMethods, or name a port after its protocol, such as http",
			"allowedPaths and allowedMethods need HTTP, and none of the ports of service %s to which the policy applies carries HTTP", inventory.ServiceName(service.Ref)).At(condition)}
	}
	slices.Sort(open)
	open = slices.Compact(open)
	if len(closed) == 0 {
		return open, nil
	}
	return open, []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported,
		"name the port after its protocol if it carries HTTP, such as http-admin; else serve it under another service account",
		"port %s of service %s stays closed: allowedPaths and allowedMethods need HTTP, and the proxy sees only connections there",
		strings.Join(slices.Compact(closed), ", "), inventory.ServiceName(service.Ref)).At(condition)}
}

// anyConnections reports whether the pods of a Destination's service accounts have a
// port on which the proxy sees connections only.
func (a *accounts) anyConnections(i int) bool {
	return slices.ContainsFunc(a.accountsOf(i), func(of snapshot.Account) bool {
		return len(a.connections(accountKey{*a.inv.Destinations[i].Spec.Mesh, of})) > 0
	})
}

// carriesConnections reports whether the proxy sees connections only on a port of the
// pods of a Destination's service accounts.
func (a *accounts) carriesConnections(i int, pod uint32) bool {
	return slices.ContainsFunc(a.accountsOf(i), func(of snapshot.Account) bool {
		return a.connections(accountKey{*a.inv.Destinations[i].Spec.Mesh, of})[pod]
	})
}

// connections are the ports of an account's pods on which the proxy sees connections
// only.
func (a *accounts) connections(account accountKey) map[uint32]bool {
	if ports, known := a.ports[account]; known {
		return ports
	}
	ports := map[uint32]bool{}
	for _, x := range a.pods[account] {
		for _, destination := range a.destinationsOf[x] {
			service := a.inv.Destinations[destination].Spec.KubeService
			for _, p := range service.Ports {
				if !a.dialect(destination).IsHTTP(&p) {
					pod, _ := snapshot.PodPort(service, p)
					ports[pod] = true
				}
			}
		}
	}
	a.ports[account] = ports
	return ports
}

func accountName(a snapshot.Account) string { return cmp.Or(a.Name, "default") + "." + a.Namespace }
