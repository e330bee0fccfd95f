package telemetry

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/accesslog"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// loggingPod is pod web-1 of a workload of west, whose door is push.
func loggingPod() *traffic.Pod {
	w := &discoveryv1.Workload{}
	w.Name, w.Namespace = "web-shop-west", "gloo-mesh"
	w.Spec.Kubernetes = &discoveryv1.KubernetesWorkload{Controller: commonv1.ClusterObjectRef{Name: "web", Namespace: "shop", ClusterName: "west"}}
	proxy := traffic.Proxy{Cluster: "west", Namespace: "shop", Pod: "web-1"}
	return &traffic.Pod{Proxy: proxy, Workload: w, Door: traffic.Push, Stats: istioStats()}
}

// sentLogs are the entries of a real Envoy, as an agent sends them: of anybody, whatever they say.
func sentLogs(t *testing.T) []*accesslog.Entry {
	t.Helper()
	m, err := accesslog.Read(recordedLog(t))
	require.NoError(t, err)
	var out []*accesslog.Entry
	for i := range m.HTTP {
		m.HTTP[i].Common.PeerIdentity = "spiffe://cluster.local/ns/front/sa/checkout"
		out = append(out, &accesslog.Entry{
			WorkloadRef: commonv1.ClusterObjectRef{Name: "bank", Namespace: "other", ClusterName: "east"}, Pod: "bank-1", From: "me", To: "you", Records: []string{"\x1b[2Jall.gloo-mesh"}, HTTP: m.HTTP[i],
		})
	}
	return out
}

// TestLogbook: entries are of the pod that the agent's cluster has, whatever they say; and nothing secret of them is kept.
func TestLogbook(t *testing.T) {
	t.Parallel()
	now := time.Now()
	b := newLogbook(now, nil)
	pod := loggingPod()
	b.take(now, "a", &SentLogs{Proxy: pod.Proxy, Open: true, Entries: sentLogs(t), Dropped: 5}, pod, known{})
	b.take(now, "a", &SentLogs{Proxy: traffic.Proxy{Cluster: "west", Namespace: "shop", Pod: "gone"}, Open: true, Entries: sentLogs(t), Dropped: 7}, nil, known{})
	scraped := *pod
	scraped.Door = traffic.Agent
	b.take(now, "b", &SentLogs{Proxy: pod.Proxy, Open: true, Entries: sentLogs(t), Dropped: 2}, &scraped, known{})
	report := b.answer(&accesslog.Query{}, nil)
	require.Len(t, report.Entries, 6)
	text, err := json.Marshal(report)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "s3cret")
	assert.NotContains(t, string(text), "\\u001b")
	for _, stranger := range []string{"bank", "other", "east", `"me"`} {
		assert.NotContains(t, string(text), stranger)
	}
	got := report.Entries[0]
	assert.Equal(t, commonv1.ClusterObjectRef{Name: "web", Namespace: "shop", ClusterName: "west"}, got.WorkloadRef)
	assert.Equal(t, "web-1", got.Pod)
	assert.Equal(t, "web.shop.west", got.From)
	inbound := report.Entries[2]
	assert.Equal(t, "checkout.front -> web.shop.west", inbound.From+" -> "+inbound.To)
	assert.Empty(t, report.Entries[5].To, "no route, no destination")
	assert.Equal(t, []accesslog.ClusterReport{{Cluster: "west", Proxies: 1, Dropped: 9, Rejected: 12}}, report.Clusters)

	// One cluster cannot fill everything.
	for range 300 {
		b.take(now, "b", &SentLogs{Proxy: pod.Proxy, Open: true, Entries: sentLogs(t), Dropped: 2}, pod, known{hub: map[string]bool{sentLogs(t)[0].Records[0]: true}})
	}
	report = b.answer(&accesslog.Query{Limit: 1}, nil)
	assert.Equal(t, uint64(maxLogRate), report.Next)
	assert.Equal(t, accesslog.PerKey-1, report.More)
}

