package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/files"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/waittest"
)

// pods scales, replaces, breaks and restarts pods: what stands in for their kubelet
// does what Kubernetes and Istio promise to callers. As many pods run at the end as
// before.
func pods(t *testing.T, e *environment) {
	t.Helper()
	t.Run("workloads", func(t *testing.T) {
		for _, c := range []struct {
			name string
			run  func(*testing.T, *environment)
		}{
			{"change under load", changed},
			{"change under load of another cluster", changedElsewhere},
			{"have no pod, and one again", emptied},
			{"break", broken},
		} {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, e)
			})
		}
	})
	t.Run("the kubelet is killed", func(t *testing.T) { killed(t, e) })
}

// workload is a Deployment of the demo's application.
type workload struct {
	*environment
	cluster, name string
	object        *unstructured.Unstructured
}

func (e *environment) workload(t *testing.T, cluster, name string) workload {
	t.Helper()
	documents, err := manifests.Bookinfo(cluster)
	require.NoError(t, err)
	objects, err := kube.Decode(documents)
	require.NoError(t, err)
	at := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "Deployment" && o.GetName() == name })
	require.GreaterOrEqual(t, at, 0, "no Deployment %s in %s", name, cluster)
	return workload{e, cluster, name, objects[at]}
}

func (w workload) client(t *testing.T) *kube.Client {
	t.Helper()
	client, err := w.clusters[w.cluster].Client()
	require.NoError(t, err)
	return client
}

// scale asks for a number of pods.
func (w workload) scale(t *testing.T, count int64) {
	t.Helper()
	require.NoError(t, unstructured.SetNestedField(w.object.Object, count, "spec", "replicas"))
	require.NoError(t, w.client(t).Apply(t.Context(), w.object))
}

// rollOut replaces all pods.
func (w workload) rollOut(t *testing.T) {
	t.Helper()
	require.NoError(t, unstructured.SetNestedField(w.object.Object, "rolled out", "spec", "template", "metadata", "annotations", "example"))
	require.NoError(t, w.client(t).Apply(t.Context(), w.object))
}

// become waits until the workload has a number of pods, all ready, and none of those
// that are to go.
func (w workload) become(t *testing.T, count int, gone ...proxies.Pod) []proxies.Pod {
	t.Helper()
	var pods []proxies.Pod
	waittest.NoError(t, fmt.Sprintf("%s has %d pods", w.name, count), func() error {
		pods = slices.DeleteFunc(w.allPods(t), func(p proxies.Pod) bool { return p.Cluster != w.cluster || p.Workload != w.name })
		for _, p := range pods {
			if !p.Ready || slices.ContainsFunc(gone, func(g proxies.Pod) bool { return g.UID == p.UID }) {
				return fmt.Errorf("of %v, one is not ready or to go", pods)
			}
		}
		if len(pods) != count {
			return fmt.Errorf("%d pods", len(pods))
		}
		return nil
	})
	return pods
}

// answers waits until requests arrive at each of the pods.
func (w workload) answers(t *testing.T, pods ...proxies.Pod) {
	t.Helper()
	for _, p := range pods {
		waittest.NoError(t, p.Pod+" answers", func() error {
			hosts, err := w.plane.Received(t.Context(), p)
			if err == nil && len(hosts) == 0 {
				err = fmt.Errorf("pod %s has no request", p.Pod)
			}
			return err
		})
	}
}

// changed scales, replaces and rolls out a workload under load.
func changed(t *testing.T, e *environment) {
	t.Helper()
	w := e.workload(t, "cluster-1", "details-v1")
	e.drained(t)
	l := e.under(t, e.pod(t, "cluster-1", "productpage-v1"), "http://details:9080", 200)
	w.scale(t, 2)
	both := w.become(t, 2)
	w.answers(t, both...)
	t.Logf("%s: two pods answer", time.Now().Format("15:04:05.000"))

	require.NoError(t, w.client(t).Delete(t.Context(), kube.Pods(), "bookinfo", both[0].Pod))
	both = w.become(t, 2, both[0])
	w.answers(t, both...)
	t.Logf("%s: one was replaced", time.Now().Format("15:04:05.000"))

	w.scale(t, 1)
	last := w.become(t, 1)
	t.Logf("%s: one is left", time.Now().Format("15:04:05.000"))

	w.rollOut(t)
	w.answers(t, w.become(t, 1, last...)...)
	t.Logf("%s: the template has changed", time.Now().Format("15:04:05.000"))
	assert.Greater(t, l.clean(t), 500)
}

// changedElsewhere rolls out a workload whose callers are in another cluster: they
// keep their connections through its gateway until its proxy closes them.
func changedElsewhere(t *testing.T, e *environment) {
	t.Helper()
	w := e.workload(t, "cluster-2", "ratings-v1")
	before := w.become(t, 1)
	l := e.under(t, e.pod(t, "cluster-1", "productpage-v1"), "http://ratings.bookinfo.svc.cluster-2.global:9080", 200)
	w.answers(t, before...)
	w.rollOut(t)
	w.answers(t, w.become(t, 1, before...)...)
	assert.Greater(t, l.clean(t), 200)
}

