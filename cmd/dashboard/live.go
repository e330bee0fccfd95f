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
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/serve"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
	"github.com/meshctl/meshctl/tui"
)

const (
	// connectTimeout is how long the management cluster may take to answer at first.
	connectTimeout = 10 * time.Second
	// probe is the pause between two probes of a cluster.
	probe = 2 * time.Second
	// grace is how long the first screen waits for clusters that do not answer.
	grace = 3 * time.Second
	// maxPause bounds how long an update waits for further changes.
	maxPause = 500 * time.Millisecond
	// pollEvery is how often the state that is not watched is read.
	pollEvery = 500 * time.Millisecond
)

// live is a tui.Source of a management cluster and of the clusters registered
// there: it watches and translates as `meshctl serve` does, and writes nothing.
type live struct {
	config     *rest.Config
	opts       *Options
	watch      *watch.Source
	translator *engine.Translator
	// credentials returns those in use; nil if the clusters are not read.
	credentials func() []cluster.CredentialStatus
	changes     *changes
	// drifts compares what was written; nil if the clusters are not read.
	drifts *reading.Drifts
	lease  *lease
	// unread says why the clusters themselves are not read; empty if they are.
	unread string
	ended  chan error

	// latest is the last update; next is when the next one may be made, so that
	// many changes in a row do not take a whole processor.
	latest *tui.Update
	next   time.Time
	// input is what the last index was made of.
	input *snapshot.Input
	last  lastReading
	// checkups receives the latest checkup, and checked is the last one; see checkup.go.
	checkups chan checked
	checked  checked
	// leads: a serve did when the index was made.
	leads bool
	// contextName is the current context of the kubeconfig; empty if there is none.
	contextName string
	// counts receives what proxies count, and evidence is the last of it; see evidence.go.
	counts   chan *explain.Evidence
	evidence *explain.Evidence
	// behind is since when clusters are not up to date; see explain.ClusterFacts.
	behind map[string]time.Time
}

// newLive asks the cluster what may be read, so that errors are reported before
// the screen is taken, and starts to watch.
func newLive(ctx context.Context, opts *Options) (*live, error) {
	config, err := opts.Kube.Config(opts.factory)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	// Warnings of a server would be written over the screen.
	config.WarningHandler = rest.NoWarnings{}
	if err := watch.CheckCRDs(ctx, config); err != nil {
		return nil, cmdutil.Advise(ctx, opts.factory, opts.Kube.Kubeconfig, err)
	}
	l := &live{config: config, opts: opts, translator: engine.New(engine.Options{}), ended: make(chan error, 1), checkups: make(chan checked), counts: make(chan *explain.Evidence), latest: &tui.Update{}}
	if opts.factory.Contexts != nil {
		if _, current, err := opts.factory.Contexts(opts.Kube.Kubeconfig); err == nil {
			l.contextName = current
		}
	}
	if l.lease, err = newLease(reading.Management{Config: config, Namespace: opts.Namespace}); err != nil {
		return nil, err
	}
	if l.unread, err = whyClustersUnread(ctx, config, opts.Namespace); err != nil {
		return nil, err
	}
	return l, l.start(ctx)
}

// whyClustersUnread lists the Secrets with the clusters' credentials, and says why they
// may not be read; empty if they may.
func whyClustersUnread(ctx context.Context, config *rest.Config, namespace string) (string, error) {
	clientset, err := kube.NewClientset(config)
	if err != nil {
		return "", fmt.Errorf("management cluster %s: %w", config.Host, err)
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	_, err = clientset.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + cluster.SecretType, Limit: 1})
	switch {
	case apierrors.IsForbidden(err):
		return "you may not read the clusters' credentials in namespace " + namespace, nil
	case err != nil:
		return "", watch.UnreadError(config.Host, err)
	}
	return "", nil
}

