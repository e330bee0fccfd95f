// Package check is the command `meshctl check`: what is wrong, cause first.
package check

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/check"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Source  cmdutil.Source
	// Wait is how long to check again while something fails; 0 checks once.
	Wait time.Duration
	// Strict: warnings count as failures do.
	Strict bool
	// Pre checks whether meshctl can be installed, and the clusters of RemoteContexts be
	// registered.
	Pre            bool
	RemoteContexts []string
	// Timeout bounds each request.
	Timeout time.Duration
	// Proxies is how many pairs of a caller and a service are looked at in proxies; 0 looks at none. Seed draws them.
	Proxies int
	Seed    uint64
}

// formatShort lists the problems only.
const formatShort cmdutil.Format = "short"

const long = `Checks the management plane and everything that it manages: whether a serve
leads and has processed all edits, whether each cluster answers, accepts the
credential and can be read and written, the meshes, the addresses of their
gateways, roots and certificates, policies, and whether the clusters still have
what was written there: if not, who changed it. Where the meshctl serve that
leads counts what requests do, as for "meshctl top", services of whose requests
a third or more fails are failures: in the last three minutes, and not by
chance. Warnings are those of whose requests in the last 15 minutes more than
5 % failed, and traffic shifts that are off their weights, and not by chance.

Where meshctl serve can be asked, it says through which door the numbers of each
cluster come in, and what is lost on the way; see meshctl top.

Each line is ok, a warning or a failure, with what to do about it. What cannot
be checked because of a failure is counted below that: the cause comes first. An
info is what cannot be checked from here, such as the address of a gateway: that
is for the proxies of other clusters.

With --wait, the checks are made again until none fails.

With --proxies, a sample of callers and services is drawn, and for each pair a
request is evaluated on what the proxies of their pods hold, as by "meshctl why
--proxy". The proxies of the callers are also asked whether they reach the
gateways of other clusters. All of that is read by port-forward and with your
own credential, and is the last word on what is in force. Agents of clusters
that are reached via relay read no proxies: a context of your own has to lead
there, too. Clusters that were not asked are named. The seed of the sample is
printed; with --seed, it is drawn again.

With --pre, it is checked before anything is written whether meshctl can be
installed in the management cluster, and whether the clusters of
--remote-context can be registered.

With --dir or --snapshot no cluster is asked, and only what follows from the
manifests is checked.`

const example = `  # Check everything
  meshctl check

  # Wait until all is well, at most two minutes, as in a pipeline
  meshctl check --wait 2m --strict -o short

  # Look at what the proxies hold about 20 callers and services, too
  meshctl check --proxies 20

  # Check before installing
  meshctl check --pre --context cluster-1 --remote-context cluster-2`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use: "check",
		// What other programs call it.
		SuggestFor: []string{"analyze", "doctor", "status", "verify"},
		Short:      "Check the management plane and all clusters",
		Long:       long,
		Example:    example,
		Args:       cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := opts.validate(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, formatShort, cmdutil.FormatJSON, cmdutil.FormatYAML)
	cmdutil.ExitCodes(cmd,
		cmdutil.Exit{Code: cmdutil.ExitUnreachable, Means: "the management cluster cannot be read"},
		cmdutil.Exit{Code: cmdutil.ExitFindings, Means: "a check fails; with --strict, also if there is a warning"},
	)
	opts.Output.Prints(cmdutil.Form{Value: explain.Checkup{}})
	opts.Source.AddFlags(cmd)
	opts.Source.AddServerFlag(cmd)
	flags := cmd.Flags()
	flags.DurationVar(&opts.Wait, "wait", 0, "check again until nothing fails, for at most this `time`")
	flags.BoolVar(&opts.Strict, "strict", false, "fail if there are warnings, too")
	flags.BoolVar(&opts.Pre, "pre", false, "check whether meshctl can be installed")
	flags.StringSliceVar(&opts.RemoteContexts, "remote-context", nil, "with --pre: `context` of a cluster to be registered; may be repeated")
	flags.DurationVar(&opts.Timeout, "timeout", registration.DefaultCheckTimeout, "how long to wait for the answer of a cluster or gateway")
	flags.IntVar(&opts.Proxies, "proxies", 0, "look at the proxies of this `number` of callers and services, too")
	flags.Uint64Var(&opts.Seed, "seed", 0, "with --proxies: draw the sample with this `seed` (default: one that differs each time)")
	for _, other := range []string{"dir", "snapshot", "pre"} {
		cmd.MarkFlagsMutuallyExclusive("proxies", other)
	}
	_ = cmd.RegisterFlagCompletionFunc("remote-context", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		names, _ := cmdutil.Contexts(opts.Source.Kube.Kubeconfig)
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	cmd.MarkFlagsMutuallyExclusive("pre", "dir")
	cmd.MarkFlagsMutuallyExclusive("pre", "snapshot")
	cmd.MarkFlagsMutuallyExclusive("wait", "dir")
	cmd.MarkFlagsMutuallyExclusive("wait", "snapshot")
	return cmd
}

