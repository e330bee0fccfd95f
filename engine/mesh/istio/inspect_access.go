package istio

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Access implements snapshot.ByHand: the AuthorizationPolicies that select pods of a service, of its namespace and of the
// root namespace, whose policies apply everywhere.
func (h *handWritten) Access(service *discoveryv1.KubeService, mesh *snapshot.MeshPlan) []snapshot.Intersection {
	if len(h.authorizationPolicies)+len(h.peerAuthentications) == 0 {
		return nil
	}
	out := h.withoutTLS(service, mesh)
	add := func(list []*istiosecurityv1.AuthorizationPolicy) {
		for _, o := range list {
			if inRevision(mesh, o) && len(targetsOf(&o.Spec)) == 0 && selectsPodsOf(o, service) {
				out = append(out, snapshot.Intersection{
					Ref:  snapshot.Ref{Kind: snapshot.AuthorizationPolicy, Cluster: mesh.Cluster, Namespace: o.Namespace, Name: o.Name},
					What: authorizationEffect(o), Hint: "express its rules in AccessPolicies, and delete it",
				})
			}
		}
	}
	add(h.authorizationPolicies[service.Ref.Namespace])
	if mesh.RootNamespace != service.Ref.Namespace {
		add(h.authorizationPolicies[mesh.RootNamespace])
	}
	return out
}

// Tries implements snapshot.ByHand.
func (h *handWritten) Tries(service *discoveryv1.KubeService, mesh *snapshot.MeshPlan) bool {
	selects := func(o *istiosecurityv1.AuthorizationPolicy) bool {
		return inRevision(mesh, o) && selectsPodsOf(o, service)
	}
	return slices.ContainsFunc(h.tried[service.Ref.Namespace], selects) || slices.ContainsFunc(h.tried[mesh.RootNamespace], selects)
}

// withoutTLS are the PeerAuthentications that turn mutual TLS off for ports of a service.
func (h *handWritten) withoutTLS(service *discoveryv1.KubeService, mesh *snapshot.MeshPlan) []snapshot.Intersection {
	// unused are those of pods that would take it, and ports all others.
	ports, unused := map[snapshot.Ref][]string{}, map[snapshot.Ref][]string{}
	for _, part := range service.EndpointSubsets {
		if part.NoProxy && !part.Machines {
			continue
		}
		for i := range part.Endpoints {
			of := &snapshot.PodQuery{Mesh: mesh, Namespace: service.Ref.Namespace}
			g := &guard{mesh: mesh, cluster: h.from.Name, peers: h.peersOn(of, part.Endpoints[i].Labels)}
			for _, p := range part.Ports {
				port := strconv.FormatUint(uint64(p.Port), 10)
				switch tls, by := g.TLS(p.Port); {
				case tls == snapshot.TLSNone && !slices.Contains(ports[by], port):
					ports[by] = append(ports[by], port)
				case tls == snapshot.TLSUnused && !slices.Contains(unused[by], port):
					unused[by] = append(unused[by], port)
				}
			}
		}
	}
	var out []snapshot.Intersection
	for by, list := range unused {
		slices.Sort(list)
		out = append(out, snapshot.Intersection{
			Ref: by, What: "has callers of its cluster present no identity to port " + strings.Join(list, ", ") + " of pods that take mutual TLS",
			Hint: "set mode PERMISSIVE or STRICT there",
		})
	}
	for by, list := range ports {
		slices.Sort(list)
		out = append(out, snapshot.Intersection{
			Ref: by, What: "turns mutual TLS off for port " + strings.Join(list, ", ") + " of its pods, so that callers present no identity and those of other clusters cannot connect",
			Hint: "set mode PERMISSIVE or STRICT there",
		})
	}
	slices.SortFunc(out, func(a, b snapshot.Intersection) int {
		return cmp.Or(a.Ref.Compare(b.Ref), strings.Compare(a.What, b.What))
	})
	return out
}

// Egress implements snapshot.ByHand: the Sidecars that apply to pods, or no longer do.
func (h *handWritten) Egress(of *snapshot.PodQuery) []snapshot.Intersection {
	var out []snapshot.Intersection
	for _, o := range h.sidecars[of.Namespace] {
		if !inRevision(of.Mesh, o) {
			continue
		}
		by := sidecarRef(h.from, o)
		want := o.Spec.GetWorkloadSelector().GetLabels()
		if len(want) == 0 {
			out = append(out, snapshot.Intersection{
				Ref: by, What: "no longer applies to its pods: a Sidecar that selects pods takes precedence over one for the namespace",
				Hint: "list in ServiceDependencies what the workload calls, or select other workloads",
			})
			continue
		}
		if slices.ContainsFunc(of.Pods, func(labels map[string]string) bool { return inventory.MatchLabels(want, labels) }) {
			out = append(out, snapshot.Intersection{Ref: by, What: "selects the same pods, and the mesh uses the older of the two", Hint: "delete it, or change its selector"})
		}
	}
	return out
}

// authorizationEffect says what a hand-written AuthorizationPolicy does beside an
// AccessPolicy.
func authorizationEffect(o *istiosecurityv1.AuthorizationPolicy) string {
	switch {
	case o.Spec.Action == security.AuthorizationPolicy_DENY:
		return "denies callers on the same pods, also those whom an AccessPolicy allows"
	case o.Spec.Action == security.AuthorizationPolicy_CUSTOM:
		return "delegates the decision on the same pods to an external authorizer, which may deny callers whom an AccessPolicy allows"
	case len(o.Spec.Rules) == 0:
		return "denies on the same pods what no policy allows"
	default:
		return "allows callers on the same pods, also those whom no AccessPolicy names; where none is, it denies all others"
	}
}

// selectsPodsOf reports whether an AuthorizationPolicy selects pods of a service.
func selectsPodsOf(o *istiosecurityv1.AuthorizationPolicy, service *discoveryv1.KubeService) bool {
	want := o.Spec.GetSelector().GetMatchLabels()
	if len(want) == 0 {
		return true
	}
	known := false
	for _, part := range service.EndpointSubsets {
		if part.NoProxy && !part.Machines && !part.Ambient {
			continue // nothing applies to them
		}
		for i := range part.Endpoints {
			known = true
			if inventory.MatchLabels(want, part.Endpoints[i].Labels) {
				return true
			}
		}
	}
	if known {
		return false
	}
	for name, value := range want { // without pods, the selectors decide
		if have, ok := service.WorkloadSelectorLabels[name]; ok && have != value {
			return false
		}
	}
	return true
}
