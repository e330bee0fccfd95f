package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proxies"
)

// ErrNoProxies is returned where requests cannot be sent.
var ErrNoProxies = errors.New("the demo runs without proxies, so no requests can be sent")

// ErrNoWorkload is returned for a name that no workload with a proxy has.
var ErrNoWorkload = errors.New("no such workload")

// Traffic is what became of requests.
type Traffic struct {
	Requests int      `json:"requests"`
	Answers  []Answer `json:"answers"`
}

// Answer are the requests that had the same end.
type Answer struct {
	// Workload, Cluster and Pod answered; they are empty if a proxy did, or nobody.
	Workload string `json:"workload"`
	Cluster  string `json:"cluster"`
	Pod      string `json:"pod,omitempty"`
	// Status is that of HTTP or gRPC; 0 over TCP, and without an answer.
	Status int `json:"status"`
	// Error is why no application answered.
	Error string `json:"error,omitempty"`
	Count int    `json:"count"`
	// P50Ms and P99Ms are percentiles of the latency, in milliseconds.
	P50Ms float64 `json:"p50Ms"`
	P99Ms float64 `json:"p99Ms"`
}

// Failed reports whether these requests got no answer, or one that says that they failed: a status of HTTP from 400 on, or one of gRPC
// but 0.
func (a Answer) Failed() bool { return a.Error != "" || a.Status >= 400 || a.Workload == "" }

// Send sends requests as a workload of the demo in opts.Dir, and passes what became
// of them to report: at the end, also if ctx ends before, or each call.EveryMs
// milliseconds. The name is that of the Workload object, or the beginning of one.
func Send(ctx context.Context, opts Options, workload string, call app.Call, report func(Traffic)) error {
	plane, err := openPlane(opts)
	if err != nil {
		return err
	}
	pods, err := find(ctx, plane, workload)
	if err != nil {
		return err
	}
	from, err := waitSender(ctx, plane, pods)
	if err != nil {
		return err
	}
	if call.EveryMs != 0 {
		return plane.Send(ctx, from, call, func(all []app.Outcome) { report(summarize(all)) })
	}
	call.EveryMs = partialMs
	var all []app.Outcome
	if err := plane.Send(ctx, from, call, func(more []app.Outcome) { all = merge(all, more) }); err != nil {
		return err
	}
	report(summarize(all))
	return nil
}

// partialMs is how often, in milliseconds, it is noted what became of requests, so
// that it is known when they are interrupted.
const partialMs = 200

// merge adds outcomes to those with the same end.
func merge(all, more []app.Outcome) []app.Outcome {
	for _, o := range more {
		same := func(a app.Outcome) bool {
			return a.Identity == o.Identity && a.Status == o.Status && a.Error == o.Error
		}
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Micros = append(all[i].Micros, o.Micros...)
		} else {
			all = append(all, o)
		}
	}
	return all
}

// senderTimeout bounds the time until a pod that starts is ready.
const senderTimeout = 20 * time.Second

// waitSender chooses the pod of a workload that sends requests. One that starts, as
// after a repair, needs a moment.
func waitSender(ctx context.Context, plane dataPlane, pods []proxies.Pod) (from proxies.Pod, err error) {
	timed, cancel := context.WithTimeout(ctx, senderTimeout)
	defer cancel()
	if from, err = sender(pods); err == nil || pods[0].Fault.Killed {
		return from, err
	}
	err = kube.Until(timed, "waiting for a pod that can send requests", func(ctx context.Context) error {
		again, err := find(ctx, plane, objectName(pods[0]))
		if err != nil {
			return kube.Final(err)
		}
		from, err = sender(again)
		return err
	})
	return from, err
}

// sender is a pod that is ready, or was only made unready.
func sender(pods []proxies.Pod) (proxies.Pod, error) {
	for _, p := range pods {
		if p.Ready || p.Fault.Unready && !p.Fault.Killed {
			return p, nil
		}
	}
	first := pods[0]
	if first.Fault.Killed {
		return first, fmt.Errorf("demo: workload %s: its application was killed; repair it with `meshctl demo repair`", objectName(first))
	}
	return first, fmt.Errorf("demo: workload %s: pod %s is not ready; see the logs that `meshctl demo status` names", objectName(first), first.Pod)
}