func (o *Options) validate() error {
	switch {
	case len(o.RemoteContexts) > 0 && !o.Pre:
		return cmdutil.FlagErrorf("--remote-context goes with --pre; registered clusters are checked without it")
	case o.Proxies < 0 || o.Proxies > maxProxies:
		return cmdutil.FlagErrorf("--proxies %d: want a number from 1 to %d", o.Proxies, maxProxies)
	case o.Seed != 0 && o.Proxies == 0:
		return cmdutil.FlagErrorf("--seed goes with --proxies")
	case o.Timeout <= 0:
		return cmdutil.FlagErrorf("--timeout must be greater than 0")
	case o.Wait < 0:
		return cmdutil.FlagErrorf("--wait must not be negative")
	}
	return nil
}

// maxProxies bounds a sample.
const maxProxies = 1000

// waitPause is the pause between two checkups.
const waitPause = time.Second

func run(ctx context.Context, o *Options) error {
	if o.Proxies > 0 && o.Seed == 0 {
		o.Seed = uint64(o.Source.Factory.Now().UnixMilli())
	}
	progress := cmdutil.NewProgress(o.Streams)
	if o.Source.Dir == "" {
		progress.Start("Checking")
	}
	var checkup *explain.Checkup
	for deadline := time.Now().Add(o.Wait); ; {
		var err error
		if checkup, err = o.check(ctx); err != nil {
			progress.End(err)
			return err
		}
		if !o.fails(checkup) || !time.Now().Before(deadline) {
			break
		}
		progress.Note("%s; checking again", checkup.Summary())
		select {
		case <-ctx.Done():
			progress.End(ctx.Err())
			return ctx.Err()
		case <-time.After(waitPause):
		}
	}
	progress.End(nil)
	if err := o.Output.Print(o.Streams.Out, checkup, func(out io.Writer) error { return o.paint(out, checkup) }); err != nil {
		return err
	}
	switch {
	case !o.fails(checkup):
		return nil
	case unread(checkup):
		return cmdutil.WithCode(cmdutil.ExitUnreachable, cmdutil.ErrFindings)
	}
	return cmdutil.ErrFindings
}

func (o *Options) fails(c *explain.Checkup) bool {
	return c.Failures > 0 || o.Strict && c.Warnings > 0
}

// unread reports whether the first check of all failed, on which all others depend.
func unread(c *explain.Checkup) bool {
	return len(c.Categories) > 0 && c.Dependents(c.Categories[0].Checks[0].ID) > 0 && c.OK == 0
}

// check makes one checkup.
func (o *Options) check(ctx context.Context) (*explain.Checkup, error) {
	if o.Source.Dir != "" {
		evidence := o.Source.Evidence(ctx)
		read, err := o.Source.Read(ctx, o.Streams)
		if err != nil {
			return nil, err
		}
		read.Evidence = evidence()
		return read.Index(nil).Checkup(&explain.CheckFacts{Now: o.Source.Factory.Now(), Offline: true, Translate: engine.Translate}), nil
	}
	management, err := o.Source.Management()
	if err != nil {
		return nil, err
	}
	options := check.Options{
		Config: management.Config, Context: o.Source.Kube.Context, Namespace: o.Source.Namespace, Version: o.Source.Factory.Version.Tag(),
		UserAgent: management.Config.UserAgent, Timeout: o.Timeout, Detours: management.Detours, Proxies: o.Proxies, Seed: o.Seed,
	}
	if o.Pre {
		candidates, err := o.candidates()
		if err != nil {
			return nil, err
		}
		return check.Pre(ctx, options, candidates), nil
	}
	return Checkup(ctx, management, options)
}

// Checkup checks a management plane and what it manages, from here.
func Checkup(ctx context.Context, management reading.Management, options check.Options) (*explain.Checkup, error) {
	counted := make(chan *explain.Evidence, 1)
	go func() { counted <- management.Evidence(ctx) }()
	evidence := func() *explain.Evidence { return <-counted }
	facts, err := check.Facts(ctx, options)
	if err != nil {
		return nil, err
	}
	if facts.Unread != "" {
		return (*explain.Index)(nil).Checkup(facts), nil
	}
	read, err := management.InForce(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		facts.Unread, facts.UnreadHint = kube.Text(err), kube.NextStep(err)
		return (*explain.Index)(nil).Checkup(facts), nil
	}
	if err := management.CheckNamespace(ctx, read.Input); err != nil {
		return nil, err
	}
	facts.Serving = reading.WithoutLease(facts.Serving, read.Input)
	read.Evidence = evidence()
	index := read.Index(nil)
	facts.Gateways = check.Gateways(ctx, index.MeshPlans(), options.Timeout)
	if options.Proxies > 0 {
		facts.Proxies = check.Sample(ctx, index, facts.Gateways, options)
	}
	facts.Translate = engine.Translate
	return index.Checkup(facts), nil
}

