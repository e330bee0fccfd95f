package telemetry

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// by has the numbers of the first cluster of a fleet come in through a door, in the next round.
func (f *fleet) by(t *testing.T, relayed bool, asked *multiclusterv1alpha1.Telemetry) {
	t.Helper()
	in := enginetest.World(enginetest.Size{Services: 2, Clusters: 2, FederateEvery: 1})
	for _, c := range in.Clusters {
		if c.Name == enginetest.Cluster(0) && relayed {
			c.Relay = &snapshot.Relay{}
		}
	}
	in.Management.KubernetesClusters = append(in.Management.KubernetesClusters, &multiclusterv1alpha1.KubernetesCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: enginetest.Cluster(0)}, Spec: multiclusterv1alpha1.KubernetesClusterSpec{Telemetry: asked},
	})
	f.set(func() { f.state = engine.Translate(in) })
}

// said is what an agent says of a pod that has sent so many requests.
func (f *fleet) said(t *testing.T, pod *traffic.Pod, requests int) *Sent {
	t.Helper()
	host := fmt.Sprintf("%s.%s.svc.cluster.local", enginetest.Service(1), enginetest.Namespace(1))
	text := fmt.Sprintf("envoy_server_uptime{} %d\nenvoy_cluster_upstream_rq{cluster_name=\"outbound|80||%s\",response_code_class=\"2xx\"} %d\n", int(time.Since(f.began).Seconds()), host, requests)
	reading, err := traffic.Read([]byte(text), pod.Stats)
	require.NoError(t, err)
	proxy := pod.Proxy
	proxy.Cluster = "whatever it says"
	return &Sent{Proxy: proxy, Age: 2 * time.Second, Parts: reading.Parts(time.Now().Add(-2 * time.Second))}
}

// podsOf are those of the first cluster.
func (f *fleet) podsOf() (out []*traffic.Pod) {
	survey := traffic.Look(f.state)
	for i := range survey.Pods {
		if survey.Pods[i].Proxy.Cluster == enginetest.Cluster(0) {
			out = append(out, &survey.Pods[i])
		}
	}
	return out
}

// TestAgents: what the agent of a cluster says counts for its own pods, as if they had been read, and says through which door it came.
func TestAgents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, of, registry := newFleet(), &Telemetry{}, prometheus.NewRegistry()
		west := enginetest.Cluster(0)
		f.by(t, true, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		time.Sleep(time.Minute)
		assert.Equal(t, traffic.Off, of.Wanted(west), "nothing is wanted while this process does not lead")
		go func() { ended <- of.Run(ctx, f.options(registry)) }()
		time.Sleep(time.Second)
		assert.Equal(t, traffic.Agent, of.Wanted(west))
		assert.Equal(t, traffic.Off, of.Wanted(enginetest.Cluster(1)), "it is scraped")
		assert.Equal(t, traffic.Off, of.Wanted("no cluster"))
		pods := f.podsOf()
		require.NotEmpty(t, pods)
		for round, requests := range []int{10, 15, 15} {
			for _, pod := range pods {
				of.Take(west, f.said(t, pod, requests))
				of.Take(west, f.said(t, pod, requests+100)) // too soon
			}
			of.Lost(west, "a", Lost{Dropped: uint64(round), Refused: uint64(2 * round), Refusal: "pod a\x1b/b: why"})
			time.Sleep(15 * time.Second)
		}
		of.Lost(west, "b", Lost{Dropped: 4, Refused: 3, Refusal: "pod c/d: why"}) // another process of the agent
		of.TakeLogs(west, "b", &SentLogs{Proxy: pods[0].Proxy, Dropped: 5})
		report, _, _ := ask(t, of, "?by=destinations")
		assert.Equal(t, fmt.Sprint("numbers ", 5*len(pods)), rows(report)[west+"/service-00001"])
		for i := range report.Rows {
			if row := &report.Rows[i]; row.State == traffic.HasNumbers {
				assert.Equal(t, []traffic.Door{traffic.Agent}, row.Doors)
			}
		}
		assert.Equal(t, traffic.ClusterReport{
			Cluster: west, Door: traffic.Agent, Read: len(pods), Proxies: len(pods), Dropped: 6, Rejected: uint64(3 * len(pods)), Refused: 7, Refusal: "pod c/d: why", LogsDropped: 5,
		}, report.Clusters[0])
		assert.Equal(t, traffic.Scrape, report.Clusters[1].Door)
		assert.InDelta(t, 7, sum(t, registry, "meshctl_telemetry_refused_total"), 0)

		// What is about nobody's pod, too old, or no reading is left out.
		stranger := f.said(t, pods[0], 1000)
		stranger.Proxy.Pod = "nobody"
		of.Take(west, stranger)
		of.Take(enginetest.Cluster(1), f.said(t, pods[0], 1000)) // that cluster is scraped
		late := f.said(t, pods[0], 1000)
		late.Age = time.Hour
		of.Take(west, late)
		bad := f.said(t, pods[0], 1000)
		bad.Parts.Both.Values = []uint64{1, 2, 3}
		of.Take(west, bad)
		for reason, want := range map[string]int{lostUnknown: 2, lostLate: 1, lostInvalid: 1, lostTooOften: 3 * len(pods), lostOnTheWay: 6} {
			assert.InDelta(t, want, lost(t, registry)[reason], 0, reason)
		}
		report, _, _ = ask(t, of, "?by=destinations")
		assert.Equal(t, fmt.Sprint("numbers ", 5*len(pods)), rows(report)[west+"/service-00001"])

		// An agent that says nothing more has no data, and not 0.
		time.Sleep(2 * time.Minute)
		report, _, _ = ask(t, of, "?by=workloads")
		assert.Equal(t, traffic.Relayed, report.Clusters[0].Reason)
		of.Take(west, &Sent{Proxy: pods[0].Proxy, Reason: traffic.Failed, Detail: "connection refused"})
		report, _, _ = ask(t, of, "?by=workloads")
		assert.Equal(t, 0, report.Clusters[0].Read)

		// Of more proxies than are read, none is taken.
		pods = f.podsOf()
		term := of.current.Load()
		term.mu.Lock()
		for i := range maxProxies {
			term.agent(west).heard[traffic.Proxy{Cluster: west, Pod: fmt.Sprint("other-", i)}] = time.Now()
		}
		delete(term.agent(west).heard, pods[1].Proxy)
		term.mu.Unlock()
		of.Take(west, f.said(t, pods[1], 2000))
		assert.InDelta(t, 1, lost(t, registry)[lostTooMany], 0)

		// Disabled: nothing more is wanted or taken.
		f.by(t, true, &multiclusterv1alpha1.Telemetry{Door: multiclusterv1alpha1.TelemetryDoorNone})
		time.Sleep(20 * time.Second)
		assert.Equal(t, traffic.Off, of.Wanted(west))
		report, _, _ = ask(t, of, "?by=workloads&cluster="+west+"&window=30s")
		for i := range report.Rows {
			assert.Equal(t, traffic.Disabled, report.Rows[i].Reason)
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

// sum adds up the counters of a family.
func sum(t *testing.T, registry *prometheus.Registry, name string) (out float64) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name {
				out += m.GetCounter().GetValue()
			}
		}
	}
	return out
}

