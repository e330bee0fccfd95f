// Package osm is all that the engine knows of Open Service Mesh: detect.go finds its control planes; the other files turn a Plan
// into the objects of the Service Mesh Interface, in the versions that Open Service Mesh 1.2 reads: TrafficSplit, TrafficTarget,
// HTTPRouteGroup and TCPRoute.
package osm

import (
	"cmp"
	"slices"
	"strings"

	accessv1alpha3 "github.com/servicemeshinterface/smi-sdk-go/pkg/apis/access/v1alpha3"
	specsv1alpha4 "github.com/servicemeshinterface/smi-sdk-go/pkg/apis/specs/v1alpha4"
	splitv1alpha2 "github.com/servicemeshinterface/smi-sdk-go/pkg/apis/split/v1alpha2"

	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Renderer renders plans for Open Service Mesh. The Service Mesh Interface has
// objects for services only.
type Renderer struct{ render.Nothing }

// Destination renders the objects for one service.
func (Renderer) Destination(plan *snapshot.DestinationPlan, namespace string) []*snapshot.Object {
	if plan.Destination.Spec.KubeService == nil {
		return nil
	}
	r := &builder{plan: plan, namespace: namespace}
	r.trafficSplit()
	r.access()
	slices.SortFunc(r.objects, func(a, b *snapshot.Object) int { return a.Ref.Compare(b.Ref) })
	return r.objects
}

// builder collects the objects of one service.
type builder struct {
	plan      *snapshot.DestinationPlan
	namespace string
	objects   []*snapshot.Object
}

func (r *builder) add(kind snapshot.Kind, name string, spec any, parents ...snapshot.Ref) {
	service := r.plan.Destination.Spec.KubeService.Ref
	r.objects = append(r.objects, &snapshot.Object{
		Ref:     snapshot.Ref{Kind: kind, Cluster: service.ClusterName, Namespace: service.Namespace, Name: name},
		Content: render.NewContent(r.namespace, spec, append([]snapshot.Ref{r.plan.Ref}, parents...), parents),
	})
}

func (r *builder) has(kind snapshot.Kind, name string) bool {
	return slices.ContainsFunc(r.objects, func(o *snapshot.Object) bool { return o.Ref.Kind == kind && o.Ref.Name == name })
}

// trafficSplit splits what is sent to the service. OSM takes the first split of
// a service that it finds, so there is one.
func (r *builder) trafficSplit() {
	own := r.plan.Destination.Spec.KubeService.Ref
	for _, view := range r.plan.Views {
		for _, route := range view.Routes {
			targets := route.Action.Targets
			if targets == nil {
				continue
			}
			spec := &splitv1alpha2.TrafficSplitSpec{Service: own.Name + "." + own.Namespace, Backends: backends(targets.Value)}
			r.add(snapshot.TrafficSplit, own.Name, spec, targets.Origin.Ref)
			return
		}
	}
}

// backends are ascending by name, each service once: OSM keeps them as a set, in which
// equal ones are one. A single backend gets all requests, whatever its weight.
func backends(targets []snapshot.Target) []splitv1alpha2.TrafficSplitBackend {
	weights := map[string]int{}
	var out []splitv1alpha2.TrafficSplitBackend
	for _, t := range targets {
		if _, ok := weights[service(t)]; !ok {
			out = append(out, splitv1alpha2.TrafficSplitBackend{Service: service(t)})
		}
		weights[service(t)] += int(t.Weight)
	}
	for i := range out {
		out[i].Weight = weights[out[i].Service]
	}
	if len(out) == 1 {
		out[0].Weight = cmp.Or(out[0].Weight, 100)
	}
	slices.SortFunc(out, func(a, b splitv1alpha2.TrafficSplitBackend) int { return cmp.Compare(a.Service, b.Service) })
	return out
}

// service is the name of a target, which is in the namespace of the split.
func service(t snapshot.Target) string {
	name, _, _ := strings.Cut(t.Host, ".")
	return name
}

// access renders grants: who may call, on which routes and ports. Without a
// TrafficTarget nobody may call, and with one that has no sources everybody may.
func (r *builder) access() {
	own := r.plan.Destination.Spec.KubeService.Ref
	for i, g := range r.plan.Grants {
		if len(g.From) == 0 {
			continue
		}
		policy := g.Rule.Origin.Ref
		name := own.Name + "." + policy.Name + "." + policy.Namespace
		// Service names have no dots, so that this one is of no other service.
		target := name
		if first := firstOf(r.plan.Grants, g.Rule); first == i {
			r.routes(name, g)
		} else {
			target = name + "." + g.To.Name
		}
		spec := &accessv1alpha3.TrafficTargetSpec{
			Destination: subject(g.To),
			Rules:       []accessv1alpha3.TrafficTargetRule{{Kind: "HTTPRouteGroup", Name: name}},
		}
		for _, m := range matches(g.Rule) {
			spec.Rules[0].Matches = append(spec.Rules[0].Matches, m.Name)
		}
		if len(g.Ports) > 0 {
			spec.Rules = append(spec.Rules, accessv1alpha3.TrafficTargetRule{Kind: "TCPRoute", Name: name})
		}
		for _, from := range g.From {
			spec.Sources = append(spec.Sources, subject(from))
		}
		for r.has(snapshot.TrafficTarget, target) {
			target += ".1" // dots in names of policies can make two the same
		}
		r.add(snapshot.TrafficTarget, target, spec, policy)
	}
}

// routes renders the objects that the targets of a policy refer to. Ports are in a
// TCPRoute: the destination of a TrafficTarget has none in this version.
func (r *builder) routes(name string, g *snapshot.Grant) {
	policy := g.Rule.Origin.Ref
	r.add(snapshot.HTTPRouteGroup, name, &specsv1alpha4.HTTPRouteGroupSpec{Matches: matches(g.Rule)}, policy)
	if len(g.Ports) == 0 {
		return
	}
	spec := &specsv1alpha4.TCPRouteSpec{}
	for _, port := range g.Ports {
		spec.Matches.Ports = append(spec.Matches.Ports, int(port))
	}
	r.add(snapshot.TCPRoute, name, spec, policy)
}

func firstOf(grants []*snapshot.Grant, rule *snapshot.AccessRule) int {
	return slices.IndexFunc(grants, func(g *snapshot.Grant) bool { return g.Rule == rule })
}

func subject(a snapshot.Account) accessv1alpha3.IdentityBindingSubject {
	return accessv1alpha3.IdentityBindingSubject{Kind: "ServiceAccount", Name: a.Name, Namespace: a.Namespace}
}
