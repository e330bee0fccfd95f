package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// environment is a running demo.
type environment struct {
	// test is the one with which the demo ends.
	test       testing.TB
	options    demo.Options
	clusters   map[string]*local.Cluster
	management *kube.Client
	plane      *proxies.Plane
	// caller is that of the control namespace, once it is made; uncontrolled says that it is not to be.
	caller       proxies.Pod
	uncontrolled bool
}

// newEnvironment starts the demo; it ends with the test.
func newEnvironment(t testing.TB) *environment {
	t.Helper()
	return startEnvironment(t, demo.Options{})
}

// startEnvironment starts a demo with options of its own; it ends with the test.
func startEnvironment(t testing.TB, options demo.Options) *environment {
	t.Helper()
	waittest.SkipIfShort(t, "starts the demo")
	sandboxtest.Proxies(t)
	options.Dir, options.Meshctl, options.Proxies = filepath.Join(t.TempDir(), "demo"), sandboxtest.Meshctl(t), demo.ProxiesOn
	e := &environment{test: t, options: options, clusters: map[string]*local.Cluster{}}
	t.Cleanup(func() {
		if t.Failed() {
			e.logs(t)
		}
		if err := demo.Down(context.Background(), e.options); err != nil && !errors.Is(err, demo.ErrNotRunning) {
			t.Errorf("stopping the demo: %v", err)
		}
	})
	e.up(t)
	var err error
	e.management, err = e.clusters["cluster-1"].Client()
	require.NoError(t, err)
	return e
}

// up starts what does not run of the demo.
func (e *environment) up(t testing.TB) {
	t.Helper()
	require.NoError(t, demo.Up(context.WithoutCancel(t.Context()), e.options))
	e.watch()
	var err error
	for _, name := range []string{"cluster-1", "cluster-2"} {
		e.clusters[name], err = local.Open(filepath.Join(e.options.Dir, name), nil)
		require.NoError(t, err)
	}
	e.plane, err = demo.Plane(e.options)
	require.NoError(t, err)
}

// watch ends the demo's processes if the test binary ends early.
func (e *environment) watch() {
	t := e.test
	t.Helper()
	report, err := demo.Status(t.Context(), e.options)
	require.NoError(t, err)
	pids := []int{report.Serve.PID, report.Proxies.PID}
	for _, agent := range report.Agents {
		pids = append(pids, agent.PID)
	}
	for _, c := range report.Clusters {
		for _, p := range c.Processes {
			pids = append(pids, p.PID)
		}
	}
	sandboxtest.Watch(t, pids...)
}

// logs prints what may explain a failure: the problems that meshctl reports, and the
// ends of the logs.
func (e *environment) logs(t testing.TB) {
	t.Helper()
	t.Logf("meshctl describe problems: %s", e.problems())
	names := []string{"logs/serve.log", "logs/kubelet.log", "logs/agent-of-cluster-1.log", "logs/agent-of-cluster-2.log", "proxies/logs/kubelet.log"}
	inside, _ := filepath.Glob(filepath.Join(e.options.Dir, "proxies/logs/cluster-2.gloo-mesh.*.log")) // the pattern is good
	for i, name := range inside {
		inside[i], _ = filepath.Rel(e.options.Dir, name)
	}
	for _, name := range append(names, inside...) {
		data, err := os.ReadFile(filepath.Join(e.options.Dir, name))
		if err == nil {
			t.Logf("the end of %s:\n%s", name, data[max(0, len(data)-4000):])
		}
	}
}

// problems is what meshctl says is wrong.
func (e *environment) problems() string {
	management := e.clusters["cluster-1"]
	if management == nil {
		return "the demo did not start"
	}
	// Its exit code says whether there are any.
	out, _ := exec.Command(e.options.Meshctl, "describe", "problems", "--kubeconfig", management.Kubeconfig()).CombinedOutput()
	return string(out)
}

// reports waits until meshctl reports a problem with a code.
func (e *environment) reports(t *testing.T, code snapshot.Code) {
	t.Helper()
	waittest.NoError(t, "meshctl reports "+string(code), func() error {
		if all := e.problems(); !strings.Contains(all, "("+string(code)+")") {
			return errors.New(all)
		}
		return nil
	})
}

// pod returns a pod of a workload.
func (e *environment) pod(t testing.TB, cluster, workload string) proxies.Pod {
	t.Helper()
	pods, err := e.pods(t.Context())
	require.NoError(t, err)
	at := slices.IndexFunc(pods, func(p proxies.Pod) bool { return p.Cluster == cluster && p.Workload == workload })
	require.GreaterOrEqual(t, at, 0, "no pod of %s in %s", workload, cluster)
	return pods[at]
}

