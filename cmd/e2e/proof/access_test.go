package proof

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// accessFacts: who may call the pod of a sidecar, with requests and with
// connections. Each rule is a line "callers | operations".
func accessFacts(plan *snapshot.Plan, p proxy) []fact {
	var out []fact
	for d := range plan.Destinations.All() {
		service := d.Destination.Spec.KubeService
		if d.Mesh.Cluster != p.cluster || service.Ref.Namespace != p.namespace ||
			len(service.WorkloadSelectorLabels) == 0 || !contains(p.labels, service.WorkloadSelectorLabels) {
			continue
		}
		for _, port := range portsFor(d, requests) {
			out = append(out, fact{
				name: fmt.Sprintf("who may call %s:%d", d.LocalFQDN, port), want: plannedAccess(d, requests),
				look: func(config *envoy.Config) []string {
					return configuredAccess(config.HTTPFilters(15006, podPort(d, port)), httpRBAC)
				},
			})
		}
		for _, port := range portsFor(d, connections) {
			out = append(out, fact{
				name: fmt.Sprintf("who may connect to %s:%d", d.LocalFQDN, port), want: plannedAccess(d, connections),
				look: func(config *envoy.Config) []string {
					return configuredAccess(config.NetworkFilters(15006, podPort(d, port)), networkRBAC)
				},
			})
		}
	}
	return out
}

// The filters that authorize callers.
const (
	httpRBAC    = "envoy.filters.http.rbac"
	networkRBAC = "envoy.filters.network.rbac"
)

// plannedAccess is who is let in, and who is denied whatever lets them in.
func plannedAccess(d *snapshot.DestinationPlan, what traffic) []string {
	return append(plannedDenials(d, what), plannedAllowances(d, what)...)
}

// plannedDenials leaves out paths and methods where a proxy only sees connections:
// it denies all of these there.
func plannedDenials(d *snapshot.DestinationPlan, what traffic) (out []string) {
	if d.Denials == nil {
		return nil
	}
	for _, rule := range d.Denials.Policies {
		of := *rule
		if what == connections {
			of.Paths, of.Methods = nil, nil
		}
		if callers := plannedCallers(&of, d.Mesh.TrustDomain); len(callers) > 0 {
			out = append(out, denied+strings.Join(callers, " or ")+" | "+plannedOperations(&of, d))
		}
	}
	slices.Sort(out)
	return out
}

// denied begins the rules that deny.
const denied = "denied: "

// plannedAllowances omits the rules with paths and methods where a proxy only sees
// connections: they allow nothing there.
func plannedAllowances(d *snapshot.DestinationPlan, what traffic) []string {
	if len(d.Access) == 0 {
		if d.Mesh.DenyByDefault != nil {
			return []string{"no one"}
		}
		return []string{"anyone"}
	}
	var out []string
	for _, rule := range d.Access {
		if what == connections && len(rule.Paths)+len(rule.Methods) > 0 {
			continue
		}
		if callers := plannedCallers(rule, d.Mesh.TrustDomain); len(callers) > 0 {
			out = append(out, strings.Join(callers, " or ")+" | "+plannedOperations(rule, d))
		}
	}
	slices.Sort(out)
	if len(out) == 0 {
		return []string{"no one"}
	}
	return out
}

// plannedCallers are the sources of a rule, as conditions on the SPIFFE ID of the
// caller.
func plannedCallers(rule *snapshot.AccessRule, trustDomain string) []string {
	if rule.Anyone {
		return []string{"any"}
	}
	var out []string
	for _, source := range rule.Sources {
		var ids, namespaces []string
		for _, id := range source.Identities {
			if id.ExpressibleIn(trustDomain) {
				ids = append(ids, "principal="+pattern(id))
			}
		}
		for _, namespace := range source.Namespaces {
			namespaces = append(namespaces, "principal~.*/ns/"+namespace+"/.*")
		}
		if len(source.Identities) > 0 && len(ids) == 0 {
			continue // none of those who would have to be in the namespaces
		}
		var both []string
		for _, list := range [][]string{ids, namespaces} {
			if len(list) > 0 {
				both = append(both, joined("or", list))
			}
		}
		out = append(out, joined("and", both))
	}
	slices.Sort(out)
	return out
}

