package proof

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// mutation changes one value of a Plan, and says which facts must then differ. A
// function returns false if there is no such value.
type mutation struct {
	fact        string
	action      func(*snapshot.Action) bool
	route       func(*snapshot.Route) bool
	view        func(*snapshot.View) bool
	destination func(*snapshot.DestinationPlan) bool
	mesh        func(*snapshot.MeshPlan) bool
	plan        func(*snapshot.Plan) bool
}

// mutations has one for every kind of value that is compared.
func mutations() map[string]mutation {
	const routes, connections, access = "routes to ", "connections to ", "who may call "
	return map[string]mutation{
		"weight":                        {fact: routes, action: target(func(t *snapshot.Target) { t.Weight++ })},
		"subset":                        {fact: routes, action: target(func(t *snapshot.Target) { t.Subset += "x" })},
		"host":                          {fact: routes, action: target(func(t *snapshot.Target) { t.Host = "x" + t.Host })},
		"port":                          {fact: routes, action: target(func(t *snapshot.Target) { t.Port++ })},
		"timeout":                       {fact: routes, action: owned(func(a *snapshot.Action) **snapshot.WithOrigin[time.Duration] { return &a.Timeout }, func(d *time.Duration) { *d += time.Second })},
		"retries":                       {fact: routes, action: owned(retriesOf, func(r *snapshot.Retries) { r.Attempts++ })},
		"retry conditions":              {fact: routes, action: owned(retriesOf, func(r *snapshot.Retries) { r.On = []networkingv1.RetryCondition{networkingv1.RetryOnInternal} })},
		"retries of idempotent methods": {fact: routes, action: owned(retriesOf, func(r *snapshot.Retries) { r.AlsoIdempotent = nil })},
		"delay":                         {fact: routes, action: owned(func(a *snapshot.Action) **snapshot.WithOrigin[snapshot.Delay] { return &a.Delay }, func(d *snapshot.Delay) { d.Percent++ })},
		"abort":                         {fact: routes, action: owned(func(a *snapshot.Action) **snapshot.WithOrigin[snapshot.Abort] { return &a.Abort }, func(x *snapshot.Abort) { x.Status++ })},
		"mirror":                        {fact: routes, action: owned(func(a *snapshot.Action) **snapshot.WithOrigin[snapshot.MirrorTarget] { return &a.Mirror }, func(m *snapshot.MirrorTarget) { m.Percent++ })},
		"cors":                          {fact: routes, action: owned(func(a *snapshot.Action) **snapshot.WithOrigin[networkingv1.CorsPolicy] { return &a.CORS }, func(c *networkingv1.CorsPolicy) { c.AllowMethods = nil })},
		"headers":                       {fact: routes, action: owned(func(a *snapshot.Action) **snapshot.WithOrigin[networkingv1.HeaderManipulation] { return &a.Headers }, func(h *networkingv1.HeaderManipulation) { h.RemoveRequestHeaders = nil })},
		"target headers": {fact: routes, action: func(a *snapshot.Action) bool {
			if a.Targets == nil || a.Targets.Value[0].Headers == nil {
				return false
			}
			return target(func(t *snapshot.Target) { t.Headers = nil })(a)
		}},
		"match": {fact: routes, route: func(r *snapshot.Route) bool {
			if r.Match.Request == nil || r.Match.Request.Method == "" {
				return false
			}
			request := *r.Match.Request
			request.Method = "PUT"
			r.Match.Request = &request
			return true
		}},
		"order": {fact: routes, view: func(v *snapshot.View) bool {
			if len(v.Routes) < 2 {
				return false
			}
			last := len(v.Routes) - 1
			routes := append([]*snapshot.Route{v.Routes[last]}, v.Routes[:last]...)
			v.Routes = routes
			return true
		}},
		"outlier": {fact: connections, view: func(v *snapshot.View) bool {
			return owned(func(v *snapshot.View) **snapshot.WithOrigin[networkingv1.OutlierDetection] { return &v.Outlier }, func(o *networkingv1.OutlierDetection) { o.ConsecutiveErrors++ })(v)
		}},
		"tls": {fact: connections, view: func(v *snapshot.View) bool {
			return owned(func(v *snapshot.View) **snapshot.WithOrigin[networkingv1.TLSMode] { return &v.TLS }, func(m *networkingv1.TLSMode) { *m = networkingv1.TLSModeSimple })(v)
		}},
		"callers": {fact: access, destination: rule(func(r *snapshot.AccessRule) bool {
			ok := len(r.Sources) > 0 && len(r.Sources[0].Identities) > 0
			r.Sources = nil
			return ok
		})},
		"anyone":  {fact: access, destination: rule(func(r *snapshot.AccessRule) bool { was := r.Anyone; r.Anyone = true; return !was })},
		"paths":   {fact: access, destination: rule(func(r *snapshot.AccessRule) bool { was := r.Paths; r.Paths = nil; return was != nil })},
		"methods": {fact: access, destination: rule(func(r *snapshot.AccessRule) bool { was := r.Methods; r.Methods = nil; return was != nil })},
		"ports":   {fact: access, destination: rule(func(r *snapshot.AccessRule) bool { was := r.Ports; r.Ports = nil; return was != nil })},
		"federated name": {fact: "names that the gateway accepts", destination: func(d *snapshot.DestinationPlan) bool {
			if d.Federation == nil {
				return false
			}
			f := *d.Federation
			f.Hostname = "x" + f.Hostname
			d.Federation = &f
			return true
		}},
		"one endpoint less": {fact: "endpoints behind ", destination: func(d *snapshot.DestinationPlan) bool {
			if d.Federation == nil || len(d.Destination.Spec.KubeService.EndpointSubsets) == 0 {
				return false
			}
			changed := d.Destination.DeepCopy()
			part := &changed.Spec.KubeService.EndpointSubsets[0]
			part.Endpoints = part.Endpoints[1:]
			d.Destination = changed
			return true
		}},
		"account": {fact: answers, destination: func(d *snapshot.DestinationPlan) bool {
			if d.Federation == nil || len(d.Destination.Spec.KubeService.ServiceAccounts) == 0 {
				return false
			}
			d.Destination = d.Destination.DeepCopy()
			d.Destination.Spec.KubeService.ServiceAccounts[0] += "x"
			return true
		}},
		"gateway": {fact: "endpoints of ", mesh: func(m *snapshot.MeshPlan) bool {
			for i := range m.Gateways {
				m.Gateways[i].Port++
			}
			return len(m.Gateways) > 0
		}},
	}
}

