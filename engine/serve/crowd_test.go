package serve

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/proc"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// BenchmarkLiveCrowd is a great number of TrafficPolicies on one service: how long an edit
// of one takes until it is written, what of that the API server takes for the write alone,
// and how long it takes to delete them as a collection, with a server running and without,
// in turns. On a busy machine, compare the CPU time. Run it with -benchtime 1x.
func BenchmarkLiveCrowd(b *testing.B) {
	const many, rounds = 2000, 2
	clusters := world(b, 1)
	c := newCrowd(b, configOf(b, clusters[0]))
	c.processes = clusters[0].Processes
	var served, alone cost
	for round := range rounds {
		c.create(many)
		c.server = start(b, c.config, "one")
		c.routes(many)
		c.settled()
		if round == 0 {
			c.edits(b, many)
		}
		before := c.changes()
		served.add(c.deleteAll())
		c.routes(0)
		c.settled()
		b.Logf("deletion: %v", c.since(before))

		c.create(many)
		c.routes(many)
		c.settled()
		_, err := c.server.stop()
		require.NoError(b, err)
		alone.add(c.deleteAll())
	}
	b.ReportMetric(alone.wall/rounds, "s/delete-alone")
	b.ReportMetric(served.wall/rounds, "s/delete-served")
	b.ReportMetric(alone.cpu/rounds, "cpu-s/delete-alone")
	b.ReportMetric(served.cpu/rounds, "cpu-s/delete-served")
	b.ReportMetric(served.self/rounds, "cpu-s/serve")
}

// edits reports how long edits take that follow one another, and writes alone.
func (c *crowd) edits(b *testing.B, many int) {
	b.Helper()
	alone := c.rawApply()
	for range 4 {
		alone = min(alone, c.rawApply())
	}
	b.ReportMetric(alone.Seconds()*1000, "ms/raw-apply")
	for n := range 3 {
		before := c.changes()
		began := time.Now()
		c.edit(many/2+n, fmt.Sprintf("%dms", 100_001+n))
		b.ReportMetric(time.Since(began).Seconds()*1000, fmt.Sprintf("ms/edit-%d", n))
		c.settled()
		b.Logf("edit: %v", c.since(before))
	}
}

// cost is what something took, in seconds: on the clock, of CPU time of the cluster, and of
// this process, in which the server runs.
type cost struct{ wall, cpu, self float64 }

func (c *cost) add(o cost) { c.wall, c.cpu, c.self = c.wall+o.wall, c.cpu+o.cpu, c.self+o.self }

// spent is the cost since this process began; only differences mean something.
func (c *crowd) spent() cost {
	c.Helper()
	now := cost{wall: float64(time.Now().UnixNano()) / 1e9, self: cpuSeconds(c, os.Getpid())}
	for _, p := range c.processes() {
		now.cpu += cpuSeconds(c, p.PID)
	}
	return now
}

// cpuSeconds is the CPU time of a process: the 14th and 15th field of its stat, in 1/100 s.
func cpuSeconds(t testing.TB, pid int) float64 {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	require.NoError(t, err)
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	var sum float64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseFloat(field, 64)
		require.NoError(t, err)
		sum += n / 100
	}
	return sum
}

// crowd are many TrafficPolicies on one service.
type crowd struct {
	testing.TB
	config   *rest.Config
	policies dynamic.ResourceInterface
	services dynamic.ResourceInterface
	server   *replica
	// processes are those of the cluster.
	processes func() []proc.Process
}

func newCrowd(t testing.TB, config *rest.Config) *crowd {
	t.Helper()
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	return &crowd{
		TB: t, config: config,
		policies: client.Resource(snapshot.TrafficPolicy.GroupVersionResource()).Namespace("gloo-mesh"),
		services: client.Resource(snapshot.VirtualService.GroupVersionResource()).Namespace("bookinfo"),
	}
}

// create creates policies, each with a path of its own.
func (c *crowd) create(many int) {
	c.Helper()
	group, ctx := errgroup.WithContext(c.Context())
	group.SetLimit(16)
	for n := range many {
		group.Go(func() error {
			u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
				"destinationSelector": []any{map[string]any{"kubeServiceRefs": map[string]any{"services": []any{
					map[string]any{"name": "reviews", "namespace": "bookinfo", "clusterName": "cluster-1"},
				}}}},
				"httpRequestMatchers": []any{map[string]any{"uri": map[string]any{"prefix": fmt.Sprintf("/path-%05d", n)}}},
				"policy":              map[string]any{"requestTimeout": fmt.Sprintf("%dms", n+1)},
			}}}
			u.SetGroupVersionKind(snapshot.TrafficPolicy.Info().GroupVersionKind)
			u.SetName(fmt.Sprintf("crowd-%05d", n))
			_, err := c.policies.Create(ctx, u, metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(c, group.Wait())
}

// deleteAll deletes all policies as a collection, and returns what that cost.
func (c *crowd) deleteAll() cost {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 3*waittest.Limit())
	defer cancel()
	before := c.spent()
	err := c.policies.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	took := c.spent()
	took.add(cost{-before.wall, -before.cpu, -before.self})
	list, listErr := c.policies.List(c.Context(), metav1.ListOptions{})
	require.NoError(c, listErr)
	c.Logf("deleted in %+v s: %v; %d are left", took, err, len(list.Items))
	require.NoError(c, err)
	require.Empty(c, list.Items)
	return took
}