// apply writes documents to the management cluster.
func (e *environment) apply(t testing.TB, documents string) {
	t.Helper()
	require.NoError(t, e.management.ApplyYAML(context.WithoutCancel(t.Context()), []byte(documents)))
}

// during writes documents to the management cluster for the time of the test.
func (e *environment) during(t testing.TB, documents string) {
	t.Helper()
	e.apply(t, documents)
	t.Cleanup(func() { e.remove(t, documents) })
}

// remove deletes the objects of documents from the management cluster.
func (e *environment) remove(t testing.TB, documents string) {
	t.Helper()
	require.NoError(t, e.management.DeleteYAML(context.WithoutCancel(t.Context()), []byte(documents)))
}

// counts are the numbers of requests by outcome: "cluster-2 reviews-v3" for an
// answer of an application that reports no error, else the status and who answered.
type counts map[string]int

func (c counts) add(outcomes []app.Outcome) {
	for _, o := range outcomes {
		c[name(o)] += len(o.Micros)
	}
}

func name(o app.Outcome) string {
	who := strings.TrimSpace(o.Cluster + " " + o.Workload)
	switch {
	case who != "" && (o.Status == 200 || o.Status == 0): // 0 is success of gRPC and TCP
		return who
	case who == "":
		return fmt.Sprintf("%d %s", o.Status, o.Error)
	default:
		return fmt.Sprintf("%d from %s", o.Status, who)
	}
}

func (c counts) total() (n int) {
	for _, count := range c {
		n += count
	}
	return n
}

// failed are the outcomes other than answers of an application that report no error.
func (c counts) failed() counts {
	failed := maps.Clone(c)
	maps.DeleteFunc(failed, func(name string, _ int) bool { return strings.HasPrefix(name, "cluster-") })
	return failed
}

// send sends requests and counts what became of them.
func (e *environment) send(ctx context.Context, from proxies.Pod, call app.Call) (counts, error) {
	if call.Parallel == 0 {
		call.Parallel = min(call.Count, 10)
	}
	if call.TimeoutMs == 0 {
		call.TimeoutMs = 5000
	}
	all := counts{}
	return all, e.plane.Send(ctx, from, call, all.add)
}

// load sends requests until it is stopped.
type load struct {
	mu     sync.Mutex
	all    counts
	failed []failure
	stop   func() counts
	// control are as many requests that no change touches; nil if there are none.
	control *load
	// seeing is called with the name of each outcome.
	seeing func(name string)
}

// failure is a report with requests that failed.
type failure struct {
	at time.Time
	counts
}

// drained waits until no proxy drains what it had before a change: when the drain time is over, Envoy
// closes the connections that are left, whether or not requests are under way on them. See
// https://www.envoyproxy.io/docs/envoy/latest/intro/arch_overview/operations/draining.
func (e *environment) drained(t *testing.T) {
	t.Helper()
	waittest.NoError(t, "no proxy drains connections", func() error {
		pods, err := e.pods(t.Context())
		if err != nil {
			return err
		}
		for _, p := range pods {
			stats, err := e.plane.Stats(t.Context(), p, "listener_manager.total_.*_draining")
			if err != nil {
				return err
			}
			for _, name := range []string{"listener_manager.total_listeners_draining", "listener_manager.total_filter_chains_draining"} {
				if count, known := stats[name]; !known || count > 0 {
					return fmt.Errorf("pod %s: %s is %d (known: %t)", p.Pod, name, count, known)
				}
			}
		}
		return nil
	})
}

// under starts requests at a rate, until stop.
func (e *environment) under(t testing.TB, from proxies.Pod, url string, rate int) *load {
	t.Helper()
	return e.load(t, from, app.Call{URL: url, Rate: rate, Parallel: 20})
}

// load starts requests, and as many in the control namespace unless it is gone, until stop.
func (e *environment) load(t testing.TB, from proxies.Pod, call app.Call) *load {
	t.Helper()
	if e.uncontrolled {
		return e.stream(t, from, call)
	}
	caller := e.control(t)
	l := e.stream(t, from, call)
	l.control = e.stream(t, caller, app.Call{URL: controlURL, Rate: call.Rate, Parallel: call.Parallel})
	stop := l.stop
	l.stop = func() counts {
		l.control.stop()
		return stop()
	}
	return l
}