// TestTenantsShareTheRate: what only records of a cluster want takes a part of the entries of a second, whoever comes first.
func TestTenantsShareTheRate(t *testing.T) {
	t.Parallel()
	began, who := time.Now().Truncate(time.Second), known{hub: map[string]bool{"all.gloo-mesh": true}}
	const ofHub, ofTenant, ofBoth = "all.gloo-mesh", "all.shop.west", "all.shop.west all.gloo-mesh"
	type sent struct {
		namespace, records string
		n, taken           int
	}
	for name, list := range map[string][]sent{
		"only the management cluster":            {{"shop", ofHub, 1200, maxLogRate}},
		"one namespace":                          {{"shop", ofTenant, 1200, maxTenantRate}},
		"a loud one before the others":           {{"shop", ofTenant, 5000, maxTenantRate}, {"front", ofTenant, 10, 10}, {"shop", ofHub, 1200, maxLogRate - maxTenantRate - 10}},
		"what both want":                         {{"shop", ofTenant, 200, maxTenantRate}, {"shop", ofBoth, 50, 50}},
		"many namespaces":                        {{"a", ofTenant, 200, 100}, {"b", ofTenant, 200, 100}, {"c", ofTenant, 200, 100}, {"d", ofTenant, 200, 100}, {"e", ofTenant, 200, 100}, {"f", ofTenant, 200, 0}, {"f", ofHub, 600, 500}},
		"the management cluster comes first":     {{"shop", ofHub, maxLogRate, maxLogRate}, {"shop", ofTenant, 1, 0}},
		"a record that nobody has":               {{"shop", "", 200, maxTenantRate}},
		"one of the name in the other namespace": {{"shop", "all.gloo-mesh.west", 200, maxTenantRate}},
	} {
		b := newLogbook(began, nil)
		for second := range 2 { // each second begins anew
			for _, s := range list {
				pod := loggingPod()
				pod.Proxy.Namespace = s.namespace
				before := b.ring.Last()
				for range s.n {
					e := &accesslog.Entry{Records: strings.Fields(s.records)}
					b.take(began.Add(time.Duration(second)*time.Second), "a", &SentLogs{Proxy: pod.Proxy, Open: true, Entries: []*accesslog.Entry{e}}, pod, who)
				}
				assert.Equal(t, s.taken, int(b.ring.Last()-before), "%s: %v", name, s)
			}
		}
		report, sum := b.answer(&accesslog.Query{}, nil), 0
		for _, s := range list {
			sum += 2 * (s.n - s.taken)
		}
		assert.Equal(t, uint64(sum), report.Clusters[0].Rejected, name)
	}
}

// TestRecordsOfClustersAreForTheirAgents: the agent of a cluster hears of the records of its own users, by names that no other record has.
func TestRecordsOfClustersAreForTheirAgents(t *testing.T) {
	t.Parallel()
	plan := func(cluster, namespace, name string, state commonv1.ApprovalState) *snapshot.AccessLogPlan {
		o := &observabilityv1.AccessLogRecord{}
		o.Name, o.Namespace, o.InCluster = name, namespace, cluster
		return &snapshot.AccessLogPlan{Ref: snapshot.RefOf(snapshot.AccessLogRecord, o), Record: o, State: state}
	}
	state := &snapshot.State{AccessLogs: []*snapshot.AccessLogPlan{
		plan("", "shop", "books", commonv1.ApprovalStatePending), plan("east", "shop", "books", commonv1.ApprovalStateAccepted),
		plan("west", "shop", "books", commonv1.ApprovalStatePending), plan("west", "shop", "wrong", commonv1.ApprovalStateInvalid),
	}}
	b := newLogbook(time.Now(), nil)
	for cluster, want := range map[string]string{"west": "books.shop books.shop.west", "east": "books.shop books.shop.east", "north": "books.shop"} {
		var names []string
		for _, r := range b.recordsOf(time.Now(), cluster, state) {
			names = append(names, r.Name)
		}
		assert.Equal(t, want, strings.Join(names, " "), cluster)
	}
	report := b.answer(&accesslog.Query{}, state)
	require.Len(t, report.Records, 4)
	assert.Equal(t, "books.shop", report.Records[0].Identity())
	assert.Equal(t, "books.shop.east", report.Records[1].Identity())
}

// TestLogging: a workload logs while a stream of a pod of it is open, and a while after; nothing is said before the agents had time to come in.
func TestLogging(t *testing.T) {
	t.Parallel()
	began := time.Now()
	var told []*snapshot.Logging
	b := newLogbook(began, func(l *snapshot.Logging) { told = append(told, l) })
	pod := loggingPod()
	pods := map[traffic.Proxy]*traffic.Pod{pod.Proxy: pod}
	b.take(began, "a", &SentLogs{Proxy: pod.Proxy, Open: true}, pod, known{})
	b.report(began.Add(learns/2), pods, learns)
	assert.Empty(t, told)
	last := func(at time.Time) []snapshot.Ref {
		b.report(at, pods, learns)
		return told[len(told)-1].Workloads
	}
	web := []snapshot.Ref{{Kind: snapshot.Workload, Namespace: "gloo-mesh", Name: "web-shop-west"}}
	assert.Equal(t, web, last(began.Add(time.Hour)), "an agent that is away says nothing of the end of a stream")
	b.take(began.Add(time.Hour), "a", &SentLogs{Proxy: pod.Proxy}, pod, known{})
	assert.Equal(t, web, last(began.Add(time.Hour+lingers/2)))
	assert.Empty(t, last(began.Add(time.Hour+2*lingers)))
	b.take(began.Add(2*time.Hour), "a", &SentLogs{Proxy: pod.Proxy, Open: true}, pod, known{})
	assert.Equal(t, web, last(began.Add(2*time.Hour)))
	delete(pods, pod.Proxy)
	assert.Empty(t, last(began.Add(2*time.Hour)), "its pod is gone")
}

