package explain

import (
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// This file is about what the proxies of services try because it is audited: they know of each request whether it would be refused, by its
// path and its method. The proxies of callers count for whom requests are, and no more.

// triedCount is what the pods of some services tried.
type triedCount struct {
	// services are those of which all requests were tried: what their callers' proxies count says less. changed is how many there are of which
	// some requests may be refused.
	services map[snapshot.Ref]bool
	changed  int
	// refused are the requests that would be refused, of all that were tried. most: it may be fewer.
	refused, requests uint64
	most              bool
}

// trials are what proxies try, by mesh and by Destination.
type trials struct {
	meshes       map[snapshot.Ref]bool
	destinations map[snapshot.Ref]*snapshot.TrialPlan
}

func newTrials(plan *snapshot.Plan) trials {
	t := trials{meshes: map[snapshot.Ref]bool{}, destinations: map[snapshot.Ref]*snapshot.TrialPlan{}}
	for _, p := range plan.Trials {
		if p.Destination == nil {
			t.meshes[p.Mesh.Ref] = true
		} else {
			t.destinations[p.Destination.Ref] = p
		}
	}
	return t
}

// change is what enforcing all that is audited does to a Destination: callers are let in by rules that all were let in before, or requests
// are denied that were not.
func (t *trials) change(was, is *snapshot.DestinationPlan) (closes, denies bool) {
	trial := t.destinations[was.Ref]
	return was.Open() != snapshot.OpenNot && is.Open() == snapshot.OpenNot, trial != nil && trial.Denials != nil
}

// tried reports whether the pods of a Destination try all that enforcing would do to it, and nothing else. Behind gateways that
// do TLS themselves, pods do not see who calls.
func (t *trials) tried(x *Index, was, is *snapshot.DestinationPlan) bool {
	k := was.Destination.Spec.KubeService
	if k == nil || was.Mesh == nil || was.Federation != nil && was.Federation.Limited || len(x.outside.access(was)) > 0 {
		return false
	}
	if hand := x.outside.byHand[was.Mesh]; hand != nil && hand.Tries(k, was.Mesh) {
		return false
	}
	trial := t.destinations[was.Ref]
	closes, _ := t.change(was, is)
	switch {
	case closes && (trial == nil || !trial.Allows) && !t.meshes[was.MeshRef()]:
		return false
	case trial == nil || trial.Denials == nil:
		return is.Denials == nil || was.Denials != nil && len(is.Denials.Policies) == len(was.Denials.Policies)
	}
	return true
}

// countTried counts what the pods of services tried that effects are about, where all pods of a service did and their proxies were read.
func countTried(x *Index, services []snapshot.Ref, effects []Effect) *triedCount {
	out := &triedCount{services: map[snapshot.Ref]bool{}}
	t := newTrials(x.state.Plan)
	asked, changed := map[snapshot.Ref]bool{}, map[snapshot.Ref]bool{}
	for i := range effects {
		changed[effects[i].On] = effects[i].Harm || changed[effects[i].On]
	}
	for _, ref := range services {
		closes, denies := t.change(x.destinations[ref], x.audited.destinations[ref])
		asked[ref], changed[ref] = true, closes || denies || changed[ref]
	}
	behind, counted := frontsOf(x), map[snapshot.Ref]bool{}
	for _, ref := range services {
		if !changed[ref] {
			continue
		}
		out.changed++
		pods := behind.of(x.destinations[ref])
		if len(pods) == 0 || !allTried(x, &t, behind, ref, pods, asked) {
			continue
		}
		out.services[ref] = true
		for _, pod := range pods {
			if !counted[pod] {
				counted[pod] = true
				out.add(x, &t, behind, pod)
			}
		}
	}
	return out
}

// add adds what a workload tried. A request that is denied now may have been tried before that; and one is tried twice where it is tried who
// is denied, and who is let in.
func (c *triedCount) add(x *Index, t *trials, behind *behindServices, pod snapshot.Ref) {
	row := x.sight.served[pod]
	var closes, denies, allows bool
	for _, ref := range behind.services[pod] {
		if is := x.audited.destinations[ref]; is != nil {
			shuts, keepsOut := t.change(x.destinations[ref], is)
			closes, denies = closes || shuts, denies || keepsOut
			trial := t.destinations[ref]
			allows = allows || trial != nil && trial.Allows || t.meshes[is.MeshRef()]
		}
	}
	c.refused += row.ShadowDenied
	if allows && denies {
		c.requests += row.Requests
	} else {
		c.requests += row.ShadowAllowed + row.ShadowDenied
	}
	c.most = c.most || denies && (allows || row.Denied > 0) && row.ShadowDenied > 0
}

// allTried reports whether a service, and all others with the same pods, are tried; whether these are asked about as well, if anything is
// audited there; and whether all its pods were read, and count what they try, if they get requests.
func allTried(x *Index, t *trials, behind *behindServices, service snapshot.Ref, pods []snapshot.Ref, asked map[snapshot.Ref]bool) bool {
	tried := uint64(0)
	for _, pod := range pods {
		row := x.sight.served[pod]
		if row == nil || row.State == traffic.NoData || row.Reason != "" {
			return false
		}
		tried += row.ShadowAllowed + row.ShadowDenied
		for _, ref := range behind.services[pod] {
			was, is := x.destinations[ref], x.audited.destinations[ref]
			if is == nil || !t.tried(x, was, is) {
				return false
			}
			if closes, denies := t.change(was, is); !asked[ref] && (closes || denies) {
				return false
			}
		}
	}
	sent := x.sight.requestsTo([]snapshot.Ref{service}, func(snapshot.Ref) bool { return true })
	return tried > 0 || sent == 0
}

// behindServices are which workloads are behind which services.
type behindServices struct {
	workloads *inventory.Behind
	// services are those in front of a workload.
	services map[snapshot.Ref][]snapshot.Ref
}

// frontsOf says which workloads are behind which services.
func frontsOf(x *Index) *behindServices {
	all := make([]*discoveryv1.Workload, 0, len(x.workloads))
	for _, ref := range sortedRefs(x.workloads) {
		all = append(all, x.workloads[ref])
	}
	b := &behindServices{workloads: inventory.NewBehind(all), services: map[snapshot.Ref][]snapshot.Ref{}}
	for ref, d := range x.destinations {
		for _, pod := range b.of(d) {
			b.services[pod] = append(b.services[pod], ref)
		}
	}
	return b
}

// of are the workloads behind a service, ascending.
func (b *behindServices) of(d *snapshot.DestinationPlan) (out []snapshot.Ref) {
	for _, w := range b.workloads.Of(d.Destination.Spec.KubeService, nil) {
		out = append(out, snapshot.RefOf(snapshot.Workload, w))
	}
	return out
}
