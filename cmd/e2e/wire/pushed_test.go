package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/accesslog"
	"github.com/meshctl/meshctl/engine/traffic"
)

// pushedWithin is how long it may take until requests are counted that proxies send by themselves: they do so every 5 s.
const pushedWithin = 25 * time.Second

// ofRatings has the callers of the second cluster's ratings name their subset.
const ofRatings = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: ratings-v1, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs: {services: [{name: ratings, namespace: bookinfo, clusterName: cluster-2}]}
  policy:
    trafficShift:
      destinations:
      - kubeService: {name: ratings, namespace: bookinfo, clusterName: cluster-2, subset: {version: v1}}
`

// meshctl runs the binary, and returns what it prints.
func (e *environment) meshctl(t *testing.T, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), e.options.Meshctl, args...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	require.NoError(t, command.Run(), "meshctl %s: %s", strings.Join(args, " "), &errs)
	return out.Bytes()
}

func (e *environment) second(t *testing.T) *kubernetes.Clientset {
	t.Helper()
	config, err := e.clusters["cluster-2"].Config()
	require.NoError(t, err)
	return sandboxtest.Clientset(t, config)
}

// pushes does what meshctl prints for the door and for access logs. All proxies send then, also those that get no request.
func pushes(t *testing.T, e *environment) {
	t.Helper()
	printed := e.meshctl(t, "telemetry", "enable", "cluster-2", "--door", "push", "--kubeconfig", e.kubeconfig())
	manifest, settings, found := bytes.Cut(printed, []byte("# Settings of Istio, not for kubectl apply:\n"))
	require.True(t, found, "%s", printed)
	client, err := e.clusters["cluster-2"].Client()
	require.NoError(t, err)
	require.NoError(t, client.ApplyYAML(t.Context(), manifest))
	e.merge(t, settings)
	e.merge(t, logSettings(t, e))
	e.restart(t)

	s := e.seen(t)
	waittest.NoError(t, "all proxies send", func() error {
		for _, c := range s.report(t, traffic.ByWorkload).Clusters {
			if c.Cluster == "cluster-2" && c.Door == traffic.Push && c.Proxies > 4 && c.Read == c.Proxies {
				return nil
			}
		}
		r := s.report(t, traffic.ByWorkload)
		return fmt.Errorf("%+v: %s", r.Clusters, states(r))
	})
	r := s.report(t, traffic.ByWorkload)
	quiet := 0
	for i := range r.Rows {
		if row := &r.Rows[i]; row.To.Cluster == "cluster-2" {
			assert.NotEqual(t, traffic.NoData, row.State, "%+v", row)
			if row.State == traffic.NoTraffic {
				quiet++
			}
		}
	}
	assert.NotZero(t, quiet, states(r))
}

// logSettings are those in the help of access logs.
func logSettings(t *testing.T, e *environment) []byte {
	t.Helper()
	help := string(e.meshctl(t, "help", "access-logs"))
	from := strings.Index(help, "     enableEnvoyAccessLogService: true")
	require.Positive(t, from, help)
	text, _, _ := strings.Cut(help[from:], "\n\n")
	agent, _, _ := strings.Cut(string(e.meshctl(t, "telemetry", "enable", "cluster-2", "--door", "push", "--dry-run", "--kubeconfig", e.kubeconfig())), "\n#     proxyStatsMatcher")
	agent = agent[strings.LastIndex(agent, "/sa/")+len("/sa/"):]
	return []byte("meshConfig:\n" + strings.ReplaceAll(text, "AGENT", strings.TrimSpace(agent)))
}

func states(r *traffic.Report) string {
	var out []string
	for i := range r.Rows {
		if row := &r.Rows[i]; row.To.Cluster == "cluster-2" {
			out = append(out, fmt.Sprint(row.To.Name, ": ", row.State, " ", string(row.Reason), " ", row.Detail))
		}
	}
	return strings.Join(out, "; ")
}

// merge merges settings into those of the second cluster's mesh, and waits until istiod has them.
func (e *environment) merge(t *testing.T, settings []byte) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(string(settings)) {
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(line, "#"), " "))
	}
	text := strings.ReplaceAll(strings.Join(lines, ""), "TRUST-DOMAIN", "cluster-2.example")
	if strings.HasPrefix(string(settings), "meshConfig") {
		text = strings.ReplaceAll(string(settings), "TRUST-DOMAIN", "cluster-2.example")
	}
	var wanted struct {
		MeshConfig map[string]any `json:"meshConfig"`
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &wanted), text)
	require.NotEmpty(t, wanted.MeshConfig, text)
	api := e.second(t).CoreV1()
	config, err := api.ConfigMaps("istio-system").Get(t.Context(), "istio", metav1.GetOptions{})
	require.NoError(t, err)
	var mesh map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(config.Data["mesh"]), &mesh))
	into(mesh, wanted.MeshConfig)
	now, err := yaml.Marshal(mesh)
	require.NoError(t, err)
	config.Data["mesh"] = string(now)
	_, err = api.ConfigMaps("istio-system").Update(t.Context(), config, metav1.UpdateOptions{})
	require.NoError(t, err)
	service, _ := wanted.MeshConfig["defaultConfig"].(map[string]any)
	waittest.NoError(t, "istiod gives proxies the settings", func() error {
		pod, err := api.Pods("bookinfo").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "try"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "try", Image: "try"}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return err
		}
		text, err := json.Marshal(pod.Spec)
		for name := range service {
			if !bytes.Contains(text, []byte(name)) {
				err = errors.Join(err, fmt.Errorf("no %s in %s", name, text))
			}
		}
		return err
	})
}

// into merges values into others of the same names.
func into(values, more map[string]any) {
	for name, value := range more {
		a, both := values[name].(map[string]any)
		if b, ok := value.(map[string]any); ok && both {
			into(a, b)
			continue
		}
		values[name] = value
	}
}

// restart replaces the pods with a proxy of the second cluster, as kubectl rollout restart does.
func (e *environment) restart(t *testing.T) {
	t.Helper()
	there := func(p proxies.Pod) bool { return p.Cluster == "cluster-2" }
	before := slices.DeleteFunc(e.allPods(t), func(p proxies.Pod) bool { return !there(p) })
	api := e.second(t).AppsV1()
	want := 0
	for _, namespace := range []string{"bookinfo", "istio-system"} {
		list, err := api.Deployments(namespace).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		for i := range list.Items {
			name := list.Items[i].Name
			if name == "istiod" {
				continue
			}
			want += int(ptr.Deref(list.Items[i].Spec.Replicas, 1))
			patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339))
			_, err := api.Deployments(namespace).Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
			require.NoError(t, err)
		}
	}
	waittest.NoError(t, "all pods of cluster-2 are others, and ready", func() error {
		now := slices.DeleteFunc(e.allPods(t), func(p proxies.Pod) bool { return !there(p) })
		for _, p := range now {
			if !p.Ready || slices.ContainsFunc(before, func(b proxies.Pod) bool { return b.UID == p.UID }) {
				return fmt.Errorf("pod %s is not ready, or to go: %s", p.Pod, p.Error)
			}
		}
		if len(now) != want {
			return fmt.Errorf("%d pods, want %d", len(now), want)
		}
		return nil
	})
}

// fromSecond are the edges of callers in the second cluster.
func (s *seen) fromSecond(t *testing.T) map[string]uint64 {
	t.Helper()
	edges := s.edges(t)
	maps.DeleteFunc(edges, func(name string, _ uint64) bool { return !strings.HasPrefix(name, "cluster-2/") })
	return edges
}

const reviewsToRatings = "cluster-2/reviews-v1 cluster-2/ratings version-v1 local "

// countedPushed: what workloads of the second cluster send is what their proxies' messages say, exactly, by edge, subset and class.
func countedPushed(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	reviews, ratings := e.pod(t, "cluster-2", "reviews-v1"), e.pod(t, "cluster-2", "ratings-v1")
	e.apply(t, ofRatings) // it stays for what follows
	waittest.NoError(t, "calls have a subset", func() error {
		if _, err := e.send(t.Context(), reviews, app.Call{URL: "http://ratings:9080", Count: 1}); err != nil {
			return err
		}
		stats, err := e.plane.Stats(t.Context(), reviews, `version-v1.*ratings.*upstream_rq_2xx`)
		for _, n := range stats {
			if n > 0 {
				return nil
			}
		}
		return errors.Join(err, fmt.Errorf("%v", stats))
	})
	s.settled(t)
	before := s.fromSecond(t)
	want := map[string]uint64{}
	send := func(from proxies.Pod, call app.Call, edge string) {
		t.Helper()
		all, err := e.send(t.Context(), from, call)
		require.NoError(t, err)
		require.Equal(t, call.Count, all.total())
		require.Len(t, all, 1, "%v", all)
		want[edge] += uint64(call.Count)
	}
	send(reviews, app.Call{URL: "http://ratings:9080", Count: 180}, reviewsToRatings+"2xx")
	send(reviews, app.Call{URL: "http://ratings:9080", Count: 23, Headers: fails(500, 1000)}, reviewsToRatings+"5xx")
	send(reviews, app.Call{URL: "http://ratings.bookinfo.svc.cluster-1.global:9080", Count: 70}, "cluster-2/reviews-v1 cluster-1/ratings gateway 2xx")
	send(ratings, app.Call{URL: "http://reviews:9080", Count: 40}, "cluster-2/ratings-v1 cluster-2/reviews local 4xx")
	sent := time.Now()
	waittest.NoError(t, "all requests are counted", func() error {
		if got := since(before, s.fromSecond(t)); !maps.Equal(want, got) {
			return fmt.Errorf("want %v, got %v", want, got)
		}
		return nil
	})
	took := time.Since(sent)
	t.Log("counted after", took)
	assert.Less(t, took, pushedWithin)
	s.settled(t)
	assert.Equal(t, want, since(before, s.fromSecond(t)), "nothing is counted twice by the messages that follow")
	for _, row := range s.report(t, traffic.ByEdge).Rows {
		if row.From.Cluster == "cluster-2" && row.Requests > 0 && row.Subset == "version-v1" {
			assert.Contains(t, row.Doors, traffic.Push)
		}
	}
}

// agentPID is the process of the second cluster's agent, which works in the folder of its pod; 0 while there is none.
func (e *environment) agentPID(t *testing.T) int {
	t.Helper()
	list, err := e.second(t).CoreV1().Pods("gloo-mesh").List(t.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=meshctl-agent"})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	return programs(t, filepath.Join(e.options.Dir, "proxies", "pods", string(list.Items[0].UID)))["agent"]
}

// growing checks that a count never sinks, and returns it.
func (s *seen) growing(t *testing.T) func() uint64 {
	t.Helper()
	last := uint64(0)
	return func() uint64 {
		now := s.fromSecond(t)[reviewsToRatings+"2xx"]
		require.GreaterOrEqual(t, now, last)
		last = now
		return now
	}
}

// agentEnds kills the agent while requests are sent: counters go on in the proxies, so that none is missing, and none counted twice.
func agentEnds(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	count := s.growing(t)
	before := count()
	stop := e.whole(t, e.pod(t, "cluster-2", "reviews-v1"), app.Call{URL: "http://ratings:9080", Rate: 30, Parallel: 5, Count: 30})
	waittest.Until(t, "requests are counted", func() bool { return count() > before })
	first := e.agentPID(t)
	require.NotZero(t, first)
	kill(t, first)
	waittest.Until(t, "the agent is started again", func() bool {
		again := e.agentPID(t)
		return again != 0 && again != first
	})
	at := count()
	waittest.Until(t, "requests are counted again", func() bool { return count() > at })
	all := stop()
	require.Empty(t, all.failed())
	waittest.NoError(t, "all requests are counted", func() error {
		if got := count() - before; got != uint64(all.total()) {
			return fmt.Errorf("%d are counted, want %d", got, all.total())
		}
		return nil
	})
	s.settled(t)
	assert.Equal(t, uint64(all.total()), count()-before)
}

// proxyEnds kills the processes of a proxy while requests are sent. What the proxy had not sent is lost, and nothing is counted twice.
func proxyEnds(t *testing.T, e *environment) {
	t.Helper()
	const rate = 30
	s := e.seen(t)
	count := s.growing(t)
	before := count()
	reviews := e.pod(t, "cluster-2", "reviews-v1")
	l := e.stream(t, reviews, app.Call{URL: "http://ratings:9080", Rate: rate, Parallel: 5})
	waittest.Until(t, "requests are counted", func() bool { return count() > before+200 })
	first := programs(t, e.folder(reviews))["agent"]
	require.NotZero(t, first)
	kill(t, first)
	waittest.Until(t, "the proxy is started again", func() bool {
		again := programs(t, e.folder(reviews))["agent"]
		return again != 0 && again != first
	})
	at := l.counts()["cluster-2 ratings-v1"]
	waittest.Until(t, "requests are answered again", func() bool { return l.counts()["cluster-2 ratings-v1"] > at+50 })
	answered := uint64(l.stop()["cluster-2 ratings-v1"])
	s.settled(t)
	got := count() - before
	t.Logf("%d were answered, %d are counted", answered, got)
	// Of those that were answered, some had no answer for the application; a message says what was at most 5 s and a second before.
	assert.LessOrEqual(t, got, answered+5)
	assert.GreaterOrEqual(t, got+rate*20, answered)
	// What comes then is exact again.
	at2 := count()
	all, err := e.send(t.Context(), reviews, app.Call{URL: "http://ratings:9080", Count: 61})
	require.NoError(t, err)
	require.Empty(t, all.failed())
	s.settled(t)
	assert.Equal(t, uint64(61), count()-at2)
}

// record has the ratings of the second cluster log what fails.
const record = `apiVersion: observability.enterprise.mesh.gloo.solo.io/v1
kind: AccessLogRecord
metadata: {name: failures, namespace: gloo-mesh}
spec:
  workloadSelectors:
  - kubeWorkloadMatcher: {clusters: [cluster-2], namespaces: [bookinfo], labels: {app: ratings}}
  filters:
  - statusCodeMatcher: {value: 500, comparator: GE}