// Break gives a workload of the demo a fault; an empty one repairs it. Without a
// name, all workloads get it.
func Break(ctx context.Context, opts Options, workload string, fault proxies.Fault) (names []string, err error) {
	plane, err := openPlane(opts)
	if err != nil {
		return nil, err
	}
	pods, err := find(ctx, plane, workload)
	if err != nil {
		return nil, err
	}
	done := map[app.Identity]bool{}
	for _, p := range pods {
		owner := p.Identity
		owner.Pod = ""
		if done[owner] || fault == (proxies.Fault{}) && p.Fault == fault {
			continue
		}
		done[owner] = true
		if err := plane.Break(ctx, owner, fault); err != nil {
			return nil, err
		}
		names = append(names, objectName(p))
	}
	return names, nil
}

// Plane opens the data plane of the running demo in opts.Dir, whose clusters are local.
func Plane(opts Options) (*proxies.Plane, error) {
	_, s, err := running(opts)
	if err != nil {
		return nil, err
	}
	return localPlane(s)
}

// openPlane opens the data plane of the running demo in opts.Dir.
func openPlane(opts Options) (dataPlane, error) {
	opts, s, err := running(opts)
	if err != nil {
		return nil, err
	}
	opts.Runtime = s.Runtime
	runtime, err := newRuntime(opts, nil)
	if err != nil {
		return nil, err
	}
	return runtime.plane(s)
}

// running returns the options and the state of a demo that is running.
func running(opts Options) (Options, state, error) {
	opts, err := opts.complete()
	if err != nil {
		return opts, state{}, err
	}
	s, err := existing(opts)
	if err == nil && s.Phase != Running {
		err = fmt.Errorf("demo: the demo in %s is %s: %w", opts.Dir, s.Phase, ErrNotRunning)
	}
	return opts, s, err
}

// objectName is the name of the Workload object that discovery makes for the owner
// of a pod.
func objectName(p proxies.Pod) string {
	return strings.Join([]string{p.Workload, p.Namespace, p.Cluster, "deployment"}, "-")
}

// find returns the pods of the one workload with a name, or whose name begins with
// it; without a name, all pods with an application.
func find(ctx context.Context, plane dataPlane, workload string) ([]proxies.Pod, error) {
	pods, err := plane.Pods(ctx)
	if err != nil {
		return nil, err
	}
	pods = slices.DeleteFunc(pods, func(p proxies.Pod) bool { return p.Gateway })
	found := map[string][]proxies.Pod{}
	var all []string
	for _, p := range pods {
		name := objectName(p)
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
		if name == workload {
			found = map[string][]proxies.Pod{name: append(found[name], p)}
		} else if strings.HasPrefix(name, workload) && found[workload] == nil {
			found[name] = append(found[name], p)
		}
	}
	switch {
	case workload == "":
		return pods, nil
	case len(found) == 0:
		return nil, fmt.Errorf("demo: workload %q: %w; there are %s", workload, ErrNoWorkload, strings.Join(all, ", "))
	case len(found) > 1:
		var names []string
		for _, name := range all {
			if found[name] != nil {
				names = append(names, name)
			}
		}
		return nil, fmt.Errorf("demo: workload %q: %w with only this name; name one of %s", workload, ErrNoWorkload, strings.Join(names, ", "))
	}
	for _, p := range found {
		return p, nil
	}
	return nil, nil
}

// summarize counts outcomes, the most frequent first.
func summarize(outcomes []app.Outcome) Traffic {
	t := Traffic{Answers: []Answer{}}
	for _, o := range outcomes {
		slices.Sort(o.Micros)
		t.Requests += len(o.Micros)
		t.Answers = append(t.Answers, Answer{
			Workload: o.Workload, Cluster: o.Cluster, Pod: o.Pod, Status: o.Status, Error: o.Error,
			Count: len(o.Micros), P50Ms: quantile(o.Micros, 0.5), P99Ms: quantile(o.Micros, 0.99),
		})
	}
	slices.SortFunc(t.Answers, func(a, b Answer) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Pod, b.Pod), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Error, b.Error))
	})
	return t
}

