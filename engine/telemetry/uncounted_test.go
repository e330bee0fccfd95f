package telemetry

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	telemetryv1 "github.com/meshctl/meshctl/engine/api/telemetry/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// disabling is a Telemetry that disables a metric of a side; all metrics without a name.
func disabling(namespace, name, mode, metric string) *telemetryv1.Telemetry {
	disabled := true
	return &telemetryv1.Telemetry{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       telemetryv1.Spec{Metrics: []telemetryv1.Metrics{{Overrides: []telemetryv1.Override{{Match: &telemetryv1.Match{Mode: mode, Metric: metric}, Disabled: &disabled}}}}},
	}
}

// withTelemetry is the world of a fleet whose first cluster has a Telemetry, and whose second one does not say whether it has any.
func withTelemetry(of *telemetryv1.Telemetry) *snapshot.State {
	in := enginetest.World(enginetest.Size{Services: 2, Clusters: 2, FederateEvery: 1})
	in.Clusters[0].OfMeshes[snapshot.Telemetry] = []snapshot.APIObject{of}
	in.Clusters[1].Denied = []snapshot.Kind{snapshot.Telemetry}
	return engine.Translate(in)
}

// TestDisabledByTelemetry: what proxies do not count because of a Telemetry is no data, and names it; that they count the other side says
// nothing about this one.
func TestDisabledByTelemetry(t *testing.T) {
	t.Parallel()
	namespace := enginetest.Namespace(1)
	by := "Telemetry cluster-01/" + namespace + "/quiet"
	const ofClusters = "envoy_cluster_upstream_rq{cluster_name=\"inbound|80||\",response_code_class=\"2xx\"} 0\n"
	for name, c := range map[string]struct {
		telemetry *telemetryv1.Telemetry
		own       string
		// workload, sends and service are of the first cluster: what service-00001 gets, what it sends, and who calls it.
		workload, sends, service string
	}{
		"what is got":            {disabling(namespace, "quiet", "SERVER", ""), "istio_build 1\n", "no data DISABLED_BY_TELEMETRY " + by, "no traffic", "no traffic"},
		"what is sent":           {disabling(namespace, "quiet", "CLIENT", ""), "istio_build 1\n", "no traffic", "no data DISABLED_BY_TELEMETRY " + by, "no traffic DISABLED_BY_TELEMETRY of 6 workloads that may call it, 2 have no data"},
		"both, and nothing left": {disabling(namespace, "quiet", "", ""), "", "no data DISABLED_BY_TELEMETRY " + by, "no data DISABLED_BY_TELEMETRY " + by, "no data DISABLED_BY_TELEMETRY " + by},
		"requests":               {disabling(namespace, "quiet", "SERVER", "REQUEST_COUNT"), "istio_build 1\n", "no data DISABLED_BY_TELEMETRY " + by, "no traffic", "no traffic"},
		"connections":            {disabling(namespace, "quiet", "SERVER", "TCP_OPENED_CONNECTIONS"), "istio_build 1\n", "no traffic DISABLED_BY_TELEMETRY " + by + ", of connections", "no traffic", "no traffic"},
		"of clusters, it is not": {disabling(namespace, "quiet", "", ""), ofClusters, "no traffic", "no traffic", "no traffic"},
		"of another namespace":   {disabling("elsewhere", "quiet", "", ""), "istio_build 1\n", "no traffic", "no traffic", "no traffic"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, of := newFleet(), &Telemetry{}
				f.state, f.own = withTelemetry(c.telemetry), func(string) string { return c.own }
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- of.Run(ctx, f.options(prometheus.NewRegistry())) }()
				time.Sleep(time.Minute)
				report, _, _ := ask(t, of, "?by=all")
				cancel()
				require.NoError(t, <-ended)
				found := 0
				for i := range report.Rows {
					row := &report.Rows[i]
					if row.From != nil || row.To.Name != enginetest.Service(1) && row.To.Ref.Kind == snapshot.Destination {
						continue
					}
					switch {
					case row.To.Cluster == enginetest.Cluster(1) && row.To.Ref.Kind == snapshot.Workload && c.own == "istio_build 1\n":
						assert.Equal(t, traffic.Unread, row.Reason, "whether it has a Telemetry is not known: %+v", row)
					case row.To.Cluster != enginetest.Cluster(0) || row.To.Namespace != namespace:
					case row.To.Ref.Kind == snapshot.Destination:
						found++
						assert.Equal(t, c.service, spell(traffic.Known{State: row.State, Reason: row.Reason, Detail: row.Detail}))
					default:
						found++
						assert.Equal(t, c.workload, spell(traffic.Known{State: row.State, Reason: row.Reason, Detail: row.Detail}))
						assert.Equal(t, c.sends, spell(row.Sending()))
					}
				}
				require.Equal(t, 3, found)
			})
		})
	}
}

func spell(k traffic.Known) string {
	return strings.TrimSpace(fmt.Sprintf("%s %s", k.State, strings.TrimSpace(string(k.Reason)+" "+k.Detail)))
}
