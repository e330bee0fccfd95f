package top

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

func number(n float64) *float64 { return &n }

func service(name, cluster string) traffic.Peer {
	return traffic.Peer{Ref: snapshot.Ref{Kind: snapshot.Destination, Namespace: "gloo-mesh", Name: name + "-shop-" + cluster}, Name: name, Namespace: "shop", Cluster: cluster}
}

func workload(name, cluster string) traffic.Peer {
	return traffic.Peer{Ref: snapshot.Ref{Kind: snapshot.Workload, Namespace: "gloo-mesh", Name: name + "-shop-" + cluster + "-deployment"}, Name: name, Namespace: "shop", Cluster: cluster}
}

// reports are what meshctl serve answers, by question.
func reports() map[traffic.By]*traffic.Report {
	at := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	report := func(rows ...traffic.Row) *traffic.Report {
		return &traffic.Report{At: at, Since: at.Add(-time.Hour), Seconds: 900, Read: 5, Proxies: 7, Rows: rows, Clusters: []traffic.ClusterReport{{Cluster: "cluster-2", Door: traffic.Agent, Read: 2, Proxies: 2, Dropped: 1}}}
	}
	failing := traffic.Numbers{
		Requests: 90_000, PerSecond: 100, Success: number(97.456), P50: number(5), P95: number(250), P99: number(traffic.MostLatency), Retries: 12, Refused: 1200, Denied: 7,
		Answers: map[string]uint64{"2xx": 87_710, "5xx": 2290}, Failures: map[string]uint64{"timeout": 2000, "connect": 290},
	}
	well := traffic.Numbers{Requests: 9, PerSecond: 0.01, Success: number(100), P50: number(1), P95: number(5), P99: number(2500), Answers: map[string]uint64{"2xx": 9}}
	caller, remote := workload("front", "cluster-1"), workload("front", "cluster-2")
	others := traffic.Peer{}
	return map[traffic.By]*traffic.Report{
		traffic.ByDestination: report(
			traffic.Row{To: service("cart", "cluster-1"), State: traffic.HasNumbers, Doors: []traffic.Door{traffic.Agent, traffic.Scrape}, Trend: []uint64{0, 1, 5000, 9000, 12_000, 64_000}, Numbers: failing},
			traffic.Row{To: service("cart", "cluster-2"), State: traffic.HasNumbers, Doors: []traffic.Door{traffic.Prometheus}, Numbers: well},
			traffic.Row{To: traffic.Peer{}, State: traffic.HasNumbers, Numbers: traffic.Numbers{Connections: 3}},
			traffic.Row{To: service("ledger", "cluster-3"), State: traffic.NoData, Reason: traffic.NotAllowed, Detail: "its account is system:serviceaccount:gloo-mesh:cluster-3"},
			traffic.Row{To: service("stock", "cluster-1"), State: traffic.NoTraffic},
		),
		traffic.ByWorkload: report(
			traffic.Row{To: workload("cart-v1", "cluster-1"), State: traffic.HasNumbers, Numbers: failing},
			traffic.Row{To: workload("ledger", "cluster-3"), State: traffic.NoData, Reason: traffic.Relayed},
			traffic.Row{To: workload("stock", "cluster-1"), State: traffic.NoTraffic, Reason: traffic.Failed, Detail: "1 of 3 proxies were read"},
		),
		traffic.ByEdge: report(
			traffic.Row{From: &caller, To: service("cart", "cluster-1"), Port: 80, Subset: "v1", Via: "local", State: traffic.HasNumbers, Numbers: failing},
			traffic.Row{From: &remote, To: service("cart", "cluster-1"), Port: 80, Via: "gateway", State: traffic.HasNumbers, Doors: []traffic.Door{traffic.Agent}, Numbers: well},
			traffic.Row{From: &others, To: service("cart", "cluster-1"), State: traffic.HasNumbers, Numbers: well},
		),
	}
}

