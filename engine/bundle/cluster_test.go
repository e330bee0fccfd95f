package bundle

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
)

// answers are those of an API server, with secrets in objects, environments, events and logs, by path.
var answers = map[string]string{
	"/apis/apps/v1/namespaces/gloo-mesh/deployments": `{"apiVersion":"apps/v1","kind":"DeploymentList","items":[{"metadata":{"namespace":"gloo-mesh","name":"meshctl",
		"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"PLANTED"}},"spec":{"replicas":2,"template":{"spec":{"containers":[{"name":"serve","image":"x/meshctl:1",
		"env":[{"name":"A","value":"PLANTED"}],"args":["--x=PLANTED"]}]}}},"status":{"readyReplicas":1,"conditions":[{"type":"Available","status":"False","reason":"MinimumReplicasUnavailable"}]}}]}`,
	"/api/v1/namespaces/gloo-mesh/pods": `{"apiVersion":"v1","kind":"PodList","items":[{"metadata":{"namespace":"gloo-mesh","name":"meshctl-0","annotations":{"a":"PLANTED"}},
		"spec":{"nodeName":"node-1","containers":[{"name":"serve","image":"x","env":[{"name":"A","value":"PLANTED"}]}]},
		"status":{"phase":"Running","containerStatuses":[{"name":"serve","image":"x/meshctl:1","restartCount":1,"state":{"running":{}},
		"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled","message":"password=PLANTED"}}}]}}]}`,
	"/api/v1/namespaces/gloo-mesh/events": `{"apiVersion":"v1","kind":"EventList","items":[
		{"metadata":{"name":"b"},"lastTimestamp":"2026-01-02T15:04:06Z","type":"Warning","reason":"BackOff","involvedObject":{"kind":"Pod","name":"meshctl-0"},"message":"later; token: PLANTED"},
		{"metadata":{"name":"a"},"lastTimestamp":"2026-01-02T15:04:05Z","type":"Normal","reason":"Pulled","involvedObject":{"kind":"Pod","name":"meshctl-0"},"message":"first"}]}`,
	"/apis/coordination.k8s.io/v1/namespaces/gloo-mesh/leases": `{"apiVersion":"coordination.k8s.io/v1","kind":"LeaseList","items":[{"metadata":{"namespace":"gloo-mesh","name":"meshctl"},"spec":{"holderIdentity":"meshctl-0"}}]}`,
}

// server answers as an API server; what is not in answers is forbidden.
func server(t *testing.T) kube.Clientset {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, found := answers[r.URL.Path]
		switch {
		case found:
			w.Header().Set("Content-Type", "application/json")
		case strings.HasSuffix(r.URL.Path, "/log") && r.URL.Query().Get("previous") == "true":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"previous terminated container not found","reason":"BadRequest","code":400}`))
			return
		case strings.HasSuffix(r.URL.Path, "/log"):
			text = "first line\nAuthorization: Bearer PLANTED-0123456789\n" + strings.Repeat("a line of the log\n", 100) + "tail=" + r.URL.Query().Get("tailLines") + " since=" + r.URL.Query().Get("sinceSeconds") + "\n"
		default:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","reason":"Forbidden","code":403}`))
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	client, err := kube.NewClientset(&rest.Config{Host: s.URL})
	require.NoError(t, err)
	return client
}

var limits = Limits{Lines: 5000, Bytes: 1 << 20, Since: time.Hour, Timeout: time.Minute}

func TestClusterIsCollectedWithoutSecrets(t *testing.T) {
	t.Parallel()
	b := New(time.Unix(1_800_000_000, 0), 1<<20)
	b.AddCluster(t.Context(), &Cluster{Name: Management, Client: server(t), Namespace: "gloo-mesh"}, limits)
	for name, part := range map[string]string{
		".support/management/deployments.yaml":                   "MinimumReplicasUnavailable",
		".support/management/pods.yaml":                          "OOMKilled",
		".support/management/events-gloo-mesh.yaml":              "BackOff",
		".support/management/leases-gloo-mesh.yaml":              "holder: meshctl-0",
		".support/management/logs/gloo-mesh/meshctl-0/serve.log": "tail=5000 since=3600",
	} {
		assert.Contains(t, string(b.Files[name]), part, name)
	}
	for name, text := range b.Files {
		assert.NotContains(t, string(text), "PLANTED", name)
	}
	events := string(b.Files[".support/management/events-gloo-mesh.yaml"])
	assert.Less(t, strings.Index(events, "first"), strings.Index(events, "later"), "the latest is last")
	require.Len(t, b.Index.Missing, 1)
	assert.Equal(t, "the log of container serve of pod gloo-mesh/meshctl-0 before its last restart", b.Index.Missing[0].What)
	assert.Contains(t, b.Index.Missing[0].Why, "previous terminated container not found")
	assert.Len(t, b.Files, len(b.Index.Files))
}

// TestWhatCannotBeReadIsSaid: each part for itself.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	t.Parallel()
	b := New(time.Now(), 1<<20)
	b.AddCluster(t.Context(), &Cluster{Name: "cluster-2", Client: server(t), Namespace: "elsewhere"}, limits)
	assert.Empty(t, b.Files)
	var what []string
	for _, m := range b.Index.Missing {
		what = append(what, m.What)
		assert.Equal(t, "cluster-2", m.Cluster)
		assert.Contains(t, m.Why, "you may not")
	}
	assert.Equal(t, []string{"the Deployments", "the pods and their logs", "the events of namespace elsewhere", "the Leases of namespace elsewhere"}, what)
}

// TestABundleIsBounded: the end of a text stays, and what is left out is said.
func TestABundleIsBounded(t *testing.T) {
	t.Parallel()
	b := New(time.Now(), 10)
	b.Add("a", []byte("0123456"))
	b.Add("b", []byte("0123456"))
	b.AddJSON("c", map[string]string{"a": "b"})
	assert.Equal(t, "0123456", string(b.Files[".support/a"]))
	assert.Equal(t, "456", string(b.Files[".support/b"]))
	assert.Equal(t, []File{{Name: ".support/a", Bytes: 7}, {Name: ".support/b", Bytes: 3, Cut: "its beginning: the bundle has no room left for it"}}, b.Index.Files)
	assert.Equal(t, []Missing{{What: "c", Why: "the bundle has no room left for it; allow more with --max-size"}}, b.Index.Missing)

	b = New(time.Now(), 1<<20)
	small := limits
	small.Bytes = 100
	b.AddCluster(t.Context(), &Cluster{Name: Management, Client: server(t), Namespace: "gloo-mesh"}, small)
	log := b.Index.Files[len(b.Index.Files)-1]
	assert.Equal(t, "what is after its first 100 bytes", log.Cut)
	assert.LessOrEqual(t, log.Bytes, int64(100))
}