func retriesOf(a *snapshot.Action) **snapshot.WithOrigin[snapshot.Retries] { return &a.Retries }

// target changes the first of several targets.
func target(change func(*snapshot.Target)) func(*snapshot.Action) bool {
	return func(a *snapshot.Action) bool {
		if a.Targets == nil || len(a.Targets.Value) < 2 {
			return false
		}
		targets := *a.Targets
		targets.Value = append([]snapshot.Target(nil), targets.Value...)
		change(&targets.Value[0])
		a.Targets = &targets
		return true
	}
}

// owned changes a copy of an optional value.
func owned[S, T any](field func(*S) **snapshot.WithOrigin[T], change func(*T)) func(*S) bool {
	return func(s *S) bool {
		at := field(s)
		if *at == nil {
			return false
		}
		value := **at
		change(&value.Value)
		*at = &value
		return true
	}
}

// rule changes a copy of the first rule that has the value.
func rule(change func(*snapshot.AccessRule) bool) func(*snapshot.DestinationPlan) bool {
	return func(d *snapshot.DestinationPlan) bool { return changeFirst(&d.Access, change) }
}

// changeFirst changes a copy of the first element that has the value, in a copy of
// the list. It reports whether there is one.
func changeFirst[T any](list *[]*T, change func(*T) bool) bool {
	for i, element := range *list {
		changed := *element
		if change(&changed) {
			*list = slices.Clone(*list)
			(*list)[i] = &changed
			return true
		}
	}
	return false
}

// undetected returns the mutations that the facts do not detect, or that do not
// apply to the Plan. A mutation is detected if the facts of the changed Plan differ
// from the configuration of a proxy that matches the Plan.
func (w *environment) undetected(t *testing.T, name string, plan *snapshot.Plan, configs map[string]*envoy.Config, candidates map[string]mutation) map[string]mutation {
	t.Helper()
	undetected := map[string]mutation{}
	for what, mutation := range candidates {
		changed := mutation.mutate(plan)
		if changed == nil || !w.detects(mutation, changed, configs) {
			undetected[what] = mutation
		}
	}
	for _, p := range w.proxies {
		assert.Empty(t, differences(facts(plan, p), configs[p.String()]), "%s: the Plan itself must not change", name)
	}
	return undetected
}

func (w *environment) detects(mut mutation, changed *snapshot.Plan, configs map[string]*envoy.Config) bool {
	for _, p := range w.proxies {
		for _, d := range differences(facts(changed, p), configs[p.String()]) {
			if strings.HasPrefix(d, mut.fact) {
				return true
			}
		}
	}
	return false
}

// mutate returns a changed copy of a Plan; nil if the mutation does not apply.
func (mut mutation) mutate(plan *snapshot.Plan) *snapshot.Plan {
	changed, applied := *plan, false
	meshes := map[*snapshot.MeshPlan]*snapshot.MeshPlan{}
	changed.Meshes = nil
	for _, m := range plan.Meshes {
		own := *m
		own.Gateways = append([]snapshot.GatewayPlan(nil), m.Gateways...)
		applied = mut.mesh != nil && mut.mesh(&own) || applied
		meshes[m] = &own
		changed.Meshes = append(changed.Meshes, &own)
	}
	var destinations []*snapshot.DestinationPlan
	for d := range plan.Destinations.All() {
		own := *d
		own.Mesh = meshes[d.Mesh]
		if d.Federation != nil {
			f := *d.Federation
			f.To = nil
			for _, m := range d.Federation.To {
				f.To = append(f.To, meshes[m])
			}
			own.Federation = &f
		}
		own.Views = nil
		for _, v := range d.Views {
			view := mut.mutateView(v, &applied)
			view.Mesh = meshes[v.Mesh]
			own.Views = append(own.Views, view)
		}
		applied = mut.destination != nil && mut.destination(&own) || applied
		destinations = append(destinations, &own)
	}
	changed.Destinations = snapshot.ListOf(destinations)
	applied = mut.plan != nil && mut.plan(&changed) || applied
	if !applied {
		return nil
	}
	return &changed
}

func (mut mutation) mutateView(v *snapshot.View, applied *bool) *snapshot.View {
	own := *v
	own.Routes = nil
	for _, r := range v.Routes {
		route, action := *r, *r.Action
		*applied = mut.action != nil && mut.action(&action) || *applied
		route.Action = &action
		*applied = mut.route != nil && mut.route(&route) || *applied
		own.Routes = append(own.Routes, &route)
	}
	*applied = mut.view != nil && mut.view(&own) || *applied
	return &own
}
