package outage

import (
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/waittest"
)

// config reaches a cluster of the demo as its administrator.
func (d *running) config(t *testing.T, cluster string) (*rest.Config, error) {
	t.Helper()
	file, err := demo.Kubeconfig(t.Context(), d.options)
	if err != nil {
		return nil, err
	}
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: file}, &clientcmd.ConfigOverrides{CurrentContext: cluster}).ClientConfig()
}

// scale sets how many pods a Deployment has, and waits until it has them.
func (d *running) scale(t *testing.T, cluster, name string, replicas int64) {
	t.Helper()
	client := d.clients[cluster]
	found, err := client.Get(t.Context(), kube.Deployments(), ingress, name)
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(found.Object, replicas, "spec", "replicas"))
	found.SetManagedFields(nil)
	found.SetResourceVersion("")
	require.NoError(t, client.Apply(t.Context(), found))
	waittest.NoError(t, fmt.Sprintf("%s has %d pods", name, replicas), func() error {
		found, err := client.Get(t.Context(), kube.Deployments(), ingress, name)
		if err != nil {
			return err
		}
		if ready, _, _ := unstructured.NestedInt64(found.Object, "status", "readyReplicas"); ready != replicas {
			return fmt.Errorf("%d are ready", ready)
		}
		return nil
	})
}

func (d *running) report(t *testing.T) demo.Report {
	t.Helper()
	report, err := demo.Status(t.Context(), d.options)
	require.NoError(t, err)
	return report
}

// kill ends a process of a cluster.
func (d *running) kill(t *testing.T, cluster, name string) {
	t.Helper()
	report := d.report(t)
	c := slices.IndexFunc(report.Clusters, func(c demo.ClusterReport) bool { return c.Name == cluster })
	require.GreaterOrEqual(t, c, 0)
	p := slices.IndexFunc(report.Clusters[c].Processes, func(p demo.ProcessReport) bool { return p.Name == name })
	require.GreaterOrEqual(t, p, 0, "%+v", report.Clusters[c].Processes)
	d.killProcess(t, report.Clusters[c].Processes[p])
}

func (d *running) killProcess(t *testing.T, p demo.ProcessReport) {
	t.Helper()
	process, err := os.FindProcess(p.PID)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	waittest.Until(t, p.Name+" has ended", func() bool { return !d.alive(t, p.PID) })
}

// alive reports whether the demo says that a process runs.
func (d *running) alive(t *testing.T, pid int) bool {
	t.Helper()
	report := d.report(t)
	processes := append([]demo.ProcessReport{report.Serve}, report.Agents...)
	for _, c := range report.Clusters {
		processes = append(processes, c.Processes...)
	}
	return slices.ContainsFunc(processes, func(p demo.ProcessReport) bool { return p.PID == pid && p.Alive })
}

// again starts what has ended.
func again(t *testing.T, d *running) {
	t.Helper()
	require.NoError(t, demo.Up(t.Context(), d.options))
}
