package status

import (
	"fmt"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxListed bounds the targets that a status lists; those with errors come first, and
// status.counts has the total.
const maxListed = 200

// Limits of the parts of a status, in bytes of text. Together, with names and JSON
// syntax, they are far below the size limit of API servers.
const (
	targetBudget = 96 << 10
	textBudget   = 32 << 10
	meshBudget   = 32 << 10
)

// budget is a number of bytes that are left.
type budget int

// spend reports whether there was enough.
func (b *budget) spend(n int) bool {
	*b -= budget(n)
	return *b >= 0
}

// summary is what the statuses of all policies have.
type summary struct {
	state        commonv1.ApprovalState
	destinations map[string]commonv1.ApprovalStatus
	errors       []string
	warnings     []string
	counts       *commonv1.Counts
	left         budget
	causes       causes
}

// summarize sums up a policy: ACCEPTED if all its targets accept it, INVALID
// if not, FAILED if an API server rejected an object. That it is not in force although it is accepted is for the
// conditions to say. Targets says in the plural what the verdicts are on.
func summarize(targets string, verdicts []snapshot.Verdict, issues []snapshot.Issue, failures []snapshot.Failure) summary {
	s := summary{state: commonv1.ApprovalStateAccepted, counts: &commonv1.Counts{Destinations: int32(len(verdicts))}, left: textBudget}
	s.add(issues)
	s.destinations, s.counts.Problems = targetStates(verdicts)
	s.causes = causes{failures: failures, nouns: targets, targets: len(verdicts), accepted: len(verdicts) - int(s.counts.Problems)}
	s.causes.note(issues)
	for i := range verdicts {
		s.causes.note(verdicts[i].Issues)
	}
	if snapshot.Rejected(issues) || s.counts.Problems > 0 {
		s.state = commonv1.ApprovalStateInvalid
	}
	if more := len(verdicts) - len(s.destinations); more > 0 {
		s.warnings = append(s.warnings, fmt.Sprintf("%s: %d more are not listed", targets, more))
	}
	if len(failures) > 0 {
		s.state = commonv1.ApprovalStateFailed
	}
	for i, f := range failures {
		what := "write error"
		switch f.Code {
		case snapshot.ObjectUnreadable:
			what = "read error"
		case snapshot.ClusterAwaited:
			what = "not written"
		}
		text := clip(fmt.Sprintf("%s: %s: %s", what, f.Ref, f.Reason))
		if !s.left.spend(len(text)) {
			s.errors = append(s.errors, fmt.Sprintf("%s: %d more", what, len(failures)-i))
			break
		}
		s.errors = append(s.errors, text)
	}
	return s
}

// add adds issues on the policy as a whole to the errors and warnings.
func (s *summary) add(issues []snapshot.Issue) {
	for i, issue := range issues {
		if issue.Severity == snapshot.Info {
			continue
		}
		text := clip(issue.Text())
		if !s.left.spend(len(text)) {
			s.warnings = append(s.warnings, fmt.Sprintf("%d more issues are not listed", len(issues)-i))
			return
		}
		if issue.Severity == snapshot.Error {
			s.errors = append(s.errors, text)
		} else {
			s.warnings = append(s.warnings, text)
		}
	}
}

// targetStates lists verdicts by target, those with issues first, and counts those
// that are not accepted.
func targetStates(verdicts []snapshot.Verdict) (map[string]commonv1.ApprovalStatus, int32) {
	if len(verdicts) == 0 {
		return nil, 0
	}
	var problems int32
	out := make(map[string]commonv1.ApprovalStatus, min(len(verdicts), maxListed))
	left := budget(targetBudget)
	for pass := range 3 {
		for i := range verdicts {
			v := &verdicts[i]
			rank := 2
			switch {
			case !v.Accepted:
				rank = 0
			case len(v.Issues) > 0:
				rank = 1
			}
			if pass == 0 && !v.Accepted {
				problems++
			}
			if rank == pass && len(out) < maxListed && left > 0 {
				state := targetState(v)
				if left.spend(textSize(state)) {
					out[v.Destination.Key()] = state
				}
			}
		}
	}
	return out, problems
}

func targetState(v *snapshot.Verdict) commonv1.ApprovalStatus {
	out := commonv1.ApprovalStatus{State: commonv1.ApprovalStateInvalid}
	if v.Accepted {
		out.State, out.AcceptanceOrder = commonv1.ApprovalStateAccepted, v.Order
	}
	for _, issue := range v.Issues[:min(len(v.Issues), 10)] {
		if issue.Severity == snapshot.Error {
			out.Errors = append(out.Errors, clip(issue.Text()))
		} else {
			out.Warnings = append(out.Warnings, clip(issue.Text()))
		}
	}
	return out
}

func textSize(s commonv1.ApprovalStatus) int {
	n := 0
	for _, text := range s.Errors {
		n += len(text)
	}
	for _, text := range s.Warnings {
		n += len(text)
	}
	return n
}
