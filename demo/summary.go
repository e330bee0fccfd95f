package demo

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"text/tabwriter"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/kube"
)

// count is one line of the final table: a kind, and how many objects of it each
// cluster has.
type count struct {
	title string
	gvr   schema.GroupVersionResource
	// discovered kinds are stored in the first cluster, with the cluster that they describe in a label.
	discovered bool
}

// discoveryClusterLabel names the cluster in which an object was discovered.
const discoveryClusterLabel = "cluster.discovery.mesh.gloo.solo.io"

func counts() []count {
	return []count{
		{"meshes", kube.Discovery("meshes"), true},
		{"workloads", kube.Discovery("workloads"), true},
		{"destinations", kube.Discovery("destinations"), true},
		{"virtual services", kube.Networking("virtualservices"), false},
		{"destination rules", kube.Networking("destinationrules"), false},
		{"service entries", kube.Networking("serviceentries"), false},
		{"authorization policies", kube.Security("authorizationpolicies"), false},
		{"gateways", kube.Networking("gateways"), false},
	}
}

// of counts the objects of a cluster.
func (c count) of(cluster string, objects []unstructured.Unstructured) int {
	n := 0
	for i := range objects {
		if !c.discovered || objects[i].GetLabels()[discoveryClusterLabel] == cluster {
			n++
		}
	}
	return n
}

// conclude prints the final table and the next commands.
func (u *up) conclude(ctx context.Context, reused bool) error {
	report, err := Status(ctx, u.opts)
	if err != nil {
		return err
	}
	var b strings.Builder
	if reused {
		_, _ = fmt.Fprintf(&b, "The demo that was started at %s is running.\n\n", report.Created.Local().Format("2006-01-02 15:04"))
	} else {
		_, _ = fmt.Fprint(&b, "The demo is running.\n\n")
	}
	if err := u.writeCounts(ctx, &b); err != nil {
		return err
	}
	if u.traffic != "" {
		_, _ = fmt.Fprintf(&b, "\n%s\n", u.traffic)
	}
	_, _ = fmt.Fprintf(&b, "\n%s\n%s\nfiles and logs: %s\n\nTry next:\n\n", versionsText(report.Versions, report.NoProxies), serveText(report), u.opts.Dir)
	if err := u.writeNextCommands(&b); err != nil {
		return err
	}
	_, err = io.WriteString(u.opts.Out, b.String())
	return err
}

// headline says how the demo is, in a line.
func (r Report) headline() string {
	state := fmt.Sprintf("%s since %s", r.Phase, r.Created.Local().Format("2006-01-02 15:04"))
	if ended := r.ended(); r.Phase == Running && len(ended) > 0 {
		state = fmt.Sprintf("started at %s, and broken: %s ended; start it again with `meshctl demo up`, which keeps what runs",
			r.Created.Local().Format("2006-01-02 15:04"), strings.Join(ended, ", "))
	}
	return "demo in " + r.Dir + ": " + state
}

// serveText says where the management plane runs.
func serveText(r Report) string {
	if r.Serve.PID == 0 {
		return fmt.Sprintf("meshctl serve: %s, log: %s", r.Serve.Name, r.Serve.Log)
	}
	return fmt.Sprintf("meshctl serve: process %d, http://%s/metrics, log %s", r.Serve.PID, r.Metrics, r.Serve.Log)
}

// versionsText names the components, and why there are no proxies.
func versionsText(versions map[string]string, noProxies string) string {
	text := fmt.Sprintf("Kubernetes %s, Istio %s", versions["kubernetes"], versions["istio"])
	if noProxies != "" {
		return text + "; no requests can be sent: " + noProxies
	}
	if versions["envoy"] != "" {
		text += ", Envoy " + versions["envoy"]
	}
	return text
}

