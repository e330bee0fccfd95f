package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// failOn is what fails a plan: the flag --fail-on, a list.
type failOn []string

// The values of --fail-on.
const (
	failOnError      = "error"
	failOnWarning    = "warning"
	failOnAccessLost = "access-lost"
	failOnNever      = "never"
)

// failOns are all values, in the order of the help.
var failOns = []string{failOnError, failOnWarning, failOnAccessLost, failOnNever}

// String is part of pflag.Value.
func (f *failOn) String() string {
	if len(*f) == 0 {
		return failOnNever
	}
	return strings.Join(*f, ",")
}

// Type is part of pflag.Value.
func (f *failOn) Type() string { return "findings" }

// Set is part of pflag.Value. A flag that is repeated adds to what it had.
func (f *failOn) Set(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		if !slices.Contains(failOns, word) {
			return fmt.Errorf("must be one or more of %s, with commas between them", strings.Join(failOns, ", "))
		}
		*f = append(*f, word)
	}
	if len(*f) > 1 && slices.Contains(*f, failOnNever) {
		return fmt.Errorf("%s cannot be combined with others", failOnNever)
	}
	return nil
}

// fails says why a plan fails; empty if it does not. What the API server would refuse always fails it.
func (f failOn) fails(p *explain.Planned) string {
	worst, issues := snapshot.Info, 0
	for i := range p.NewIssues {
		worst = max(worst, p.NewIssues[i].Severity)
	}
	count := func(least snapshot.Severity) {
		for i := range p.NewIssues {
			if p.NewIssues[i].Severity >= least {
				issues++
			}
		}
	}
	switch {
	case len(p.Refused) > 0:
		return "the API server would refuse " + snapshot.Count(len(p.Refused), "object")
	case slices.Contains(f, failOnWarning) && worst >= snapshot.Warning:
		count(snapshot.Warning)
		return snapshot.Count(issues, "new issue") + " with --fail-on " + failOnWarning
	case slices.Contains(f, failOnError) && worst >= snapshot.Error:
		count(snapshot.Error)
		return snapshot.Count(issues, "new error") + " with --fail-on " + failOnError
	case slices.Contains(f, failOnAccessLost) && slices.ContainsFunc(p.Effects, func(e explain.Effect) bool { return e.Harm }):
		return "requests fail that did not before, with --fail-on " + failOnAccessLost
	}
	return ""
}
