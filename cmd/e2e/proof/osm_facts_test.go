package proof

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// osmInbound is the port of the listener for calls to the pod.
const osmInbound = 15003

// osmPlan is a Plan for its only Open Service Mesh, by the service accounts of
// pods.
type osmPlan struct{ plan *snapshot.Plan }

// osmFacts are all facts of the Plan for a proxy of Open Service Mesh.
func osmFacts(plan *snapshot.Plan, p proxy) []fact {
	w := osmPlan{plan}
	out := []fact{{
		name: "routes that a proxy takes", want: nil,
		look: func(config *envoy.Config) (wrong []string) {
			for i := range config.Routes {
				if domain := config.Routes[i].SharedDomain(); domain != "" {
					wrong = append(wrong, config.Routes[i].Name+" has "+domain+" twice")
				}
			}
			return wrong
		},
	}}
	for d := range plan.Destinations.All() {
		for _, port := range d.Destination.Spec.KubeService.Ports {
			out = append(out, w.outbound(d, port, p)...)
			if contains(p.labels, d.Destination.Spec.KubeService.WorkloadSelectorLabels) && p.namespace == d.Destination.Spec.KubeService.Ref.Namespace {
				out = append(out, w.inbound(d, port, p)...)
			}
		}
	}
	return out
}

// outbound: the services that a proxy may call, their weights and endpoints.
func (w osmPlan) outbound(d *snapshot.DestinationPlan, port discoveryv1.KubeServicePort, p proxy) []fact {
	cluster := osmCluster(d, port)
	out := []fact{{
		name: "endpoints of " + cluster, want: w.endpoints(d, port, p),
		look: func(config *envoy.Config) []string { return configuredEndpoints(config.EndpointsOf(cluster), false) },
	}}
	if !osmHTTP(port) {
		return out
	}
	return append(out, fact{
		name: fmt.Sprintf("routes to %s:%d", d.LocalFQDN, port.Port), want: w.routes(d, port, p),
		look: func(config *envoy.Config) []string {
			vh := config.VirtualHost(d.LocalFQDN, port.Port)
			if vh == nil {
				return []string{"no virtual host"}
			}
			return osmConfiguredRoutes(vh, func(r envoy.Route) string { return osmTargets(r.Route.Targets()) })
		},
	})
}

func (w osmPlan) routes(d *snapshot.DestinationPlan, port discoveryv1.KubeServicePort, p proxy) []string {
	if len(w.reachable(d, p)) == 0 {
		return []string{"no virtual host"}
	}
	targets := []envoy.ClusterWeight{{Name: osmCluster(d, port), Weight: 100}}
	for _, v := range d.Views {
		for _, r := range v.Routes {
			if r.Action.Targets == nil {
				continue
			}
			targets = nil
			for _, t := range r.Action.Targets.Value {
				for other := range w.plan.Destinations.All() {
					if other.LocalFQDN == t.Host {
						targets = append(targets, envoy.ClusterWeight{Name: osmCluster(other, port), Weight: t.Weight})
					}
				}
			}
		}
	}
	return []string{"any ~ .* -> " + osmTargets(targets)}
}

func osmTargets(targets []envoy.ClusterWeight) string {
	var out []string
	for _, t := range targets {
		out = append(out, fmt.Sprintf("%d %s", t.Weight, t.Name))
	}
	slices.Sort(out)
	return strings.Join(out, " + ")
}

