package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Bounds of what is read, as neither proxies nor clusters are trusted.
const (
	// maxPage is the largest page of a proxy, in bytes.
	maxPage = 10 << 20
	// maxProxies is how many proxies of one cluster are read, and atOnce how many of them at a time.
	maxProxies = 500
	atOnce     = 8
	// maxTime is how long one proxy may take, and askAgain how long an answer about rights counts.
	maxTime  = 5 * time.Second
	askAgain = time.Minute
	// maxDetail is the longest text of an error that is kept, in bytes.
	maxDetail = 300
)

// right is whether the proxies of a cluster may be read. Reason is empty if they may.
type right struct {
	asked  time.Time
	config *rest.Config
	reason traffic.Reason
	detail string
}

func newTerm(o Options, now time.Time) *term {
	o.every = cmp.Or(o.every, traffic.Point)
	if o.get == nil {
		o.get = kube.GetFromPod
	}
	if o.allowed == nil {
		o.allowed = func(ctx context.Context, config *rest.Config) (bool, error) {
			return kube.AskForward(ctx, config, "", "")
		}
	}
	if o.account == nil {
		o.account = kube.Account
	}
	return &term{
		Options: o, book: traffic.NewBook(now), ring: traffic.NewRing(now, traffic.MaxEdges),
		status: map[traffic.Proxy]traffic.Status{}, rights: map[string]right{},
	}
}

// run reads all proxies every so often, until ctx ends. A round that takes longer than that delays the next one.
func (t *term) run(ctx context.Context) {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		began := time.Now()
		if state := t.State(); state != nil {
			t.round(ctx, state)
		}
		tick.Reset(max(t.every-time.Since(began), time.Second))
	}
}

// round reads each proxy once.
func (t *term) round(ctx context.Context, state *snapshot.State) {
	survey := traffic.Look(state)
	byCluster := map[string][]*traffic.Pod{}
	for i := range survey.Pods {
		pod := &survey.Pods[i]
		byCluster[pod.Proxy.Cluster] = append(byCluster[pod.Proxy.Cluster], pod)
	}
	t.begin(state, byCluster)
	configs := t.Clusters()
	var clusters sync.WaitGroup
	defer clusters.Wait()
	for name, pods := range byCluster {
		clusters.Go(func() { t.cluster(ctx, name, configs[name], pods) })
	}
}

// begin takes a translation over, and forgets the proxies that are gone.
func (t *term) begin(state *snapshot.State, byCluster map[string][]*traffic.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != state {
		t.state, t.names, t.peers = state, traffic.NewNames(state.Plan), traffic.NewPeers(state.Plan)
	}
	there := map[traffic.Proxy]bool{}
	for _, pods := range byCluster {
		for _, pod := range pods {
			there[pod.Proxy] = true
		}
	}
	for proxy := range t.status {
		if !there[proxy] {
			delete(t.status, proxy)
		}
	}
	for _, c := range state.Input.Clusters {
		// What could not be read is not taken for gone.
		if !c.Frozen() {
			t.book.Keep(c.Name, func(p traffic.Proxy) bool { return there[p] })
		}
	}
}

// cluster reads the proxies of one cluster.
func (t *term) cluster(ctx context.Context, name string, config *rest.Config, pods []*traffic.Pod) {
	if reason, detail := t.may(ctx, name, config); reason != "" {
		for _, pod := range pods {
			t.failed(pod, reason, detail)
		}
		return
	}
	config = kube.Unlimited(config)
	config.Timeout = 0
	places := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	defer group.Wait()
	for i, pod := range pods {
		if i >= maxProxies {
			t.failed(pod, traffic.TooMany, fmt.Sprintf("%d of %d are read", maxProxies, len(pods)))
			continue
		}
		group.Go(func() {
			if !sleep(ctx, t.offset(pod.Proxy)) {
				return
			}
			places <- struct{}{}
			defer func() { <-places }()
			t.proxy(ctx, config, pod)
		})
	}
}

// offset is when in a round a proxy is read: always at the same time, so that its readings are as far apart as rounds are, and in a third of
// the round, so that API servers do not get all requests at once.
func (t *term) offset(p traffic.Proxy) time.Duration {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(p.Cluster + "/" + p.Namespace + "/" + p.Pod))
	return time.Duration(hash.Sum32()%1000) * t.every / 3000
}

func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// may says why the proxies of a cluster are not read; empty if they are.
func (t *term) may(ctx context.Context, name string, config *rest.Config) (reason traffic.Reason, detail string) {
	if config == nil {
		return traffic.Unreachable, "it has no usable credential"
	}
	t.mu.Lock()
	known := t.rights[name]
	t.mu.Unlock()
	if known.config == config && time.Since(known.asked) < askAgain {
		return known.reason, known.detail
	}
	now := right{asked: time.Now(), config: config}
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	switch allowed, err := t.allowed(ctx, config); {
	case err != nil:
		return traffic.Unreachable, clip(kube.Text(err)) // asked again in the next round
	case !allowed:
		now.reason = traffic.NotAllowed
		if account := t.account(ctx, config); account != "" {
			now.detail = "its account is " + account
		}
	}
	if now.reason != known.reason || known.config == nil {
		t.Log.Info("whether what proxies count is read", "cluster", name, "read", now.reason == "", "reason", now.reason.String())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rights[name] = now
	return now.reason, now.detail
}

// proxy reads one proxy.
func (t *term) proxy(ctx context.Context, config *rest.Config, pod *traffic.Pod) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	defer cancel()
	reading, err := t.page(ctx, config, pod, pod.Stats.Path)
	at := time.Now()
	if err == nil && !reading.Counts() && !t.counts(pod.Proxy) {
		var unused *traffic.Reading
		if unused, err = t.page(ctx, config, pod, pod.Stats.Unused); err == nil {
			reading.Beside(unused)
		}
	}
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		t.failed(pod, traffic.Failed, fmt.Sprintf("pod %s/%s: no answer within %s", pod.Proxy.Namespace, pod.Proxy.Pod, maxTime))
		return
	case err != nil:
		t.failed(pod, traffic.Failed, clip(fmt.Sprintf("pod %s/%s: %s", pod.Proxy.Namespace, pod.Proxy.Pod, kube.Text(err))))
		return
	}
	t.took(pod, at, reading)
}

func (t *term) page(ctx context.Context, config *rest.Config, pod *traffic.Pod, path string) (*traffic.Reading, error) {
	text, err := t.get(ctx, config, pod.Proxy.Namespace, pod.Proxy.Pod, pod.Stats.Port, path, maxPage)
	if err != nil {
		return nil, err
	}
	return traffic.Read(text, pod.Stats)
}

func (t *term) counts(p traffic.Proxy) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.book.Counts(p)
}

// took adds a reading.
func (t *term) took(pod *traffic.Pod, at time.Time, reading *traffic.Reading) {
	t.reads.WithLabelValues(pod.Proxy.Cluster, "ok").Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, came := range t.book.Take(pod.Proxy, at, reading) {
		t.ring.Add(at, t.names.Key(pod.Workload, came.Target), &came.Values)
	}
	now := traffic.Status{Read: at}
	if !t.book.Counts(pod.Proxy) {
		now = traffic.Status{Reason: traffic.NotCounted}
	}
	t.status[pod.Proxy] = now
}

func (t *term) failed(pod *traffic.Pod, reason traffic.Reason, detail string) {
	t.reads.WithLabelValues(pod.Proxy.Cluster, string(reason)).Inc()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status[pod.Proxy] = traffic.Status{Read: t.status[pod.Proxy].Read, Reason: reason, Detail: detail}
}

func clip(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetail], "") + "…"
}
