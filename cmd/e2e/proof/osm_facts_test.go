package proof

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/demo/envoy"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// osmInbound is the port of the listener for calls to the pod.
const osmInbound = 15003

// osmWorld is a Plan as the one Open Service Mesh in it has to take it: by the
// accounts of pods.
type osmWorld struct{ plan *snapshot.Plan }

// osmFacts are all that the Plan means for a proxy of Open Service Mesh.
func osmFacts(plan *snapshot.Plan, p proxy) []fact {
	w := osmWorld{plan}
	out := []fact{{
		name: "routes that a proxy takes", want: nil,
		look: func(told *envoy.Config) (wrong []string) {
			for i := range told.Routes {
				if domain := told.Routes[i].SharedDomain(); domain != "" {
					wrong = append(wrong, told.Routes[i].Name+" has "+domain+" twice")
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

// outbound: whom a proxy may call, how that is split, and where it is.
func (w osmWorld) outbound(d *snapshot.DestinationPlan, port discoveryv1.KubeServicePort, p proxy) []fact {
	cluster := osmCluster(d, port)
	out := []fact{{
		name: "endpoints of " + cluster, want: w.endpoints(d, port, p),
		look: func(told *envoy.Config) []string { return toldEndpoints(told.EndpointsOf(cluster), false) },
	}}
	if !osmHTTP(port) {
		return out
	}
	return append(out, fact{
		name: fmt.Sprintf("routes to %s:%d", d.LocalFQDN, port.Port), want: w.routes(d, port, p),
		look: func(told *envoy.Config) []string {
			vh := told.VirtualHost(d.LocalFQDN, port.Port)
			if vh == nil {
				return []string{"no virtual host"}
			}
			return osmToldRoutes(vh, func(r envoy.Route) string { return osmTargets(r.Route.Targets()) })
		},
	})
}

func (w osmWorld) routes(d *snapshot.DestinationPlan, port discoveryv1.KubeServicePort, p proxy) []string {
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
func (w osmWorld) endpoints(d *snapshot.DestinationPlan, port discoveryv1.KubeServicePort, p proxy) []string {
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

// inbound: who may call a port of the pod beside the proxy, connections first,
// then requests.
func (w osmWorld) inbound(d *snapshot.DestinationPlan, port discoveryv1.KubeServicePort, p proxy) []fact {
	name := fmt.Sprintf("%s:%d", d.LocalFQDN, port.Port)
	target := port.TargetPortNumber
	out := []fact{{
		name: "who may connect to " + name, want: w.connections(p),
		look: func(told *envoy.Config) []string {
			return osmToldConnections(told.Chain(osmInbound, target, d.LocalFQDN))
		},
	}}
	if !osmHTTP(port) {
		return out
	}
	return append(out, fact{
		name: "who may call " + name, want: w.requests(p),
		look: func(told *envoy.Config) []string {
			vh := told.RouteConfiguration(fmt.Sprintf("rds-inbound.%d", target)).VirtualHost(d.LocalFQDN)
			if vh == nil {
				return []string{"no virtual host"}
			}
			return osmToldRoutes(vh, osmToldCallers)
		},
	})
}

// connections are a line for each grant to the pod's account.
func (w osmWorld) connections(p proxy) []string {
	if w.open() {
		return []string{"everybody"}
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
		return []string{"nobody"}
	}
	return slices.Compact(out)
}

// requests are a line for each path and method: those that several grants have
// are for the callers of all of them.
func (w osmWorld) requests(p proxy) []string {
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

func (w osmWorld) open() bool { return w.plan.Meshes[0].Open }

// principals are the names in the certificates of accounts.
func (w osmWorld) principals(accounts []snapshot.Account) []string {
	var out []string
	for _, a := range accounts {
		out = append(out, "principal="+a.Name+"."+a.Namespace+"."+w.plan.Meshes[0].TrustDomain)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// reachable are the accounts of the pods of a service that a proxy may call.
func (w osmWorld) reachable(d *snapshot.DestinationPlan, p proxy) []snapshot.Account {
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

// grantsTo are the grants to an account, whichever service they were made for.
func (w osmWorld) grantsTo(account snapshot.Account) []*snapshot.Grant {
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

// account is that of the workload whose pods have these labels.
func (w osmWorld) account(namespace string, labels map[string]string) snapshot.Account {
	for _, workload := range w.plan.Workloads {
		k := workload.Spec.Kubernetes
		if k.Controller.Namespace == namespace && contains(labels, k.PodLabels) {
			return snapshot.Account{Namespace: namespace, Name: k.ServiceAccountName}
		}
	}
	return snapshot.Account{}
}

// osmCluster is what the mesh calls the endpoints of a port.
func osmCluster(d *snapshot.DestinationPlan, port discoveryv1.KubeServicePort) string {
	ref := d.Destination.Spec.KubeService.Ref
	return fmt.Sprintf("%s/%s|%d", ref.Namespace, ref.Name, port.TargetPortNumber)
}

// osmHTTP says what Open Service Mesh takes a port for.
func osmHTTP(port discoveryv1.KubeServicePort) bool {
	if port.AppProtocol != "" {
		return port.AppProtocol == "http"
	}
	return !strings.HasPrefix(port.Name, "tcp-")
}

// osmToldRoutes spells the routes of a virtual host, which are in no order.
func osmToldRoutes(vh *envoy.VirtualHost, action func(envoy.Route) string) []string {
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

// osmToldCallers spells whom a route lets in.
func osmToldCallers(r envoy.Route) string {
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

// osmToldConnections spells the rules for connections of a filter chain.
func osmToldConnections(chain *envoy.FilterChain) []string {
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
			return []string{"nobody"}
		}
		return slices.Compact(out)
	}
	return []string{"everybody"}
}
