package accesslogs

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/accesslog"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// report is what meshctl serve answers.
func report() *accesslog.Report {
	at := time.Date(2026, 7, 1, 12, 0, 0, 123_000_000, time.UTC)
	entry := func(n int, from, to string, code uint32, method, path, took string, flags ...string) accesslog.Entry {
		e := accesslog.Entry{WorkloadRef: commonv1.ClusterObjectRef{Name: "front-v1", Namespace: "shop", ClusterName: "cluster-1"}, Pod: "front-v1-6d5f-x", From: from, To: to, Records: []string{"books.gloo-mesh"}}
		e.HTTP.Common = accesslog.Common{StartTime: at.Add(time.Duration(n) * time.Second), Took: took, Flags: flags, DownstreamRemoteAddress: &accesslog.Address{SocketAddress: accesslog.SocketAddress{Address: "10.0.0.7", PortValue: 40000}}}
		e.HTTP.Request = accesslog.Request{RequestMethod: method, Path: path, Authority: "cart.shop:9080", RequestID: fmt.Sprint(n), Headers: map[string]string{"x-user": "ada"}}
		e.HTTP.Response.ResponseCode = code
		return e
	}
	return &accesslog.Report{
		Since: at.Add(-time.Hour), Next: 40, More: 3, Missed: 12,
		Entries: []accesslog.Entry{
			entry(0, "front-v1.shop.cluster-1", "cart.shop.cluster-1", 200, "GET", "/cart/7?token=(redacted)", "0.001234s"),
			entry(1, "front-v1.shop.cluster-1", "cart.shop.cluster-2", 503, "POST", "/cart", "1.500000s", "UF", "URX"),
			entry(2, "checkout.shop", "front-v1.shop.cluster-1", 0, "GET", "/a\x1b[2Jb", "", "DC"),
			entry(3, "front-v1.shop.cluster-1", "", 404, "GET", "/", "0.000100s", "NR"),
		},
		Records: []accesslog.RecordReport{
			{Name: "books", Namespace: "gloo-mesh", State: "ACCEPTED", Workloads: 2, Logging: 1, Issues: []snapshot.Issue{
				snapshot.Warnf(snapshot.LogsMissing, "run `meshctl telemetry enable cluster-2 --door push`", "no log comes from 1 of 2 workloads: the agent of cluster cluster-2 does not take what proxies send"),
			}},
		},
		Clusters: []accesslog.ClusterReport{{Cluster: "cluster-1", Proxies: 1, Dropped: 300, Rejected: 12}},
	}
}

// serving answers as meshctl serve does, and keeps what it was asked.
func serving(t *testing.T, answers ...*accesslog.Report) (url string, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, r.URL.String())
		_ = json.NewEncoder(w).Encode(answers[min(len(all), len(answers))-1])
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

// shown is what the command prints on a terminal of a width; 0 is no terminal.
func shown(t *testing.T, width int, answer *accesslog.Report, args ...string) (out, errs string, err error) {
	t.Helper()
	streams, _, o, e := cmdutil.TestStreams()
	streams.OutTTY, streams.ErrTTY = width > 0, width > 0
	if width > 0 {
		streams.Width, streams.ErrWidth = width, width
	}
	url, _ := serving(t, answer)
	cmd := NewCmd(&cmdutil.Factory{Streams: streams, Now: time.Now}, nil)
	cmd.SetArgs(append(args, "--server", url))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return o.String(), e.String(), err
}

// TestGoldenWidths: the less important columns go where there is no room, and nothing acts on the terminal.
func TestGoldenWidths(t *testing.T) {
	t.Parallel()
	for _, width := range []int{0, 60, 80, 120} {
		out, errs, err := shown(t, width, report())
		require.NoError(t, err)
		golden.File(t, fmt.Sprintf("testdata/accesslogs-%d.txt", width), out+"\n"+errs)
		assert.NotContains(t, out, "\x1b[2J")
		for line := range strings.Lines(out) {
			if width >= 80 {
				assert.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), width)
			}
		}
	}
	out, errs, err := shown(t, 80, &accesslog.Report{Since: report().Since})
	require.NoError(t, err)
	golden.File(t, "testdata/none-80.txt", out+"\n"+errs)
	out, _, err = shown(t, 0, report(), "-o", "json")
	require.NoError(t, err)
	got := &accesslog.Report{}
	require.NoError(t, json.Unmarshal([]byte(out), got))
	assert.Equal(t, report().Entries, got.Entries, "nothing is lost on the way")
}

// TestWatch goes on after what it has, says what it leaves out, and begins again with another leader.
func TestWatch(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	one := func(next uint64, path string, more int) *accesslog.Report {
		r := report()
		r.Entries, r.Next, r.More, r.Missed = r.Entries[1:2], next, more, 0
		r.Entries[0].HTTP.Request.Path = path
		return r
	}
	none := &accesslog.Report{Next: 41}
	streams, _, out, errs := cmdutil.TestStreams()
	url, asked := serving(t, one(40, "/first", 0), one(41, "/second", 7), none, &accesslog.Report{Next: 2}, one(3, "/third", 0), none)
	o := &Options{Streams: streams, Now: time.Now, Watch: true, MaxRPS: 100, every: time.Millisecond, Query: accesslog.Query{Name: "books", Limit: 50}}
	o.Output.Format, o.Source = cmdutil.FormatTable, cmdutil.Source{Server: url, Factory: &cmdutil.Factory{Streams: streams}}
	done := make(chan error, 1)
	go func() { done <- run(ctx, o) }()
	require.Eventually(t, func() bool { return len(asked()) > 6 }, waittest.Limit(), time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	text := out.String()
	assert.Equal(t, 1, strings.Count(text, "STATUS"), "one header")
	for _, path := range []string{"/first", "/second", "/third"} {
		assert.Equal(t, 1, strings.Count(text, path), path)
	}
	assert.Contains(t, errs.String(), "… 7 requests left out; --max-rps prints more")
	assert.Equal(t, []string{
		"/accesslogs?limit=50&name=books", "/accesslogs?after=40&limit=1&name=books", "/accesslogs?after=41&limit=1&name=books",
		"/accesslogs?after=41&limit=1&name=books", "/accesslogs?limit=1&name=books",
	}, asked()[:5])
}

// TestFlags are asked as they are said.
func TestFlags(t *testing.T) {
	t.Parallel()
	url, asked := serving(t, report())
	streams, _, _, _ := cmdutil.TestStreams()
	cmd := NewCmd(&cmdutil.Factory{Streams: streams, Now: time.Now}, nil)
	cmd.SetArgs([]string{"cart", "--server", url + "/", "--from", "a", "--to", "b", "--cluster", "c", "--in-namespace", "d", "--status", ">=500", "--method", "GET", "--path", "/e", "--header", "f=g", "--header", "h", "--limit", "7"})
	require.NoError(t, cmd.ExecuteContext(t.Context()))
	assert.Equal(t, []string{"/accesslogs?cluster=c&from=a&header=f%3Dg&header=h&limit=7&method=GET&name=cart&namespace=d&path=%2Fe&status=%3E%3D500&to=b"}, asked())
}
