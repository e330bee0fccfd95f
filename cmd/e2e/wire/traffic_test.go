package wire

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/traffic"
)

// countedWithin is how long it may take until requests are counted.
const countedWithin = 20 * time.Second

// seen is what meshctl serve counts.
type seen struct {
	*environment
	url string
}

// seen is what meshctl serve counts now.
func (e *environment) seen(t *testing.T) *seen {
	t.Helper()
	status, err := demo.Status(t.Context(), e.options)
	require.NoError(t, err)
	return &seen{e, "http://" + status.Metrics}
}

// report asks for what was counted.
func (s *seen) report(t *testing.T, by traffic.By) *traffic.Report {
	t.Helper()
	report, err := reading.Management{Server: s.url}.Traffic(t.Context(), traffic.Query{By: by, Window: traffic.Kept})
	require.NoError(t, err)
	return report
}

// edges are requests by edge, subset, way and class of the answer, of all callers.
func (s *seen) edges(t *testing.T) map[string]uint64 {
	t.Helper()
	out := map[string]uint64{}
	for _, row := range s.report(t, traffic.ByEdge).Rows {
		for class, n := range row.Answers {
			out[strings.Join(strings.Fields(fmt.Sprintf("%s/%s %s/%s %s %s %s", row.From.Cluster, row.From.Name, row.To.Cluster, row.To.Name, row.Subset, row.Via, class)), " ")] += n
		}
	}
	return out
}

// since are the numbers that came to those of before.
func since(before, now map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for name, n := range now {
		if n != before[name] {
			out[name] = n - before[name]
		}
	}
	return out
}

// counted: what is sent is what the proxies' numbers say, exactly, by edge, subset and class, here and in the other cluster.
func counted(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	// All proxies were read, and what requests of before is counted stands.
	waittest.NoError(t, "all proxies are read", func() error {
		if r := s.report(t, traffic.ByWorkload); r.Read != r.Proxies || r.Read == 0 {
			return fmt.Errorf("%d of %d: %+v", r.Read, r.Proxies, r.Rows)
		}
		return nil
	})
	s.settled(t)
	before := s.edges(t)
	denied, refused := s.denied(t, "ratings"), s.refused(t, "details", "ratings")

	want := map[string]uint64{}
	send := func(cluster, workload string, call app.Call, edge func(outcome string) string) {
		t.Helper()
		all, err := e.send(t.Context(), e.pod(t, cluster, workload), call)
		require.NoError(t, err)
		require.Equal(t, call.Count, all.total())
		for outcome, n := range all {
			want[cluster+"/"+workload+" "+edge(outcome)] += uint64(n)
		}
	}
	subsets := map[string]string{
		"cluster-1 reviews-v1": "cluster-1/reviews version-v1 local 2xx", "cluster-1 reviews-v2": "cluster-1/reviews version-v2 local 2xx",
		"cluster-2 reviews-v3": "cluster-2/reviews version-v3 gateway 2xx",
	}
	send("cluster-1", "productpage-v1", app.Call{URL: "http://reviews:9080", Count: 400}, func(outcome string) string { return subsets[outcome] })
	only := func(text string) func(string) string { return func(string) string { return text } }
	send("cluster-1", "productpage-v1", app.Call{URL: "http://details:9080", Count: 150}, only("cluster-1/details local 2xx"))
	send("cluster-1", "productpage-v1", app.Call{URL: "http://details:9080", Count: 37, Headers: fails(500, 1000)}, only("cluster-1/details local 5xx"))
	send("cluster-1", "details-v1", app.Call{URL: "http://ratings:9080", Count: 60}, only("cluster-1/ratings local 4xx"))
	send("cluster-2", "reviews-v1", app.Call{URL: "http://ratings:9080", Count: 80}, only("cluster-2/ratings local 2xx"))
	sent := time.Now()
	t.Log("sent:", want)
	require.NotContains(t, want, "cluster-1/productpage-v1 ", "each outcome has an edge")

	waittest.NoError(t, "all requests are counted", func() error {
		if got := since(before, s.edges(t)); !maps.Equal(want, got) {
			return fmt.Errorf("want %v, got %v", want, got)
		}
		return nil
	})
	took := time.Since(sent)
	t.Log("counted after", took)
	assert.Less(t, took, countedWithin)
	// Nothing is counted twice by the readings that follow.
	s.settled(t)
	assert.Equal(t, want, since(before, s.edges(t)))
	assert.Equal(t, uint64(60), s.denied(t, "ratings")-denied)
	assert.Equal(t, uint64(60), s.refused(t, "details", "ratings")-refused)
}

// settled waits until each proxy was read twice, without a request.
func (s *seen) settled(t *testing.T) {
	t.Helper()
	began := time.Now()
	waittest.Until(t, "two rounds of readings are over", func() bool { return time.Since(began) > 2*traffic.Point+5*time.Second })
}

// denied are the requests that workloads of a name in cluster-1 refused.
func (s *seen) denied(t *testing.T, name string) (n uint64) {
	t.Helper()
	for _, row := range s.report(t, traffic.ByWorkload).Rows {
		if row.To.Cluster == "cluster-1" && strings.HasPrefix(row.To.Name, name) {
			n += row.Denied
		}
	}
	return n
}

// refused are the requests from a workload to a service that its callers saw refused.
func (s *seen) refused(t *testing.T, from, to string) (n uint64) {
	t.Helper()
	for _, row := range s.report(t, traffic.ByEdge).Rows {
		if strings.HasPrefix(row.From.Name, from) && row.To.Name == to {
			n += row.Refused
		}
	}
	return n
}

// notCounted: where nobody may read the proxies, there is no data, with the reason, and no traffic is not said.
func notCounted(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	reasons := func() map[traffic.Reason]int {
		out := map[traffic.Reason]int{}
		for _, row := range s.report(t, traffic.ByWorkload).Rows {
			if row.To.Cluster == "cluster-2" && row.State == traffic.NoData {
				out[row.Reason]++
			}
		}
		return out
	}
	require.Empty(t, reasons())
	config, err := e.clusters["cluster-1"].Config()
	require.NoError(t, err)
	_, err = reading.Management{Config: config, Namespace: "gloo-mesh"}.Traffic(t.Context(), traffic.Query{By: traffic.ByEdge, Window: traffic.Kept})
	require.ErrorContains(t, err, "runs outside of the cluster", "the leader of the Lease is no pod")
	_, err = reading.Management{Config: config, Namespace: "bookinfo"}.Traffic(t.Context(), traffic.Query{By: traffic.ByEdge, Window: traffic.Kept})
	require.ErrorContains(t, err, "Lease bookinfo/meshctl: there is none")
	client, err := e.clusters["cluster-2"].Client()
	require.NoError(t, err)
	require.NoError(t, client.DeleteYAML(t.Context(), []byte(readProxies)))
	t.Cleanup(func() { require.NoError(t, client.ApplyYAML(context.WithoutCancel(t.Context()), []byte(readProxies))) })
	waittest.NoError(t, "the workloads of cluster-2 have no data", func() error {
		if got := reasons(); got[traffic.NotAllowed] == 0 {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
}

const readProxies = `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: meshctl-read-proxies}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: meshctl-read-proxies}
subjects:
- {kind: ServiceAccount, namespace: gloo-mesh, name: cluster-2}
`