// emptied takes the pods of a workload away, and gives it one again. Nothing of the
// first one is left.
func emptied(t *testing.T, e *environment) {
	t.Helper()
	w := e.workload(t, "cluster-1", "reviews-v2")
	before := w.become(t, 1)[0]
	folder := e.folder(before)
	inside := working(t, folder)
	require.GreaterOrEqual(t, len(inside), 3, "an application, an agent and an Envoy")
	network := inside[0].network
	w.scale(t, 0)
	w.become(t, 0)
	waittest.NoError(t, "nothing of the pod is left", func() error {
		if left := working(t, folder); len(left) > 0 {
			return fmt.Errorf("processes %v", left)
		}
		if holders := holding(t, e.options.Dir, network); len(holders) > 0 {
			return fmt.Errorf("network namespace %s, in %v", network, holders)
		}
		if _, err := os.Stat(folder); !os.IsNotExist(err) {
			return fmt.Errorf("folder %s: %w", folder, err)
		}
		return nil
	})

	w.scale(t, 1)
	// Whoever asks a pod that starts gets an answer or an error.
	waittest.NoError(t, "the pod's Envoy answers", func() error {
		pods := e.allPods(t)
		at := slices.IndexFunc(pods, func(p proxies.Pod) bool { return p.Cluster == w.cluster && p.Workload == w.name })
		if at < 0 {
			return fmt.Errorf("no pod of %s", w.name)
		}
		_, err := e.plane.Stats(t.Context(), pods[at], "server.live")
		return err
	})
	after := w.become(t, 1)[0]
	assert.NotEqual(t, before.UID, after.UID)
	object, err := w.client(t).Get(t.Context(), kube.Pods(), "bookinfo", after.Pod)
	require.NoError(t, err)
	address, _, err := unstructured.NestedString(object.Object, "status", "podIP")
	require.NoError(t, err)
	assert.Equal(t, address, after.IP)
	waittest.NoError(t, "the new pod gets its tenth of the requests for reviews", func() error {
		all, err := e.send(t.Context(), e.pod(t, "cluster-1", "productpage-v1"), app.Call{URL: reviews, Count: 100})
		if err == nil && (len(all.failed()) > 0 || all[localV2] == 0) {
			err = fmt.Errorf("%v", all)
		}
		return err
	})
}

// broken kills an application and lets it be, lets it crash, and takes it out of
// service.
func broken(t *testing.T, e *environment) {
	t.Helper()
	ctx := t.Context()
	w := e.workload(t, "cluster-1", "ratings-v1")
	s := target{e, e.pod(t, "cluster-1", "productpage-v1"), "http://ratings:9080"}
	const ratings = "ratings-v1-bookinfo-cluster-1"
	sending := func() error {
		return demo.Send(ctx, e.options, ratings, app.Call{URL: "http://details:9080", Count: 1}, func(demo.Traffic) {})
	}
	for _, fault := range []proxies.Fault{{Unready: true}, {Killed: true}} {
		names, err := demo.Break(ctx, e.options, ratings, fault)
		require.NoError(t, err)
		require.Len(t, names, 1)
		waittest.NoError(t, fmt.Sprintf("%+v", fault), func() error {
			x, err := s.get(ctx, app.Call{})
			if err == nil && (x.status != 503 || x.error != "no healthy upstream") {
				err = fmt.Errorf("status %d %s, but it should not be an endpoint", x.status, x.error)
			}
			return err
		})
		if fault.Killed {
			require.ErrorContains(t, sending(), "its application was killed")
		}
		_, err = demo.Break(ctx, e.options, ratings, proxies.Fault{})
		require.NoError(t, err)
		require.NoError(t, sending(), "it waits until the pod is ready")
		waittest.NoError(t, "repaired", func() error { return s.want(ctx, 200, app.Call{}) })
	}
	pod := w.become(t, 1)[0]
	first := programs(t, e.folder(pod))["app"]
	require.NotZero(t, first)
	ended := e.sendingFrom(t, pod)
	kill(t, first)
	require.ErrorContains(t, <-ended, "ended while it sent requests")
	waittest.Until(t, "the application is restarted", func() bool {
		again := programs(t, e.folder(pod))["app"]
		return again != 0 && again != first
	})
	waittest.NoError(t, "after a crash", func() error { return s.want(ctx, 200, app.Call{}) })
}

