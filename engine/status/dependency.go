package status

import (
	"reflect"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// dependencyStatuses are the statuses of ServiceDependencies, and of the Workloads on
// which they, or AccessLogRecords, are in force.
type dependencyStatuses struct {
	verdicts  snapshot.Derived[*snapshot.DependencyPlan, *snapshot.Status]
	workloads []*snapshot.Status

	// The workloads were made from these.
	sidecars        []*snapshot.SidecarPlan
	plans           []*snapshot.DependencyPlan
	planned, stored []*discoveryv1.Workload
	made            bool
	// logged are the AccessLogRecords of the workloads.
	logged map[snapshot.Ref][]discoveryv1.AppliedAccessLogRecord
}

func (d *dependencyStatuses) update(in *snapshot.Input, plan *snapshot.Plan, logs []*snapshot.AccessLogPlan, failures map[snapshot.Ref][]snapshot.Failure) bool {
	changed := d.verdicts.Update(snapshot.ListOf(plan.Dependencies),
		func(p *snapshot.DependencyPlan) string { return policyName(p.Ref) },
		func(p *snapshot.DependencyPlan, _ *snapshot.Status) *snapshot.Status {
			return dependencyStatus(p, failures[p.Ref])
		})
	stored, logged := in.Management.Workloads, appliedAccessLogs(in, logs)
	if d.made && reflect.DeepEqual(d.logged, logged) && snapshot.SameSlice(d.sidecars, plan.Sidecars) && snapshot.SameSlice(d.plans, plan.Dependencies) &&
		snapshot.SameSlice(d.planned, plan.Workloads) && snapshot.SameSlice(d.stored, stored) {
		return changed
	}
	d.sidecars, d.plans, d.planned, d.stored, d.made = plan.Sidecars, plan.Dependencies, plan.Workloads, stored, true
	d.logged = logged
	before := d.workloads
	d.workloads = workloadStatuses(plan, logged, stored)
	for i, s := range d.workloads {
		at, found := slices.BinarySearchFunc(before, s.Ref, func(b *snapshot.Status, ref snapshot.Ref) int { return b.Ref.Compare(ref) })
		if found && reflect.DeepEqual(before[at], s) {
			d.workloads[i] = before[at]
		}
	}
	return changed || !slices.Equal(before, d.workloads)
}

func dependencyStatus(p *snapshot.DependencyPlan, failures []snapshot.Failure) *snapshot.Status {
	s := summarize("workloads", p.Verdicts, p.Issues, failures)
	counts := &commonv1.Counts{Workloads: s.counts.Destinations, Problems: s.counts.Problems}
	return &snapshot.Status{Ref: p.Ref, Value: &enterprisev1beta1.ServiceDependencyStatus{
		ObservedGeneration: p.Dependency.Generation, State: s.state, Workloads: s.destinations,
		Errors: s.errors, Warnings: s.warnings, Counts: counts, Conditions: s.causes.conditions(p.Dependency.Generation, s.state),
	}}
}

// workloadStatuses are the statuses of Workloads with ServiceDependencies or AccessLogRecords. Other
// Workloads get an empty one if they had one with any before.
func workloadStatuses(plan *snapshot.Plan, logged map[snapshot.Ref][]discoveryv1.AppliedAccessLogRecord, stored []*discoveryv1.Workload) []*snapshot.Status {
	said := map[string]int64{}
	generations := map[string]int64{}
	for _, o := range stored {
		generations[o.Name] = o.Generation
		if o.Status.ServiceDependencies != nil || len(o.Status.AppliedAccessLogRecords) > 0 {
			said[o.Name] = o.Generation
		}
	}
	dependencies := make(map[snapshot.Ref]*snapshot.DependencyPlan, len(plan.Dependencies))
	for _, p := range plan.Dependencies {
		dependencies[p.Ref] = p
	}
	values := map[snapshot.Ref]*discoveryv1.WorkloadStatus{}
	for _, s := range plan.Sidecars {
		applied := appliedDependencies(s.Egress, dependencies)
		for _, ref := range s.Workloads {
			values[ref] = &discoveryv1.WorkloadStatus{ServiceDependencies: applied}
		}
	}
	for ref, applied := range logged {
		if values[ref] == nil {
			values[ref] = &discoveryv1.WorkloadStatus{}
		}
		values[ref].AppliedAccessLogRecords = applied
	}
	var out []*snapshot.Status
	for _, o := range plan.Workloads {
		ref := snapshot.RefOf(snapshot.Workload, o)
		value := values[ref]
		if _, before := said[o.Name]; value == nil && before {
			value = &discoveryv1.WorkloadStatus{}
		}
		if value == nil {
			continue
		}
		value.ObservedGeneration = max(firstGeneration, generations[o.Name])
		out = append(out, &snapshot.Status{Ref: ref, Value: value})
	}
	return out
}

func appliedDependencies(e *snapshot.Egress, of map[snapshot.Ref]*snapshot.DependencyPlan) *discoveryv1.WorkloadServiceDependencies {
	out := &discoveryv1.WorkloadServiceDependencies{}
	for _, ref := range e.Dependencies[:min(len(e.Dependencies), maxListed)] {
		p := of[ref]
		if p == nil {
			continue
		}
		out.AppliedServiceDependencies = append(out.AppliedServiceDependencies, discoveryv1.AppliedServiceDependency{
			ServiceDependencyRef: objectRef(p.Dependency), ClusterName: p.Dependency.InCluster, ObservedGeneration: p.Dependency.Generation,
		})
	}
	for _, h := range e.Hosts[:min(len(e.Hosts), maxListed)] {
		if len(h.Origins) > 0 {
			out.DestinationHostnames = append(out.DestinationHostnames, h.Host)
		}
	}
	return out
}