// pattern is an identity as a prefix of SPIFFE IDs, or as a complete one.
func pattern(id snapshot.Identity) string {
	out := "spiffe://" + id.TrustDomain + "/ns/"
	switch {
	case id.Namespace == "":
		return out + "*"
	case id.ServiceAccount == "":
		return out + id.Namespace + "/sa/*"
	default:
		return out + id.Namespace + "/sa/" + id.ServiceAccount
	}
}

// joined formats a list like package envoy.
func joined(operator string, list []string) string {
	list = slices.Compact(slices.Sorted(slices.Values(list)))
	if len(list) == 1 {
		return list[0]
	}
	return operator + "(" + strings.Join(list, ", ") + ")"
}

func plannedOperations(rule *snapshot.AccessRule, d *snapshot.DestinationPlan) string {
	var paths, methods, ports, all []string
	for _, path := range rule.Paths {
		if strings.ContainsAny(path, "{}") {
			paths = append(paths, "path template "+template(path))
			continue
		}
		paths = append(paths, "path="+path)
	}
	for _, method := range rule.Methods {
		methods = append(methods, ":method="+method)
	}
	for _, port := range rule.Ports {
		ports = append(ports, fmt.Sprintf("port=%d", podPort(d, port)))
	}
	for _, list := range [][]string{paths, methods, ports} {
		if len(list) > 0 {
			all = append(all, joined("or", list))
		}
	}
	if len(all) == 0 {
		return "any"
	}
	return joined("and", all)
}

// template: Envoy writes the operators of URI templates without braces.
func template(path string) string {
	return strings.ReplaceAll(strings.ReplaceAll(path, "{**}", "**"), "{*}", "*")
}

// configuredAccess formats the RBAC filters of a port, which are the same in every chain.
func configuredAccess(chains [][]envoy.Filter, filter string) []string {
	if len(chains) == 0 {
		return []string{"no filter chain"}
	}
	var first []string
	for i, chain := range chains {
		rules := configuredRules(chain, filter)
		if i == 0 {
			first = rules
		} else if !slices.Equal(first, rules) {
			return append([]string{"chains differ:"}, append(first, rules...)...)
		}
	}
	return first
}

// configuredRules are those of the filter that denies, which comes first, and of the one that allows.
func configuredRules(chain []envoy.Filter, filter string) []string {
	var denials []string
	for _, f := range chain {
		if f.Name != filter {
			continue
		}
		rules := f.TypedConfig.Rules
		switch {
		case rules == nil:
			return []string{"a filter without rules"}
		case rules.Action == "DENY" && len(denials) == 0:
			for _, policy := range rules.Policies {
				denials = append(denials, denied+joinedConditions(policy.Principals)+" | "+joinedConditions(policy.Permissions))
			}
			slices.Sort(denials)
			continue
		case rules.Action != "" && rules.Action != "ALLOW":
			return []string{"action " + rules.Action}
		}
		var out []string
		for _, policy := range rules.Policies {
			out = append(out, joinedConditions(policy.Principals)+" | "+joinedConditions(policy.Permissions))
		}
		// This is how Istio writes a policy that allows nothing.
		out = slices.DeleteFunc(out, func(rule string) bool { return rule == "not(any) | not(any)" })
		slices.Sort(out)
		if len(out) == 0 {
			out = []string{"no one"}
		}
		return append(denials, out...)
	}
	return append(denials, "anyone")
}

func joinedConditions(conditions []envoy.Condition) string {
	var out []string
	for _, c := range conditions {
		out = append(out, c.String())
	}
	slices.Sort(out)
	return strings.Join(out, " or ")
}
