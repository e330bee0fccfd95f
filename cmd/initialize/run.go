package initialize

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/create"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/wizards"
)

// answersKind marks the saved answers of this command.
const answersKind = "init"

// savedAnswers are the answers of an interrupted run.
type savedAnswers struct {
	Kind     string          `json:"kind"`
	Clusters wizards.Answers `json:"clusters,omitempty"`
	// VirtualMesh and Policy are nil before their first question.
	VirtualMesh *objectAnswers `json:"virtualMesh,omitempty"`
	Policy      *objectAnswers `json:"policy,omitempty"`
}

// objectAnswers are the answers about one object.
type objectAnswers struct {
	// Kind as `meshctl create` takes it.
	Kind    string          `json:"kind"`
	Name    string          `json:"name,omitempty"`
	Answers wizards.Answers `json:"answers"`
	// Done: the object was created, saved or printed.
	Done bool `json:"done,omitempty"`
}

// run is one run of the command.
type run struct {
	*Options
	asks     bool
	clusters *wizards.Clusters
	saved    savedAnswers
	mgmt     *wizards.Context
	config   *rest.Config
	commands [][]string
	// finding is cmdutil.ErrFindings if not all that was created is in force.
	finding error
}

// errStopped ends a run when the user decides so.
var errStopped = errors.New("stopped")

func initRun(ctx context.Context, opts *Options) error {
	r := &run{Options: opts, asks: opts.Prompter != nil || interview.CanAsk(opts.Streams), saved: savedAnswers{Kind: answersKind, Clusters: wizards.Answers{}}}
	if opts.Flags.Recover != "" {
		if err := opts.Flags.LoadAnswers(&r.saved); err != nil {
			return err
		}
		if r.saved.Kind != answersKind {
			return cmdutil.FlagErrorf("%s has no answers for `meshctl init`", opts.Flags.Recover)
		}
	}
	if !r.asks {
		if err := opts.missing(); err != nil {
			return err
		}
	}
	if r.Policy != "" && r.saved.Policy == nil {
		// A mistake in the file must be reported before anything is written.
		var err error
		if r.saved.Policy, err = r.readPolicy(); err != nil {
			return err
		}
	}
	err := r.askAndApply(ctx)
	if errors.Is(err, errStopped) {
		err = nil
	}
	if err != nil {
		if r.asks && (len(r.saved.Clusters) > 0 || r.saved.VirtualMesh != nil) {
			opts.Flags.SaveAnswers(opts.Streams, r.saved, r.baseCommand())
		}
		return interview.ExitError(err)
	}
	r.printNextSteps(ctx)
	return r.finding
}

// baseCommand is the command with the flags that say which kubeconfig to read.
func (r *run) baseCommand() []string {
	words := []string{"meshctl", "init"}
	if r.Kubeconfig != "" {
		words = append(words, "--kubeconfig", r.Kubeconfig)
	}
	return words
}

func (r *run) say(format string, args ...any) {
	_, _ = fmt.Fprintln(r.Streams.Err, cmdutil.Clean(fmt.Sprintf(format, args...)))
}

func (r *run) askAndApply(ctx context.Context) error {
	contexts, err := r.Flags.Contexts(ctx, r.factory, r.Kubeconfig, r.MgmtNamespace)
	if err != nil {
		return err
	}
	if r.asks && r.Prompter == nil {
		r.Prompter = r.Flags.Prompter(ctx, r.Streams)
	}
	r.clusters = &wizards.Clusters{Prompter: cmp.Or[wizards.Prompter](r.Prompter, wizards.NewPlain(ctx, r.Streams.In, r.Streams.Err)), Contexts: contexts, Answers: r.saved.Clusters}
	if r.asks {
		r.clusters.Title = "Set up meshctl"
	}
	r.clusters.Sections = r.sections()
	r.clusters.ReportProblems()
	if r.MgmtContext != "" {
		r.saved.Clusters[wizards.ManagementFlag] = []string{r.MgmtContext}
	}
	var members []registration.Options
	err = r.clusters.Ask(func() (err error) {
		r.clusters.Enter(managementSection)
		if r.mgmt, err = r.clusters.Management(); err != nil {
			return err
		}
		if r.config, err = r.factory.Config(r.Kubeconfig, r.mgmt.Name); err != nil {
			return fmt.Errorf("management cluster: %w", err)
		}
		r.clusters.Enter(clustersSection)
		members, err = r.askMembers(ctx)
		return err
	})
	if err != nil {
		return err
	}
	managed, err := r.register(ctx, members)
	if err != nil {
		return err
	}
	if managed == 0 {
		r.say("No cluster is registered, so there are no meshes to join. To continue, run `meshctl init` again.")
		return errStopped
	}
	return r.join(ctx)
}

