package mesh

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/restart"
	"github.com/meshctl/meshctl/certs/verify"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/interview"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/wizards"
)

// RestartOptions of the command.
type RestartOptions struct {
	factory *cmdutil.Factory
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	// Prompter replaces the one that fits the streams.
	Prompter wizards.Prompter
	Flags    interview.Flags

	Mesh                                                                  string
	Kubeconfig, MgmtKubeconfig, MgmtContext, MgmtNamespace, RemoteContext string
	Namespaces                                                            []string
	ControlPlaneOnly, DryRun, Yes, Force                                  bool
	AtOnce                                                                int
}

const restartLong = `Restarts the pods of an Istio mesh, so that they take up what is in the Secret
cacerts: first the control plane, then gateways, then all other pods with a
proxy. Use it if the VirtualMesh does not set autoRestartPods.

Pods are restarted as with "kubectl rollout restart": their controllers replace
them by their own rules. Only a few roll at a time (--at-once), and the next one
begins when one is complete. If a rollout does not progress, nothing more is
restarted in its namespace; if that is the control plane's, or if there are
three such namespaces, nothing at all.

Run the command again to go on after an interruption: what has been restarted
for the Secret's content is not restarted again, unless you set --force.

Your own permissions on the mesh's cluster are used. Without --remote-context,
the contexts of the kubeconfig are tried, and one that leads there is taken.`

func newCmdRestart(f *cmdutil.Factory, runF func(context.Context, *RestartOptions) error) *cobra.Command {
	opts := &RestartOptions{factory: f, Streams: f.Streams}
	cmd := &cobra.Command{
		Use:   "restart MESH",
		Short: "Restart the pods of a mesh, so that they take up new certificates",
		Long:  restartLong,
		Example: `  # Show what would restart
  meshctl mesh restart istiod-istio-system-cluster-2 --dry-run

  # Restart the control plane, gateways and workloads
  meshctl mesh restart istiod-istio-system-cluster-2 --remote-context cluster-2

  # Restart the workloads of one namespace, in a script
  meshctl mesh restart istiod-istio-system-cluster-2 --namespace shop --yes`,
		Args: cmdutil.Args("MESH"),
		RunE: func(cmd *cobra.Command, args []string) error {
			opts.Mesh = args[0]
			if opts.AtOnce < 0 {
				return cmdutil.FlagErrorf("--at-once must be 0 or more, not %d", opts.AtOnce)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return restartRun(cmd.Context(), opts)
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return opts.management(f).Names(cmd.Context(), snapshot.Mesh), cobra.ShellCompDirectiveNoFileComp
		},
	}
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: []Controller{}})
	flags := cmd.Flags()
	flags.StringVar(&opts.Kubeconfig, "kubeconfig", "", "kubeconfig `file` (default: $KUBECONFIG, then ~/.kube/config)")
	flags.StringVar(&opts.MgmtKubeconfig, "mgmt-kubeconfig", "", "kubeconfig `file` of the management cluster (default: the file of --kubeconfig)")
	flags.StringVar(&opts.MgmtContext, "mgmt-context", "", "`context` of the management cluster (default: the current one)")
	flags.StringVar(&opts.MgmtNamespace, "mgmt-namespace", cluster.DefaultNamespace, "`namespace` of the management plane")
	flags.StringVar(&opts.RemoteContext, "remote-context", "", "`context` of the mesh's cluster (default: a context that leads there)")
	flags.StringSliceVar(&opts.Namespaces, "namespace", nil, "restart only pods of this `namespace`; may be repeated")
	flags.BoolVar(&opts.ControlPlaneOnly, "control-plane-only", false, "restart only the control plane")
	flags.BoolVar(&opts.DryRun, "dry-run", false, "print what would restart, and change nothing")
	flags.BoolVar(&opts.Yes, "yes", false, "do not ask")
	flags.BoolVar(&opts.Force, "force", false, "also restart what has been restarted for the Secret's content")
	flags.IntVar(&opts.AtOnce, "at-once", 0, "how many controllers roll at a `time` (default: 2, or 10 % if that is more)")
	for _, flag := range []string{"mgmt-context", "remote-context"} {
		_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			names, _ := cmdutil.Contexts(opts.Kubeconfig)
			return names, cobra.ShellCompDirectiveNoFileComp
		})
	}
	return cmd
}

// management is where the meshes are, for the shell.
func (o *RestartOptions) management(f *cmdutil.Factory) *cmdutil.Source {
	kube := cmdutil.KubeFlags{Kubeconfig: cmp.Or(o.MgmtKubeconfig, o.Kubeconfig), Context: o.MgmtContext}
	return &cmdutil.Source{Kube: kube, Namespace: o.MgmtNamespace, Factory: f}
}

func restartRun(ctx context.Context, opts *RestartOptions) error {
	if !opts.Yes && !opts.DryRun && opts.Prompter == nil && !interview.CanAsk(opts.Streams) {
		return cmdutil.FlagErrorf("there is no terminal to ask on; set --yes to restart, or --dry-run to see what would")
	}
	mesh, config, err := opts.find(ctx)
	if err != nil {
		return err
	}
	client, err := kube.NewClientset(config)
	if err != nil {
		return err
	}
	pods, err := opts.pods(ctx, client, mesh)
	if err != nil {
		return err
	}
	plan, err := restart.NewPlan(ctx, client, pods, nil)
	if err != nil {
		return err
	}
	roller := &restart.Roller{Client: client, ControlPlane: mesh.Installation.Namespace, Most: opts.AtOnce, Now: opts.factory.Now}
	if roller.Cause, err = opts.cause(ctx, client, mesh); err != nil {
		return err
	}
	if err := opts.show(mesh, plan); err != nil || opts.DryRun || len(plan.Controllers) == 0 {
		return err
	}
	if !opts.Yes {
		if agreed, err := opts.agree(ctx, plan); err != nil || !agreed {
			return err
		}
	}
	return opts.roll(ctx, roller, plan)
}

