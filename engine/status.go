package engine

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// statusMemo keeps the statuses of the last output beside what they were made from.
type statusMemo struct {
	meshes       group[observed[*snapshot.MeshPlan], *snapshot.Status]
	destinations group[observed[*snapshot.DestinationPlan], *snapshot.Status]
	policies     group[*snapshot.PolicyPlan, *snapshot.Status]

	meshSources        sources[*snapshot.MeshPlan]
	destinationSources sources[*snapshot.DestinationPlan]

	virtualMeshes []*snapshot.Status
	of            []*snapshot.VirtualMeshPlan
	failures      []snapshot.Failure
	others        otherStatuses
	all           []*snapshot.Status
}

// observed is a source with the generation of the stored object that its status
// is about.
type observed[S comparable] struct {
	source     S
	generation int64
}

// firstGeneration is what an API server gives to an object that it stores for
// the first time: a status that is written right after it is about that one.
const firstGeneration = 1

// sources pairs what is planned with what is stored, both ascending by name,
// and keeps the pairs while neither list changes.
type sources[S comparable] struct {
	planned []S
	stored  any
	pairs   []observed[S]
}

// pair returns the same slice as before if nothing in it changed.
func pair[S comparable, O metav1.Object](m *sources[S], planned []S, stored []O, name func(S) string) []observed[S] {
	before, ok := m.stored.([]O)
	sameStored := ok && sameSlice(before, stored)
	if sameStored && sameSlice(m.planned, planned) {
		return m.pairs
	}
	out := make([]observed[S], len(planned))
	if sameStored && len(planned) == len(m.planned) && alike(planned, m.planned, name) {
		for i, p := range planned {
			out[i] = observed[S]{p, m.pairs[i].generation}
		}
	} else {
		at := 0
		for i, p := range planned {
			n := name(p)
			for at < len(stored) && stored[at].GetName() < n {
				at++
			}
			out[i] = observed[S]{p, firstGeneration}
			if at < len(stored) && stored[at].GetName() == n {
				out[i].generation = stored[at].GetGeneration()
			}
		}
	}
	m.planned, m.stored, m.pairs = planned, stored, out
	return out
}

func alike[S comparable](a, b []S, name func(S) string) bool {
	for i := range a {
		if a[i] != b[i] && name(a[i]) != name(b[i]) {
			return false
		}
	}
	return true
}

// write makes the statuses of everything on the management plane.
func (m *statusMemo) write(in *snapshot.Input, plan *snapshot.Plan) []*snapshot.Status {
	meshName := func(p *snapshot.MeshPlan) string { return p.Ref.Name }
	destinationName := func(p *snapshot.DestinationPlan) string { return p.Ref.Name }

	changed := m.meshes.update(pair(&m.meshSources, plan.Meshes, in.Management.Meshes, meshName),
		func(o observed[*snapshot.MeshPlan]) string { return o.source.Ref.Name }, meshStatus)
	changed = m.destinations.update(pair(&m.destinationSources, plan.Destinations, in.Management.Destinations, destinationName),
		func(o observed[*snapshot.DestinationPlan]) string { return o.source.Ref.Name }, destinationStatus) || changed

	failures := failuresOf(in.Failures)
	refresh := !slices.EqualFunc(m.failures, in.Failures, sameFailure)
	if refresh {
		m.policies = group[*snapshot.PolicyPlan, *snapshot.Status]{}
	}
	changed = m.policies.update(plan.Policies,
		func(p *snapshot.PolicyPlan) string { return policyName(p.Ref) },
		func(p *snapshot.PolicyPlan, _ *snapshot.Status) *snapshot.Status {
			return policyStatus(p, failures[p.Ref])
		}) || changed
	if refresh || !sameSlice(m.of, plan.VirtualMeshes) {
		m.virtualMeshes, changed = virtualMeshStatuses(plan, failures), true
	}
	m.failures, m.of = in.Failures, plan.VirtualMeshes

	if changed = m.others.update(in.Management) || changed; changed || m.all == nil {
		m.all = slices.Concat(m.meshes.made, m.destinations.made, m.virtualMeshes, m.policies.made, m.others.made)
		tail := m.all[len(m.meshes.made)+len(m.destinations.made):]
		slices.SortFunc(tail, func(a, b *snapshot.Status) int { return a.Ref.Compare(b.Ref) })
	}
	return m.all
}

// policyName orders policies as references are ordered.
func policyName(ref snapshot.Ref) string {
	return string(rune(ref.Kind)) + ref.Namespace + "\x00" + ref.Name
}

func sameFailure(a, b snapshot.Failure) bool {
	return a.Ref == b.Ref && a.Code == b.Code && a.Message == b.Message && slices.Equal(a.Parents, b.Parents)
}

// failuresOf are the failed writes by the policies that they follow from.
func failuresOf(failures []snapshot.Failure) map[snapshot.Ref][]snapshot.Failure {
	out := map[snapshot.Ref][]snapshot.Failure{}
	for _, f := range failures {
		for _, parent := range f.Parents {
			out[parent] = append(out[parent], f)
		}
	}
	return out
}

// clip bounds a text that is shown in statuses.
func clip(s string) string {
	const most = 500
	s = strings.ToValidUTF8(s, "?")
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
