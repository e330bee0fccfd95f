package serve

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func policy(name string) *networkingv1.TrafficPolicy {
	return &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "bookinfo", Name: name}}
}

func podNamed(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "bookinfo", Name: name}}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	a, b, c := policy("a"), policy("b"), policy("c")
	x, y := podNamed("x"), podNamed("y")
	management := func(p ...*networkingv1.TrafficPolicy) *snapshot.Management {
		return &snapshot.Management{TrafficPolicies: p}
	}
	empty := management()
	synced := func(pods ...*corev1.Pod) *snapshot.Cluster {
		return &snapshot.Cluster{Name: "west", Sync: snapshot.Synced, Pods: pods}
	}
	west := synced(x)
	input := func(m *snapshot.Management, clusters ...*snapshot.Cluster) *snapshot.Input {
		return &snapshot.Input{Management: m, Clusters: clusters}
	}
	failed := input(empty)
	failed.Failures = []snapshot.Failure{{Reason: snapshot.Reason{What: "no"}}}
	for name, test := range map[string]struct {
		before, now *snapshot.Input
		want        string
	}{
		"added":           {input(management(a, c)), input(management(a, b, c)), "TrafficPolicy bookinfo/b"},
		"removed":         {input(management(a, b, c)), input(management(a, c)), "TrafficPolicy bookinfo/b"},
		"edited":          {input(management(a, b)), input(management(a, policy("b"))), "TrafficPolicy bookinfo/b"},
		"several":         {input(management(a, b)), input(management(b, c)), "2 trafficpolicies"},
		"all":             {input(management(a, b)), input(management()), "2 trafficpolicies"},
		"in a cluster":    {input(empty, west), input(empty, synced(x, y)), "Pod west/bookinfo/y"},
		"several there":   {input(empty, west), input(empty, synced(podNamed("x"), y)), "2 pods in west"},
		"cluster added":   {input(empty), input(empty, west), "cluster west was added"},
		"cluster removed": {input(empty, west), input(empty), "cluster west was removed"},
		"cluster stale":   {input(empty, west), input(empty, &snapshot.Cluster{Name: "west", Sync: snapshot.Stale}), "cluster west is unreachable"},
		"failures":        {input(empty), failed, "failed writes"},
		"many": {
			input(management(a), &snapshot.Cluster{Name: "1"}, &snapshot.Cluster{Name: "2"}, &snapshot.Cluster{Name: "3"}),
			input(management(), &snapshot.Cluster{Name: "4"}, &snapshot.Cluster{Name: "5"}),
			"TrafficPolicy bookinfo/a, cluster 4 was added, cluster 5 was added, cluster 1 was removed and 2 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, test.want, describe(&snapshot.State{Input: test.before}, test.now))
		})
	}
	assert.Equal(t, "start", describe(nil, input(empty)))
}

func TestCauseIsOnEachLine(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	c := &cause{}
	log := c.logger(slog.New(slog.NewTextHandler(&out, nil))).With("cluster", "west")
	log.Info("one")
	assert.Contains(t, out.String(), "cluster=west cause=repair")
	c.add("start")
	c.add("TrafficPolicy a/b")
	c.add("start")
	log.WithGroup("g").Info("two", "k", "v")
	assert.Contains(t, out.String(), `cause="start; TrafficPolicy a/b"`)
	for _, text := range []string{"c", "d", "e", "f"} {
		c.add(text)
	}
	assert.Equal(t, "start; TrafficPolicy a/b; c; d; and 2 more", c.String())
	c.clear()
	assert.Equal(t, "repair", c.String())
}

func TestCompare(t *testing.T) {
	t.Parallel()
	part := func(key string) *snapshot.Part { return &snapshot.Part{Key: key} }
	status := func(name string) *snapshot.Status { return &snapshot.Status{Ref: snapshot.Ref{Name: name}} }
	a, b, d := part("a"), part("b"), part("d")
	s := status("s")
	state := func(statuses []*snapshot.Status, parts ...*snapshot.Part) *snapshot.State {
		return &snapshot.State{Output: &snapshot.Output{Parts: snapshot.ListOf(parts), Statuses: snapshot.ListOf(statuses)}}
	}
	before := state([]*snapshot.Status{s}, a, b, d)
	assert.Equal(t, counts{parts: 3, computed: 3, statuses: 1}, compare(nil, before))
	assert.Equal(t, counts{parts: 3}, compare(before, state([]*snapshot.Status{s}, a, b, d)))
	assert.False(t, compare(before, before).changed())
	assert.Equal(t, counts{parts: 3, computed: 2, dropped: 2, statuses: 1}, compare(before, state([]*snapshot.Status{status("s")}, a, part("b"), part("c"))))
	assert.Equal(t, counts{parts: 1, dropped: 2, statuses: 0}, compare(before, state([]*snapshot.Status{s}, d)))
	assert.True(t, compare(before, state([]*snapshot.Status{s}, d)).changed())
}