func (u *up) writeCounts(ctx context.Context, out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	clients := make([]*kube.Client, len(u.clusters))
	_, _ = fmt.Fprint(table, "  ")
	for i, c := range u.clusters {
		client, err := c.Client()
		if err != nil {
			return err
		}
		clients[i] = client
		_, _ = fmt.Fprintf(table, "\t%s", c.Name())
	}
	_, _ = fmt.Fprintln(table)
	for _, line := range counts() {
		_, _ = fmt.Fprintf(table, "  %s", line.title)
		for i, client := range clients {
			if line.discovered {
				client = clients[0]
			}
			objects, err := client.List(ctx, line.gvr, "")
			if err != nil {
				return err
			}
			_, _ = fmt.Fprintf(table, "\t%d", line.of(u.clusters[i].Name(), objects))
		}
		_, _ = fmt.Fprintln(table)
	}
	return table.Flush()
}

// writeNextCommands prints commands that can be pasted unchanged.
func (u *up) writeNextCommands(out io.Writer) error {
	meshctl, dir := u.commandName(), ""
	if standard, err := DefaultDir(); err != nil || standard != u.opts.Dir {
		dir = " --dir " + quote(u.opts.Dir)
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	lines := [][2]string{
		{"export KUBECONFIG=" + quote(u.kubeconfig()), "for meshctl and kubectl"},
		{meshctl + " describe destination reviews-bookinfo-cluster-1", "the policies for its traffic, and who may call it"},
		{meshctl + " describe virtualmesh virtual-mesh", "its meshes, and which services they share"},
		{meshctl + " cluster list", "health, versions, age of the credentials"},
		{meshctl + " demo status" + dir, "processes and their logs"},
		{meshctl + " dashboard", "everything on one screen"},
	}
	if u.state.Webhook != "" {
		lines = append(lines, [2]string{"kubectl edit accesspolicies -n gloo-mesh productpage", "kubectl warns of what an edit does"})
	}
	if u.state.NoProxies == "" {
		lines = append(lines, [2]string{meshctl + " demo call productpage-v1 http://reviews:9080 --watch" + dir, "requests; edit a policy and see them move"})
		server := ""
		if u.state.Metrics != "" {
			server = " --server http://" + u.state.Metrics
		}
		lines = append(lines, [2]string{meshctl + " top" + server, "what requests do: rates, failures, latencies"})
	}
	for _, line := range lines {
		_, _ = fmt.Fprintf(table, "  %s\t# %s\n", line[0], line[1])
	}
	_, _ = fmt.Fprintf(table, "\nStop it with `%s demo down%s`.\n", meshctl, dir)
	return table.Flush()
}

// commandName is "meshctl" if the shell would run this binary by that name.
func (u *up) commandName() string {
	found, err := exec.LookPath("meshctl")
	if err != nil {
		return quote(u.opts.Meshctl)
	}
	a, errA := os.Stat(found)
	b, errB := os.Stat(u.opts.Meshctl)
	if errA != nil || errB != nil || !os.SameFile(a, b) {
		return quote(u.opts.Meshctl)
	}
	return "meshctl"
}

// quote quotes a path for a shell.
func quote(path string) string {
	if strings.ContainsAny(path, " \t'\"$`\\*?[]{}()<>|&;!#~") {
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return path
}

// Write prints a report.
func (r Report) Write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, r.headline())
	if r.Phase == Failed {
		_, _ = fmt.Fprintf(table, "the last `up` failed or was interrupted; its logs are in this folder; start again with `meshctl demo up`\n")
		return table.Flush()
	}
	_, _ = fmt.Fprintf(table, "kubeconfig %s\n\n", r.Kubeconfig)
	_, _ = fmt.Fprintln(table, "WHERE\tPROCESS\tPID\tSTATE\tLOG")
	line := func(where string, p ProcessReport) {
		state := "ended"
		if p.Alive {
			state = "running"
		}
		pid := "-"
		if p.PID != 0 {
			pid = strconv.Itoa(p.PID)
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", where, p.Name, pid, state, p.Log)
	}
	for _, c := range r.Clusters {
		for _, p := range c.Processes {
			line(c.Name, p)
		}
	}
	if r.Proxies != nil {
		line("", *r.Proxies)
	}
	for _, agent := range r.Agents {
		line("", agent)
	}
	if r.Serve.Name != "" {
		line("", r.Serve)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", versionsText(r.Versions, r.NoProxies))
	return err
}
