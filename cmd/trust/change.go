package trust

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/retry"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// Options of meshctl trust rotate, pause, resume and rollback.
type Options struct {
	Streams *cmdutil.Streams
	Source  cmdutil.Source
	Flags   interview.Flags
	// Prompter replaces the one that fits the streams.
	Prompter wizards.Prompter
	// Now is the clock.
	Now func() time.Time

	VirtualMesh string
	// Yes does not ask; Root is what --root says.
	Yes  bool
	Root string
	// Claims are what accept names; none for what the members say.
	Claims []string
	// LeaveOut are the namespaces for which rotate does not wait, as NAMESPACE or CLUSTER/NAMESPACE.
	LeaveOut []string
	// Wait waits until the trust is established again, for at most Timeout; 0 is for ever.
	Wait    bool
	Timeout time.Duration

	action action
	client dynamic.ResourceInterface
	ref    snapshot.Ref
	meshes []*discoveryv1.Mesh
}

// action is one of the commands.
type action struct {
	use, short, long, example string
	// waits with --wait; takes --root; takes claims; takes --leave-out.
	waits, root, claims, leaveOut bool
	// plan says what would be done, before it asks the question; nil if it does not ask.
	plan     func(vm *networkingv1.VirtualMesh, would *decision) string
	question string
	decide   func(o *Options, vm *networkingv1.VirtualMesh) (*decision, error)
}

func actions() []action {
	return []action{
		{
			use: "rotate", short: "Exchange the root of a VirtualMesh for a new one", waits: true, leaveOut: true,
			plan: plan, question: "Exchange the root of %s?",
			long: `Asks "meshctl serve" to make a new root and to exchange the present one for it,
in steps of which none breaks a connection. Before it does, it shows the steps
and asks; where there is no terminal, set --yes.

It waits for a namespace only for a time (two days, or what Settings say in
spec.trust.namespaceTimeout): then it goes on without the workloads there, which
lose their connections. With --leave-out it does not wait at all, for example
if a root must go because its key is known to somebody. This also works while a
rotation is under way. The namespace of a control plane is always waited for.

It works for roots that meshctl makes. To exchange your own root, put another
one into its Secret; to exchange one in Vault, do so there.`,
			example: `  # Exchange the root, and wait until that is complete
  meshctl trust rotate virtual-mesh --wait

  # The same in a script, for at most a day
  meshctl trust rotate virtual-mesh --yes --wait --timeout 24h

  # Do not wait for the workloads of one namespace in one cluster
  meshctl trust rotate virtual-mesh --leave-out cluster-1/team-a`,
			decide: func(o *Options, vm *networkingv1.VirtualMesh) (*decision, error) {
				return rotate(vm, o.meshes, o.LeaveOut, o.Now())
			},
		},
		{
			use: "pause", short: "Hold a rotation where it stands",
			long: `Holds the trust of a VirtualMesh where it stands: no member changes the root it
signs with, no root is made and none is dropped. Certificates are still renewed.`,
			example: `  # Hold the rotation
  meshctl trust pause virtual-mesh`,
			decide: func(_ *Options, vm *networkingv1.VirtualMesh) (*decision, error) { return pause(vm) },
		},
		{
			use: "resume", short: "Let a rotation go on that was paused",
			long: `Lets the trust of a VirtualMesh go on after "meshctl trust pause".`,
			example: `  # Let the rotation go on
  meshctl trust resume virtual-mesh`,
			decide: func(_ *Options, vm *networkingv1.VirtualMesh) (*decision, error) { return resume(vm) },
		},
		{
			use: "rollback", short: "Return to the former root during a rotation", waits: true, root: true,
			long: `Lets the former root sign again, in the same steps as a rotation. This is
possible until the former root is dropped at the end of the rotation. The root
that it returns to stays until the next "meshctl trust rotate".`,
			example: `  # Return to the former root
  meshctl trust rollback virtual-mesh

  # Choose one of several by the first digits of its fingerprint
  meshctl trust rollback virtual-mesh --root 4f2a`,
			decide: func(o *Options, vm *networkingv1.VirtualMesh) (*decision, error) { return rollback(vm, o.Root) },
		},
		{
			use: "accept", short: "Accept what the members of a VirtualMesh say of themselves", claims: true, plan: acceptPlan, question: "Accept that for %s?",
			long: `Accepts claims, which change nothing before: that a member has other trust
domains than those that were recorded when it joined (with
mtlsConfig.shared.trustDomainPerMesh), as MESH=TRUSTDOMAIN,ALIAS; or that a root
counts which this management plane has not made, by its fingerprint. Without
claims, it accepts the trust domains that all members have now. It shows what
would count and asks; where there is no terminal, set --yes.

What counts is recorded in ConfigMap ` + snapshot.TrustRecord + ` of the management plane's
namespace.`,
			example: `  # Accept the trust domains that the members have now
  meshctl trust accept virtual-mesh

  # Accept a new trust domain of one member
  meshctl trust accept virtual-mesh istiod-istio-system-cluster-2=two.example`,
			decide: func(o *Options, vm *networkingv1.VirtualMesh) (*decision, error) {
				return accept(vm, o.meshes, o.Claims)
			},
		},
	}
}

