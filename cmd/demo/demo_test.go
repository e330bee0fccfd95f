package demo

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/schematest"
	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
)

func TestNewCmd(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		dir, runtime, wantErr string
		osm                   bool
		args                  []string
	}{
		"up":                       {runtime: "local"},
		"up --dir d --runtime x":   {dir: "d", runtime: "x"},
		"status --dir d -o json":   {dir: "d", runtime: "local"},
		"down --dir d":             {dir: "d", runtime: "local"},
		"kubeconfig":               {runtime: "local"},
		"prepare":                  {runtime: "local"},
		"prepare --osm":            {runtime: "local", osm: true},
		"up --proxies on":          {runtime: "local"},
		"call a http://b -n 5":     {runtime: "local", args: []string{"a", "http://b"}},
		"call a b:1 --expect 200":  {runtime: "local", args: []string{"a", "b:1"}},
		"call a b:1 --fail -w":     {wantErr: "none of the others can be"},
		"call a":                   {wantErr: "URL is required"},
		"break a --fail --dir d":   {runtime: "local", dir: "d", args: []string{"a"}},
		"break a --fail 503":       {wantErr: "--fail=503"},
		"break a":                  {wantErr: "at least one of the flags"},
		"break --kill":             {wantErr: "WORKLOAD|relay is required"},
		"repair":                   {runtime: "local"},
		"repair a":                 {runtime: "local", args: []string{"a"}},
		"repair a b":               {wantErr: "unexpected argument"},
		"up --osm":                 {wantErr: "unknown flag"},
		"up now":                   {wantErr: "takes no arguments"},
		"down --runtime something": {wantErr: "unknown flag"},
	}
	for line, c := range cases {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			streams, _, _, _ := cmdutil.TestStreams()
			var got *Options
			cmd := NewCmd(cmdutil.NewFactory(streams), func(_ context.Context, o *Options) error { got = o; return nil })
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(strings.Fields(line))
			err := cmd.Execute()
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.dir, got.Dir)
			assert.Equal(t, c.runtime, got.Runtime)
			assert.Equal(t, c.osm, got.OSM)
			if len(c.args) > 0 {
				assert.Equal(t, c.args, got.args)
			}
		})
	}
}

// TestNoDemo: what each subcommand says where there is none.
func TestNoDemo(t *testing.T) {
	t.Parallel()
	streams, _, out, errs := cmdutil.TestStreams()
	opts := &Options{Streams: streams, Dir: t.TempDir() + "/none"}
	opts.args = []string{"a", "http://b"}
	opts.call = callOptions{count: 1, callers: 1, timeout: time.Second}
	opts.fault = breakOptions{kill: true}
	for _, run := range []func(context.Context, *Options) error{statusRun, kubeconfigRun, callRun, breakRun, repairRun} {
		err := run(t.Context(), opts)
		require.ErrorContains(t, err, "start one with `meshctl demo up`")
		assert.Equal(t, cmdutil.ExitNotFound, cmdutil.ExitCode(err))
	}
	require.NoError(t, downRun(t.Context(), opts), "it is down, which is what was asked for")
	assert.Equal(t, "No demo is running.\n", errs.String())
	assert.Empty(t, out.String())
}