// start starts to watch; the watches run until ctx ends.
func (l *live) start(ctx context.Context) error {
	// Logs would be written over the screen; what matters is among the issues.
	log := slog.New(slog.DiscardHandler)
	group, ctx := errgroup.WithContext(ctx)
	options := watch.Options{
		Management: l.config, Namespace: l.opts.Namespace, Log: log, Statuses: true, Version: l.opts.factory.Version.Version, ProbeInterval: probe, ProbeTimeout: probe, Grace: grace,
	}
	if l.unread != "" {
		options.Grace = time.Nanosecond // there is nothing to wait for
		source, err := watch.New(options)
		if err != nil {
			return err
		}
		l.watch = source
		group.Go(func() error { return source.Run(ctx) })
	} else {
		plane, err := reading.Management{Config: l.config, Namespace: l.opts.Namespace}.Plane(ctx)
		if err != nil {
			return err
		}
		options.PlaneID = plane.ID
		observer := apply.NewObserver(plane)
		l.drifts = &reading.Drifts{Observer: observer}
		clusters, err := serve.NewClusters(serve.ClusterOptions{
			Options: options, Observer: observer, UserAgent: l.config.UserAgent, Detour: cmdutil.Detours(l.opts.factory, l.opts.Kube.Kubeconfig).Find,
		})
		if err != nil {
			return err
		}
		l.watch, l.credentials = clusters.Source, clusters.Credentials
		group.Go(func() error { return clusters.Run(ctx) })
	}
	group.Go(func() error { l.lease.follow(ctx); return nil })
	group.Go(func() error { l.check(ctx); return nil })
	group.Go(func() error { l.count(ctx); return nil })
	var err error
	if l.changes, err = newChanges(l.config, l.opts.Namespace); err != nil {
		return err
	}
	group.Go(func() error { return l.changes.run(ctx) })
	go func() { l.ended <- group.Wait() }()
	return nil
}

// Next implements tui.Source. A management cluster that cannot be read is a ReadError,
// another cluster an issue; the objects that were read before stay.
func (l *live) Next(ctx context.Context) (*tui.Update, error) {
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case err := <-l.ended:
			return nil, cmp.Or(err, errors.New("the watch of the management cluster has ended"))
		case <-l.lease.changed:
		case l.checked = <-l.checkups:
			l.latest.Checkup = l.checked.checkup
			newFacts := l.poll()
			update := l.current()
			if !newFacts {
				update.Index = nil
			}
			return update, nil
		case l.evidence = <-l.counts:
			if l.input == nil {
				continue
			}
			if err := l.reread(ctx); err != nil {
				return nil, err
			}
			return l.current(), nil
		case <-l.written():
			if err := l.reread(ctx); err != nil {
				return nil, err
			}
			return l.current(), nil
		case <-l.watch.Changed():
			if err := pause(ctx, l.next.Sub(l.opts.factory.Now())); err != nil {
				return nil, err
			}
			if l.read() {
				return l.current(), nil
			}
		case <-l.changes.changed:
			update := *l.latest
			update.Index, update.At, update.HasChanges = nil, l.opts.factory.Now(), true
			update.Changes, update.NoChanges = l.changes.list()
			return &update, nil
		case <-time.After(pollEvery):
		}
		if _, leads, _ := l.serving(); l.input != nil && (leads != l.leads || l.driftDue()) {
			if err := l.reread(ctx); err != nil {
				return nil, err
			}
			return l.current(), nil
		}
		before := *l.latest
		if !l.poll() {
			continue
		}
		update := l.current()
		if l.latest.ReadError == before.ReadError && maps.Equal(l.latest.Facts, before.Facts) {
			update.Index = nil // only the Lease was renewed
		}
		return update, nil
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

// written is signalled when something that was written has changed in a cluster.
func (l *live) written() <-chan struct{} {
	if l.drifts == nil || l.input == nil {
		return nil
	}
	return l.drifts.Observer.Changed()
}

// driftDue reports whether something has differed for long enough to be shown.
func (l *live) driftDue() bool {
	return l.drifts != nil && l.drifts.Wait(l.opts.factory.Now()) == time.Millisecond
}

// read makes an Index of the current Input, if there is a new one.
func (l *live) read() bool {
	input := l.watch.Input()
	if input == nil || input == l.input {
		return false
	}
	l.input = input
	l.index()
	return true
}

// reread makes an Index of the same Input, because something else has changed.
func (l *live) reread(ctx context.Context) error {
	if err := pause(ctx, l.next.Sub(l.opts.factory.Now())); err != nil {
		return err
	}
	if !l.read() {
		l.index()
	}
	return nil
}

// index makes the latest Index.
func (l *live) index() {
	began := l.opts.factory.Now()
	read := reading.FromWatch(l.input, l.unread != "")
	read.InForce, read.Evidence = l.inForce, l.evidence
	l.latest.Index = read.Index(l.translator)
	l.last.keep(l.latest.Index, read)
	now := l.opts.factory.Now()
	l.next = now.Add(min(now.Sub(began), maxPause))
	l.behind = lagging(l.behind, l.input.Clusters, l.latest.Index.Pending(), now)
	l.poll()
}

