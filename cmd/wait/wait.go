// Package wait is the command `meshctl wait`: it returns when an object is accepted, or in force.
//
//	wait.go     the command
//	verdict.go  how far an object is, by its status
//	proxies.go  how far it is in proxies, by what their control planes say
package wait

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of the command.
type Options struct {
	Streams *cmdutil.Streams
	Source  cmdutil.Source
	Kind    snapshot.Kind
	Name    string
	// For is what to wait for: a key of targets.
	For string
	// Timeout bounds the wait.
	Timeout time.Duration

	// proxies says how far an object that is in force is in proxies; nil if that is not waited for.
	proxies func(context.Context) (state, string)
}

// target is what can be waited for.
type target struct {
	// condition is that of the status; text is what the object is then.
	condition, text string
}

var targets = map[string]target{
	"accepted": {commonv1.ConditionAccepted, "is accepted"},
	"in-force": {commonv1.ConditionInForce, "is in force"},
	"ready":    {commonv1.ConditionReady, "is ready"},
	inProxies:  {commonv1.ConditionInForce, "is in force in all proxies"},
}

// defaultFor and forNames are the values of --for; inProxies is in force, and acknowledged by the proxies.
const (
	defaultFor = "in-force"
	inProxies  = "in-proxies"
)

var forNames = []string{"accepted", "in-force", "ready", inProxies}

// kinds are those whose status has conditions, each with its other names.
var kinds = []struct {
	kind  snapshot.Kind
	names []string
}{
	{snapshot.TrafficPolicy, []string{"trafficpolicy", "trafficpolicies", "tp"}},
	{snapshot.AccessPolicy, []string{"accesspolicy", "accesspolicies", "ap", "map"}},
	{snapshot.VirtualMesh, []string{"virtualmesh", "virtualmeshes", "vmesh", "vmeshes", "vm"}},
	{snapshot.VirtualDestination, []string{"virtualdestination", "virtualdestinations", "vdest"}},
	{snapshot.ServiceDependency, []string{"servicedependency", "servicedependencies", "sdep"}},
	{snapshot.KubernetesCluster, []string{"cluster", "clusters", "kubernetescluster", "kubernetesclusters"}},
}

const long = `Waits until "meshctl serve" has accepted an object, or until what follows from
it is in all clusters concerned. It looks at the status of the last edit only:
what was in force before does not count.

  accepted    the policy is accepted on all that it selects
  in-force    what follows from it is written in all clusters
  ready       both; of a cluster, that it answers and can be written
  in-proxies  in-force, and all proxies of the meshes concerned have
              acknowledged what their control planes sent since

The control planes are asked by port-forward, with your own credential: a
context has to lead to each cluster concerned. Where one cannot be asked, the
wait ends with the reason when the time is over. "meshctl why --proxy" looks at
what proxies do with one request.`

