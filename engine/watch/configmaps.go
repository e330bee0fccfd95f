package watch

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxConfigMaps is how many ConfigMaps of a cluster are read: those of 50 control planes, or of
// 33 that each name a second one with settings.
// Anyone who may edit a namespace can make Deployments that look like one; those that
// there is evidence of come first.
const maxConfigMaps = 100

// Reasons of snapshot.Unread.
const (
	notReadYet   = "it has not been read yet"
	notAllowed   = "meshctl's account on the cluster is not allowed to read it"
	tooManyToAsk = "the cluster has too many Deployments that look like control planes"
)

// configMaps reads the ConfigMaps of the control planes of a cluster, each by its name: a
// ConfigMap often holds things that are as good as secrets. Which they are follows from
// the Deployments of a view, so that feeds come and go with those. A ConfigMap that may not
// be read keeps neither the others nor the cluster from being read.
type configMaps struct {
	cluster string
	// newFeed prepares the feed of one ConfigMap; seed is what was read before.
	newFeed func(ref snapshot.Ref, seed []*corev1.ConfigMap) *feed[*corev1.ConfigMap]
	// run starts a feed, and returns at once; nil if feeds do not run.
	run func(context.Context, *feed[*corev1.ConfigMap])

	mu sync.Mutex
	// ctx ends with the cache; nil before it starts.
	ctx   context.Context
	seed  []*corev1.ConfigMap
	feeds map[snapshot.Ref]configMapFeed
	all   union[*corev1.ConfigMap]
	// wanted follows from the lists of seen; the first maxConfigMaps have a feed.
	wanted []snapshot.Ref
	seen   *snapshot.Cluster
}

// configMapFeed is the feed of one ConfigMap, and the way to end it.
type configMapFeed struct {
	*feed[*corev1.ConfigMap]
	cancel context.CancelFunc
}

// addConfigMaps makes the cache read the ConfigMaps of control planes. It comes after the
// feeds that these follow from.
func addConfigMaps(c *clusterCache[snapshot.Cluster], seed *snapshot.Cluster) {
	m := &configMaps{cluster: seed.Name, seed: seed.ConfigMaps, feeds: map[snapshot.Ref]configMapFeed{}}
	m.newFeed = func(ref snapshot.Ref, seed []*corev1.ConfigMap) *feed[*corev1.ConfigMap] {
		lister := &kube.Lister{
			Client: c.client, Kind: ref.Kind, Namespace: ref.Namespace, Fields: "metadata.name=" + ref.Name,
			Silent: func() { c.onSilence(ref.Kind) },
		}
		f := newFeed(lister, seed, stripConfigMap, c.onChange, func() { signal(c.failed) })
		f.rejected = func(k key, err error) { c.onRejected(ref.Kind, k, err) }
		f.mayBeDenied = true
		return f
	}
	m.run = func(ctx context.Context, f *feed[*corev1.ConfigMap]) {
		c.group.Go(func() { f.run(ctx, c.silence) })
	}
	c.configMaps = m
	c.copiers = append(c.copiers, m.copyTo)
}

// start lets feeds run until ctx ends or stop is called.
func (m *configMaps) start(ctx context.Context) {
	if m != nil {
		m.mu.Lock()
		m.ctx = ctx
		m.mu.Unlock()
	}
}

// stop starts no more feeds. Those that run end with the context of start.
func (m *configMaps) stop() {
	if m != nil {
		m.mu.Lock()
		m.run = nil
		m.mu.Unlock()
	}
}

// copyTo puts the ConfigMaps into a view that has the other lists, and reports whether
// anything is new.
func (m *configMaps) copyTo(view *snapshot.Cluster) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.run != nil {
		m.follow(view)
	}
	objects, unread := m.all.list(), m.unread()
	same := slices.Equal(view.ConfigMaps, objects) && slices.Equal(view.Unread, unread)
	if !same {
		view.ConfigMaps, view.Unread = objects, unread
	}
	return !same
}

// follow makes the feeds those that the lists of a view ask for.
func (m *configMaps) follow(view *snapshot.Cluster) {
	if m.seen != nil && snapshot.SameSlice(m.seen.Deployments, view.Deployments) &&
		snapshot.SameSlice(m.seen.MutatingWebhookConfigurations, view.MutatingWebhookConfigurations) {
		return
	}
	m.seen = &snapshot.Cluster{Name: m.cluster, Deployments: view.Deployments, MutatingWebhookConfigurations: view.MutatingWebhookConfigurations}
	m.wanted = detectors.ConfigMaps(m.seen)
	asked := m.wanted[:min(len(m.wanted), maxConfigMaps)]
	for ref, f := range m.feeds {
		if !slices.Contains(asked, ref) {
			f.cancel()
			delete(m.feeds, ref)
		}
	}
	m.all.feeds = nil
	for _, ref := range asked {
		if _, runs := m.feeds[ref]; !runs {
			m.feeds[ref] = m.newConfigMapFeed(ref)
		}
		m.all.feeds = append(m.all.feeds, m.feeds[ref].feed)
	}
	m.seed = nil
}

func (m *configMaps) newConfigMapFeed(ref snapshot.Ref) configMapFeed {
	var seed []*corev1.ConfigMap
	if at, found := find(m.seed, key{ref.Namespace, ref.Name}); found {
		seed = m.seed[at : at+1 : at+1]
	}
	f := configMapFeed{feed: m.newFeed(ref, seed), cancel: func() {}}
	if m.ctx != nil {
		var ctx context.Context
		ctx, f.cancel = context.WithCancel(m.ctx)
		m.run(ctx, f.feed)
	}
	return f
}

// unread lists what is wanted and was not read, or may not be read any more.
func (m *configMaps) unread() []snapshot.Unread {
	var out []snapshot.Unread
	for _, ref := range m.wanted {
		f, runs := m.feeds[ref]
		switch {
		case !runs:
			out = append(out, snapshot.Unread{Ref: ref, Reason: tooManyToAsk})
		case f.isDenied():
			out = append(out, snapshot.Unread{Ref: ref, Reason: notAllowed, Denied: true})
		case !f.isFilled():
			out = append(out, snapshot.Unread{Ref: ref, Reason: notReadYet})
		}
	}
	slices.SortFunc(out, func(a, b snapshot.Unread) int { return a.Ref.Compare(b.Ref) })
	return out
}

// isFilled reports whether each ConfigMap that the last view asked for was read, or may
// not be read.
func (m *configMaps) isFilled() bool {
	for _, f := range m.running() {
		if !f.isFilled() && !f.isDenied() {
			return false
		}
	}
	return true
}

// running are the feeds that there are now.
func (m *configMaps) running() []*feed[*corev1.ConfigMap] {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.all.feeds)
}