// quantile returns the latency, in milliseconds, that a share of the sorted
// latencies in microseconds does not exceed.
func quantile(sorted []int64, share float64) float64 {
	if len(sorted) == 0 {
		return 0
	}
	return float64(sorted[min(len(sorted)-1, int(share*float64(len(sorted))))]) / 1000
}

// sampleRequests is the number of requests that Up sends between two workloads.
const sampleRequests = 200

// sendRequests sends requests through the proxies once they have the policies, and
// stores what became of them for the summary.
func (u *up) sendRequests(ctx context.Context) error {
	if u.state.NoProxies != "" {
		u.opts.Progress.Note("none: %s", u.state.NoProxies)
		return nil
	}
	plane, err := u.runtime.plane(u.state)
	if err != nil {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, enforceTimeout)
	defer cancel()
	// Istio has the objects now; its proxies have them when a request gets what
	// the policies say.
	err = kube.Until(timed, "waiting for the proxies", func(ctx context.Context) error {
		shifted, err := sample(ctx, plane, "productpage-v1", "http://reviews:9080/reviews/1", 20)
		if err != nil {
			return err
		}
		refused, err := sample(ctx, plane, "details-v1", "http://ratings:9080/ratings/1", 1)
		if err != nil {
			return err
		}
		for _, a := range append(shifted.Answers, refused.Answers...) {
			if a.Status != 200 && a.Status != 403 {
				return fmt.Errorf("a request gets %d %s", a.Status, a.Error)
			}
		}
		if !slices.ContainsFunc(shifted.Answers, func(a Answer) bool { return a.Cluster != u.state.Clusters[0] && a.Status == 200 }) || refused.Answers[0].Status != 403 {
			return errors.New("requests do not get what the policies say yet")
		}
		return nil
	})
	if err != nil {
		return err
	}
	var lines []string
	for _, call := range [][3]string{
		{"productpage-v1", "reviews", "http://reviews:9080/reviews/1"}, {"productpage-v1", "details", "http://details:9080/details/1"}, {"details-v1", "ratings", "http://ratings:9080/ratings/1"},
	} {
		t, err := sample(ctx, plane, call[0], call[2], sampleRequests)
		if err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("  %d requests %s to %s: %s", t.Requests, call[0], call[1], t))
	}
	u.traffic = "Requests through the proxies:\n\n" + strings.Join(lines, "\n")
	return nil
}

// sample sends requests and returns what became of them.
func sample(ctx context.Context, plane dataPlane, from, url string, count int) (Traffic, error) {
	pods, err := find(ctx, plane, from)
	if err != nil {
		return Traffic{}, err
	}
	var t Traffic
	err = plane.Send(ctx, pods[0], app.Call{URL: url, Count: count, Parallel: min(count, 10), TimeoutMs: int(10 * time.Second / time.Millisecond)}, func(all []app.Outcome) { t = summarize(all) })
	return t, err
}

// String counts answers by cluster and workload: "151 cluster-2 reviews-v3, 49
// refused".
func (t Traffic) String() string {
	counts := map[string]int{}
	var order []string
	for _, a := range t.Answers {
		what := a.Cluster + " " + a.Workload
		switch {
		case a.Status == 403 && a.Workload == "":
			what = "refused"
		case a.Workload == "":
			what = fmt.Sprintf("failed (%d %s)", a.Status, a.Error)
		case a.Status != 200:
			what = fmt.Sprintf("%s answered %d", what, a.Status)
		}
		if counts[what] == 0 {
			order = append(order, what)
		}
		counts[what] += a.Count
	}
	parts := make([]string, len(order))
	for i, what := range order {
		parts[i] = fmt.Sprintf("%d %s", counts[what], what)
	}
	return strings.Join(parts, ", ")
}
