// Package load reads what commands answer from. There are five ways:
//
//	Folder      manifests in files
//	Archive     what "meshctl debug snapshot" recorded
//	Stored      the management cluster alone
//	Clusters    the management cluster and every registered one, once
//	Following   what a watch of them last saw
//
// Whichever it is, the objects are translated with the options of the server
// that works on them, and a Reading knows what may be concluded from it. Pick finds the
// object in it that a name means.
//
// A Reading of a cluster also knows who serves and, if that was asked for, how what was written in
// the clusters differs from what follows (inforce.go).
//
// Serve may reach the registered clusters at addresses that lead nowhere from here. Then Clusters goes by the
// addresses of the contexts of the kubeconfig, with the credentials that serve has.
package load

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/serve"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// Reading is an Input, and how it was read.
type Reading struct {
	Input *snapshot.Input
	// Issues tell what was left out.
	Issues []snapshot.Issue
	// Notes are sentences on how it was read, for the user.
	Notes []string
	// Recorded is when an archive was recorded; zero if it is none, or does not say.
	Recorded time.Time
	// Served: the statuses are those of a server.
	Served bool

	// InForce says what is known of the serve that runs and of what clusters have; nil if
	// nothing is. Each of its results may be nil.
	InForce func(*snapshot.Output) (serving *snapshot.Serving, leads bool, observed *snapshot.Observed)

	// index makes a State ready for questions, as the way of reading allows.
	index func(*snapshot.State) *explain.Index
}

// Index translates what was read and indexes it for questions. With a Translator
// of the readings before, it computes only what is new; it may be nil.
func (r *Reading) Index(translator *engine.Translator) *explain.Index {
	if translator == nil {
		translator = engine.New(engine.Options{})
	}
	state := translator.Translate(r.Input)
	index := r.index(state)
	if r.InForce != nil {
		index.Observe(r.InForce(state.Output))
	}
	return index
}

// Why is that of an Index of the reading, by the same Translator; what the answer says would allow the
// request is tried.
func (r *Reading) Why(translator *engine.Translator, index *explain.Index, from, to snapshot.Ref, request explain.Request) (*explain.Why, error) {
	why := index.Why(from, to, request)
	changed, err := why.Changed(r.Input)
	if err != nil || changed == nil {
		return why, err
	}
	why.Verify(explain.New(translator.Translate(changed)))
	return why, nil
}

// Folder reads the manifests in a folder. Statuses in them are not those of a
// server that works on them, so all answers say what follows.
func Folder(dir string) (*Reading, error) {
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return nil, cmdutil.NotFoundErrorf("folder %s cannot be read: %w", dir, err)
	case !info.IsDir():
		return Archive(dir)
	}
	input, issues, err := offline.Load(offline.Dir(dir))
	if err != nil {
		return nil, fmt.Errorf("invalid manifests in %s:\n%w", dir, err)
	}
	return &Reading{Input: input, Issues: issues, index: explain.New}, nil
}

// Archive reads what "meshctl debug snapshot" recorded. Statuses in it are those that the server had
// written.
func Archive(file string) (*Reading, error) {
	data, err := offline.ReadFile(file)
	if err != nil {
		return nil, cmdutil.NotFoundErrorf("snapshot %s cannot be read: %w", file, err)
	}
	read, err := offline.ReadArchive(data)
	if err != nil {
		return nil, cmdutil.FlagErrorf("%s is a file; specify the folder that has a folder for each cluster, or a snapshot: %w", file, err)
	}
	reading := &Reading{Input: read.Input, Issues: read.Issues, Recorded: read.Recorded, index: explain.New}
	if !read.Recorded.IsZero() {
		reading.Notes = append(reading.Notes, "this is what was recorded at "+read.Recorded.Local().Format(time.DateTime))
	}
	if read.Served {
		reading.Served, reading.index = true, explain.NewLive
	}
	return reading, nil
}

// Management is a management cluster to read.
type Management struct {
	Config *rest.Config
	// Namespace of the management plane.
	Namespace string
	// Version of this program.
	Version string
	// Detours lead to clusters whose stored address cannot be dialled from here; nil for none.
	Detours *registration.Detours
}

// Stored reads the management cluster alone: what was discovered, and what a
// server has written about it.
func (m Management) Stored(ctx context.Context) (*Reading, error) {
	input, err := watch.ReadOnce(ctx, m.Config, m.Namespace)
	if err != nil {
		return nil, err
	}
	input.Version = m.Version
	reading := Following(input, true)
	return reading, m.attend(ctx, reading, nil)
}

// Clusters reads the management cluster and, with the credentials stored there,
// every registered cluster.
func (m Management) Clusters(ctx context.Context) (*Reading, error) {
	reading, err := m.look(ctx, nil)
	if err != nil {
		return nil, err
	}
	return reading, m.attend(ctx, reading, nil)
}

// InForce is Clusters that also compares what was written in them with what follows.
func (m Management) InForce(ctx context.Context) (*Reading, error) {
	var observer *apply.Observer
	reading, err := m.look(ctx, func(plane snapshot.Plane) *apply.Observer {
		observer = apply.NewObserver(plane)
		return observer
	})
	if err != nil {
		return nil, err
	}
	return reading, m.attend(ctx, reading, observer)
}

func (m Management) look(ctx context.Context, observe func(snapshot.Plane) *apply.Observer) (*Reading, error) {
	input, err := serve.Look(ctx, serve.Options{
		Management: m.Config, Namespace: m.Namespace, Version: m.Version, UserAgent: m.Config.UserAgent, Log: slog.New(slog.DiscardHandler),
	}, m.Detours.Find, observe)
	if err != nil {
		return nil, err
	}
	reading := Following(input, false)
	reading.Notes = m.Detours.Notes()
	return reading, nil
}

// ClustersWith is Clusters that shows its progress, and says how the clusters were reached.
func (m Management) ClustersWith(ctx context.Context, s *cmdutil.Streams, progress *cmdutil.Progress) (*Reading, error) {
	quietClient()
	progress.Start("Reading the registered clusters")
	reading, err := m.Clusters(ctx)
	progress.End(err)
	if err != nil {
		return nil, err
	}
	reading.say(s)
	return reading, nil
}

// quietClient discards what client-go logs when it is stopped.
func quietClient() { klog.SetSlogLogger(slog.New(slog.DiscardHandler)) }

// Following is what a watch last saw. It must keep statuses; see watch.Options.
// Unread says that it could not read the registered clusters.
func Following(input *snapshot.Input, unread bool) *Reading {
	if unread {
		return &Reading{Input: input, Served: true, index: explain.NewStored}
	}
	return &Reading{Input: input, Served: true, index: explain.NewLive}
}