`

// logged are the numbers of entries that meshctl accesslogs shows, by what is made of each.
func (s *seen) logged(t *testing.T, of func(*accesslog.Entry) string) (map[string]int, *accesslog.Report) {
	t.Helper()
	var report accesslog.Report
	require.NoError(t, json.Unmarshal(s.meshctl(t, "accesslogs", "--server", s.url, "-o", "json", "--limit", "1000"), &report))
	out := map[string]int{}
	for i := range report.Entries {
		out[of(&report.Entries[i])]++
	}
	return out, &report
}

// loggedPushed: of what is sent, meshctl shows the requests that a record wants, and no others.
func loggedPushed(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	e.during(t, record)
	reviews := e.pod(t, "cluster-2", "reviews-v1")
	logged := func() (map[string]int, *accesslog.Report) {
		return s.logged(t, func(entry *accesslog.Entry) string { return entry.HTTP.Request.Path })
	}
	waittest.NoError(t, "a request is logged", func() error {
		if _, err := e.send(t.Context(), reviews, app.Call{URL: "http://ratings:9080/first", Count: 1, Headers: fails(500, 1000)}); err != nil {
			return err
		}
		if paths, report := logged(); paths["/first"] == 0 {
			return fmt.Errorf("%+v", report)
		}
		return nil
	})
	want := map[string]int{}
	for i, call := range []app.Call{
		{URL: "http://ratings:9080/fails/1?token=secret", Count: 7, Headers: fails(500, 1000)},
		{URL: "http://ratings:9080/works", Count: 20},
		{URL: "http://ratings:9080/fails/2", Count: 3, Headers: fails(503, 1000)},
		{URL: "http://ratings:9080/missing", Count: 5, Headers: fails(404, 1000)},
		{URL: "http://ratings.bookinfo.svc.cluster-1.global:9080/elsewhere", Count: 4, Headers: fails(500, 1000)},
	} {
		all, err := e.send(t.Context(), reviews, call)
		require.NoError(t, err)
		require.Equal(t, call.Count, all.total())
		if i%2 == 0 && i < 4 {
			path, _, _ := strings.Cut(strings.TrimPrefix(call.URL, "http://ratings:9080"), "?")
			want[path] = call.Count
		}
	}
	found := func() map[string]int {
		paths, _ := logged()
		got := map[string]int{}
		for path, n := range paths {
			plain, _, _ := strings.Cut(path, "?")
			assert.NotContains(t, path, "secret")
			if plain != "/first" {
				got[plain] += n
			}
		}
		return got
	}
	waittest.NoError(t, "what failed is logged", func() error {
		if got := found(); !maps.Equal(want, got) {
			return fmt.Errorf("want %v, got %v", want, got)
		}
		return nil
	})
	s.settled(t)
	assert.Equal(t, want, found())
	_, report := logged()
	for i := range report.Entries {
		entry := &report.Entries[i]
		assert.Equal(t, "ratings-v1", entry.WorkloadRef.Name)
		assert.Equal(t, "cluster-2", entry.WorkloadRef.ClusterName)
		assert.Equal(t, []string{"failures.gloo-mesh"}, entry.Records)
		assert.GreaterOrEqual(t, entry.HTTP.Response.ResponseCode, uint32(500))
		assert.True(t, strings.HasPrefix(entry.From, "bookinfo-reviews.") || strings.HasPrefix(entry.From, "reviews"), "%s", entry.From)
	}
	waittest.NoError(t, "the record is accepted", func() error {
		_, report := logged()
		if !slices.ContainsFunc(report.Records, func(r accesslog.RecordReport) bool {
			return r.Name == "failures" && r.State == "ACCEPTED" && r.Logging == 1
		}) {
			return fmt.Errorf("%+v", report.Records)
		}
		return nil
	})
}
