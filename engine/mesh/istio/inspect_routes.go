package istio

import (
	"cmp"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// RoutesFor implements snapshot.ByHand. Proxies use the VirtualServices of their own namespace and those exported to it by name before
// those for all, each time the oldest, and one for a host before one for a pattern, of which the longest is taken whatever its age
// (Istio, SelectVirtualServices and separateVSHostsAndServices). What istiod makes of routes of the Gateway API that are of the callers'
// namespace comes first among its like.
func (h *handWritten) RoutesFor(of *snapshot.HostQuery, callers *snapshot.PodQuery) []snapshot.HandRoutes {
	namespace := callers.Namespace
	var list []ranked
	exact := h.virtualServices.named(of.Host)
	for _, o := range h.virtualServices.matching(of.Host) {
		to := o.seenBy(of.Mesh)
		vs := h.virtualServiceOf[o.ref]
		if !to.includes(namespace) || vs == nil {
			continue
		}
		one := ranked{hosts: vs.Spec.Hosts, HandRoutes: snapshot.HandRoutes{Ref: o.ref, As: o.ref, Created: o.created, Precedence: precedenceOf(to, o.ref.Namespace, namespace, false)}}
		// Which of several patterns is nearest is of no matter to connections (Istio, getConfigsForHost).
		one.Pattern = of.Traffic == snapshot.Requests && !slices.ContainsFunc(exact, func(e handWrittenObject) bool { return e.ref == o.ref })
		if one.Pattern {
			one.nearness = longestPattern(vs.Spec.Hosts, of.Host)
		}
		switch of.Traffic {
		case snapshot.Requests:
			for _, r := range h.httpOf(of.Mesh, vs) {
				one.Routes = append(one.Routes, h.routesOf(r, matchOf, of)...)
			}
		default:
			one.Routes = h.connectionRoutes(vs.Spec.Tcp, vs.Spec.Tls, o.ref, of)
		}
		list = append(list, one)
	}
	list = append(list, h.attachedFor(of, namespace)...)
	// A Sidecar imports them from their own namespace, as it does services: with all of its hosts, if it imports one of them (Istio,
	// SelectVirtualServices).
	imports := func(from string, hosts ...string) bool {
		return slices.ContainsFunc(append(slices.Clone(hosts), of.Host), func(host string) bool {
			_, hides := h.Hides(&snapshot.HostQuery{Host: h.fullName(host, from), Mesh: of.Mesh, Home: from, Port: of.Port}, callers)
			return !hides
		})
	}
	attached := of.Traffic == snapshot.Requests && slices.ContainsFunc(h.attached[of.Host], func(r attachedRoutes) bool {
		return r.of(of.Mesh) && r.exported(of.Mesh).includes(namespace) && imports(r.ref.Namespace)
	})
	// Patterns are only for hosts that nothing is attached to, be it for other callers or another port (Istio,
	// computeWildcardHostVirtualServiceIndex).
	list = slices.DeleteFunc(list, func(r ranked) bool { return !imports(r.As.Namespace, r.hosts...) || attached && r.Pattern })
	slices.SortStableFunc(list, func(a, b ranked) int {
		return cmp.Or(order(a.Pattern, b.Pattern), cmp.Compare(b.nearness, a.nearness), cmp.Compare(a.Precedence, b.Precedence), a.Created.Compare(b.Created),
			strings.Compare(a.As.Name, b.As.Name), strings.Compare(a.As.Namespace, b.As.Namespace))
	})
	out := make([]snapshot.HandRoutes, len(list))
	for i := range list {
		out[i] = list[i].HandRoutes
	}
	return out
}

// ranked is an object with what else decides which one is used.
type ranked struct {
	snapshot.HandRoutes
	// nearness is the length of the pattern; 0 if it is none.
	nearness int
	// hosts are all that it is for; none if that is the one that was asked for.
	hosts []string
}

// longestPattern is the length of the nearest of some patterns that a host matches (Istio, host.MoreSpecific); 0 if none does.
func longestPattern(patterns []string, host string) (longest int) {
	for _, pattern := range patterns {
		if end, wild := strings.CutPrefix(strings.ToLower(pattern), "*"); wild && strings.HasSuffix(host, end) {
			longest = max(longest, len(pattern))
		}
	}
	return longest
}

// precedenceOf is that of an object in a namespace for callers in a namespace that see it (Istio, SelectVirtualServices): attached is set
// for those of the Gateway API.
func precedenceOf(to callerNamespaces, own, callers string, attached bool) snapshot.Precedence {
	attached = attached && own == callers
	switch {
	case !to.all && attached:
		return snapshot.AttachedToOwn
	case !to.all && own == callers:
		return snapshot.OwnOnly
	case !to.all:
		return snapshot.ForSome
	case attached:
		return snapshot.AttachedForAll
	}
	return snapshot.ForAll
}

// attachedFor are what istiod makes VirtualServices of, each of the objects with the same key; the oldest gives it its age.
func (h *handWritten) attachedFor(of *snapshot.HostQuery, namespace string) (out []ranked) {
	routes := map[string][]httpRoute{}
	at := map[string]int{}
	for _, r := range h.attachedTo(of) {
		to := r.seenBy(of.Mesh)
		if !to.includes(namespace) || of.Traffic == snapshot.Requests && len(r.http) == 0 {
			continue
		}
		key := r.key
		if of.Traffic != snapshot.Requests {
			key = r.ref.Name + "~" + key // they are not merged
		}
		if _, found := at[key]; !found {
			at[key] = len(out)
			as := r.ref
			as.Kind, as.Name = snapshot.VirtualService, key
			precedence := precedenceOf(r.exported(of.Mesh), r.ref.Namespace, namespace, true)
			out = append(out, ranked{HandRoutes: snapshot.HandRoutes{Ref: r.ref, As: as, Created: r.created, Precedence: precedence}})
		}
		if of.Traffic == snapshot.Requests {
			routes[key] = append(routes[key], r.http...)
		} else {
			out[at[key]].Routes = h.connectionRoutes(r.tcp, r.tls, r.ref, of)
		}
	}
	for key, list := range routes {
		sortRoutes(list)
		for _, r := range list {
			out[at[key]].Routes = append(out[at[key]].Routes, h.routesOf(r, attachedMatch, of)...)
		}
	}
	return out
}

// order puts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// SubsetLabels implements snapshot.ByHand.
func (h *handWritten) SubsetLabels(of *snapshot.HostQuery, callers *snapshot.PodQuery, subset string) (map[string]string, bool) {
	for _, o := range h.rulesFor(of, callers) {
		for _, s := range o.Spec.Subsets {
			if s.Name == subset {
				return s.Labels, true
			}
		}
	}
	return nil, false
}