func newCmdChange(f *cmdutil.Factory, a action, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Now: f.Now, action: a}
	opts.Source.Factory = f
	cmd := &cobra.Command{
		Use: a.usage(), Short: a.short, Long: a.long, Example: a.example,
		Args: func(cmd *cobra.Command, args []string) error {
			if a.claims {
				args = args[:min(1, len(args))]
			}
			return cmdutil.Args("VIRTUALMESH")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.VirtualMesh, opts.Claims = args[0], args[1:]
			if opts.Timeout < 0 {
				return cmdutil.FlagErrorf("--timeout must be 0 or more, not %s", opts.Timeout)
			}
			if cmd.Flags().Changed("timeout") && !opts.Wait {
				return cmdutil.FlagErrorf("--timeout needs --wait")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return changeRun(cmd.Context(), opts)
		},
		ValidArgsFunction: completion(&opts.Source),
	}
	opts.Source.AddClusterFlags(cmd)
	if a.plan != nil {
		cmd.Flags().BoolVar(&opts.Yes, "yes", false, "do not ask")
	}
	if a.waits {
		cmd.Flags().BoolVar(&opts.Wait, "wait", false, "wait until the trust is established again")
		cmd.Flags().DurationVar(&opts.Timeout, "timeout", time.Hour, "how long to wait; 0 waits for ever")
	}
	if a.leaveOut {
		cmd.Flags().StringSliceVar(&opts.LeaveOut, "leave-out", nil, "do not wait for this `namespace`, or CLUSTER/NAMESPACE; may be repeated")
	}
	if a.root {
		cmd.Flags().StringVar(&opts.Root, "root", "", "first `digits` of the fingerprint of the root to return to")
	}
	return cmd
}

func (a action) usage() string {
	if a.claims {
		return a.use + " VIRTUALMESH [CLAIM]..."
	}
	return a.use + " VIRTUALMESH"
}

func (o *Options) say(format string, args ...any) {
	_, _ = fmt.Fprint(o.Streams.Err, cmdutil.CleanLines(fmt.Sprintf(format, args...)))
}

func changeRun(ctx context.Context, opts *Options) error {
	asks := opts.action.plan != nil && !opts.Yes
	if asks && opts.Prompter == nil && !interview.CanAsk(opts.Streams) {
		return cmdutil.FlagErrorf("there is no terminal to ask on; set --yes to %s", opts.action.use)
	}
	if err := opts.find(ctx); err != nil {
		return err
	}
	if asks {
		vm, err := opts.get(ctx)
		if err != nil {
			return err
		}
		would, err := opts.action.decide(opts, vm)
		if err != nil {
			return err
		}
		if len(would.annotations) > 0 {
			if agreed, err := opts.agree(ctx, vm, would); err != nil || !agreed {
				return err
			}
		}
	}
	done, err := opts.change(ctx)
	if err != nil {
		return err
	}
	opts.say("%s\n", done.done)
	switch {
	case opts.Wait:
		return opts.wait(ctx, done)
	case opts.action.waits && len(done.annotations) > 0:
		opts.say("To see how far it is: meshctl trust show %s\n", opts.ref.Name)
	}
	return nil
}

// find finds the VirtualMesh that the name means, and how to write it.
func (o *Options) find(ctx context.Context) error {
	management, err := o.Source.Management()
	if err != nil {
		return err
	}
	reading, err := management.Stored(ctx)
	if err != nil {
		return err
	}
	if err := management.CheckNamespace(ctx, reading.Input); err != nil {
		return err
	}
	o.meshes = reading.Input.Management.Meshes
	if o.ref, err = cmdutil.Pick(reading.Index(nil), snapshot.VirtualMesh, o.VirtualMesh); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(management.Config)
	if err != nil {
		return fmt.Errorf("management cluster: %w", err)
	}
	o.client = client.Resource(snapshot.VirtualMesh.GroupVersionResource()).Namespace(o.ref.Namespace)
	return nil
}

// get reads the VirtualMesh as it is now.
func (o *Options) get(ctx context.Context) (*networkingv1.VirtualMesh, error) {
	stored, err := o.client.Get(ctx, o.ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, cmdutil.NotFoundErrorf("VirtualMesh %s/%s: it does not exist any more; list all with: meshctl describe virtualmesh", o.ref.Namespace, o.ref.Name)
	}
	if err != nil {
		return nil, fmt.Errorf("VirtualMesh %s/%s: %w", o.ref.Namespace, o.ref.Name, err)
	}
	vm := &networkingv1.VirtualMesh{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(stored.Object, vm); err != nil {
		return nil, fmt.Errorf("VirtualMesh %s/%s: it cannot be read: %w", o.ref.Namespace, o.ref.Name, err)
	}
	return vm, nil
}

// change decides and writes. What is written was decided about the version that is replaced.
func (o *Options) change(ctx context.Context) (*decision, error) {
	var done *decision
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		vm, err := o.get(ctx)
		if err != nil {
			return err
		}
		if done, err = o.action.decide(o, vm); err != nil || len(done.annotations) == 0 {
			return err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": vm.ResourceVersion, "annotations": done.annotations}})
		if err != nil {
			return fmt.Errorf("%s: %w", name(vm), err)
		}
		if _, err := o.client.Patch(ctx, o.ref.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "meshctl"}); err != nil {
			return fmt.Errorf("%s: its annotations cannot be changed: %w", name(vm), err)
		}
		return nil
	})
	return done, err
}