// endpoints are the pods that the proxy may call.
func (w osmPlan) endpoints(d *snapshot.DestinationPlan, port discoveryv1.KubeServicePort, p proxy) []string {
	accounts := w.reachable(d, p)
	var out []string
	for _, part := range d.Destination.Spec.KubeService.EndpointSubsets {
		for _, own := range part.Ports {
			if own.Name != port.Name {
				continue
			}
			for _, e := range part.Endpoints {
				if slices.Contains(accounts, w.account(d.Destination.Spec.KubeService.Ref.Namespace, e.Labels)) {
					out = append(out, fmt.Sprintf("%s:%d", e.IpAddress, own.Port))
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// inbound: who may call a port of the pod of the proxy, first with connections,
// then with requests.
func (w osmPlan) inbound(d *snapshot.DestinationPlan, port discoveryv1.KubeServicePort, p proxy) []fact {
	name := fmt.Sprintf("%s:%d", d.LocalFQDN, port.Port)
	target := port.TargetPortNumber
	out := []fact{{
		name: "who may connect to " + name, want: w.connections(p),
		look: func(config *envoy.Config) []string {
			return osmConfiguredConnections(config.Chain(osmInbound, target, d.LocalFQDN))
		},
	}}
	if !osmHTTP(port) {
		return out
	}
	return append(out, fact{
		name: "who may call " + name, want: w.requests(p),
		look: func(config *envoy.Config) []string {
			vh := config.RouteConfiguration(fmt.Sprintf("rds-inbound.%d", target)).VirtualHost(d.LocalFQDN)
			if vh == nil {
				return []string{"no virtual host"}
			}
			return osmConfiguredRoutes(vh, osmConfiguredCallers)
		},
	})
}

// connections has a line for each grant to the account of the pod.
func (w osmPlan) connections(p proxy) []string {
	if w.open() {
		return []string{"anyone"}
	}
	var out []string
	for _, g := range w.grantsTo(w.account(p.namespace, p.labels)) {
		ports := []string{"any"}
		if len(g.Ports) > 0 {
			ports = nil
		}
		for _, port := range g.Ports {
			ports = append(ports, fmt.Sprintf("port=%d", port))
		}
		out = append(out, strings.Join(w.principals(g.From), " or ")+" | "+strings.Join(ports, " or "))
	}
	slices.Sort(out)
	if len(out) == 0 {
		return []string{"no one"}
	}
	return slices.Compact(out)
}

// requests has a line for each path and method, with the callers of all grants
// that have it.
func (w osmPlan) requests(p proxy) []string {
	if w.open() {
		return []string{"any ~ .* -> any"}
	}
	callers := map[string][]snapshot.Account{}
	for _, g := range w.grantsTo(w.account(p.namespace, p.labels)) {
		paths, methods := g.Rule.Paths, g.Rule.Methods
		if len(paths) == 0 {
			paths = []string{"*"}
		}
		if len(methods) == 0 {
			methods = []string{"any"}
		}
		for _, path := range paths {
			for _, method := range methods {
				route := method + " ~ " + osmPath(path)
				callers[route] = append(callers[route], g.From...)
			}
		}
	}
	var out []string
	for route, from := range callers {
		out = append(out, route+" -> "+strings.Join(w.principals(from), " or "))
	}
	slices.Sort(out)
	return out
}

// osmPath is a path of the policy as the regular expression for it.
func osmPath(path string) string {
	before, star := strings.CutSuffix(path, "*")
	after, prefixed := strings.CutPrefix(path, "*")
	switch {
	case path == "*":
		return ".*"
	case star:
		return "^" + regexp.QuoteMeta(before) + ".*$"
	case prefixed:
		return "^.*" + regexp.QuoteMeta(after) + "$"
	default:
		return "^" + regexp.QuoteMeta(path) + "$"
	}
}

func (w osmPlan) open() bool { return w.plan.Meshes[0].Open }

// principals are the names in the certificates of accounts.
func (w osmPlan) principals(accounts []snapshot.Account) []string {
	var out []string
	for _, a := range accounts {
		out = append(out, "principal="+a.Name+"."+a.Namespace+"."+w.plan.Meshes[0].TrustDomain)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// reachable are the accounts of the pods of a service that the proxy may call.
func (w osmPlan) reachable(d *snapshot.DestinationPlan, p proxy) []snapshot.Account {
	var out []snapshot.Account
	service := d.Destination.Spec.KubeService
	for _, workload := range w.plan.Workloads {
		k := workload.Spec.Kubernetes
		if k.Controller.Namespace != service.Ref.Namespace || !contains(k.PodLabels, service.WorkloadSelectorLabels) {
			continue
		}
		account := w.account(k.Controller.Namespace, k.PodLabels)
		granted := slices.ContainsFunc(w.grantsTo(account), func(g *snapshot.Grant) bool {
			return slices.Contains(g.From, w.account(p.namespace, p.labels))
		})
		if granted || w.open() {
			out = append(out, account)
		}
	}
	return out
}

// grantsTo are the grants to an account, for any service.
func (w osmPlan) grantsTo(account snapshot.Account) []*snapshot.Grant {
	var out []*snapshot.Grant
	for d := range w.plan.Destinations.All() {
		for _, g := range d.Grants {
			if g.To == account {
				out = append(out, g)
			}
		}
	}
	return out
}

// account is the account of the workload whose pods have these labels.
func (w osmPlan) account(namespace string, labels map[string]string) snapshot.Account {
	for _, workload := range w.plan.Workloads {
		k := workload.Spec.Kubernetes
		if k.Controller.Namespace == namespace && contains(labels, k.PodLabels) {
			return snapshot.Account{Namespace: namespace, Name: k.ServiceAccountName}
		}
	}
	return snapshot.Account{}
}

// osmCluster is the mesh's name for the endpoints of a port.
func osmCluster(d *snapshot.DestinationPlan, port discoveryv1.KubeServicePort) string {
	ref := d.Destination.Spec.KubeService.Ref
	return fmt.Sprintf("%s/%s|%d", ref.Namespace, ref.Name, port.TargetPortNumber)
}

// osmHTTP reports whether Open Service Mesh treats a port as HTTP.
func osmHTTP(port discoveryv1.KubeServicePort) bool {
	if port.AppProtocol != "" {
		return port.AppProtocol == "http"
	}
	return !strings.HasPrefix(port.Name, "tcp-")
}

// osmConfiguredRoutes formats the routes of a virtual host, sorted.
func osmConfiguredRoutes(vh *envoy.VirtualHost, action func(envoy.Route) string) []string {
	var out []string
	for _, r := range vh.Routes {
		method := "no method"
		for _, h := range r.Match.Headers {
			if h.Name == ":method" {
				method = h.SafeRegexMatch.Regex
			} else {
				method += " header " + h.Name
			}
		}
		if method == ".*" {
			method = "any"
		}
		out = append(out, method+" ~ "+r.Match.SafeRegex.Regex+" -> "+action(r))
	}
	slices.Sort(out)
	return out
}

// osmConfiguredCallers formats the callers that a route allows.
func osmConfiguredCallers(r envoy.Route) string {
	filter, ok := decode[struct{ RBAC *envoy.FilterConfig }](r.TypedPerFilterConfig["envoy.filters.http.rbac"])
	if !ok || filter.RBAC == nil || filter.RBAC.Rules == nil {
		return "no rules"
	}
	var out []string
	for _, policy := range filter.RBAC.Rules.Policies {
		if permissions := joinedConditions(policy.Permissions); permissions != "any" {
			out = append(out, permissions)
		}
		out = append(out, joinedConditions(policy.Principals))
	}
	return strings.Join(out, " and ")
}

// osmConfiguredConnections formats the rules for connections of a filter chain.
func osmConfiguredConnections(chain *envoy.FilterChain) []string {
	if chain == nil {
		return []string{"no filter chain"}
	}
	for _, f := range chain.Filters {
		if f.Name != "l4_rbac" || f.TypedConfig.Rules == nil {
			continue
		}
		var out []string
		for _, policy := range f.TypedConfig.Rules.Policies {
			out = append(out, joinedConditions(policy.Principals)+" | "+joinedConditions(policy.Permissions))
		}
		slices.Sort(out)
		if len(out) == 0 {
			return []string{"no one"}
		}
		return slices.Compact(out)
	}
	return []string{"anyone"}
}