// lost are the readings of agents that were lost, by reason.
func lost(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	out := map[string]float64{}
	for _, family := range families {
		for _, m := range family.Metric {
			for _, label := range m.Label {
				if family.GetName() == "meshctl_telemetry_lost_total" && label.GetName() == "reason" {
					out[label.GetValue()] += m.GetCounter().GetValue()
				}
			}
		}
	}
	return out
}

// TestSwitching from one door to another counts nothing twice: what came in through the one is a base for the other.
func TestSwitching(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, of := newFleet(), &Telemetry{}
		f.set(func() { f.refused[enginetest.Cluster(1)] = true })
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- of.Run(ctx, f.options(prometheus.NewRegistry())) }()
		time.Sleep(20 * time.Second)
		f.set(func() { f.requests = 5 })
		time.Sleep(20 * time.Second)
		f.by(t, true, nil)
		time.Sleep(20 * time.Second)
		pods := f.podsOf()
		for _, requests := range []int{5, 7} {
			for _, pod := range pods {
				of.Take(enginetest.Cluster(0), f.said(t, pod, requests))
			}
			time.Sleep(15 * time.Second)
		}
		report, _, _ := ask(t, of, "?by=destinations")
		assert.Equal(t, fmt.Sprint("numbers ", 7*len(pods)), rows(report)[enginetest.Cluster(0)+"/service-00001"])
		for i := range report.Rows {
			if row := &report.Rows[i]; row.State == traffic.HasNumbers {
				assert.Equal(t, []traffic.Door{traffic.Agent, traffic.Scrape}, row.Doors)
			}
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

// TestLocal: an agent reads its pods while somebody wants it, keeps the last reading of each, and counts those that nobody took.
func TestLocal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &snapshot.Cluster{Name: "west", Sync: snapshot.Synced}
		for i := range 3 {
			c.Pods = append(c.Pods, &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: fmt.Sprint("pod-", i)}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "istio-proxy"}}},
				Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprint("10.0.0.", i+1)},
			})
		}
		c.Pods[2].Status.PodIP = "127.0.0.1"
		var mu sync.Mutex
		asked := map[string]int{}
		l := NewLocal(LocalOptions{
			Cluster: func() *snapshot.Cluster { return c }, Dialects: engine.Dialects(),
			get: func(_ context.Context, address netip.AddrPort, secure *tls.Config, path string, limit int64) ([]byte, error) {
				mu.Lock()
				defer mu.Unlock()
				asked[address.String()]++
				assert.Nil(t, secure)
				assert.True(t, strings.HasPrefix(path, "stats/prometheus?"), path)
				assert.Equal(t, int64(maxPage), limit)
				if address.Addr().String() == "10.0.0.2" {
					return nil, errors.New("connection refused")
				}
				return []byte("envoy_server_uptime{} 10\nistio_build{} 1\n"), nil
			},
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); l.Run(ctx) }()
		time.Sleep(time.Minute)
		assert.Empty(t, asked, "nobody wants it")
		l.Want(traffic.Agent)
		time.Sleep(10 * time.Second)
		assert.Equal(t, map[string]int{"10.0.0.1:15090": 1, "10.0.0.2:15090": 1}, asked)
		next := func() map[string]string {
			out := map[string]string{}
			for s, more := l.Next(); more; s, more = l.Next() {
				out[s.Proxy.Pod] = fmt.Sprint(s.Parts != nil, " ", string(s.Reason), " ", s.Detail)
			}
			return out
		}
		want := map[string]string{
			"pod-0": "true  ", "pod-1": "false FAILED pod a/pod-1: connection refused", "pod-2": "false FAILED pod a/pod-2: 127.0.0.1 is no address of a pod",
		}
		assert.Equal(t, want, next())
		assert.Zero(t, l.Dropped())
		time.Sleep(45 * time.Second) // three rounds of which nothing is taken
		assert.Equal(t, want, next())
		assert.Equal(t, uint64(6), l.Dropped())
		c = &snapshot.Cluster{Name: "west", Sync: snapshot.Stale, Pods: c.Pods}
		time.Sleep(30 * time.Second)
		next()
		asked = map[string]int{}
		time.Sleep(time.Minute)
		assert.Empty(t, asked, "addresses may be those of others by now")
		c = &snapshot.Cluster{Name: "west", Sync: snapshot.Synced, Pods: c.Pods}
		time.Sleep(30 * time.Second)
		assert.NotEmpty(t, asked)
		l.Want(traffic.Off)
		time.Sleep(time.Minute)
		asked = map[string]int{}
		time.Sleep(time.Minute)
		assert.Empty(t, asked)
		cancel()
		<-done
	})
}

