package serve

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// picky panics if a policy is labelled as bad, or if two policies are called twin.
type picky struct{}

func (picky) Translate(in *snapshot.Input) *snapshot.State {
	twins := 0
	for _, o := range in.Objects {
		if o.GetLabels()["bad"] != "" {
			panic("no such case")
		}
		if strings.HasPrefix(o.GetName(), "twin") {
			twins++
		}
	}
	if twins > 1 {
		panic("no such case")
	}
	return &snapshot.State{Input: in, Output: &snapshot.Output{Parts: snapshot.ListOf([]*snapshot.Part{{Key: "a"}})}}
}

func policyNamed(name string, labels ...string) *networkingv1.TrafficPolicy {
	o := &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
	for _, l := range labels {
		o.Labels = map[string]string{l: "true"}
	}
	return o
}

func policyRef(name string) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "shop", Name: name}
}

// TestObjectsThatBreakTheTranslation: one object with which the translation panics costs
// the effect of its last edit, and nothing else.
func TestObjectsThatBreakTheTranslation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		in, out := &inputs{changed: make(chan struct{}, 1)}, &outputs{}
		l := newLoop(in, out, newMetrics(prometheus.NewRegistry(), "test"), &cause{}, slog.New(slog.NewTextHandler(&log, nil)))
		l.newTranslator = func() translator { return picky{} }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); l.run(ctx) }()
		defer func() { cancel(); <-ended }()

		first, other := policyNamed("first"), policyNamed("other")
		set := func(policies ...*networkingv1.TrafficPolicy) *snapshot.Input {
			slices.SortFunc(policies, func(a, b *networkingv1.TrafficPolicy) int { return strings.Compare(a.Name, b.Name) })
			in.set(&snapshot.Input{Management: &snapshot.Management{TrafficPolicies: policies}})
			time.Sleep(time.Second)
			synctest.Wait()
			return l.state.Load().Input
		}
		set(first, other)
		require.Nil(t, l.broken.Load())

		bad := policyNamed("first", "bad")
		got := set(bad, other)
		assert.Same(t, first, got.Find(policyRef("first")), "the previous version")
		require.Len(t, got.Failures, 1)
		assert.Equal(t, policyRef("first"), got.Failures[0].Ref)
		assert.Contains(t, got.Failures[0].What, "no such case")
		require.NotNil(t, l.broken.Load())
		assert.Contains(t, *l.broken.Load(), "shop/first")
		assert.Contains(t, log.String(), "shop/first")

		edited := policyNamed("other", "edited")
		got = set(bad, edited, policyNamed("new"), policyNamed("worse", "bad"))
		assert.Same(t, edited, got.Find(policyRef("other")), "edits of others")
		assert.NotNil(t, got.Find(policyRef("new")))
		assert.Nil(t, got.Find(policyRef("worse")))
		assert.Len(t, got.Failures, 2)

		good := policyNamed("first", "good")
		got = set(good, edited)
		assert.Same(t, good, got.Find(policyRef("first")))
		assert.Empty(t, got.Failures)
		assert.Nil(t, l.broken.Load())

		got = set(good, policyNamed("twin-1"), policyNamed("twin-2"))
		require.Len(t, got.Failures, 1, "one of two that only break it together")
		assert.Nil(t, got.Find(policyRef("other")), "deleted as asked for")
	})
}

// TestBrokenFromTheStart: what may protect something is never left out.
func TestBrokenFromTheStart(t *testing.T) {
	t.Parallel()
	works := func(in *snapshot.Input) bool {
		defer func() { _ = recover() }()
		return picky{}.Translate(in) != nil
	}
	bad := &snapshot.Input{Management: &snapshot.Management{TrafficPolicies: []*networkingv1.TrafficPolicy{policyNamed("a"), policyNamed("b", "bad"), policyNamed("c", "bad")}}}
	assert.Equal(t, []snapshot.Ref{policyRef("b"), policyRef("c")}, (&search{input: bad, translates: works}).find())
	access := &networkingv1.AccessPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Labels: map[string]string{"bad": "true"}}}
	open := &snapshot.Input{Management: &snapshot.Management{AccessPolicies: []*networkingv1.AccessPolicy{access}, TrafficPolicies: []*networkingv1.TrafficPolicy{policyNamed("a")}}}
	assert.Empty(t, (&search{input: open, translates: works}).find())
}
