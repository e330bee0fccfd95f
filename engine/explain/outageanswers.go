package explain

import (
	"slices"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Responder is who answers a share of some requests.
type Responder struct {
	// Destination is the service; zero for a host outside of all clusters.
	Destination snapshot.Ref `json:"destination,omitzero"`
	Host        string       `json:"host,omitempty"`
	Subset      string       `json:"subset,omitempty"`
	// Share of the requests, in percent. Of services of one priority of a VirtualDestination, it is by their ready pods.
	Share float64 `json:"share"`
	// Ready is how many pods answer; nil if that is not known. With 0, nobody does.
	Ready *int `json:"ready,omitempty"`
}

// answersTo are the answers to some of the requests that callers of a mesh send to a service.
type answersTo struct {
	requests string
	// policies route them; none if nothing does.
	policies []snapshot.Ref
	answers  []Responder
}

// unanswered is the share that nobody answers, in percent.
func unanswered(answers []Responder) (share float64) {
	for _, a := range answers {
		if a.Ready != nil && *a.Ready == 0 {
			share += a.Share
		}
	}
	return share
}

// answersOf says who answers the requests of callers of a mesh to a service. What is not followed, such as routes that hold for
// some namespaces only, is left out.
func answersOf(x *Index, mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan) []answersTo {
	routes := []Route{}
	for _, v := range viewsOf(x, d) {
		if v.Mesh != mesh.Ref {
			continue
		}
		routes = v.Routes
		if all := usedByAll(v.ByHand); all != nil {
			routes = all.Routes
		}
	}
	if len(routes) == 0 {
		return []answersTo{{requests: anyRequest, answers: endsAt(x, mesh, Responder{Destination: d.Ref, Share: whole})}}
	}
	var out []answersTo
	for _, r := range routes {
		if r.Instead != "" {
			continue
		}
		to := answersTo{requests: r.Match, policies: r.Policies}
		if len(r.Targets) == 0 {
			to.answers = endsAt(x, mesh, Responder{Destination: d.Ref, Share: whole})
		}
		for _, t := range r.Targets {
			if t.Share > 0 {
				to.answers = append(to.answers, endsAt(x, mesh, Responder{Destination: t.Destination, Host: t.Host, Subset: t.Subset, Share: t.Share})...)
			}
		}
		out = append(out, to)
	}
	return out
}

// endsAt says who answers what goes to a service or a VirtualDestination.
func endsAt(x *Index, mesh *snapshot.MeshPlan, a Responder) []Responder {
	if v := x.virtualDestinations[a.Destination]; v != nil {
		return behindVirtual(x, mesh, v, a)
	}
	d := x.destinations[a.Destination]
	if d == nil || d.Mesh == nil || d.Destination.Spec.KubeService == nil {
		return []Responder{a}
	}
	a.Host = ""
	through := []snapshot.GatewayPlan(nil)
	if reaches(mesh, d) && d.ThroughGateways(mesh) {
		through = d.Mesh.Gateways
	}
	a.Ready = readyOf(x, mesh, d, a.Subset, through)
	return []Responder{a}
}

// readyOf is how many pods of a service callers of a mesh reach; nil if that is not known.
func readyOf(x *Index, mesh *snapshot.MeshPlan, d *snapshot.DestinationPlan, subset string, through []snapshot.GatewayPlan) *int {
	none := 0
	if gatewaysDown(x, through) != "" || len(through) > 0 && d.Federation != nil && d.Federation.Limited && gatewaysDown(x, mesh.Gateways) != "" {
		return &none
	}
	return describing(x).behind(snapshot.Target{Destination: d.Ref, Subset: subset})
}

// behindVirtual are the services of the first priority that answers.
func behindVirtual(x *Index, mesh *snapshot.MeshPlan, v *snapshot.VirtualDestinationPlan, a Responder) []Responder {
	for _, view := range v.Views {
		if view.Mesh.Ref != mesh.Ref {
			continue
		}
		for _, priority := range view.Priorities {
			var list []Responder
			sum := 0
			for _, t := range priority.Targets {
				d := x.destinations[t.Backing.Ref]
				if d == nil || d.Mesh == nil {
					continue
				}
				if ready := virtualReady(x, mesh, v, d, a.Subset, t.Through); ready > 0 {
					sum += ready
					list = append(list, Responder{Destination: d.Ref, Subset: a.Subset, Ready: &ready})
				}
			}
			for i := range list {
				list[i].Share = a.Share * float64(*list[i].Ready) / float64(sum)
			}
			if len(list) > 0 {
				return list
			}
		}
	}
	none := 0
	return []Responder{{Destination: v.Ref, Subset: a.Subset, Share: a.Share, Ready: &none}}
}

// virtualReady is how many pods of a service behind a VirtualDestination callers of a mesh reach.
func virtualReady(x *Index, mesh *snapshot.MeshPlan, v *snapshot.VirtualDestinationPlan, d *snapshot.DestinationPlan, subset string, through []snapshot.GatewayPlan) int {
	if ready := readyOf(x, mesh, d, "", through); ready != nil && *ready == 0 {
		return 0
	}
	var with map[string]string
	for _, s := range v.Subsets {
		if s.Name == subset {
			with = s.Labels
		}
	}
	return len(endpointsOf(d, with))
}

// answersText is who answers, in words: "75% reviews-bookinfo-cluster-1 (version-v1), 2 pods; 25% nobody".
func answersText(answers []Responder) string {
	var parts []string
	for _, a := range answers {
		if a.Ready != nil && *a.Ready == 0 {
			continue
		}
		parts = append(parts, a.text())
	}
	if none := unanswered(answers); none > 0 {
		parts = append(parts, snapshot.Percent(none)+" nobody")
	}
	return strings.Join(parts, "; ")
}

func (a *Responder) text() string {
	name := a.Destination.Name
	if name == "" || a.Host != "" && a.Ready == nil {
		name = a.Host
	}
	if a.Subset != "" {
		name += " (" + a.Subset + ")"
	}
	text := snapshot.Percent(a.Share) + " " + name
	if a.Ready != nil {
		text += ", " + strconv.Itoa(*a.Ready) + verb(*a.Ready, " pod", " pods")
	}
	return text
}

// sameAnswers reports whether the same pods answer the same shares, as far as their numbers say.
func sameAnswers(a, b []Responder) bool {
	return slices.EqualFunc(a, b, func(a, b Responder) bool {
		if (a.Ready == nil) != (b.Ready == nil) || a.Ready != nil && *a.Ready != *b.Ready {
			return false
		}
		a.Ready, b.Ready = nil, nil
		return a == b
	})
}
