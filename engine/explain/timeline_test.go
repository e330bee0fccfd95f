package explain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// steps translates Inputs one after the other, as serve does, and tells the changes of each step.
type steps struct {
	t          *testing.T
	translator *engine.Translator
	state      *snapshot.State
	at         time.Time
}

func newSteps(t *testing.T, name string) *steps {
	t.Helper()
	s := &steps{t: t, translator: engine.New(engine.Options{}), at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	s.state = s.translator.Translate(load(t, name))
	return s
}

// to goes on to an Input, and returns the changes as text.
func (s *steps) to(in *snapshot.Input, edits ...snapshot.ChangeCause) []snapshot.Change {
	s.t.Helper()
	m := explain.Moment{Before: s.state, After: s.translator.Translate(in), Edits: edits, Observed: "2 pods in cluster-1", At: s.at}
	s.state = m.After
	return m.Changes()
}

// with returns the Input with an edited object.
func with[T interface {
	snapshot.APIObject
	DeepCopy() T
}](s *steps, list []T, name string, edit func(T)) (*snapshot.Input, snapshot.ChangeCause) {
	s.t.Helper()
	at := slices.IndexFunc(list, func(o T) bool { return o.GetName() == name })
	require.GreaterOrEqual(s.t, at, 0)
	o := list[at].DeepCopy()
	edit(o)
	o.SetGeneration(o.GetGeneration() + 1)
	in, err := s.state.Input.With("", o)
	require.NoError(s.t, err)
	kind := snapshot.TrafficPolicy
	if _, isAccess := any(o).(*networkingv1.AccessPolicy); isAccess {
		kind = snapshot.AccessPolicy
	}
	return in, snapshot.ChangeCause{Kind: snapshot.ChangeEdited, On: snapshot.RefOf(kind, o), What: "was edited", By: "kubectl-edit", Operation: "Update"}
}

func texts(changes []snapshot.Change) (out []string) {
	for i := range changes {
		out = append(out, string(changes[i].Kind)+" "+changes[i].Text())
	}
	return out
}

// TestTimelineOfAnEdit: other weights are told with the one who edited the policy, and an edit without effect is told as one.
func TestTimelineOfAnEdit(t *testing.T) {
	t.Parallel()
	s := newSteps(t, "bookinfo")
	in, edit := with(s, s.state.Input.Management.TrafficPolicies, "reviews-shift", func(p *networkingv1.TrafficPolicy) {
		p.Spec.Policy.TrafficShift.Destinations[0].Weight, p.Spec.Policy.TrafficShift.Destinations[1].Weight = 60, 30
	})
	changes := s.to(in, edit)
	require.Len(t, changes, 1, "%s", strings.Join(texts(changes), "\n"))
	c := changes[0]
	assert.Equal(t, "reviews.bookinfo.cluster-1", c.Called)
	assert.Equal(t, "cluster-1", c.Cluster)
	assert.Contains(t, c.Text(), "60% to reviews-bookinfo-cluster-1")
	assert.Contains(t, c.Text(), "before 75% to reviews-bookinfo-cluster-1")
	assert.Contains(t, c.Text(), ", because TrafficPolicy gloo-mesh/reviews-shift was edited by kubectl-edit")

	in, edit = with(s, s.state.Input.Management.TrafficPolicies, "reviews-shift", func(p *networkingv1.TrafficPolicy) {
		p.Labels = map[string]string{"team": "a"}
	})
	assert.Equal(t, []string{"edited TrafficPolicy gloo-mesh/reviews-shift was edited by kubectl-edit; nothing changes for traffic"}, texts(s.to(in, edit)))
}

// TestTimelineOfAccess: callers that are refused are harm, and come first.
func TestTimelineOfAccess(t *testing.T) {
	t.Parallel()
	s := newSteps(t, "bookinfo")
	ref := snapshot.Ref{Kind: snapshot.AccessPolicy, Namespace: "gloo-mesh", Name: "productpage-calls"}
	require.NotNil(t, s.state.Input.Find(ref))
	changes := s.to(s.state.Input.Without(ref), snapshot.ChangeCause{Kind: snapshot.ChangeEdited, On: ref, What: "was deleted"})
	require.NotEmpty(t, changes)
	assert.True(t, changes[0].Harm)
	for _, c := range changes {
		assert.Contains(t, c.Text(), "because AccessPolicy gloo-mesh/productpage-calls was deleted")
	}
}

// TestTimelineOfPods: pods that come and go without effect on shares are no change.
func TestTimelineOfPods(t *testing.T) {
	t.Parallel()
	s := newSteps(t, "bookinfo")
	cluster := s.state.Input.Cluster("cluster-1")
	at := slices.IndexFunc(cluster.Pods, func(p *corev1.Pod) bool { return strings.HasPrefix(p.Name, "reviews-v1") })
	require.GreaterOrEqual(t, at, 0)
	more := cluster.Pods[at].DeepCopy()
	more.Name, more.Status.PodIP = more.Name+"-more", "10.99.99.99"
	in, err := s.state.Input.With("cluster-1", more)
	require.NoError(t, err)
	assert.Empty(t, texts(s.to(in)))
	assert.Empty(t, texts(s.to(in.Without(snapshot.Ref{Kind: snapshot.Pod, Cluster: "cluster-1", Namespace: more.Namespace, Name: more.Name}))))
}

// synced is an Input in which a cluster has a state.
func synced(in *snapshot.Input, name string, sync snapshot.Sync, reason string) *snapshot.Input {
	out := *in
	out.Clusters = slices.Clone(in.Clusters)
	for i, c := range out.Clusters {
		if c.Name == name {
			changed := *c
			changed.Sync, changed.Reason = sync, reason
			out.Clusters[i] = &changed
		}
	}
	return &out
}

// TestTimelineOfClusters: one that is lost and found is told; what is read for the first time is not new.
func TestTimelineOfClusters(t *testing.T) {
	t.Parallel()
	s := newSteps(t, "bookinfo")
	all := s.state.Input
	lost := s.to(synced(all, "cluster-2", snapshot.Stale, "no answer from https://10.0.0.1:6443"))
	require.NotEmpty(t, lost)
	assert.Equal(t, snapshot.ChangeClusterLost, lost[0].Kind)
	assert.Equal(t, "cluster cluster-2 is unreachable: no answer from https://10.0.0.1:6443", lost[0].Text())
	found := s.to(all)
	require.NotEmpty(t, found)
	assert.Equal(t, "clusterFound cluster cluster-2 is reachable again", texts(found)[0])
	removed := s.to(all.WithoutCluster("cluster-2"))
	assert.Contains(t, strings.Join(texts(removed), "\n"), "clusterRemoved cluster cluster-2 is not registered any more")

	s.state = s.translator.Translate(synced(all, "cluster-2", snapshot.Unsynced, ""))
	assert.Empty(t, texts(s.to(all)), "a start tells nothing")
}

// TestTimelineOfGateway: a gateway that is lost is told with what follows from it.
func TestTimelineOfGateway(t *testing.T) {
	t.Parallel()
	s := newSteps(t, "bookinfo")
	before := s.state.Input
	cluster := *before.Cluster("cluster-2")
	cluster.Services = slices.DeleteFunc(slices.Clone(cluster.Services), func(o *corev1.Service) bool { return strings.Contains(o.Name, "gateway") })
	require.Less(t, len(cluster.Services), len(before.Cluster("cluster-2").Services))
	without := *before
	without.Clusters = slices.Clone(before.Clusters)
	for i, c := range without.Clusters {
		if c.Name == "cluster-2" {
			without.Clusters[i] = &cluster
		}
	}
	lost := strings.Join(texts(s.to(&without)), "\n")
	assert.Contains(t, lost, "problem ")
	back := strings.Join(texts(s.to(before)), "\n")
	assert.Contains(t, back, "repaired ")
	t.Log(lost)
	t.Log(back)
}

// TestTimelineIsBounded: of many changes, a number is told.
func TestTimelineIsBounded(t *testing.T) {
	t.Parallel()
	s := newSteps(t, "bookinfo")
	before := s.state
	plan := *before.Plan
	var many []*snapshot.DestinationPlan
	for d := range plan.Destinations.All() {
		for i := range 100 {
			of := *d
			of.Ref.Name = fmt.Sprintf("%s-%03d", d.Ref.Name, i)
			many = append(many, &of)
		}
	}
	slices.SortFunc(many, func(a, b *snapshot.DestinationPlan) int { return a.Ref.Compare(b.Ref) })
	was, is := *before, *before
	plan.Destinations = snapshot.ListOf(many)
	was.Plan = &plan
	gone := plan
	gone.Destinations = snapshot.List[*snapshot.DestinationPlan]{}
	is.Plan = &gone
	m := explain.Moment{Before: &was, After: &is, At: s.at}
	changes := m.Changes()
	assert.LessOrEqual(t, len(changes), 25)
	assert.Contains(t, strings.Join(texts(changes), "\n"), "more ")
}
