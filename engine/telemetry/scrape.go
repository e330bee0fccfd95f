package telemetry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
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
	// maxProxies is how many proxies of one cluster are read, and maxForwarded how many by way of its API server, which costs that more than
	// an agent is cost; atOnce is how many at a time.
	maxProxies   = 1000
	maxForwarded = 500
	atOnce       = 8
	// maxTime is how long one proxy may take, and askAgain how long an answer about rights counts.
	maxTime  = 5 * time.Second
	askAgain = time.Minute
	// namesAgain is how old names have to be before newer ones are taken within a round: it costs as much as there are services.
	namesAgain = time.Second
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
	o.every, o.learns = cmp.Or(o.every, traffic.Point), cmp.Or(o.learns, learns)
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
		logs:    newLogbook(now, o.Logging),
		Options: o, book: traffic.NewBook(now), ring: traffic.NewRing(now, traffic.MaxEdges),
		status: map[traffic.Proxy]traffic.Status{}, rights: map[string]right{}, entrances: map[string]traffic.Entrance{}, changed: map[string]time.Time{},
		pods: map[traffic.Proxy]*traffic.Pod{}, agents: map[string]*fromAgent{},
		answers: map[string]string{},
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
	t.begin(time.Now(), state, survey.Entrances, byCluster)
	t.logs.report(time.Now(), t.podsNow(), t.learns)
	configs := t.Clusters()
	var clusters sync.WaitGroup
	defer clusters.Wait()
	for name, pods := range byCluster {
		switch at := survey.Entrances[name]; at.Door {
		case traffic.Scrape:
			clusters.Go(func() { t.cluster(ctx, name, configs[name], pods) })
		case traffic.Prometheus:
			clusters.Go(func() { t.gather(ctx, name, at.Prometheus, pods) })
		case traffic.Agent, traffic.Push:
			t.awaited(time.Now(), pods)
		case traffic.Off:
		}
	}
}

// begin takes a translation over, and forgets the proxies that are gone. Where numbers come in otherwise than before, counting begins anew: else
// what came in through one door would come in through the other one, too.
func (t *term) begin(now time.Time, state *snapshot.State, entrances map[string]traffic.Entrance, byCluster map[string][]*traffic.Pod) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.name(now, state)
	t.versions.Note(state, now)
	for name, at := range entrances {
		switch before, known := t.entrances[name]; {
		case !known && len(t.entrances) == 0: // the first translation
			t.changed[name] = now
		case !known || !reflect.DeepEqual(before, at):
			t.changed[name] = now
			t.book.Begin(name, now)
			delete(t.answers, name)
			for proxy := range t.status {
				if proxy.Cluster == name {
					delete(t.status, proxy)
				}
			}
		}
	}
	t.entrances = entrances
	gone := func(name string) bool { _, there := entrances[name]; return !there }
	maps.DeleteFunc(t.agents, func(name string, _ *fromAgent) bool { return gone(name) })
	maps.DeleteFunc(t.changed, func(name string, _ time.Time) bool { return gone(name) })
	maps.DeleteFunc(t.answers, func(name, _ string) bool { return gone(name) })
	t.pods = map[traffic.Proxy]*traffic.Pod{}
	for _, pods := range byCluster {
		for _, pod := range pods {
			t.pods[pod.Proxy] = pod
		}
	}
	for proxy := range t.status {
		if t.pods[proxy] == nil {
			delete(t.status, proxy)
		}
	}
	for _, agent := range t.agents {
		maps.DeleteFunc(agent.heard, func(p traffic.Proxy, _ time.Time) bool { return t.pods[p] == nil })
	}
	for _, c := range state.Input.Clusters {
		// What could not be read is not taken for gone.
		if !c.Frozen() {
			t.book.Keep(c.Name, func(p traffic.Proxy) bool { return t.pods[p] != nil })
		}
	}
}

// name takes the names of a translation, under the lock.
func (t *term) name(now time.Time, state *snapshot.State) {
	if t.state != state {
		t.state, t.names, t.peers, t.named = state, traffic.NewNames(state.Plan), traffic.NewPeers(state.Plan), now
	}
}

// key is the edge to a target of a pod's proxy, under the lock. Proxies may route to what was translated after the round began:
// for a host that is not known, the names of the latest translation are taken, at most once in namesAgain.
func (t *term) key(now time.Time, pod *traffic.Pod, target traffic.Target) traffic.Key {
	key := t.names.Key(pod.Workload, target)
	if key.To == (snapshot.Ref{}) && target.Host != "" && now.Sub(t.named) >= namesAgain {
		t.name(now, t.State())
		key = t.names.Key(pod.Workload, target)
	}
	key.Door = pod.Door
	return key
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
		if i >= maxForwarded {
			t.failed(pod, traffic.TooMany, fmt.Sprintf("%d of %d are read", maxForwarded, len(pods)))
			continue
		}
		group.Go(func() {
			if !sleep(ctx, offset(pod.Proxy, t.every)) {
				return
			}
			places <- struct{}{}
			defer func() { <-places }()
			t.proxy(ctx, config, pod)
		})
	}
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
	reading, at, err := readPages(pod.Stats, t.counts(pod.Proxy), func(path string) ([]byte, error) {
		return t.get(ctx, config, pod.Proxy.Namespace, pod.Proxy.Pod, pod.Stats.Port, path, maxPage)
	})
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		t.failed(pod, traffic.Failed, fmt.Sprintf("pod %s/%s: no answer within %s", pod.Proxy.Namespace, pod.Proxy.Pod, maxTime))
		return
	case err != nil:
		t.failed(pod, traffic.ReasonOf(err), clip(fmt.Sprintf("pod %s/%s: %s", pod.Proxy.Namespace, pod.Proxy.Pod, kube.Text(err))))
		return
	}
	t.took(pod, at, reading)
}

func (t *term) counts(p traffic.Proxy) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.book.Counts(p)
}

// took adds a reading.
func (t *term) took(pod *traffic.Pod, at time.Time, reading *traffic.Reading) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.note(pod, at, at, reading)
}

// note adds a reading of a proxy at a time, which arrived at another one, under the lock.
func (t *term) note(pod *traffic.Pod, at, arrived time.Time, reading *traffic.Reading) {
	t.reads.WithLabelValues(pod.Proxy.Cluster, "ok").Inc()
	for _, came := range t.book.Take(pod.Proxy, at, reading) {
		t.ring.Add(arrived, t.key(arrived, pod, came.Target), &came.Values)
	}
	now := traffic.Status{Read: at, Own: t.book.Own(pod.Proxy)}
	if !t.book.Counts(pod.Proxy) {
		now = traffic.Status{Reason: traffic.NotCounted}
	}
	t.status[pod.Proxy] = now
}

func (t *term) failed(pod *traffic.Pod, reason traffic.Reason, detail string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteFailed(pod, reason, detail)
}

// noteFailed notes that a proxy was not read, under the lock.
func (t *term) noteFailed(pod *traffic.Pod, reason traffic.Reason, detail string) {
	t.reads.WithLabelValues(pod.Proxy.Cluster, string(reason)).Inc()
	t.status[pod.Proxy] = traffic.Status{Read: t.status[pod.Proxy].Read, Reason: reason, Detail: detail}
}

func clip(text string) string {
	if len(text) <= maxDetail {
		return text
	}
	return strings.ToValidUTF8(text[:maxDetail], "") + "…"
}