// The sections of the questions.
const (
	managementSection  = "Management cluster"
	clustersSection    = "Clusters"
	virtualMeshSection = "VirtualMesh"
	policySection      = "Policy"
)

// sections are those that the flags do not leave out.
func (r *run) sections() []string {
	out := []string{managementSection, clustersSection}
	if !r.NoVirtualMesh {
		out = append(out, virtualMeshSection)
	}
	if !r.NoPolicy {
		out = append(out, policySection)
	}
	return out
}

// createOptions are those of the `meshctl create` that creates the object.
func (r *run) createOptions(p *objectAnswers, section string) (*create.Options, error) {
	form := wizards.FormOf(p.Kind)
	if form == nil {
		return nil, fmt.Errorf("%q is not a kind that meshctl can create", p.Kind)
	}
	within := r.clusters.Step(section)
	return &create.Options{
		Within: &within, Streams: r.Streams, Now: r.Now, Prompter: r.Prompter, Form: form,
		Name: p.Name, Namespace: r.MgmtNamespace, Answers: p.Answers,
		Kube: cmdutil.KubeFlags{Kubeconfig: r.Kubeconfig, Context: r.mgmt.Name}, MgmtNamespace: r.MgmtNamespace,
		Apply: r.Apply, DryRun: r.DryRun, Flags: r.Flags, Factory: r.factory, Asks: r.asks, Leave: true,
		Output: cmdutil.OutputFlag{Format: cmdutil.FormatYAML},
	}, nil
}

// serveWait bounds the look for a serve that leads.
const serveWait = 5 * time.Second

// served reports whether a management plane runs, by its Lease.
func (r *run) served(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, serveWait)
	defer cancel()
	read, err := r.management().Serving()
	if err != nil {
		return false
	}
	serving, err := read(ctx)
	leads, _ := serving.At(r.Now())
	return err == nil && leads
}

// printNextSteps prints the equivalent commands, and which commands come next.
func (r *run) printNextSteps(ctx context.Context) {
	if len(r.commands) > 0 {
		r.say("")
		r.say("Equivalent commands:")
		r.say("")
		for _, words := range r.commands {
			_, _ = fmt.Fprintf(r.Streams.Err, "  %s\n", wizards.Quote(words)) // safe to print as it is
		}
	}
	if r.DryRun || r.mgmt == nil || len(r.mgmt.Members) == 0 {
		return
	}
	r.say("")
	r.say("Next steps:")
	r.say("")
	where := []string{"--context", r.mgmt.Name}
	if r.Kubeconfig != "" {
		where = append([]string{"--kubeconfig", r.Kubeconfig}, where...)
	}
	first := [2]string{"serve", "run the management plane, which applies the policies"}
	if r.served(ctx) {
		first = [2]string{"check", "show whether anything is wrong; a management plane runs"}
	}
	for _, next := range [][2]string{
		first,
		{"describe destination", "show what applies to each service"},
		{"create trafficpolicy", "create another policy"},
	} {
		r.say("  meshctl %s %s   # %s", next[0], wizards.Quote(where), next[1])
	}
}
