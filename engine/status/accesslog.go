package status

import (
	"reflect"
	"slices"

	"github.com/meshctl/meshctl/engine/accesslog"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// accessLogStatuses are the statuses of AccessLogRecords.
type accessLogStatuses struct{ made []*snapshot.Status }

// update reports whether any status is new or gone.
func (a *accessLogStatuses) update(in *snapshot.Input, plan *snapshot.Plan, failures map[snapshot.Ref][]snapshot.Failure) bool {
	before := a.made
	a.made = nil
	for _, p := range accesslog.Plans(in, plan) {
		made := accessLogStatus(p, failures[p.Ref])
		if at := slices.IndexFunc(before, func(was *snapshot.Status) bool { return was.Ref == made.Ref && reflect.DeepEqual(was, made) }); at >= 0 {
			made = before[at]
		}
		a.made = append(a.made, made)
	}
	return !slices.Equal(before, a.made)
}

func accessLogStatus(p *accesslog.Plan, failures []snapshot.Failure) *snapshot.Status {
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

// accessLogIssues are the issues of AccessLogRecords.
func accessLogIssues(in *snapshot.Input, plan *snapshot.Plan) (out []snapshot.Issue) {
	for _, p := range accesslog.Plans(in, plan) {
		out = append(out, p.Issues...)
	}
	return out
}
