package dashboard

import (
	"cmp"
	"context"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/watch"
	"github.com/meshctl/meshctl/tui"
)

// readEvery is the pause between two readings of the management cluster, and
// longer by as much as a reading took, so that a large one is not read all the time.
const readEvery = 250 * time.Millisecond

// readTimeout bounds one reading.
const readTimeout = 20 * time.Second

// live is a tui.Source of a management cluster, which it reads again and again.
// What the clusters hold is known by the objects that were discovered in them.
type live struct {
	config *rest.Config
	opts   *Options
	first  *tui.News
	took   time.Duration
}

// newLive reads the cluster once, so that what is wrong with it is said before
// the screen is taken.
func newLive(ctx context.Context, opts *Options) (tui.Source, error) {
	config, err := opts.Kube.Config(opts.factory)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	// What a server warns of would be written over the screen.
	config.WarningHandler = rest.NoWarnings{}
	l := &live{config: config, opts: opts}
	l.first, err = l.read(ctx)
	return l, err
}

// Name implements tui.Source.
func (l *live) Name() string {
	if l.opts.Kube.Context != "" {
		return "context " + l.opts.Kube.Context
	}
	return "management cluster " + l.config.Host
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
	if l.opts.Namespace != "gloo-mesh" {
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

// Next implements tui.Source. A cluster that does not answer is trouble; what
// was read before stays on the screen.
func (l *live) Next(ctx context.Context) (*tui.News, error) {
	if first := l.first; first != nil {
		l.first = nil
		return first, nil
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(readEvery + l.took):
	}
	news, trouble := l.read(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if trouble != nil {
		news = &tui.News{At: l.opts.factory.Now(), Trouble: trouble.Error()}
	}
	return news, nil
}

func (l *live) read(ctx context.Context) (*tui.News, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	began := l.opts.factory.Now()
	input, err := watch.ReadOnce(ctx, l.config, cmp.Or(l.opts.Namespace, "gloo-mesh"))
	if err != nil {
		return nil, err
	}
	news := &tui.News{
		World: explain.NewStored(engine.Translate(input)), At: l.opts.factory.Now(), HasChanges: true,
		NoChanges: "What was written is not recorded on the management cluster yet; the log of meshctl serve has it.",
	}
	l.took = news.At.Sub(began)
	return news, nil
}