// routes waits until the service has routes for a number of policies.
func (c *crowd) routes(many int) {
	c.Helper()
	until(c, fmt.Sprintf("%d routes", many), func() bool { return c.written(func(text string) bool { return strings.Count(text, "/path-") == many }) })
}

// written reports whether the VirtualService satisfies a condition.
func (c *crowd) written(condition func(string) bool) bool {
	c.Helper()
	o, err := c.services.Get(c.Context(), "reviews", metav1.GetOptions{})
	if err != nil {
		return condition("")
	}
	spec, err := o.MarshalJSON()
	require.NoError(c, err)
	return condition(string(spec))
}

// edit changes the timeout of a policy and waits until it is written.
func (c *crowd) edit(n int, timeout string) {
	c.Helper()
	w, err := c.services.Watch(c.Context(), metav1.ListOptions{})
	require.NoError(c, err)
	defer w.Stop()
	_, err = c.policies.Patch(c.Context(), fmt.Sprintf("crowd-%05d", n), types.MergePatchType,
		fmt.Appendf(nil, `{"spec":{"policy":{"requestTimeout":%q}}}`, timeout), metav1.PatchOptions{})
	require.NoError(c, err)
	seconds, err := time.ParseDuration(timeout)
	require.NoError(c, err)
	for event := range w.ResultChan() {
		raw, err := event.Object.(*unstructured.Unstructured).MarshalJSON()
		require.NoError(c, err)
		if strings.Contains(string(raw), strconv.FormatFloat(seconds.Seconds(), 'f', 3, 64)) {
			return
		}
	}
	require.FailNow(c, "the watch has ended")
}

// rawApply is how long the API server takes for an apply of the VirtualService alone.
func (c *crowd) rawApply() time.Duration {
	c.Helper()
	o, err := c.services.Get(c.Context(), "reviews", metav1.GetOptions{})
	require.NoError(c, err)
	spec := map[string]any{"spec": o.Object["spec"], "metadata": map[string]any{"name": "reviews", "namespace": "bookinfo"}, "apiVersion": o.GetAPIVersion(), "kind": o.GetKind()}
	document, err := (&unstructured.Unstructured{Object: spec}).MarshalJSON()
	require.NoError(c, err)
	force := true
	began := time.Now()
	_, err = c.services.Patch(c.Context(), "reviews", types.ApplyPatchType, document, metav1.PatchOptions{FieldManager: snapshot.FieldManager, Force: &force, DryRun: []string{metav1.DryRunAll}})
	require.NoError(c, err)
	c.Logf("the VirtualService has %d kB", len(document)/1000)
	return time.Since(began)
}

// settled waits until all is written.
func (c *crowd) settled() {
	c.Helper()
	calm, last := 0, 0.0
	until(c, "settled", func() bool {
		writes := 0.0
		for name, n := range c.changes() {
			if strings.HasPrefix(name, "{") {
				writes += n
			}
		}
		if writes != last {
			calm = 0
		}
		calm, last = calm+1, writes
		time.Sleep(100 * time.Millisecond)
		return calm > 10
	})
}

// changes are the counts of writes.
func (c *crowd) changes() map[string]float64 {
	c.Helper()
	code, text := c.server.get("/metrics")
	require.Equal(c, http.StatusOK, code)
	out := map[string]float64{}
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		for _, prefix := range []string{"meshctl_apply_changes_total{", "meshctl_translate_seconds_", "meshctl_apply_conflicts_total{", "go_memstats_alloc_bytes_total", "process_cpu_seconds_total"} {
			if n, err := strconv.ParseFloat(value, 64); err == nil && strings.HasPrefix(name, prefix) && !strings.Contains(name, "_bucket") {
				out[strings.TrimPrefix(name, "meshctl_apply_changes_total")] = n
			}
		}
	}
	return out
}

func (c *crowd) since(before map[string]float64) map[string]float64 {
	c.Helper()
	return difference(before, c.changes())
}

// difference are the counts that differ.
func difference(before, now map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for name, n := range now {
		if n != before[name] {
			out[name] = n - before[name]
		}
	}
	return out
}
