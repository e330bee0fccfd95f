package status

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func accessLogStatus(p *snapshot.AccessLogPlan, failures []snapshot.Failure) *snapshot.Status {
	s := summarize("workloads", nil, p.Issues, failures)
	if len(failures) == 0 {
		s.state = p.State
	}
	generation := p.Record.Generation
	list := conditionList{generation: generation}
	rejected := s.state == commonv1.ApprovalStateInvalid
	accepted, inForce := list.of(commonv1.ConditionAccepted), list.of(commonv1.ConditionInForce)
	switch {
	case rejected && s.causes.rejection != nil:
		accepted.fail(string(s.causes.rejection.Code), s.causes.rejection.Text())
		inForce.fail(commonv1.ReasonNotAccepted, "")
	case len(failures) > 0:
		inForce.fail(string(failures[0].Code), failures[0].Reason.String())
	case s.state == commonv1.ApprovalStateAccepted:
	case s.causes.unmet != nil:
		inForce.fail(string(s.causes.unmet.Code), s.causes.unmet.Text())
	case len(p.Workloads) == 0:
		inForce.fail(string(snapshot.SelectsNothing), "it applies to no workload")
	default:
		inForce.fail(string(snapshot.LogsMissing), "no proxy of its workloads was seen to send its log yet")
	}
	list.conclude(list.all(accepted, inForce), !rejected)
	out := &observabilityv1.AccessLogRecordStatus{
		ObservedGeneration: generation, State: s.state, Errors: s.errors, Warnings: s.warnings, Conditions: list.sorted(),
		Counts: &commonv1.Counts{Workloads: int32(len(p.Workloads))},
	}
	for _, ref := range p.Workloads[:min(len(p.Workloads), maxListed)] {
		out.Workloads = append(out.Workloads, commonv1.ObjectRef{Name: ref.Name, Namespace: ref.Namespace})
	}
	return &snapshot.Status{Ref: p.Ref, Value: out}
}

// appliedAccessLogs are the AccessLogRecords that apply to Workloads, with why their log does not come. Where nobody takes logs, what was
// said last stays of records that apply.
func appliedAccessLogs(in *snapshot.Input, logs []*snapshot.AccessLogPlan) map[snapshot.Ref][]discoveryv1.AppliedAccessLogRecord {
	out := map[snapshot.Ref][]discoveryv1.AppliedAccessLogRecord{}
	said := map[snapshot.Ref][]discoveryv1.AppliedAccessLogRecord{}
	if in.Logging == nil && len(logs) > 0 {
		for _, o := range in.Management.Workloads {
			if applied := o.Status.AppliedAccessLogRecords; len(applied) > 0 {
				said[snapshot.RefOf(snapshot.Workload, o)] = applied
			}
		}
	}
	for _, p := range logs {
		if p.State == commonv1.ApprovalStateInvalid {
			continue
		}
		for _, ref := range p.Workloads {
			if len(out[ref]) >= maxListed {
				continue
			}
			applied := discoveryv1.AppliedAccessLogRecord{Ref: objectRef(p.Record), ClusterName: p.Ref.Cluster, ObservedGeneration: p.Record.Generation}
			if what := p.Missing[ref]; what != "" {
				applied.Errors = []string{"no log comes from it: " + what}
			}
			if in.Logging == nil {
				at := slices.IndexFunc(said[ref], func(a discoveryv1.AppliedAccessLogRecord) bool {
					return a.Ref == applied.Ref && a.ClusterName == applied.ClusterName
				})
				if at < 0 {
					continue
				}
				applied = said[ref][at]
			}
			out[ref] = append(out[ref], applied)
		}
	}
	return out
}