// stream starts requests, until stop.
func (e *environment) stream(t testing.TB, from proxies.Pod, call app.Call) *load {
	t.Helper()
	call.TimeoutMs, call.EveryMs = 5000, 20
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{all: counts{}}
	done := make(chan error, 1)
	go func() {
		done <- e.plane.Send(ctx, from, call, func(outcomes []app.Outcome) {
			now := counts{}
			now.add(outcomes)
			l.mu.Lock()
			defer l.mu.Unlock()
			l.all.add(outcomes)
			if l.seeing != nil {
				for name := range now {
					l.seeing(name)
				}
			}
			if failed := now.failed(); len(failed) > 0 {
				l.failed = append(l.failed, failure{time.Now(), failed})
			}
		})
	}()
	l.stop = sync.OnceValue(func() counts {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("requests from %s to %s: %v", from.Pod, call.URL, err)
		}
		return l.counts()
	})
	t.Cleanup(func() { l.stop() })
	return l
}

// whole repeats a call until stop, which returns the outcomes once the last one has ended. All of them: a load that is stopped does not know
// what became of the requests on their way.
func (e *environment) whole(t testing.TB, from proxies.Pod, call app.Call) (stop func() counts) {
	t.Helper()
	all, last, done := counts{}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			now, err := e.send(t.Context(), from, call)
			if err != nil {
				t.Errorf("requests from %s to %s: %v", from.Pod, call.URL, err)
				return
			}
			for name, n := range now {
				all[name] += n
			}
			select {
			case <-last:
				return
			default:
			}
		}
	}()
	stop = sync.OnceValue(func() counts {
		close(last)
		<-done
		return all
	})
	t.Cleanup(func() { stop() })
	return stop
}

// counts are the outcomes until now.
func (l *load) counts() counts {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.all)
}

// watch passes the names of outcomes to see from now on.
func (l *load) watch(see func(name string)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seeing = see
}

// staysHome waits until requests for reviews stay in the cluster.
func (e *environment) staysHome(t testing.TB, from proxies.Pod) {
	t.Helper()
	waittest.Until(t, "no request goes to cluster-2", func() bool {
		all, err := e.send(t.Context(), from, app.Call{URL: reviews, Count: 20})
		require.NoError(t, err)
		return all[remoteV3] == 0
	})
}

// clean stops the requests, and checks that none failed but what the machine made fail, which the control stream
// shows. It returns their number.
func (l *load) clean(t *testing.T) int {
	t.Helper()
	all := l.stop()
	t.Logf("%d requests: %v", all.total(), all)
	l.log(t)
	if l.control == nil {
		assert.Empty(t, all.failed())
		return all.total()
	}
	control := l.control.stop()
	if failed := control.failed(); len(failed) > 0 {
		t.Logf("of %d requests that no change touches, failed: %v", control.total(), failed)
		l.control.log(t)
	}
	require.NotZero(t, control.total())
	assert.Zero(t, beyond(all.failed().total(), control.failed().total()), "failed: %v; of those that no change touches: %v", all.failed(), control.failed())
	return all.total()
}

// log prints what failed, and when.
func (l *load) log(t *testing.T) {
	t.Helper()
	for _, f := range l.failed {
		t.Logf("%s: %v", f.at.Format("15:04:05.000"), f.counts)
	}
}

// kill kills a process.
func kill(t *testing.T, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
}

// seen waits until some more requests get an outcome.
func (l *load) seen(t *testing.T, outcome string) {
	t.Helper()
	count := func() int { return l.counts()[outcome] }
	before := count()
	waittest.Until(t, outcome, func() bool { return count() > before+3 })
}

// exchange is one request and its answer.
type exchange struct {
	status  int
	took    time.Duration
	headers http.Header
	error   string
	// echo is what the application received; empty if it did not answer.
	echo struct {
		Workload string
		Cluster  string
		Method   string
		Host     string
		Path     string
		Headers  http.Header
		Attempt  int
	}
}

// one sends one request.
func (e *environment) one(ctx context.Context, from proxies.Pod, call app.Call) (x exchange, err error) {
	call.Count, call.Parallel, call.TimeoutMs = 1, 1, 10_000
	err = e.plane.Send(ctx, from, call, func(all []app.Outcome) {
		for _, o := range all {
			x.status, x.headers, x.error = o.Status, o.Headers, o.Error
			x.took = time.Duration(o.Micros[0]) * time.Microsecond
			_ = json.Unmarshal([]byte(o.Body), &x.echo) // a proxy answers with text
		}
	})
	return x, err
}

// number makes names of requests unique.
var number atomic.Int64

// header makes the headers of a request.
func header(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Set(pairs[i], pairs[i+1])
	}
	return h
}

// fails makes the application answer with a status to the first attempts.
func fails(status, attempts int) http.Header {
	return header("X-App-Status", strconv.Itoa(status), "X-App-First", strconv.Itoa(attempts), "X-App-Request", strconv.FormatInt(number.Add(1), 10))
}
