package serve

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// endpoints are those of a process whose loop, if any, is given.
func endpoints(l *loop, leading bool, holder string) http.Handler {
	return healthOf(l, leading, holder).handler()
}

// debugging is the debug endpoints, without a guard.
func debugging(l *loop) http.Handler { return healthOf(l, true, "").debugHandler() }

func healthOf(l *loop, leading bool, holder string) *health {
	collectors := prometheus.NewRegistry()
	h := &health{
		metrics: func() prometheus.Gatherer { return collectors }, leader: &leadership{},
		loop: func() *loop { return l }, waiting: func() string { return "it is early" }, unread: func() string { return "" },
	}
	h.leader.leading.Store(leading)
	if holder != "" {
		h.leader.other.Store(&holder)
	}
	expires := []cluster.CredentialStatus{{Cluster: "west", Lifetime: cluster.Lifetime{Expires: time.Unix(1e9, 0)}}, {Cluster: "east"}}
	fresh := []watch.Freshness{{Age: 3 * time.Second}, {Cluster: "west", Age: 90 * time.Second, Silences: 2, Collected: 7}}
	collectors.MustRegister(newStateCollector(h.state,
		func() []cluster.CredentialStatus { return expires }, func() []watch.Freshness { return fresh }, h.leader.leading.Load))
	return h
}

// translated is a loop that has translated something.
func translated() *loop {
	l := &loop{}
	l.state.Store(&snapshot.State{
		Input: &snapshot.Input{
			Management: &snapshot.Management{Namespace: "gloo-mesh"},
			Clusters:   []*snapshot.Cluster{{Name: "west", Sync: snapshot.Stale, Reason: "gone"}},
			Failures:   []snapshot.Failure{{Ref: snapshot.Ref{Kind: snapshot.Gateway, Cluster: "west", Namespace: "a", Name: "b"}, Reason: snapshot.Reason{Code: snapshot.WriteFailed, What: "no"}}},
		},
		Output: &snapshot.Output{
			Parts: snapshot.ListOf([]*snapshot.Part{{Key: "p", Objects: []*snapshot.Object{
				{Ref: snapshot.Ref{Kind: snapshot.Gateway, Cluster: "west", Namespace: "a", Name: "b"}, Content: &snapshot.Content{Spec: map[string]string{"k": "v"}}},
				{Ref: snapshot.Ref{Kind: snapshot.Secret, Cluster: "west", Namespace: "a", Name: "s"}, Content: &snapshot.Content{Spec: map[string]string{"k": "hush"}}},
			}}}),
			Issues: []snapshot.Issue{{Code: snapshot.ClusterFrozen, Severity: snapshot.Warning, Ref: snapshot.Ref{Kind: snapshot.KubernetesCluster, Name: "west"}, Message: "frozen"}},
		},
	})
	return l
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	stuck := translated()
	stuck.started.Store(1)
	for name, test := range map[string]struct {
		handler http.Handler
		path    string
		code    int
		has     []string
	}{
		"starting":             {endpoints(nil, false, ""), "/readyz", 503, []string{"waiting for the Lease"}},
		"standing by":          {endpoints(nil, false, "other"), "/readyz", 200, []string{"the leader is other"}},
		"leading, not yet":     {endpoints(&loop{}, true, "me"), "/readyz", 503, []string{"not ready: it is early"}},
		"ready":                {endpoints(translated(), true, "me"), "/readyz", 200, []string{"ok"}},
		"healthy":              {endpoints(nil, false, ""), "/healthz", 200, []string{"ok"}},
		"healthy, with issues": {endpoints(translated(), true, "me"), "/healthz", 200, []string{"ok; 1 warning (meshctl describe problems)"}},
		"stuck":                {endpoints(stuck, true, ""), "/healthz", 500, []string{"running for more than 2m0s"}},
		"nothing yet":          {debugging(&loop{}), "/debug/snapshot", 503, []string{"no translation has finished yet"}},
		"input":                {debugging(translated()), "/debug/snapshot?part=input", 200, []string{`"sync": "stale"`, `"reason": "gone"`, `"pods": 0`, `"code": "WriteFailed"`}},
		"output":               {debugging(translated()), "/debug/snapshot?part=output", 200, []string{`"kind": "Gateway"`, `"k": "v"`}},
		"issues":               {debugging(translated()), "/debug/snapshot?part=issues", 200, []string{`"code": "ClusterFrozen"`}},
		"all":                  {debugging(translated()), "/debug/snapshot", 200, []string{`"input"`, `"output"`, `"issues"`}},
		"other part":           {debugging(translated()), "/debug/snapshot?part=x", 400, []string{"choose input, output or issues"}},
		"index":                {endpoints(nil, false, ""), "/", 200, []string{"/metrics"}},
		"no debug endpoint":    {endpoints(translated(), true, ""), "/debug/snapshot", 404, nil},
		"unknown":              {endpoints(nil, false, ""), "/nothing", 404, nil},
		"metrics before":       {endpoints(nil, false, ""), "/metrics", 200, []string{"meshctl_leader 0", `meshctl_cluster_age_seconds{cluster=""} 3`, `meshctl_cluster_age_seconds{cluster="west"} 90`, `meshctl_silent_watches_total{cluster="west"} 2`, `meshctl_collected_changes_total{cluster="west"} 7`, `meshctl_credential_expiry_timestamp_seconds{cluster="west"} 1e+09`}},
		"metrics of the state": {endpoints(translated(), true, ""), "/metrics", 200, []string{`meshctl_objects{cluster="west",kind="Gateway"} 1`, `meshctl_issues{code="ClusterFrozen",severity="warning"} 1`, `meshctl_cluster_sync{cluster="west",state="stale"} 1`, `meshctl_cluster_sync{cluster="west",state="synced"} 0`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := httptest.NewRecorder()
			test.handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, test.path, nil))
			require.Equal(t, test.code, w.Code)
			for _, text := range test.has {
				assert.Contains(t, w.Body.String(), text)
			}
			assert.NotContains(t, w.Body.String(), "hush")
			assert.NotContains(t, w.Body.String(), "east", "a credential without an end has no metric")
		})
	}
}

// TestPages are served beside the metrics, and listed.
func TestPages(t *testing.T) {
	t.Parallel()
	h := healthOf(nil, false, "")
	h.pages = map[string]http.Handler{"/traffic": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusTeapot, "edges") })}
	for path, want := range map[string]string{"/": "/metrics\n/healthz\n/readyz\n/traffic\n", "/traffic?by=edges": "edges\n"} {
		w := httptest.NewRecorder()
		h.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		assert.Equal(t, want, w.Body.String())
	}
	w := httptest.NewRecorder()
	h.handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/traffic", nil))
	assert.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

// TestGuarded are beside the debug endpoints, and answer only what is posted.
func TestGuarded(t *testing.T) {
	t.Parallel()
	h := healthOf(nil, false, "")
	h.guarded = map[string]http.Handler{"/v0/nodes": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusTeapot, "nodes") })}
	for method, want := range map[string]int{http.MethodPost: http.StatusTeapot, http.MethodGet: http.StatusMethodNotAllowed} {
		w := httptest.NewRecorder()
		h.debugHandler().ServeHTTP(w, httptest.NewRequest(method, "/v0/nodes", nil))
		assert.Equal(t, want, w.Code)
		w = httptest.NewRecorder()
		h.handler().ServeHTTP(w, httptest.NewRequest(method, "/v0/nodes", nil))
		assert.Equal(t, http.StatusNotFound, w.Code, "nothing is beside the metrics")
	}
}
