package wire

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// lostTargets takes away what a shift leads to, in three ways.
func lostTargets(t *testing.T, e *environment) {
	t.Helper()
	from := e.pod(t, "cluster-1", "productpage-v1")
	for _, c := range []struct {
		name string
		run  func(*testing.T, *environment, proxies.Pod)
	}{{"no pods", noPods}, {"the cluster is frozen", frozen}, {"no service", noService}} {
		waittest.NoError(t, "the shift is complete", func() error { return e.shares(t.Context(), from) })
		t.Run(c.name, func(t *testing.T) { c.run(t, e, from) })
	}
}

// noPods scales a target to zero, and then all pods of its service: its share of the
// requests fails, as asked for, and the others go on. A VirtualDestination in its place
// fails over.
func noPods(t *testing.T, e *environment, from proxies.Pod) {
	t.Helper()
	const count = 400
	for _, workloads := range [][]string{{"reviews-v3"}, {"reviews-v1", "reviews-v2"}} {
		for _, w := range workloads {
			e.scale(t, "cluster-2", w, 0)
			t.Cleanup(func() { e.scale(t, "cluster-2", w, 1) })
		}
		waittest.NoError(t, "the target's share fails", func() error {
			all, err := e.send(t.Context(), from, app.Call{URL: reviews, Count: count})
			if err != nil {
				return err
			}
			if all[remoteV3] > 0 || all[localV1]+all[localV2]+all.failed().total() != count {
				return fmt.Errorf("%v", all)
			}
			return withinFourSigma(all.failed().total(), count, 0.75)
		})
		e.reports(t, snapshot.SubsetEmpty)
	}

	e.during(t, virtualDestination("reviews", "http", 9080))
	e.apply(t, strings.Replace(shift(75, 15, 10), "kubeService: {name: reviews, namespace: bookinfo, clusterName: cluster-2, subset: {version: v3}}", "virtualDestination: {name: reviews, namespace: gloo-mesh}", 1))
	t.Cleanup(func() { e.apply(t, shift(75, 15, 10)) })
	waittest.NoError(t, "no request fails with a VirtualDestination", func() error {
		all, err := e.send(t.Context(), from, app.Call{URL: reviews, Count: count})
		if err == nil && len(all.failed()) > 0 {
			err = fmt.Errorf("%v", all)
		}
		return err
	})
}

// frozen ends the API server of a target's cluster: its pods go on, so nothing
// changes for callers, and edits that need nothing of that cluster reach them.
func frozen(t *testing.T, e *environment, from proxies.Pod) {
	t.Helper()
	l := e.under(t, from, reviews, 200)
	l.seen(t, remoteV3)
	require.NoError(t, e.clusters["cluster-2"].Kill(t.Context(), local.APIServer))
	t.Cleanup(func() { e.up(t) })
	e.reports(t, snapshot.ClusterFrozen)
	for _, share := range []int{25, 75} {
		e.apply(t, shift(share, 60, 40))
		waittest.NoError(t, fmt.Sprintf("a share of %d", share), func() error {
			all, err := e.send(t.Context(), from, app.Call{URL: reviews, Count: 400})
			if err != nil {
				return err
			}
			return withinFourSigma(all[remoteV3], 400, float64(share)/float64(share+100))
		})
	}
	e.apply(t, shift(75, 15, 10))
	l.clean(t)
}

// noService deletes the Service that a target names: the other targets get its share,
// the rest of the policy stays, and the shift is complete again with the Service.
func noService(t *testing.T, e *environment, from proxies.Pod) {
	t.Helper()
	client, err := e.clusters["cluster-2"].Client()
	require.NoError(t, err)
	service, err := client.Get(t.Context(), kube.Services(), "bookinfo", "reviews")
	require.NoError(t, err)
	service.SetResourceVersion("")
	service.SetUID("")
	service.SetManagedFields(nil)
	const rate = 200
	l := e.under(t, from, reviews, rate)
	l.seen(t, remoteV3)
	require.NoError(t, client.Delete(t.Context(), kube.Services(), "bookinfo", "reviews"))
	begin := time.Now()
	back := func() { require.NoError(t, client.Apply(context.WithoutCancel(t.Context()), service)) }
	t.Cleanup(back)
	waittest.NoError(t, "the others get its share", func() error {
		all, err := e.send(t.Context(), from, app.Call{URL: reviews, Count: 2000})
		if err != nil {
			return err
		}
		if len(all.failed()) > 0 || all[remoteV3] > 0 {
			return fmt.Errorf("%v", all)
		}
		return withinFourSigma(all[localV1], 2000, 0.6)
	})
	took := time.Since(begin)
	all := l.stop()
	t.Logf("callers without the Service for %s; %d requests failed of %d", took.Round(time.Millisecond), all.failed().total(), all.total())
	// The cluster forgets the Service at once. What leads to its pods stays until callers
	// know; at most the share of a second is lost.
	assert.LessOrEqual(t, beyond(all.failed().total(), l.control.stop().failed().total()), rate*75/100)
	back()
	waittest.NoError(t, "the shift is complete again", func() error { return e.shares(t.Context(), from) })
}

// scale sets the number of pods of a Deployment, and waits until they run.
func (e *environment) scale(t *testing.T, cluster, deployment string, replicas int) {
	t.Helper()
	config, err := e.clusters[cluster].Config()
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	ctx := context.WithoutCancel(t.Context())
	_, err = client.Resource(kube.Deployments()).Namespace("bookinfo").Patch(ctx, deployment, "application/merge-patch+json",
		[]byte(fmt.Sprintf(`{"spec": {"replicas": %d}}`, replicas)), metav1.PatchOptions{FieldManager: "scaler"})
	require.NoError(t, err)
	waittest.NoError(t, "pods run", func() error { return e.ready(ctx, cluster, deployment, replicas) })
}