// fromHere is a request through a port that was forwarded.
func fromHere(path string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = "127.0.0.1:40000"
	return r
}

// TestLogsAreForWhoMayForward: what comes from other hosts, or from a proxy in front of serve, reads no logs.
func TestLogsAreForWhoMayForward(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]int{
		"127.0.0.1:1": http.StatusServiceUnavailable, "[::1]:1": http.StatusServiceUnavailable, "[::ffff:127.0.0.1]:1": http.StatusServiceUnavailable,
		"10.0.0.7:1": http.StatusForbidden, "[fd00::7]:1": http.StatusForbidden, "127.0.0.6:1": http.StatusForbidden, "": http.StatusForbidden,
	} {
		w, r := httptest.NewRecorder(), fromHere(LogsPath)
		r.RemoteAddr = remote
		r.Header.Set("X-Forwarded-For", "127.0.0.1")
		LogsPage{&Telemetry{}}.ServeHTTP(w, r)
		assert.Equal(t, want, w.Code, remote)
	}
}

// TestLogsPage: who does not lead says so, and wrong questions are none of the server's.
func TestLogsPage(t *testing.T) {
	t.Parallel()
	of := &Telemetry{}
	ask := func(path string) (int, string) {
		w := httptest.NewRecorder()
		LogsPage{of}.ServeHTTP(w, fromHere(path))
		return w.Code, strings.TrimSpace(w.Body.String())
	}
	code, text := ask(LogsPath)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "does not lead")
	code, text = ask(LogsPath + "?status=abc")
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, text, `status "abc"`)
	o := Options{State: func() *snapshot.State { return nil }}
	of.current.Store(newTerm(o, time.Now()))
	code, text = ask(LogsPath)
	assert.Equal(t, http.StatusOK, code)
	assert.JSONEq(t, "[]", string(field(t, text, "records")))
	assert.Nil(t, of.Records("west"))
	of.TakeLogs("west", "a", &SentLogs{Proxy: traffic.Proxy{Namespace: "shop", Pod: "web-1"}, Entries: sentLogs(t)})
	_, text = ask(LogsPath)
	assert.JSONEq(t, `[{"cluster":"west","proxies":0,"rejected":6}]`, string(field(t, text, "clusters")))
}

func field(t *testing.T, text, name string) json.RawMessage {
	t.Helper()
	all := map[string]json.RawMessage{}
	require.NoError(t, json.Unmarshal([]byte(text), &all))
	return all[name]
}

func istioStats() *snapshot.ProxyStats {
	for _, d := range engine.Dialects() {
		if d.Proxies != nil && d.Proxies.Stats != nil {
			return d.Proxies.Stats
		}
	}
	return nil
}

