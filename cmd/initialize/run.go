package initialize

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/create"
	"github.com/meshctl/meshctl/cmd/interview"
	"github.com/meshctl/meshctl/wizards"
)

// kind marks answers that this command has kept.
const kind = "init"

// kept are the answers of a run that did not come to its end.
type kept struct {
	Kind  string          `json:"kind"`
	Fleet wizards.Answers `json:"fleet,omitempty"`
	// VirtualMesh and Policy are nil before their first question.
	VirtualMesh *part `json:"virtualMesh,omitempty"`
	Policy      *part `json:"policy,omitempty"`
}

// part are the answers about one object.
type part struct {
	// Kind as `meshctl create` takes it.
	Kind    string          `json:"kind"`
	Name    string          `json:"name,omitempty"`
	Answers wizards.Answers `json:"answers"`
	// Done: what was decided about it was carried out.
	Done bool `json:"done,omitempty"`
}

// run is one run of the command.
type run struct {
	*Options
	asks     bool
	fleet    *wizards.Fleet
	kept     kept
	mgmt     *wizards.Context
	config   *rest.Config
	commands [][]string
}

// errStopped ends a run when the user decides so.
var errStopped = errors.New("stopped")

func initRun(ctx context.Context, opts *Options) error {
	r := &run{Options: opts, asks: opts.Prompter != nil || interview.Possible(opts.Streams), kept: kept{Kind: kind, Fleet: wizards.Answers{}}}
	if opts.Flags.Recover != "" {
		if err := opts.Flags.Recall(&r.kept); err != nil {
			return err
		}
		if r.kept.Kind != kind {
			return cmdutil.FlagErrorf("%s has no answers for `meshctl init`", opts.Flags.Recover)
		}
	}
	if !r.asks {
		if err := opts.missing(); err != nil {
			return err
		}
	}
	if r.Policy != "" && r.kept.Policy == nil {
		// A mistake in it must show before anything is written.
		var err error
		if r.kept.Policy, err = r.readPolicy(); err != nil {
			return err
		}
	}
	err := r.all(ctx)
	if errors.Is(err, errStopped) {
		err = nil
	}
	if err != nil {
		if r.asks && (len(r.kept.Fleet) > 0 || r.kept.VirtualMesh != nil) {
			opts.Flags.Keep(opts.Streams, r.kept, r.where())
		}
		return interview.Typed(err)
	}
	r.end()
	return nil
}

// where is the command with the flags that say where to look.
func (r *run) where() []string {
	words := []string{"meshctl", "init"}
	if r.Kubeconfig != "" {
		words = append(words, "--kubeconfig", r.Kubeconfig)
	}
	return words
}

func (r *run) say(format string, args ...any) {
	_, _ = fmt.Fprintln(r.Streams.Err, cmdutil.Clean(fmt.Sprintf(format, args...)))
}

func (r *run) all(ctx context.Context) error {
	contexts, err := r.Flags.Contexts(ctx, r.factory, r.Kubeconfig, r.MgmtNamespace)
	if err != nil {
		return err
	}
	if r.asks && r.Prompter == nil {
		r.Prompter = r.Flags.Prompter(ctx, r.Streams)
	}
	r.fleet = &wizards.Fleet{Prompter: cmp.Or[wizards.Prompter](r.Prompter, wizards.NewPlain(ctx, r.Streams.In, r.Streams.Err)), Contexts: contexts, Answers: r.kept.Fleet}
	r.fleet.SayProblems()
	if r.MgmtContext != "" {
		r.kept.Fleet[wizards.ManagementFlag] = []string{r.MgmtContext}
	}
	if r.mgmt, err = r.fleet.Management(); err != nil {
		return err
	}
	if r.config, err = r.factory.Config(r.Kubeconfig, r.mgmt.Name); err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	managed, err := r.registerAll(ctx)
	if err != nil {
		return err
	}
	if managed == 0 {
		r.say("No cluster is registered, so there are no meshes to join. To continue, run `meshctl init` again.")
		return errStopped
	}
	return r.join(ctx)
}

// object is a run of `meshctl create` for a part.
func (r *run) object(p *part) (*create.Options, error) {
	form := wizards.FormOf(p.Kind)
	if form == nil {
		return nil, fmt.Errorf("%q is not a kind that meshctl can create", p.Kind)
	}
	return &create.Options{
		Streams: r.Streams, Now: r.Now, Prompter: r.Prompter, Form: form,
		Name: p.Name, Namespace: r.MgmtNamespace, Answers: p.Answers,
		Kube: cmdutil.KubeFlags{Kubeconfig: r.Kubeconfig, Context: r.mgmt.Name}, MgmtNamespace: r.MgmtNamespace,
		Apply: r.Apply, DryRun: r.DryRun, Flags: r.Flags, Factory: r.factory, Asks: r.asks,
		Output: cmdutil.OutputFlag{Format: cmdutil.FormatYAML},
	}, nil
}

// end says what comes next, and which commands do the same.
func (r *run) end() {
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
	for _, next := range [][2]string{
		{"serve", "run the management plane, which applies the policies"},
		{"describe destination", "show what applies to each service"},
		{"create trafficpolicy", "create another policy"},
	} {
		r.say("  meshctl %s %s   # %s", next[0], wizards.Quote(where), next[1])
	}
}
