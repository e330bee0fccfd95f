package cluster

import (
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/reading"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ListOptions of the command.
type ListOptions struct {
	Streams *cmdutil.Streams
	Output  cmdutil.OutputFlag
	Now     func() time.Time

	management
	Timeout time.Duration
}

const listLong = `Lists the registered clusters: whether each one answers and accepts the stored
credential, its Kubernetes version, the meshes discovered in it, and the age of
the credential. Clusters are queried in parallel, so that one that does not
answer does not delay the others.

HEALTH is as seen from here, and one of: healthy; degraded (it answers, but see
PROBLEM); denied (it rejects the credential); unreachable; invalid (the stored
credential is broken or missing); leftover (deregistered with --force and not
cleaned yet); unregistered (a Secret with a kubeconfig that no KubernetesCluster
names, so that it is not used); pending (its agent waits until "meshctl cluster
approve" lets it in).

SERVE is what "meshctl serve" reports, if it runs: ok (it reaches the cluster),
fails, or waits (it has not reported yet). If serve runs in the management
cluster, it may reach addresses that lead nowhere from here. Then the command
uses a context of the kubeconfig that leads to the same cluster, with the stored
credential.

If a cluster is reached through its agent (VIA relay), other columns are shown,
with what serve stored: nobody else can ask such a cluster. STATE is awaited
(the agent was never here), refused, lost, resync (what serve has is compared
with the cluster), stuck (what is sent is not acknowledged) or connected; of a
cluster that is dialled, it is HEALTH. LAG-UP and LAG-DOWN are for how long
serve does not have what the agent reports, and the agent what serve sends.
OBJECTS, AGENT and CERTIFICATE are how many objects were reported, the agent's
version, and how long its certificate lasts.`

func newCmdList(f *cmdutil.Factory, runF func(context.Context, *ListOptions) error) *cobra.Command {
	opts := &ListOptions{Streams: f.Streams, Now: f.Now, management: management{factory: f}}
	cmd := &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the registered clusters and their health",
		Long:    listLong,
		Example: `  # List the clusters registered in the cluster of the current context
  meshctl cluster list

  # Print all that is known about each cluster
  meshctl cluster list --mgmt-context cluster-1 -o json`,
		Args: cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Timeout <= 0 {
				return cmdutil.FlagErrorf("--timeout must be greater than 0")
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return listRun(cmd.Context(), opts)
		},
	}
	opts.addFlags(cmd)
	opts.Output.AddFlag(cmd, cmdutil.FormatTable, cmdutil.FormatJSON, cmdutil.FormatYAML)
	opts.Output.Prints(cmdutil.Form{Value: []registration.ClusterStatus{}})
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", registration.DefaultCheckTimeout, "how long to wait for the answer of a cluster")
	return cmd
}

func listRun(ctx context.Context, opts *ListOptions) error {
	mgmt, err := opts.config()
	if err != nil {
		return err
	}
	detours := cmdutil.Detours(opts.factory, opts.kubeconfig)
	found, err := registration.List(ctx, registration.ListOptions{
		MgmtConfig: mgmt, MgmtContext: opts.context, MgmtNamespace: opts.namespace,
		Timeout: opts.Timeout, UserAgent: opts.userAgent(), Detours: detours,
	})
	if err != nil {
		return typed(err)
	}
	if len(found) == 0 {
		if err := (reading.Management{Config: mgmt, Namespace: opts.namespace}).CheckEmpty(ctx); err != nil {
			return err
		}
	}
	for _, note := range detours.Notes() {
		say(opts.Streams, "Note: %s.", note)
	}
	if err := opts.noteServing(ctx, mgmt); err != nil {
		return err
	}
	return opts.Output.Print(opts.Streams.Out, found, func(out io.Writer) error {
		if len(found) == 0 {
			say(opts.Streams, "No cluster is registered in namespace %s of %s. Register one with `meshctl cluster register`.", opts.namespace, mgmt.Host)
			return nil
		}
		if slices.ContainsFunc(found, func(s registration.ClusterStatus) bool {
			return s.Connection != nil || s.Health == snapshot.HealthPending
		}) {
			return relayTable(found, opts.Now()).Print(out)
		}
		return listTable(found, opts.Now()).Print(out)
	})
}

// noteServing says if nothing serves: then nobody renews credentials.
func (o *ListOptions) noteServing(ctx context.Context, mgmt *rest.Config) error {
	read, err := reading.Management{Config: mgmt, Namespace: o.namespace}.Serving()
	if err != nil {
		return err
	}
	serving, err := read(ctx)
	if err != nil {
		return typed(err)
	}
	switch leads, since := serving.At(o.Now()); {
	case !serving.Known || leads:
	case since.IsZero():
		say(o.Streams, "Note: no `meshctl serve` has a Lease: edits are not written, and credentials are not renewed.")
	default:
		say(o.Streams, "Note: nothing has served for %s: edits are not written, and credentials are not renewed.", duration.HumanDuration(max(o.Now().Sub(since), 0)))
	}
	return nil
}

func listTable(found []registration.ClusterStatus, now time.Time) *cmdutil.Table {
	table := &cmdutil.Table{Header: []string{"NAME", "HEALTH", "SINCE", "SERVE", "VERSION", "MESHES", "LATENCY", "EXPIRES", "PROBLEM"}}
	for i := range found {
		table.Add(row(&found[i], now)...)
	}
	return table
}

// serveWords are short, so that the table fits a terminal.
var serveWords = map[registration.ServeStatus]string{registration.ServeReaches: "ok", registration.ServeFails: "fails", registration.ServePending: "waits"}

func meshNames(status *registration.ClusterStatus) string {
	meshes := make([]string, 0, len(status.Meshes))
	for _, mesh := range status.Meshes {
		name := strings.TrimSpace(mesh.Type + " " + mesh.Version)
		if name == "" {
			name = mesh.Name
		}
		meshes = append(meshes, name)
	}
	return strings.Join(meshes, ", ")
}

// ageAt is the age of a time; empty for none.
func ageAt(t *time.Time, now time.Time) string {
	if t == nil {
		return ""
	}
	return duration.HumanDuration(max(now.Sub(*t), 0))
}

// row is one cluster in the table; SINCE is the age of its health, and EXPIRES the life of its credential.
func row(status *registration.ClusterStatus, now time.Time) []string {
	latency, expires := "", ""
	if status.Latency > 0 {
		latency = status.Latency.Round(time.Millisecond).String()
	}
	switch {
	case status.Expires == nil && status.Server != "":
		expires = "never"
	case status.Expires != nil && status.Issued != nil:
		expires = "expired"
		if left := status.Expires.Sub(now); left > 0 {
			expires = duration.HumanDuration(left)
		}
	}
	return []string{status.Name, string(status.Health), ageAt(status.Since, now), serveWords[status.Serve], status.Version, meshNames(status), latency, expires, status.Reason}
}