func TestCallFlags(t *testing.T) {
	t.Parallel()
	valid := callOptions{count: 10, callers: 20, timeout: time.Second, method: "POST", headers: []string{"End-User: jason", "A:b:c"}}
	call, err := valid.requests("http://reviews:9080")
	require.NoError(t, err)
	assert.Equal(t, app.Call{
		URL: "http://reviews:9080", Method: "POST", Count: 10, Parallel: 10, TimeoutMs: 1000,
		Headers: http.Header{"End-User": {"jason"}, "A": {"b:c"}},
	}, call)
	watching := valid
	watching.watch = true
	call, err = watching.requests("tcp://reviews:9080")
	require.NoError(t, err)
	assert.Zero(t, call.Count)
	assert.Equal(t, watchRate, call.Rate)

	for wantErr, change := range map[string]func(*callOptions){
		"must be positive":      func(o *callOptions) { o.count = 0 },
		"--rate must not":       func(o *callOptions) { o.rate = -1 },
		"want 'NAME: VALUE'":    func(o *callOptions) { o.headers = []string{"nothing"} },
		"is not an HTTP method": func(o *callOptions) { o.method = "G ET" },
	} {
		broken := valid
		change(&broken)
		_, err := broken.requests("http://reviews:9080")
		require.ErrorContains(t, err, wantErr)
		assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
	}
	for _, url := range []string{"reviews", "http://", "http://a b", "tcp://reviews", "ftp://reviews:21"} {
		_, err := valid.requests(url)
		require.ErrorContains(t, err, "http://HOST:PORT/PATH")
		assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
	}
	call, err = valid.requests("reviews:9080/reviews/1")
	require.NoError(t, err)
	assert.Equal(t, "http://reviews:9080/reviews/1", call.URL, "as for why")
	for status, url := range map[int]string{7: "http://reviews:9080", 600: "http://reviews:9080", 200: "tcp://reviews:9080"} {
		expecting := valid
		expecting.verdict.expect = status
		_, err := expecting.requests(url)
		require.ErrorContains(t, err, "--expect")
		assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
	}
}

func TestVerdictOnTraffic(t *testing.T) {
	t.Parallel()
	traffic := demo.Traffic{Requests: 10, Answers: []demo.Answer{
		{Workload: "reviews-v1", Status: 200, Count: 6}, {Workload: "reviews-v2", Status: 503, Count: 2}, {Status: 403, Error: "RBAC: access denied", Count: 1}, {Error: "timeout", Count: 1},
	}}
	require.NoError(t, verdict{}.of(traffic))
	require.ErrorContains(t, verdict{fail: true}.of(traffic), "4 of 10 requests did not get an answer without an error")
	require.ErrorContains(t, verdict{expect: 200}.of(traffic), "4 of 10 requests did not get status 200")
	require.ErrorContains(t, verdict{expect: 403}.of(traffic), "9 of 10")
	traffic.Answers = traffic.Answers[:1]
	require.NoError(t, verdict{fail: true}.of(traffic))
	require.NoError(t, verdict{expect: 200}.of(traffic))
	assert.Equal(t, cmdutil.ExitFailure, cmdutil.ExitCode(verdict{expect: 201}.of(traffic)))
	tcp := demo.Traffic{Requests: 1, Answers: []demo.Answer{{Workload: "db", Count: 1}}}
	require.NoError(t, verdict{fail: true}.of(tcp))
}

func TestTrafficTable(t *testing.T) {
	t.Parallel()
	traffic := demo.Traffic{Requests: 4, Answers: []demo.Answer{
		{Workload: "reviews-v3", Cluster: "cluster-2", Pod: "reviews-v3-x", Status: 200, Count: 3, P50Ms: 1.25, P99Ms: 4},
		{Status: 403, Error: "RBAC: access denied", Count: 1, P50Ms: 0.5, P99Ms: 0.5},
	}}
	var out strings.Builder
	require.NoError(t, cmdutil.PrintJSON(&out, traffic))
	schematest.Valid(t, "demo call", out.String())
	out.Reset()
	require.NoError(t, trafficTable(traffic).Print(&out))
	assert.Equal(t, strings.TrimPrefix(`
CLUSTER     WORKLOAD     POD            STATUS   REQUESTS   SHARE    P50      P99      ERROR
cluster-2   reviews-v3   reviews-v3-x   200      3          75.0 %   1.2 ms   4.0 ms   -
-           -            -              403      1          25.0 %   0.5 ms   0.5 ms   RBAC: access denied
`, "\n"), out.String())
	traffic.Answers[1] = demo.Answer{Error: "timeout", Count: 1}
	out.Reset()
	require.NoError(t, trafficTable(traffic).Print(&out))
	assert.Contains(t, out.String(), "\n-           -            -              -        1  ", "no answer has no status")
	traffic.Answers[1] = demo.Answer{Status: 403, Error: "RBAC: access denied", Count: 1}
	assert.Equal(t, "75 % cluster-2 reviews-v3, 25 % 403 from a proxy (RBAC: access denied)", shares(traffic))
}