// serving is what is known of the serve that runs, nil if nothing is, whether one leads as
// far as is known, and why the Lease cannot be read.
func (l *live) serving() (serving *snapshot.Serving, leads bool, unreachable string) {
	read, unreachable := l.lease.get()
	if read == nil {
		return nil, true, unreachable
	}
	now := reading.WithoutLease(*read, l.input)
	leads, _ = now.At(l.opts.factory.Now())
	return &now, leads || !now.Known, unreachable
}

// Why implements tui.Asker.
func (l *live) Why(x *explain.Index, from, to snapshot.Ref, request explain.Request) (*explain.Why, error) {
	return l.last.why(x, from, to, request)
}

// inForce is the InForce of a reading.Reading.
func (l *live) inForce(out *snapshot.Output) (*snapshot.Serving, bool, *snapshot.Observed) {
	serving, leads, _ := l.serving()
	l.leads = leads
	if l.drifts == nil {
		return serving, l.leads, nil
	}
	return serving, l.leads, l.drifts.Observe(context.Background(), out, l.leads, l.opts.factory.Now())
}

// lagging says since when clusters are behind: those that cannot be read, and
// those with edits that wait to be processed. Before is its last answer.
func lagging(before map[string]time.Time, clusters []*snapshot.Cluster, pending map[string]int, now time.Time) map[string]time.Time {
	out := map[string]time.Time{}
	for _, c := range clusters {
		if c.Sync != snapshot.Stale && pending[c.Name] == 0 {
			continue
		}
		out[c.Name] = now
		if since, known := before[c.Name]; known {
			out[c.Name] = since
		}
	}
	return out
}

// poll reads the state that is not watched, and reports whether it has changed.
func (l *live) poll() bool {
	serving, _, unreachable := l.serving()
	readError, facts := cmp.Or(l.watch.ManagementReason(), unreachable), l.facts()
	if readError == l.latest.ReadError && maps.Equal(facts, l.latest.Facts) && l.latest.Serving != nil && serving != nil && *serving == *l.latest.Serving {
		return false
	}
	l.latest.ReadError, l.latest.Facts, l.latest.Serving = readError, facts, serving
	return true
}

// facts are the lifetimes of the clusters' credentials, and since when clusters lag behind.
func (l *live) facts() map[string]explain.ClusterFacts {
	out := map[string]explain.ClusterFacts{}
	if l.credentials != nil {
		for _, c := range l.credentials() {
			out[c.Cluster] = explain.ClusterFacts{Issued: c.Issued, Expires: c.Expires}
		}
	}
	for _, c := range l.checked.clusters {
		f := out[c.Name]
		f.Kubernetes, f.Server = c.Version, c.Server
		out[c.Name] = f
	}
	for name, since := range l.behind {
		f := out[name]
		f.BehindSince = since
		out[name] = f
	}
	return out
}

// current is a copy of the latest update, with the present time.
func (l *live) current() *tui.Update {
	update := *l.latest
	update.At = l.opts.factory.Now()
	return &update
}

// Name implements tui.Source.
func (l *live) Name() string {
	name := "management cluster " + l.config.Host
	if context := cmp.Or(l.opts.Kube.Context, l.contextName); context != "" {
		name = "context " + context
	}
	if l.unread != "" {
		name += " only: " + l.unread
	}
	return name
}

// Command implements tui.Source.
func (l *live) Command(words string) string {
	if words == "" {
		return ""
	}
	out := "meshctl " + words + l.kubeFlags()
	if l.opts.Namespace != snapshot.DefaultNamespace {
		out += " --mgmt-namespace " + quote(l.opts.Namespace)
	}
	return out
}

// Kubectl implements tui.Source.
func (l *live) Kubectl(words string) string {
	return "kubectl" + l.kubeFlags() + " " + words
}

// kubeFlags name the management cluster on a command line.
func (l *live) kubeFlags() string {
	var out string
	for _, flag := range [][2]string{{"--kubeconfig", l.opts.Kube.Kubeconfig}, {"--context", l.opts.Kube.Context}} {
		if flag[1] != "" {
			out += " " + flag[0] + " " + quote(flag[1])
		}
	}
	return out
}
