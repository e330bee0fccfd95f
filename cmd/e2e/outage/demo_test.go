package outage

import (
	"fmt"
	"os"
	"slices"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/waittest"
)

// config reaches a cluster of the demo as its administrator.
func (d *running) config(cluster string) (*rest.Config, error) {
	d.t.Helper()
	file, err := demo.Kubeconfig(d.t.Context(), d.options)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, &clientcmd.ConfigOverrides{CurrentContext: cluster}).ClientConfig()
}

// scale sets how many pods a Deployment has, and waits until it has them.
func (d *running) scale(cluster, name string, replicas int64) {
	d.t.Helper()
	client := d.clients[cluster]
	found, err := client.Get(d.t.Context(), kube.Deployments(), ingress, name)
	require.NoError(d.t, err)
	require.NoError(d.t, unstructured.SetNestedField(found.Object, replicas, "spec", "replicas"))
	found.SetManagedFields(nil)
	found.SetResourceVersion("")
	require.NoError(d.t, client.Apply(d.t.Context(), found))
	waittest.NoError(d.t, fmt.Sprintf("%s has %d pods", name, replicas), func() error {
		found, err := client.Get(d.t.Context(), kube.Deployments(), ingress, name)
		if err != nil {
			return err
		}
		if ready, _, _ := unstructured.NestedInt64(found.Object, "status", "readyReplicas"); ready != replicas {
			return fmt.Errorf("%d are ready", ready)
		}
		return nil
	})
}

// deleteService deletes a Service of the mesh.
func (d *running) deleteService(cluster, name string) {
	d.t.Helper()
	var err error
	d.deleted, err = d.clients[cluster].Get(d.t.Context(), kube.Services(), ingress, name)
	require.NoError(d.t, err)
	require.NoError(d.t, d.clients[cluster].Delete(d.t.Context(), kube.Services(), ingress, name))
}

// restoreService makes the deleted Service again, with the address that its load balancer gave it.
func (d *running) restoreService(cluster string) {
	d.t.Helper()
	made := d.deleted.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(made.Object, "metadata", field)
	}
	require.NoError(d.t, d.clients[cluster].Apply(d.t.Context(), made))
	unstructured.RemoveNestedField(made.Object, "spec")
	require.NoError(d.t, d.clients[cluster].ApplyStatus(d.t.Context(), made))
	// While it has no address, serve names an AuthorizationPolicy after the Service; nothing wants that one later, and it stays for
	// the grace period, with a warning. Who repairs deletes it.
	waittest.NoError(d.t, "nothing is wrong after "+gateway+" is back", func() error {
		err := d.clients[cluster].Delete(d.t.Context(), kube.Security("authorizationpolicies"), ingress, "allow-ingress-gateway-"+gateway)
		if err != nil {
			return err
		}
		if n := d.problems(); n > 0 {
			return fmt.Errorf("there are %d problems", n)
		}
		return nil
	})
}

func (d *running) report() demo.Report {
	d.t.Helper()
	report, err := demo.Status(d.t.Context(), d.options)
	require.NoError(d.t, err)
	return report
}

// kill ends a process of a cluster.
func (d *running) kill(cluster, name string) {
	d.t.Helper()
	report := d.report()
	c := slices.IndexFunc(report.Clusters, func(c demo.ClusterReport) bool { return c.Name == cluster })
	require.GreaterOrEqual(d.t, c, 0)
	p := slices.IndexFunc(report.Clusters[c].Processes, func(p demo.ProcessReport) bool { return p.Name == name })
	require.GreaterOrEqual(d.t, p, 0, "%+v", report.Clusters[c].Processes)
	d.killProcess(report.Clusters[c].Processes[p])
}

func (d *running) killProcess(p demo.ProcessReport) {
	d.t.Helper()
	process, err := os.FindProcess(p.PID)
	require.NoError(d.t, err)
	require.NoError(d.t, process.Kill())
	waittest.Until(d.t, p.Name+" has ended", func() bool { return !d.alive(p.PID) })
}

// alive reports whether the demo says that a process runs.
func (d *running) alive(pid int) bool {
	d.t.Helper()
	report := d.report()
	processes := append([]demo.ProcessReport{report.Serve}, report.Agents...)
	for _, c := range report.Clusters {
		processes = append(processes, c.Processes...)
	}
	return slices.ContainsFunc(processes, func(p demo.ProcessReport) bool { return p.PID == pid && p.Alive })
}

// again starts what has ended.
func again(d *running) {
	d.t.Helper()
	require.NoError(d.t, demo.Up(d.t.Context(), d.options))
}