// sendingFrom sends requests as a pod, and returns how that ends.
func (e *environment) sendingFrom(t *testing.T, pod proxies.Pod) <-chan error {
	t.Helper()
	ended, reported := make(chan error, 1), make(chan bool, 1)
	go func() {
		ended <- e.plane.Send(t.Context(), pod, app.Call{URL: "http://details:9080", Rate: 20, EveryMs: 20}, func([]app.Outcome) {
			select {
			case reported <- true:
			default:
			}
		})
	}()
	select {
	case <-reported:
	case err := <-ended:
		t.Fatalf("pod %s sends no requests: %v", pod.Pod, err)
	}
	return ended
}

// killed kills the process that stands in for the kubelets. Up starts it again; here
// with tokens that are renewed often.
func killed(t *testing.T, e *environment) {
	t.Helper()
	ctx := t.Context()
	report, err := demo.Status(ctx, e.options)
	require.NoError(t, err)
	require.True(t, report.Healthy())
	var spaces []string
	for _, p := range working(t, filepath.Join(e.options.Dir, "proxies", "pods")) {
		spaces = append(spaces, p.pids)
	}
	spaces = slices.Compact(spaces)
	require.Len(t, spaces, 1, "all pods share a PID namespace")
	count := len(e.allPods(t))

	e.renewTokens(t, time.Second)
	kill(t, report.Proxies.PID)
	waittest.Until(t, "status tells it", func() bool {
		report, err = demo.Status(ctx, e.options)
		require.NoError(t, err)
		return !report.Proxies.Alive && !report.Healthy()
	})
	_, err = demo.Plane(e.options)
	require.ErrorContains(t, err, "restart them with `meshctl demo up`")

	e.up(t)
	all := e.allPods(t)
	require.Len(t, all, count)
	for _, p := range all {
		assert.True(t, p.Ready, "%s: up returns when the proxies are ready", p.Pod)
	}
	waittest.NoError(t, "no process of the first one is left", func() error {
		for _, p := range working(t, "/") {
			if p.pids == spaces[0] {
				return fmt.Errorf("process %d in %s", p.pid, p.folder)
			}
		}
		return nil
	})
	// Istio may need a moment more to tell them of each other.
	from := e.pod(t, "cluster-1", "productpage-v1")
	waittest.NoError(t, "requests pass", func() error {
		all, err := e.send(ctx, from, app.Call{URL: reviews, Count: 40})
		if err == nil && len(all.failed()) > 0 {
			err = fmt.Errorf("%v", all)
		}
		return err
	})
	sent, err := e.send(ctx, from, app.Call{URL: reviews, Count: 200})
	require.NoError(t, err)
	assert.Empty(t, sent.failed())
	e.renewed(t)
}

func (e *environment) allPods(t *testing.T) []proxies.Pod {
	t.Helper()
	pods, err := e.pods(t.Context())
	require.NoError(t, err)
	return pods
}

// renewTokens sets the time between two tokens of a pod, for the next start.
func (e *environment) renewTokens(t *testing.T, every time.Duration) {
	t.Helper()
	path := filepath.Join(e.options.Dir, "proxies", "dataplane.json")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	configuration := map[string]any{}
	require.NoError(t, json.Unmarshal(data, &configuration))
	configuration["tokenSeconds"] = every.Seconds()
	data, err = json.Marshal(configuration)
	require.NoError(t, err)
	require.NoError(t, files.Write(path, data))
}

// renewed waits until the token of a pod is replaced, and restarts its agent, which
// gets a certificate with the new one.
func (e *environment) renewed(t *testing.T) {
	t.Helper()
	pod := e.pod(t, "cluster-1", "details-v1")
	first := e.token(t, pod)
	require.Equal(t, pod.Pod, first.Kubernetes.Pod.Name)
	waittest.Until(t, "the token is renewed", func() bool { return e.token(t, pod).Expires > first.Expires })
	agent := programs(t, e.folder(pod))["agent"]
	require.NotZero(t, agent)
	kill(t, agent)
	s := target{e, e.pod(t, "cluster-1", "productpage-v1"), "http://details:9080"}
	waittest.NoError(t, "requests pass with a new certificate", func() error {
		if again := programs(t, e.folder(pod))["agent"]; again == 0 || again == agent {
			return fmt.Errorf("agent %d", again)
		}
		return s.want(t.Context(), 200, app.Call{})
	})
}

// token is what a service account's token says (RFC 7519).
type token struct {
	Expires    int64 `json:"exp"`
	Kubernetes struct {
		Pod struct{ Name string } `json:"pod"`
	} `json:"kubernetes.io"`
}

func (e *environment) token(t *testing.T, pod proxies.Pod) (claims token) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(e.folder(pod), "var/run/secrets/tokens/istio-token"))
	require.NoError(t, err)
	parts := strings.Split(string(data), ".")
	require.Len(t, parts, 3)
	data, err = base64.RawURLEncoding.DecodeString(parts[1])
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &claims))
	return claims
}

// folder is where the processes of a pod work.
func (e *environment) folder(pod proxies.Pod) string {
	return filepath.Join(e.options.Dir, "proxies", "pods", pod.UID)
}
