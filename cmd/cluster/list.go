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
	Sort    cmdutil.SortFlag
	// Watch goes on, and prints what has changed.
	Watch bool

	changes cmdutil.Changes
	// begun: the clusters were printed once.
	begun bool
}

const listLong = `Lists the registered clusters: whether each one answers and accepts the stored
credential, its Kubernetes version, the meshes discovered in it, and the age of
the credential. Clusters are queried in parallel, so that one that does not
answer does not delay the others.

HEALTH is as seen from here, and one of: healthy; degraded (it answers, but see
PROBLEM); denied (it rejects the credential); unreachable; invalid (the stored
credential is broken or missing); leaving (its agent removes what is there, see
"meshctl cluster deregister"); leftover (deregistered with --force and not
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
with the cluster), stuck (what is sent is not acknowledged), connected or
leaving; of a cluster that is dialled, it is HEALTH. LAG-UP and LAG-DOWN are for
how long serve does not have what the agent reports, and the agent what serve
sends. OBJECTS, AGENT and CERTIFICATE are how many objects were reported, the
agent's version, and how long its certificate lasts.

With --watch, all clusters are asked again, and those are printed of which
something else than a latency or an age has changed.`

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
  meshctl cluster list --mgmt-context cluster-1 -o json

  # Print the names of those that do not answer
  meshctl cluster list -o jsonpath='{.items[?(@.health=="unreachable")].name}'`,
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
	opts.Output.AddHeadersFlag(cmd)
	opts.Sort.AddFlag(cmd, ".health")
	cmdutil.AddWatchFlag(cmd, &opts.Watch)
	cmd.Flags().DurationVar(&opts.Timeout, "timeout", registration.DefaultCheckTimeout, "how long to wait for the answer of a cluster")
	return cmd
}

func listRun(ctx context.Context, opts *ListOptions) error {
	if !opts.Watch {
		return opts.list(ctx, opts.Streams)
	}
	return cmdutil.Follow(ctx, opts.Streams, cmdutil.FollowPause, opts.list)
}

// list asks the clusters and prints them; with Watch, those that have changed.
func (o *ListOptions) list(ctx context.Context, streams *cmdutil.Streams) error {
	mgmt, err := o.config()
	if err != nil {
		return err
	}
	detours := cmdutil.Detours(o.factory, o.kubeconfig)
	found, err := registration.List(ctx, registration.ListOptions{
		MgmtConfig: mgmt, MgmtContext: o.context, MgmtNamespace: o.namespace,
		Timeout: o.Timeout, UserAgent: o.userAgent(), Detours: detours,
	})
	if err != nil {
		return typed(err)
	}
	if len(found) == 0 {
		if err := (reading.Management{Config: mgmt, Namespace: o.namespace}).CheckEmpty(ctx); err != nil {
			return err
		}
	}
	for _, note := range detours.Notes() {
		say(streams, "Note: %s.", note)
	}
	if err := o.noteServing(ctx, streams, mgmt); err != nil {
		return err
	}
	if err := cmdutil.Sort(&o.Sort, found, func(s registration.ClusterStatus) any { return &s }); err != nil {
		return err
	}
	if len(found) == 0 && o.Output.IsTable() {
		say(streams, "No cluster is registered in namespace %s of %s. Register one with `meshctl cluster register`.", o.namespace, mgmt.Host)
	}
	return o.print(found)
}

// print prints clusters; with Watch, those that have changed since the last time, and says which are gone.
func (o *ListOptions) print(found []registration.ClusterStatus) error {
	changed := found
	rows, gone := o.changes.Seen(len(found), func(i int) string { return found[i].Name }, func(i int) string { return lasting(&found[i]) })
	if len(rows) < len(found) {
		changed = make([]registration.ClusterStatus, len(rows))
		for at, i := range rows {
			changed[at] = found[i]
		}
	}
	for _, name := range gone {
		say(o.Streams, "Gone: %s", name)
	}
	if o.begun && len(changed) == 0 {
		return nil
	}
	if separator := o.Output.Separator(); o.begun && !o.Output.IsTable() && separator != "" {
		if _, err := io.WriteString(o.Streams.Out, separator); err != nil {
			return err
		}
	}
	o.begun = true
	return o.Output.Print(o.Streams.Out, changed, func(out io.Writer) error {
		if len(found) == 0 {
			return nil
		}
		table := o.table(found)
		if o.Output.NoHeaders {
			table.Header = nil
		}
		return o.changes.Print(out, table, rows)
	})
}

// lasting is what is known about a cluster, without what differs each time.
func lasting(s *registration.ClusterStatus) string {
	words := []string{s.Name, string(s.Health), string(s.Serve), s.ServeMessage, s.Server, s.Version, meshNames(s), s.Reason}
	if s.Expires != nil {
		words = append(words, s.Expires.String())
	}
	if c := s.Connection; c != nil {
		words = append(words, string(c.Via), string(c.State), c.AgentVersion)
	}
	return strings.Join(words, "\x00")
}

// table lists clusters with the columns that suit the way in which they are reached.
func (o *ListOptions) table(found []registration.ClusterStatus) *cmdutil.Table {
	if slices.ContainsFunc(found, func(s registration.ClusterStatus) bool {
		return s.Connection != nil || s.Health == snapshot.HealthPending
	}) {
		return relayTable(found, o.Now())
	}
	return listTable(found, o.Now())
}

// noteServing says if nothing serves: then nobody renews credentials.
func (o *ListOptions) noteServing(ctx context.Context, streams *cmdutil.Streams, mgmt *rest.Config) error {
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
		say(streams, "Note: no `meshctl serve` has a Lease: edits are not written, and credentials are not renewed.")
	default:
		say(streams, "Note: nothing has served for %s: edits are not written, and credentials are not renewed.", duration.HumanDuration(max(o.Now().Sub(since), 0)))
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