// TestFromRecordToPage: what a record wants of what a proxy sends is on the page of the leader, and the workload counts as one that logs.
func TestFromRecordToPage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, of, registry := newFleet(), &Telemetry{}, prometheus.NewRegistry()
		west := enginetest.Cluster(0)
		f.by(t, true, &multiclusterv1alpha1.Telemetry{Door: multiclusterv1alpha1.TelemetryDoorPush})
		in := *f.state.Input
		management := *in.Management
		record := &observabilityv1.AccessLogRecord{}
		record.Namespace, record.Name, record.Spec = "gloo-mesh", "failures", *failuresRecord("").Spec
		matcher := record.Spec.WorkloadSelectors[0].KubeWorkloadMatcher
		matcher.Namespaces, matcher.Clusters = nil, []string{west}
		rejected := record.DeepCopy()
		rejected.Name, rejected.Spec.IncludedRequestHeaders = "secrets", []string{"cookie"}
		elsewhere := record.DeepCopy()
		elsewhere.Name, elsewhere.Spec.WorkloadSelectors[0].KubeWorkloadMatcher.Clusters = "elsewhere", []string{enginetest.Cluster(1)}
		over := record.DeepCopy()
		over.Name, over.Annotations = "ended", map[string]string{snapshot.LogUntilAnnotation: time.Now().Format(time.RFC3339)}
		record.Annotations = map[string]string{snapshot.LogUntilAnnotation: time.Now().Add(time.Hour).Format(time.RFC3339)}
		management.AccessLogRecords = []*observabilityv1.AccessLogRecord{elsewhere, over, record, rejected}
		in.Management = &management
		f.set(func() { f.state = engine.Translate(&in) })
		var mu sync.Mutex
		var logging *snapshot.Logging
		o := f.options(registry)
		o.Logging = func(l *snapshot.Logging) {
			mu.Lock()
			defer mu.Unlock()
			logging = l
		}
		assert.Nil(t, of.Records(west), "nothing is wanted while this process does not lead")
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- of.Run(ctx, o) }()
		time.Sleep(time.Second)

		records := of.Records(west)
		require.Len(t, records, 1)
		assert.Equal(t, "failures.gloo-mesh", records[0].Name)
		assert.Empty(t, records[0].Spec.WorkloadSelectors[0].KubeWorkloadMatcher.Clusters, "the agent does not know its name")
		assert.Nil(t, of.Records(enginetest.Cluster(1)), "no agent takes logs there")

		agent := newLogs(func() *snapshot.Cluster { return nil }, make(chan struct{}, 1))
		agent.Want(records)
		pod := f.podsOf()[0]
		agent.enter(pod.Proxy)
		m, err := accesslog.Read(recordedLog(t))
		require.NoError(t, err)
		agent.take(&traffic.LocalPod{Proxy: pod.Proxy}, nil, m.HTTP)
		for s, more := agent.Next(); more; s, more = agent.Next() {
			of.TakeLogs(west, "one", s)
		}
		w := httptest.NewRecorder()
		LogsPage{of}.ServeHTTP(w, fromHere(LogsPath+"?name=failures&status=5xx"))
		report := &accesslog.Report{}
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), report))
		require.Len(t, report.Entries, 3)
		assert.Equal(t, pod.Proxy.Pod, report.Entries[0].Pod)
		assert.Equal(t, pod.Workload.Spec.Kubernetes.Controller, report.Entries[0].WorkloadRef)
		assert.Equal(t, []string{"elsewhere PENDING", "ended PENDING", "failures PENDING", "secrets INVALID"}, []string{
			report.Records[0].Name + " " + report.Records[0].State, report.Records[1].Name + " " + report.Records[1].State, report.Records[2].Name + " " + report.Records[2].State,
			report.Records[3].Name + " " + report.Records[3].State,
		})

		time.Sleep(2 * learns)
		mu.Lock()
		require.NotNil(t, logging)
		assert.Equal(t, []snapshot.Ref{snapshot.RefOf(snapshot.Workload, pod.Workload)}, logging.Workloads)
		in.Logging = logging
		mu.Unlock()
		state := engine.Translate(&in)
		assert.Equal(t, "ACCEPTED", string(state.AccessLogs[1].State))
		applied := appliedOf(state)
		assert.Equal(t, "ended failures", applied[snapshot.RefOf(snapshot.Workload, pod.Workload)])
		silent := 0
		for ref, records := range applied {
			if strings.HasPrefix(records, "ended: no log comes from it: the agent of cluster "+west) {
				assert.NotEqual(t, pod.Workload.Name, ref.Name)
				silent++
			}
		}
		assert.Positive(t, silent, "who sends no log is told why: %v", applied)
		// Who does not take logs leaves what was said, of records that there are still.
		in.Logging = nil
		later := management
		later.AccessLogRecords, later.Workloads = management.AccessLogRecords[2:], slices.Clone(state.Plan.Workloads)
		for i, o := range later.Workloads {
			for s := range state.Output.Statuses.All() {
				if value, is := s.Value.(*discoveryv1.WorkloadStatus); is && s.Ref == snapshot.RefOf(snapshot.Workload, o) {
					later.Workloads[i] = o.DeepCopy()
					later.Workloads[i].Status = *value
				}
			}
		}
		in.Management = &later
		assert.Equal(t, "failures", appliedOf(engine.Translate(&in))[snapshot.RefOf(snapshot.Workload, pod.Workload)])
		cancel()
		require.NoError(t, <-ended)
		assert.Nil(t, logging, "who does not lead does not know")
	})
}

// appliedOf are the AccessLogRecords in the statuses of workloads, with what is wrong.
func appliedOf(state *snapshot.State) map[snapshot.Ref]string {
	out := map[snapshot.Ref]string{}
	for s := range state.Output.Statuses.All() {
		if value, is := s.Value.(*discoveryv1.WorkloadStatus); is {
			var names []string
			for _, a := range value.AppliedAccessLogRecords {
				names = append(names, strings.Join(append([]string{a.Ref.Name}, a.Errors...), ": "))
			}
			out[s.Ref] = strings.Join(names, " ")
		}
	}
	return out
}
