package status

import (
	"cmp"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Writer writes statuses, and keeps those of the last plan whose sources did not
// change. The zero Writer is ready for use. It is not safe for concurrent use.
type Writer struct {
	meshes       snapshot.Derived[observedMesh, *snapshot.Status]
	exports      exports
	virtuals     snapshot.Derived[*snapshot.VirtualDestinationPlan, *snapshot.Status]
	destinations snapshot.Derived[observed[*snapshot.DestinationPlan], *snapshot.Status]
	policies     snapshot.Derived[*snapshot.PolicyPlan, *snapshot.Status]

	meshSources        sources[*snapshot.MeshPlan]
	destinationSources sources[*snapshot.DestinationPlan]

	virtualMeshes []*snapshot.Status
	of            []*snapshot.VirtualMeshPlan
	failures      []snapshot.Failure
	settings      settingsStatuses
	clusters      clusterStatuses
	dependencies  dependencyStatuses
	accessLogs    snapshot.Derived[*snapshot.AccessLogPlan, *snapshot.Status]
	all           snapshot.List[*snapshot.Status]
}

// observed is a source with the generation of the stored object for its status.
type observed[S comparable] struct {
	source     S
	generation int64
}

// firstGeneration is the generation of a new object.
const firstGeneration = 1

// sources pairs planned and stored objects, both ascending by Ref.
type sources[S comparable] struct {
	planned snapshot.List[S]
	stored  any
	pairs   snapshot.List[observed[S]]
}

// pair makes the pairs. Unchanged pairs stay the same.
func pair[S comparable, O metav1.Object](m *sources[S], planned snapshot.List[S], stored []O, ref func(S) snapshot.Ref) snapshot.List[observed[S]] {
	before, ok := m.stored.([]O)
	sameStored := ok && snapshot.SameSlice(before, stored)
	was := m.planned
	if !sameStored {
		was = snapshot.List[S]{} // any generation may have changed
	}
	m.pairs = snapshot.Project(was, planned, m.pairs, func(p, old S, given observed[S]) observed[S] {
		if p == old {
			return given
		}
		out := observed[S]{p, firstGeneration}
		if at, found := slices.BinarySearchFunc(stored, ref(p), func(o O, at snapshot.Ref) int {
			return cmp.Or(strings.Compare(o.GetNamespace(), at.Namespace), strings.Compare(o.GetName(), at.Name))
		}); found {
			out.generation = stored[at].GetGeneration()
		}
		return out
	})
	m.planned, m.stored = planned, stored
	return m.pairs
}

// Write gives the statuses of everything on the management plane, ascending by
// Ref. Dialects are those of all kinds of mesh.
func (w *Writer) Write(in *snapshot.Input, plan *snapshot.Plan, logs []*snapshot.AccessLogPlan, dialects []*snapshot.Dialect) snapshot.List[*snapshot.Status] {
	meshRef := func(p *snapshot.MeshPlan) snapshot.Ref { return p.Ref }
	destinationRef := func(p *snapshot.DestinationPlan) snapshot.Ref { return p.Ref }

	failures := failuresOf(in.Failures)
	refresh := !slices.EqualFunc(w.failures, in.Failures, sameFailure)
	if refresh {
		w.policies = snapshot.Derived[*snapshot.PolicyPlan, *snapshot.Status]{}
		w.dependencies = dependencyStatuses{}
		w.virtuals = snapshot.Derived[*snapshot.VirtualDestinationPlan, *snapshot.Status]{}
		w.accessLogs = snapshot.Derived[*snapshot.AccessLogPlan, *snapshot.Status]{}
	}
	w.exports.update(plan.VirtualDestinations)
	meshes := w.exports.observe(pair(&w.meshSources, snapshot.ListOf(plan.Meshes), in.Management.Meshes, meshRef))
	changed := w.meshes.Update(meshes, func(o observedMesh) string { return o.source.Ref.Name }, meshStatus) || refresh
	changed = w.destinations.Update(pair(&w.destinationSources, plan.Destinations, in.Management.Destinations, destinationRef),
		func(o observed[*snapshot.DestinationPlan]) string { return o.source.Ref.Name }, destinationStatus) || changed
	changed = w.virtuals.Update(snapshot.ListOf(plan.VirtualDestinations),
		func(p *snapshot.VirtualDestinationPlan) string { return policyName(p.Ref) },
		func(p *snapshot.VirtualDestinationPlan, _ *snapshot.Status) *snapshot.Status {
			return virtualDestinationStatus(p, failures[p.Ref])
		}) || changed
	changed = w.policies.Update(snapshot.ListOf(plan.Policies),
		func(p *snapshot.PolicyPlan) string { return policyName(p.Ref) },
		func(p *snapshot.PolicyPlan, _ *snapshot.Status) *snapshot.Status {
			return policyStatus(p, failures[p.Ref])
		}) || changed
	if refresh || !snapshot.SameSlice(w.of, plan.VirtualMeshes) {
		before := w.virtualMeshes
		w.virtualMeshes = virtualMeshStatuses(plan, failures)
		changed = keepEqual(before, w.virtualMeshes) || changed
	}
	w.failures, w.of = in.Failures, plan.VirtualMeshes

	changed = w.dependencies.update(in, plan, logs, failures) || changed
	changed = w.clusters.update(in) || changed
	changed = w.accessLogs.Update(snapshot.ListOf(logs),
		func(p *snapshot.AccessLogPlan) string { return policyName(p.Ref) },
		func(p *snapshot.AccessLogPlan, _ *snapshot.Status) *snapshot.Status {
			return accessLogStatus(p, failures[p.Ref])
		}) || changed
	if changed = w.settings.update(in.Management, inUse(dialects, plan.Meshes)) || changed; changed {
		// Kinds come in the order of their numbers.
		w.all = snapshot.Concat(w.meshes.Values, snapshot.ListOf(w.dependencies.workloads), w.destinations.Values,
			snapshot.ListOf(w.clusters.made), snapshot.ListOf(w.settings.statuses),
			snapshot.ListOf(w.virtualMeshes), w.policies.Values, w.virtuals.Values, w.dependencies.verdicts.Values, w.accessLogs.Values)
	}
	return w.all
}

// keepEqual replaces statuses by the equal ones of before, and reports whether any is
// new or gone.
func keepEqual(before, now []*snapshot.Status) bool {
	for i, made := range now {
		if at := slices.IndexFunc(before, func(was *snapshot.Status) bool { return reflect.DeepEqual(was, made) }); at >= 0 {
			now[i] = before[at]
		}
	}
	return !slices.Equal(before, now)
}

// policyName sorts like the reference.
func policyName(ref snapshot.Ref) string {
	return string(rune(ref.Kind)) + ref.Namespace + "\x00" + ref.Name + "\x00" + ref.Cluster
}

func sameFailure(a, b snapshot.Failure) bool {
	return a.Ref == b.Ref && a.Reason == b.Reason && slices.Equal(a.Parents, b.Parents)
}

// failuresOf groups failed writes by the policies that the objects follow from.
func failuresOf(failures []snapshot.Failure) map[snapshot.Ref][]snapshot.Failure {
	out := map[snapshot.Ref][]snapshot.Failure{}
	for _, f := range failures {
		for _, parent := range f.Parents {
			out[parent] = append(out[parent], f)
		}
	}
	return out
}

// clip limits the length of a text in a status.
func clip(s string) string {
	const most = 500
	s = strings.ToValidUTF8(s, "?")
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