// recorded answers as a Prometheus that has read the pods of the first cluster: what a real one answers to each query, in the form of its API
// (https://prometheus.io/docs/prometheus/latest/querying/api/#instant-queries).
func recorded(t *testing.T, pod traffic.Proxy, asked func(*http.Request, string)) http.HandlerFunc {
	t.Helper()
	text, err := os.ReadFile("testdata/prometheus.txt")
	require.NoError(t, err)
	answers := strings.NewReplacer("POD", pod.Pod, "NAMESPACE", pod.Namespace, "HOST", fmt.Sprintf("%s.%s.svc.cluster.local", enginetest.Service(1), enginetest.Namespace(1))).Replace(string(text))
	return func(w http.ResponseWriter, r *http.Request) {
		query := r.PostFormValue("query")
		asked(r, query)
		w.Header().Set("Content-Type", "application/json")
		for answer := range strings.SplitSeq(answers, "\n\n") {
			name, body, _ := strings.Cut(answer, "\n")
			if strings.Contains(query, name+"{") {
				_, _ = fmt.Fprint(w, body)
				return
			}
		}
		_, _ = fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
	}
}

// TestPrometheus: what a server has read counts as if it had been read here, and no token is in any word.
func TestPrometheus(t *testing.T) {
	t.Parallel()
	f := newFleet()
	const token = "secret-token-0123456789"
	var queries []string
	var server *httptest.Server
	pods := f.podsOf()
	server = httptest.NewTLSServer(recorded(t, pods[0].Proxy, func(r *http.Request, query string) {
		assert.Equal(t, "/select/api/v1/query", r.URL.Path)
		assert.Equal(t, "Bearer "+token, r.Header.Get("Authorization"))
		queries = append(queries, query)
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	source := &multiclusterv1alpha1.PrometheusSource{Url: server.URL + "/select", SecretName: "prom", MatchLabels: map[string]multiclusterv1alpha1.MatchedLabel{"cluster": `we"st`}}
	f.by(t, false, &multiclusterv1alpha1.Telemetry{Door: "prometheus", Prometheus: source})
	o := f.options(prometheus.NewRegistry())
	o.Secret = func(_ context.Context, name string) (map[string][]byte, error) {
		assert.Equal(t, "prom", name)
		return map[string][]byte{"ca.crt": ca, "token": []byte(token + "\n")}, nil
	}
	began := time.Now().Add(-500 * time.Second) // the proxy started 100 s before it was asked
	term := newTerm(o, began)
	require.NoError(t, term.register(prometheus.NewRegistry()))
	survey := traffic.Look(f.state)
	byCluster := map[string][]*traffic.Pod{enginetest.Cluster(0): f.podsOf()}
	term.begin(began, f.state, survey.Entrances, byCluster)
	term.gather(t.Context(), enginetest.Cluster(0), source, byCluster[enginetest.Cluster(0)])
	assert.Equal(t, traffic.Reason(""), term.status[pods[0].Proxy].Reason)
	assert.Equal(t, traffic.NotInPrometheus, term.status[pods[1].Proxy].Reason)
	for _, query := range queries {
		assert.Contains(t, query, `cluster="we\"st"`)
	}
	assert.Len(t, queries, 1+len(questions()))

	got := map[string]uint64{}
	term.ring.Totals(func(key traffic.Key, v *traffic.Values) {
		assert.Equal(t, traffic.Prometheus, key.Door)
		for m := range snapshot.Latency {
			if n := v.Of(m); n > 0 {
				got[fmt.Sprint(key.Serves(), " ", term.peers.Of(key.To).Name, " ", m)] = n
			}
		}
	})
	assert.Equal(t, map[string]uint64{
		"false service-00001 2xx": 40, "false service-00001 5xx": 2, "false service-00001 no_healthy": 2, "false service-00001 connections": 3,
		"false service-00001 sent_bytes": 300, "false service-00001 received_bytes": 200, "true istio-eastwestgateway denied": 1, "true istio-eastwestgateway 2xx": 7,
	}, got)
	// Once more: nothing came.
	term.gather(t.Context(), enginetest.Cluster(0), source, byCluster[enginetest.Cluster(0)])
	again := map[string]uint64{}
	term.ring.Totals(func(key traffic.Key, v *traffic.Values) { again["requests"] += v.Requests() })
	assert.Equal(t, map[string]uint64{"requests": 49}, again)
}

// TestPrometheusThatAnswersOtherwise: what is wrong is said, with the next step, without the token, and no pod has data.
func TestPrometheusThatAnswersOtherwise(t *testing.T) {
	t.Parallel()
	const token = "secret-token-0123456789"
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		url    string
		secret map[string][]byte
		want   string
	}{
		"a refusal":     {answer: func(w http.ResponseWriter) { w.WriteHeader(http.StatusUnauthorized) }, want: "401 Unauthorized; key token of the Secret"},
		"a redirection": {answer: func(w http.ResponseWriter) { w.Header().Set("Location", "/x"); w.WriteHeader(http.StatusFound) }, want: "redirections are not followed"},
		"a page":        {answer: func(w http.ResponseWriter) { _, _ = fmt.Fprint(w, "<html>") }, want: "its answer is none of Prometheus' API"},
		"not found":     {answer: func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, want: "404 Not Found; check that the URL"},
		"an error": {answer: func(w http.ResponseWriter) {
			_, _ = fmt.Fprintf(w, `{"status":"error","error":"bad \u001b %s"}`, token)
		}, want: `it answers: bad ? (token)`},
		"a value of none": {answer: func(w http.ResponseWriter) {
			_, _ = fmt.Fprint(w, `{"status":"success","data":{"resultType":"vector","result":[{"value":[1,2]}]}}`)
		}, want: "a value that is none"},
		"no Secret":      {secret: map[string][]byte{}, want: "certificate"},
		"no certificate": {secret: map[string][]byte{"ca.crt": []byte("x")}, want: "key ca.crt of Secret prom has no certificate in PEM"},
		"no https":       {url: "http://prometheus.example", want: "its Secret is only used with https"},
		"a password":     {url: "https://user:pass@prometheus.example", want: "is no URL of a server"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if c.answer != nil {
					c.answer(w)
				}
			}))
			defer server.Close()
			f := newFleet()
			o := f.options(prometheus.NewRegistry())
			o.Secret = func(context.Context, string) (map[string][]byte, error) {
				if c.secret != nil {
					return c.secret, nil
				}
				return map[string][]byte{"ca.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), "token": []byte(token)}, nil
			}
			term := newTerm(o, time.Now())
			require.NoError(t, term.register(prometheus.NewRegistry()))
			source := &multiclusterv1alpha1.PrometheusSource{Url: server.URL, SecretName: "prom"}
			if c.url != "" {
				source.Url = c.url
			}
			pods := f.podsOf()
			term.gather(t.Context(), enginetest.Cluster(0), source, pods)
			status := term.status[pods[0].Proxy]
			assert.Equal(t, traffic.NoPrometheus, status.Reason)
			assert.Contains(t, status.Detail, c.want)
			assert.NotContains(t, status.Detail, token)
			assert.NotContains(t, status.Detail, "pass")
		})
	}
}