const example = `  # Apply a policy, and go on when it is in force
  kubectl apply -f reviews-shift.yaml
  meshctl wait trafficpolicy/reviews-shift --for in-force --timeout 1m

  # Go on when all proxies have it, too
  meshctl wait trafficpolicy/reviews-shift --for in-proxies

  # Wait for a cluster that was just registered
  meshctl wait cluster/cluster-2 --for ready`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use:     "wait KIND/NAME",
		Short:   "Wait until an object is accepted, or in force",
		Long:    long,
		Example: example,
		Args:    cmdutil.Args("KIND/NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := opts.parse(args[0]); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return run(cmd.Context(), opts)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return opts.complete(cmd.Context(), typed)
		},
	}
	cmdutil.ExitCodes(cmd,
		cmdutil.Exit{Code: cmdutil.ExitFailure, Means: "it is not so far when the time is over; standard error says why"},
		cmdutil.Exit{Code: cmdutil.ExitNotFound, Means: "there is no such object, or it was deleted"},
		cmdutil.Exit{Code: cmdutil.ExitFindings, Means: "it was rejected; standard error says why"},
	)
	cmd.Flags().StringVar(&opts.For, "for", defaultFor, "what to wait for: "+strings.Join(forNames, ", "))
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", time.Minute, "how long to wait; 0 looks once")
	opts.Source.AddClusterFlags(cmd)
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(forNames, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// parse reads KIND/NAME, and checks the flags.
func (o *Options) parse(arg string) error {
	word, name, found := strings.Cut(arg, "/")
	if !found || name == "" {
		return cmdutil.FlagErrorf("%q names no object; write KIND/NAME, such as trafficpolicy/reviews-shift", arg)
	}
	var names []string
	for _, k := range kinds {
		if slices.Contains(k.names, strings.ToLower(word)) {
			o.Kind = k.kind
		}
		names = append(names, k.names[0])
	}
	switch {
	case o.Kind == snapshot.NoKind:
		text := fmt.Sprintf("%q is no kind that can be waited for; choose one of: %s", word, strings.Join(names, ", "))
		if similar := snapshot.Nearest(word, names); similar != "" {
			text += fmt.Sprintf("; did you mean %s/%s?", similar, name)
		}
		return cmdutil.FlagErrorf("%s", text)
	case targets[o.For] == target{}:
		return cmdutil.FlagErrorf("--for %q: must be one of %s", o.For, strings.Join(forNames, ", "))
	case o.Kind == snapshot.KubernetesCluster && o.For != "ready":
		return cmdutil.FlagErrorf("a cluster is not %s; wait for it with: --for ready", o.For)
	case o.Timeout < 0:
		return cmdutil.FlagErrorf("--timeout must not be negative")
	}
	o.Name = name
	return nil
}

// complete offers KIND/, and the names after it.
func (o *Options) complete(ctx context.Context, typed string) ([]string, cobra.ShellCompDirective) {
	word, _, named := strings.Cut(typed, "/")
	var out []string
	for _, k := range kinds {
		switch {
		case !named:
			out = append(out, k.names[0]+"/")
		case slices.Contains(k.names, word):
			for _, name := range o.Source.Names(ctx, k.kind) {
				out = append(out, word+"/"+name)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func run(ctx context.Context, o *Options) error {
	read, err := o.Source.Read(ctx, o.Streams)
	if err != nil {
		return err
	}
	ref, err := cmdutil.Pick(read.Index(nil), o.Kind, o.Name)
	if err != nil {
		return err
	}
	if ref.Cluster != "" {
		return fmt.Errorf("%s %s: it is in cluster %s, where its status is written; use `kubectl wait` there", ref.Kind, cmdutil.Clean(ref.Identity()), cmdutil.Clean(ref.Cluster))
	}
	if o.Kind == snapshot.KubernetesCluster && ref.Namespace == "" {
		ref.Namespace = o.Source.Namespace
	}
	management, err := o.Source.Management()
	if err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(management.Config)
	if err != nil {
		return fmt.Errorf("management cluster %s: %w", management.Config.Host, err)
	}
	if o.For == inProxies {
		o.proxies = o.proxiesOf(management, ref)
	}
	resource := client.Resource(ref.Kind.GroupVersionResource()).Namespace(ref.Namespace)
	return o.wait(ctx, ref, func(ctx context.Context) (*unstructured.Unstructured, error) {
		ctx, cancel := context.WithTimeout(ctx, lookLimit)
		defer cancel()
		return resource.Get(ctx, ref.Name, metav1.GetOptions{})
	})
}

// pause is the time between two looks, and lookLimit bounds each of them.
const (
	pause     = 500 * time.Millisecond
	lookLimit = 10 * time.Second
)

// wait looks at the object again and again until it is where it should be.
func (o *Options) wait(ctx context.Context, ref snapshot.Ref, get func(context.Context) (*unstructured.Unstructured, error)) error {
	goal, name := targets[o.For], strings.TrimSpace(ref.String())
	progress := cmdutil.NewProgress(o.Streams)
	progress.Start("Waiting until " + name + " " + goal.text)
	limited, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	last := ""
	note := func(why string) {
		if why != last {
			progress.Note("%s", why)
			last = why
		}
	}
	for {
		object, err := get(ctx)
		if err != nil {
			if ctx.Err() == nil && !apierrors.IsNotFound(err) {
				note(kube.Text(err)) // the server may answer again
				if o.sleep(limited) {
					continue
				}
			}
			progress.End(err)
			return failed(name, err)
		}
		state, why := look(object, goal.condition)
		if state == met && o.proxies != nil {
			state, why = o.proxies(limited)
		}
		switch state {
		case met:
			progress.End(nil)
			cmdutil.Say(o.Streams, "%s %s.", name, goal.text)
			return nil
		case rejected:
			err := fmt.Errorf("%s: it is rejected: %s; `meshctl describe` says more", name, why)
			progress.End(err)
			return cmdutil.WithCode(cmdutil.ExitFindings, err)
		}
		note(why)
		if !o.sleep(limited) {
			err := ctx.Err()
			if err == nil {
				err = fmt.Errorf("%s: after %s, it is not so that it %s: %s; wait longer with --timeout", name, o.Timeout, goal.text, why)
			}
			progress.End(err)
			return err
		}
	}
}

// sleep waits a moment, and reports whether there is time for another look.
func (o *Options) sleep(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return ctx.Err() == nil
	}
}

// failed is the error of an object that cannot be read.
func failed(name string, err error) error {
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case apierrors.IsNotFound(err):
		return cmdutil.NotFoundErrorf("%s: it does not exist any more; apply it again", name)
	}
	return fmt.Errorf("%s: reading it: %w", name, kube.WithNextStep(err))
}
