package explain_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestSince: what the server dated in conditions is in lists, if it says the same as they do; the newest problem of a severity is first.
func TestSince(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC) }
	in := load(t, "mistakes")
	assert.NotContains(t, titles(explain.New(engine.Translate(in)).Tables(nil).Policies()), "SINCE", "nobody has dated anything")
	ready := func(status metav1.ConditionStatus, hour int) []metav1.Condition {
		return []metav1.Condition{{Type: commonv1.ConditionReady, Status: status, LastTransitionTime: metav1.NewTime(at(hour))}}
	}
	dated := map[snapshot.Ref]time.Time{}
	for i, p := range in.Management.TrafficPolicies {
		p.Status.Conditions = ready(metav1.ConditionFalse, i%24)
		dated[snapshot.RefOf(snapshot.TrafficPolicy, p)] = at(i % 24)
	}
	for _, p := range in.Management.AccessPolicies {
		p.Status.Conditions = ready(metav1.ConditionTrue, 5)
	}
	x := explain.New(engine.Translate(in))
	assert.Contains(t, titles(x.Tables(nil).Policies()), "SINCE")
	found := 0
	var last explain.Problem
	for i, p := range explain.ProblemList(x, time.Time{}) {
		if want, ok := dated[p.Ref]; ok && p.Severity == snapshot.Error && p.Code != snapshot.FieldConflict {
			assert.Equal(t, want, p.Since, "%s", p.Ref)
			found++
		}
		if i > 0 && p.Severity == last.Severity {
			assert.False(t, p.Since.After(last.Since), "newest first")
		}
		if p.Severity < snapshot.Error {
			assert.Zero(t, p.Since, "a warning is not what keeps an object from being ready")
		}
		last = p
	}
	require.Positive(t, found)
	assert.Contains(t, titles(x.Tables(nil).Problems(time.Time{})), "SINCE")
}

// TestProblemsOfOneCause: they are in one order, in whichever second the status of each was written.
func TestProblemsOfOneCause(t *testing.T) {
	t.Parallel()
	list := func(date func(i int) time.Time) (refs []snapshot.Ref) {
		in := load(t, "mistakes")
		for i, p := range in.Management.TrafficPolicies {
			p.Status.Conditions = []metav1.Condition{{Type: commonv1.ConditionReady, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(date(i))}}
		}
		for _, p := range explain.ProblemList(explain.New(engine.Translate(in)), time.Time{}) {
			if !p.Since.IsZero() {
				refs = append(refs, p.Ref)
			}
		}
		return refs
	}
	begin := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	seconds := func(many int) func(i int) time.Time {
		return func(i int) time.Time { return begin.Add(time.Duration(many) * time.Duration(i) * time.Second) }
	}
	want := list(seconds(0))
	assert.Greater(t, len(want), 2)
	assert.Equal(t, want, list(seconds(1)))
	assert.NotEqual(t, want, list(seconds(60)), "the newest is first")
}

func titles(table explain.Table) (out []string) {
	for _, c := range table.Columns {
		out = append(out, c.Title)
	}
	return out
}
