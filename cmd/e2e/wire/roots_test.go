package wire

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// roots gives the second mesh a root of its own: no request between the clusters
// passes, and meshctl says so before anybody asks.
func roots(t *testing.T, e *environment) {
	t.Helper()
	// Without a plugged-in authority, istiod creates its own.
	require.NoError(t, os.RemoveAll(filepath.Join(e.options.Dir, "cluster-2", "istiod", "etc", "cacerts")))
	require.NoError(t, e.clusters["cluster-2"].Restart(t.Context(), local.Istiod))
	e.reports(t, snapshot.RootsDiffer)
	// Pods get certificates of the new root when they start.
	client, err := e.clusters["cluster-2"].Client()
	require.NoError(t, err)
	for _, namespace := range []string{"bookinfo", "istio-system"} {
		pods, err := client.List(t.Context(), kube.Pods(), namespace)
		require.NoError(t, err)
		for _, p := range pods {
			require.NoError(t, client.Delete(t.Context(), kube.Pods(), namespace, p.GetName()))
		}
	}
	waittest.NoError(t, "requests pass within each cluster, and not between them", func() error {
		pods, err := e.plane.Pods(t.Context())
		if err != nil {
			return err
		}
		const ratings = "http://ratings:9080"
		for _, from := range pods {
			if from.Workload != "reviews-v1" {
				continue
			}
			if err := e.allAre(t.Context(), from, proxies.Call{URL: ratings, Count: 5}, from.Cluster+" ratings-v1"); err != nil {
				return err
			}
		}
		all, err := e.send(t.Context(), e.pod(t, "cluster-1", "productpage-v1"), proxies.Call{URL: "http://ratings.bookinfo.svc.cluster-2.global:9080", Count: 10})
		if n := countIf(all, func(name string) bool { return strings.Contains(name, "remote connection failure") }); err == nil && n != 10 {
			err = fmt.Errorf("between clusters: %v", all)
		}
		return err
	})
}