// serving answers as meshctl serve does, and keeps what it was asked.
func serving(t *testing.T) (url string, asked *string) {
	t.Helper()
	asked = new(string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.URL.String()
		_ = json.NewEncoder(w).Encode(reports()[traffic.By(r.URL.Query().Get("by"))])
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

// shown is what the command prints on a terminal of a width; 0 is no terminal.
func shown(t *testing.T, width int, args ...string) (out, errs string, err error) {
	t.Helper()
	streams, _, o, e := cmdutil.TestStreams()
	streams.OutTTY, streams.ErrTTY = width > 0, width > 0
	if width > 0 {
		streams.Width, streams.ErrWidth = width, width
	}
	url, _ := serving(t)
	cmd := NewCmd(&cmdutil.Factory{Streams: streams, Now: time.Now}, nil)
	cmd.SetArgs(append(args, "--server", url))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

// TestGoldenWidths: the less important columns go where there is no room, and no line is too long.
func TestGoldenWidths(t *testing.T) {
	t.Parallel()
	for by := range reports() {
		for _, width := range []int{0, 60, 80, 120} {
			out, errs, err := shown(t, width, string(by))
			require.NoError(t, err)
			golden.File(t, fmt.Sprintf("testdata/%s-%d.txt", by, width), out+"\n"+errs)
			for line := range strings.Lines(out) {
				if width >= 80 {
					assert.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), width, "%s", by)
				}
			}
		}
	}
	out, _, err := shown(t, 0, "edges", "-o", "json")
	require.NoError(t, err)
	got := &traffic.Report{}
	require.NoError(t, json.Unmarshal([]byte(out), got))
	assert.Equal(t, reports()[traffic.ByEdge], got, "nothing is lost on the way")
}

// TestFailBelow is for pipelines.
func TestFailBelow(t *testing.T) {
	t.Parallel()
	_, errs, err := shown(t, 0, "--fail-below", "99.5")
	require.ErrorIs(t, err, cmdutil.ErrFindings)
	assert.Contains(t, errs, "Less than 99.5 % succeed: cart in cluster-1: 97.46 %")
	assert.NotContains(t, errs, "cart in cluster-2")
	_, _, err = shown(t, 0, "--fail-below", "97")
	require.NoError(t, err)
	o := &Options{FailBelow: 90}
	o.Streams, _, _, _ = cmdutil.TestStreams()
	require.ErrorIs(t, o.judge(&traffic.Report{Rows: []traffic.Row{{State: traffic.NoData}, {State: traffic.NoTraffic}}}), cmdutil.ErrFindings, "nothing is known to succeed")
}

// TestWatch prints again until it is interrupted.
func TestWatch(t *testing.T) {
	t.Parallel()
	for format, separator := range map[cmdutil.Format]string{cmdutil.FormatTable: "\n\nSERVICE", cmdutil.FormatYAML: "---\n", cmdutil.FormatJSON: "}\n{"} {
		ctx, cancel := context.WithCancel(t.Context())
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked == 3 {
				cancel()
			}
			_ = json.NewEncoder(w).Encode(reports()[traffic.ByDestination])
		}))
		o := &Options{Now: time.Now, Watch: true, every: time.Millisecond, Query: traffic.Query{By: traffic.ByDestination, Window: traffic.Kept}}
		streams, _, out, _ := cmdutil.TestStreams()
		o.Streams, o.Output.Format, o.Source = streams, format, cmdutil.Source{Server: server.URL, Factory: &cmdutil.Factory{Streams: streams}}
		require.NoError(t, run(ctx, o))
		server.Close()
		assert.GreaterOrEqual(t, strings.Count(out.String(), separator), 1, format)
	}
}

// TestFlags: what is wrong is said before anybody is asked.
func TestFlags(t *testing.T) {
	t.Parallel()
	for want, args := range map[string][]string{
		"pods: want one of destinations": {"pods"}, "--window 1s": {"--window", "1s"}, "--window 1h": {"--window", "1h"},
		"--sort x": {"--sort", "x"}, "--fail-below 101": {"--fail-below", "101"}, "[fail-below watch]": {"--watch", "--fail-below", "5"},
	} {
		_, _, err := shown(t, 0, args...)
		require.ErrorContains(t, err, want)
	}
	url, asked := serving(t)
	streams, _, _, _ := cmdutil.TestStreams()
	cmd := NewCmd(&cmdutil.Factory{Streams: streams, Now: time.Now}, nil)
	cmd.SetArgs([]string{"edges", "--server", url + "/", "--from", "a", "--to", "b", "--cluster", "c", "--in-namespace", "d", "--window", "1m", "--sort", "p99"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	assert.Equal(t, "/traffic?by=edges&cluster=c&from=a&namespace=d&sort=p99&to=b&window=1m0s", *asked)
}
