package dashboard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
	"github.com/meshctl/meshctl/tui"
)

const (
	// patience is how long the management cluster may take to answer at the start.
	patience = 10 * time.Second
	// probe is the pause between two questions whether a cluster answers.
	probe = 2 * time.Second
	// grace is how long the first screen waits for clusters that do not answer.
	grace = 3 * time.Second
	// longestPause bounds how long news wait for more news.
	longestPause = 500 * time.Millisecond
	// lookBeside is how often it is looked at what is not watched.
	lookBeside = 500 * time.Millisecond
)

// live is a tui.Source of a management cluster and of the clusters registered
// there: it watches as `meshctl serve` does, makes of it what serve would, and
// writes nothing.
type live struct {
	config *rest.Config
	opts   *Options
	watch  *watch.Source
	memo   *engine.Translator
	// credentials tells of those in use; nil if blind.
	credentials func() []cluster.CredentialStatus
	events      *events
	// blind says why the clusters themselves are not read; empty if they are.
	blind string
	ended chan error

	// news are the last that were told; next is when the next may be, so that
	// a storm of changes does not take all there is of a processor.
	news *tui.News
	next time.Time
	// input is what the last news were made of.
	input *snapshot.Input
	// behind is since when clusters are not as they should be; see explain.ClusterFacts.
	behind map[string]time.Time
}

// newLive asks the cluster what may be read, so that what is wrong is said
// before the screen is taken, and starts to watch.
func newLive(ctx context.Context, opts *Options) (*live, error) {
	config, err := opts.Kube.Config(opts.factory)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	// What a server warns of would be written over the screen.
	config.WarningHandler = rest.NoWarnings{}
	if err := watch.CheckCRDs(ctx, config); err != nil {
		return nil, err
	}
	l := &live{config: config, opts: opts, memo: engine.New(engine.Options{}), ended: make(chan error, 1), news: &tui.News{}}
	if l.blind, err = maySeeClusters(ctx, config, opts.Namespace); err != nil {
		return nil, err
	}
	return l, l.start(ctx)
}

// maySeeClusters asks for the Secrets with the clusters' credentials. If they
// are not to be had, it says why.
func maySeeClusters(ctx context.Context, config *rest.Config, namespace string) (string, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("management cluster %s: %w", config.Host, err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_, err = kube.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + cluster.SecretType, Limit: 1})
	switch {
	case apierrors.IsForbidden(err):
		return "you may not read the clusters' credentials in namespace " + namespace, nil
	case err != nil:
		return "", fmt.Errorf("management cluster %s: %w; check the context and your permissions there", config.Host, err)
	}
	return "", nil
}

// start watches until ctx ends.
func (l *live) start(ctx context.Context) error {
	// The parts' own words would be written over the screen; what matters of
	// them is among the issues.
	log := slog.New(slog.DiscardHandler)
	group, ctx := errgroup.WithContext(ctx)
	options := watch.Options{
		Management: l.config, Namespace: l.opts.Namespace, Log: log, Statuses: true, Probe: probe, Timeout: probe, Grace: grace,
	}
	if l.blind != "" {
		options.Grace = time.Nanosecond // there is nothing to wait for
	}
	var registry *cluster.Registry
	if l.blind == "" {
		var err error
		if registry, err = cluster.NewRegistry(l.config, l.opts.Namespace, l.config.UserAgent, log); err != nil {
			return err
		}
		renewer, err := cluster.NewRenewer(registry, l.config, nil, log)
		if err != nil {
			return err
		}
		l.credentials = renewer.Status
		options.Told = registry.Synced()
	}
	var err error
	if l.watch, err = watch.New(options); err != nil {
		return err
	}
	if l.events, err = newEvents(l.config); err != nil {
		return err
	}
	group.Go(func() error { return l.watch.Run(ctx) })
	group.Go(func() error { return l.events.run(ctx) })
	if registry != nil {
		group.Go(func() error { return registry.Run(ctx, members{l.watch}) })
	}
	go func() { l.ended <- group.Wait() }()
	return nil
}

// members hands the registered clusters to the watch.
type members struct{ watch *watch.Source }

// Set implements cluster.Handler.
func (m members) Set(member cluster.Member) {
	m.watch.Set(member.Name, member.Domain, member.Config, member.Err)
}