func (o *Options) candidates() ([]check.Candidate, error) {
	var out []check.Candidate
	for _, name := range o.RemoteContexts {
		config, err := o.Source.Factory.Config(o.Source.Kube.Kubeconfig, name)
		if err != nil {
			return nil, fmt.Errorf("--remote-context %s: %w", name, err)
		}
		out = append(out, check.Candidate{Context: name, Config: config})
	}
	return out, nil
}

// paint prints a checkup: all of it, or its problems.
func (o *Options) paint(out io.Writer, c *explain.Checkup) error {
	var b strings.Builder
	if o.Output.Format == formatShort {
		o.short(&b, c)
		_, err := io.WriteString(out, b.String())
		return err
	}
	for i := range c.Categories {
		category := &c.Categories[i]
		if !slices.ContainsFunc(category.Checks, func(check explain.Check) bool { return check.Result != explain.CheckSkipped }) {
			continue // its cause is another category's
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(cmdutil.Clean(category.Title) + "\n")
		for _, group := range groups(category) {
			if len(group) > 1 {
				o.group(&b, group)
			} else {
				o.line(&b, c, group[0])
			}
		}
	}
	fmt.Fprintf(&b, "\n%s\n", c.Summary())
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	cmdutil.SayExplained(o.Streams, codesOf(c))
	return nil
}

// short prints a line for each problem, for pipes: failures, then warnings, then what is only to be known.
func (o *Options) short(b *strings.Builder, c *explain.Checkup) {
	p := o.Streams.OutPainter()
	for _, result := range []explain.CheckResult{explain.CheckFailure, explain.CheckWarning, explain.CheckInfo} {
		for i := range c.Categories {
			category := &c.Categories[i]
			for _, check := range category.Checks {
				if check.Result == result {
					p.Paragraph(b, p.Severity(fmt.Sprintf("%-7s", result))+"  ", below[2:],
						fmt.Sprintf("%s: %s: %s", cmdutil.Clean(category.Title), cmdutil.Clean(check.Description), cmdutil.Clean(check.Message)))
				}
			}
		}
	}
}

// codesOf are the codes of what is not as it should be.
func codesOf(c *explain.Checkup) (codes []snapshot.Code) {
	for i := range c.Categories {
		for _, check := range c.Categories[i].Checks {
			if check.Result == explain.CheckFailure || check.Result == explain.CheckWarning {
				codes = append(codes, check.Code)
			}
		}
	}
	return codes
}

// groups are the checks of a category that are printed: those about one object together, where its first one is.
func groups(category *explain.CheckCategory) [][]*explain.Check {
	var out [][]*explain.Check
	at := map[snapshot.Ref]int{}
	for i := range category.Checks {
		check := &category.Checks[i]
		if check.Result == explain.CheckSkipped {
			continue
		}
		if check.Object == nil {
			out = append(out, []*explain.Check{check})
			continue
		}
		group, known := at[*check.Object]
		if !known {
			group = len(out)
			at[*check.Object], out = group, append(out, nil)
		}
		out[group] = append(out[group], check)
	}
	return out
}

// group prints several checks that fail about one object; a sentence that is the same on several targets stands there once.
func (o *Options) group(b *strings.Builder, checks []*explain.Check) {
	first, p := checks[0], o.Streams.OutPainter()
	title := first.Object.String() + ": " + cmp.Or(first.InForce, snapshot.Count(len(checks), "problem"))
	p.Paragraph(b, "  "+p.Severity(fmt.Sprintf("%-7s", first.Result))+"  ", below, cmdutil.Clean(title))
	type sentence struct {
		result        explain.CheckResult
		message, hint string
	}
	var order []sentence
	on := map[sentence][]string{}
	for _, check := range checks {
		s := sentence{check.Result, check.Message, check.Hint}
		if _, said := on[s]; !said {
			order, on[s] = append(order, s), nil
		}
		if check.Target != nil {
			on[s] = append(on[s], check.Target.Name)
		}
	}
	for n, s := range order {
		text := s.message
		if names := on[s]; len(names) > 0 {
			text = "on " + strings.Join(names, ", ") + ": " + text
		}
		if s.result != first.Result {
			text = string(s.result) + ": " + text
		}
		p.Numbered(b, below, n+1, cmdutil.Clean(text), cmdutil.Clean(s.hint))
	}
}

// below is what stands before a line below one that begins with a result.
const below = "           "

func (o *Options) line(b *strings.Builder, c *explain.Checkup, check *explain.Check) {
	message, p := cmdutil.Clean(check.Message), o.Streams.OutPainter()
	result := p.Severity(fmt.Sprintf("%-7s", check.Result)) + "  "
	text := cmdutil.Clean(check.Description)
	if check.Result == explain.CheckOK {
		if message != "" {
			text += ": " + message
		}
		p.Paragraph(b, "  "+result, below, text)
		return
	}
	p.Paragraph(b, "  "+result, below, text+": "+message)
	if check.Hint != "" {
		p.Paragraph(b, below+"→ ", below+"  ", cmdutil.Clean(check.Hint))
	}
	if n := c.Dependents(check.ID); n > 0 {
		p.Paragraph(b, below, below, fmt.Sprintf("because of this, %s could not be made", snapshot.Count(n, "check")))
	}
}
