package serve

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
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

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// BenchmarkLiveCrowd is a great number of TrafficPolicies on one service: how long an edit
// of one takes until it is written, and how long the API server takes to delete them as a
// collection, with a server running and without. Run it with -benchtime 1x.
func BenchmarkLiveCrowd(b *testing.B) {
	const many = 2000
	clusters := world(b, 1)
	c := newCrowd(b, configOf(b, clusters[0]))

	c.create(many)
	b.ReportMetric(c.deleteAll(0).Seconds(), "s/delete-alone")

	c.server = start(b, c.config, "one")
	c.create(many)
	c.routes(many)
	c.settled()
	b.ReportMetric(c.rawApply().Seconds()*1000, "ms/raw-apply")
	for n := range 3 {
		before := c.changes()
		began := time.Now()
		c.edit(many/2+n, fmt.Sprintf("%dms", 100_001+n))
		b.ReportMetric(time.Since(began).Seconds()*1000, fmt.Sprintf("ms/edit-%d", n))
		c.settled()
		b.Logf("edit: %v", c.since(before))
	}
	before := c.changes()
	b.ReportMetric(c.deleteAll(0).Seconds(), "s/delete-served")
	c.routes(0)
	c.settled()
	b.Logf("deletion: %v", c.since(before))
}

// crowd are many TrafficPolicies on one service.
type crowd struct {
	testing.TB
	config   *rest.Config
	policies dynamic.ResourceInterface
	services dynamic.ResourceInterface
	server   *replica
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

// deleteAll deletes all policies as a collection, and returns how long that took.
func (c *crowd) deleteAll(remaining int) time.Duration {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 3*waittest.Limit)
	defer cancel()
	began := time.Now()
	err := c.policies.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	took := time.Since(began)
	list, listErr := c.policies.List(c.Context(), metav1.ListOptions{})
	require.NoError(c, listErr)
	c.Logf("deleted in %s: %v; %d are left", took, err, len(list.Items))
	require.NoError(c, err)
	require.Len(c, list.Items, remaining)
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