// Remove implements cluster.Handler.
func (m members) Remove(name string) { m.watch.Remove(name) }

// Next implements tui.Source. What cannot be read is trouble or, of a cluster,
// an issue; what was read before stays on the screen.
func (l *live) Next(ctx context.Context) (*tui.News, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case err := <-l.ended:
			return nil, cmp.Or(err, errors.New("the watch of the management cluster has ended"))
		case <-l.watch.Changed():
			if err := pause(ctx, l.next.Sub(l.opts.factory.Now())); err != nil {
				return nil, err
			}
			if l.read() {
				return l.tell(), nil
			}
		case <-l.events.changed:
			news := *l.news
			news.Index, news.At, news.HasChanges = nil, l.opts.factory.Now(), true
			news.Changes, news.NoChanges = l.events.list()
			return &news, nil
		case <-time.After(lookBeside):
		}
		if l.beside() {
			return l.tell(), nil
		}
	}
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// read makes an Index of what there is now, if that is new.
func (l *live) read() bool {
	input := l.watch.Input()
	if input == nil || input == l.input {
		return false
	}
	began := l.opts.factory.Now()
	l.input = input
	state := l.memo.Translate(input)
	if l.blind != "" {
		l.news.Index = explain.NewStored(state)
	} else {
		l.news.Index = explain.NewLive(state)
	}
	now := l.opts.factory.Now()
	l.next = now.Add(min(now.Sub(began), longestPause))
	l.behind = lagging(l.behind, input.Clusters, l.news.Index.Pending(), now)
	l.beside()
	return true
}

// lagging says since when clusters are behind that cannot be read, or that edits
// wait for; before is what it said last.
func lagging(before map[string]time.Time, clusters []*snapshot.Cluster, waiting map[string]int, now time.Time) map[string]time.Time {
	out := map[string]time.Time{}
	for _, c := range clusters {
		if c.Sync != snapshot.Stale && waiting[c.Name] == 0 {
			continue
		}
		out[c.Name] = now
		if since, known := before[c.Name]; known {
			out[c.Name] = since
		}
	}
	return out
}

// beside looks at what comes beside the objects, and reports whether it is new.
func (l *live) beside() bool {
	trouble, facts := l.watch.Trouble(), l.facts()
	if trouble == l.news.Trouble && maps.Equal(facts, l.news.Facts) {
		return false
	}
	l.news.Trouble, l.news.Facts = trouble, facts
	return true
}

// facts are about the clusters' credentials, and since when they lag behind.
func (l *live) facts() map[string]explain.ClusterFacts {
	out := map[string]explain.ClusterFacts{}
	if l.credentials != nil {
		for _, c := range l.credentials() {
			out[c.Cluster] = explain.ClusterFacts{Issued: c.Issued, Expires: c.Expires}
		}
	}
	for name, since := range l.behind {
		f := out[name]
		f.BehindSince = since
		out[name] = f
	}
	return out
}

// tell hands out what is known now.
func (l *live) tell() *tui.News {
	news := *l.news
	news.At = l.opts.factory.Now()
	return &news
}

// Name implements tui.Source.
func (l *live) Name() string {
	name := "management cluster " + l.config.Host
	if l.opts.Kube.Context != "" {
		name = "context " + l.opts.Kube.Context
	}
	if l.blind != "" {
		name += " alone: " + l.blind
	}
	return name
}

// Command implements tui.Source.
func (l *live) Command(words string) string {
	if words == "" {
		return ""
	}
	out := "meshctl " + words
	for _, flag := range [][2]string{{"--kubeconfig", l.opts.Kube.Kubeconfig}, {"--context", l.opts.Kube.Context}} {
		if flag[1] != "" {
			out += " " + flag[0] + " " + quote(flag[1])
		}
	}
	if l.opts.Namespace != snapshot.DefaultNamespace {
		out += " -n " + quote(l.opts.Namespace)
	}
	return out
}

// Kubectl implements tui.Source.
func (l *live) Kubectl(words string) string {
	out := "kubectl"
	for _, flag := range [][2]string{{"--kubeconfig", l.opts.Kube.Kubeconfig}, {"--context", l.opts.Kube.Context}} {
		if flag[1] != "" {
			out += " " + flag[0] + " " + quote(flag[1])
		}
	}
	return out + " " + words
}