// pods are those of the mesh that the flags select.
func (o *RestartOptions) pods(ctx context.Context, client kube.Clientset, mesh *discoveryv1.IstioMesh) ([]restart.Pod, error) {
	looker := verify.NewLooker(verify.Options{Client: client, Namespace: mesh.Installation.Namespace, ControlPlane: mesh.Installation.PodLabels})
	controlPlane, workloads, err := looker.Pods(ctx)
	if err != nil {
		return nil, fmt.Errorf("mesh %s: %w", o.Mesh, err)
	}
	var out []restart.Pod
	add := func(pods []verify.Pod, class func(verify.Pod) restart.Class) {
		for _, p := range pods {
			if len(o.Namespaces) == 0 || slices.Contains(o.Namespaces, p.Namespace) {
				out = append(out, restart.Pod{Namespace: p.Namespace, Name: p.Name, Class: class(p)})
			}
		}
	}
	add(controlPlane, func(verify.Pod) restart.Class { return restart.ControlPlane })
	if !o.ControlPlaneOnly {
		add(workloads, func(p verify.Pod) restart.Class {
			if p.Gateway {
				return restart.Gateway
			}
			return restart.Workload
		})
	}
	return out, nil
}

// cacerts is istiod's Secret.
const cacerts = "cacerts"

// cause is what pods restart for: what is in the Secret, or with --force this run.
func (o *RestartOptions) cause(ctx context.Context, client kube.Clientset, mesh *discoveryv1.IstioMesh) (string, error) {
	secret, err := client.CoreV1().Secrets(mesh.Installation.Namespace).Get(ctx, cacerts, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return "", fmt.Errorf("Secret %s/%s: %w; the pods restart for its contents", mesh.Installation.Namespace, cacerts, err)
	}
	cause := restart.Cause(secret.UID, secret.Data)
	if o.Force {
		cause += "-" + strconv.FormatInt(o.factory.Now().Unix(), 10)
	}
	return cause, nil
}

// Controller is a controller as it is printed: one that restarts, or has been restarted.
type Controller struct {
	// Class is "control plane", "gateway" or "workload".
	Class     string `json:"class"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Pods are how many it has.
	Pods int `json:"pods"`
}

var classes = map[restart.Class]string{restart.ControlPlane: "control plane", restart.Gateway: "gateway", restart.Workload: "workload"}

// show prints the plan; on a dry run it is what was asked for.
func (o *RestartOptions) show(mesh *discoveryv1.IstioMesh, plan restart.Plan) error {
	rows := make([]Controller, 0, len(plan.Controllers))
	for _, c := range plan.Controllers {
		rows = append(rows, Controller{classes[c.Class], c.Kind, c.Namespace, c.Name, len(c.Pods)})
	}
	out := o.Streams.Err
	if o.DryRun {
		out = o.Streams.Out
	}
	table := func(out io.Writer) error {
		if len(rows) == 0 {
			return nil
		}
		t := cmdutil.Table{Header: []string{"CLASS", "KIND", "NAMESPACE", "NAME", "PODS"}}
		for _, r := range rows {
			t.Add(r.Class, r.Kind, r.Namespace, r.Name, strconv.Itoa(r.Pods))
		}
		return t.Print(out)
	}
	for _, u := range plan.Untouched {
		o.say("Note: %s (pods: %d) is not restarted: %s.", u.Owner, u.Pods, u.Reason)
	}
	if len(rows) == 0 {
		o.say("No pod of mesh %s in cluster %s is to restart.", o.Mesh, mesh.Installation.Cluster)
	}
	if o.DryRun {
		return o.Output.Print(out, rows, table)
	}
	return table(out)
}

func (o *RestartOptions) say(format string, args ...any) {
	_, _ = fmt.Fprintln(o.Streams.Err, cmdutil.Clean(fmt.Sprintf(format, args...)))
}

// agree asks. No is the answer that return gives.
func (o *RestartOptions) agree(ctx context.Context, plan restart.Plan) (bool, error) {
	prompter := o.Prompter
	if prompter == nil {
		prompter = o.Flags.Prompter(ctx, o.Streams)
	}
	counts := map[restart.Class]int{}
	for _, c := range plan.Controllers {
		counts[c.Class]++
	}
	question := fmt.Sprintf("Restart the mesh %s (control plane: %d, gateways: %d, workloads: %d)?",
		o.Mesh, counts[restart.ControlPlane], counts[restart.Gateway], counts[restart.Workload])
	answer, err := prompter.Select(wizards.Question{Text: question}, []wizards.Option{{Value: "no"}, {Value: "yes"}}, "no")
	if err != nil {
		return false, interview.ExitError(err)
	}
	if answer != "yes" {
		o.say("Nothing was restarted.")
	}
	return answer == "yes", nil
}
