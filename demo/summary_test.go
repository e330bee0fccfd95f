package demo

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestDiscoveredObjectsCountForTheirCluster: the first cluster stores the meshes of all clusters, and
// the table counts each one for the cluster that has it.
func TestDiscoveredObjectsCountForTheirCluster(t *testing.T) {
	t.Parallel()
	in := func(cluster string) unstructured.Unstructured {
		var o unstructured.Unstructured
		o.SetLabels(map[string]string{discoveryClusterLabel: cluster})
		return o
	}
	objects := []unstructured.Unstructured{in("cluster-1"), in("cluster-2"), in("cluster-2")}
	for _, line := range counts() {
		if !line.discovered {
			assert.Equal(t, 3, line.of("cluster-1", objects), "%s are of the cluster that was asked", line.title)
			continue
		}
		assert.Equal(t, 1, line.of("cluster-1", objects), line.title)
		assert.Equal(t, 2, line.of("cluster-2", objects), line.title)
		assert.Zero(t, line.of("cluster-3", objects), line.title)
	}
}

// TestReportNamesWhatEnded: in its first line, with what repairs it.
func TestReportNamesWhatEnded(t *testing.T) {
	t.Parallel()
	process := func(name string, alive bool) ProcessReport {
		return ProcessReport{Name: name, PID: 1, Alive: alive, Log: name + ".log"}
	}
	report := func(apiserver, proxies bool) Report {
		all := process("proxies", proxies)
		return Report{
			Dir: "/d", Phase: Running, Serve: process("meshctl serve", true), Proxies: &all,
			Clusters: []ClusterReport{{Name: "cluster-1", Processes: []ProcessReport{process("etcd", true), process("kube-apiserver", apiserver)}}},
		}
	}
	for _, tt := range []struct {
		report  Report
		healthy bool
		want    string
	}{
		{report(true, true), true, "demo in /d: running since "},
		{report(false, false), false, "and broken: cluster-1 kube-apiserver, proxies ended; start it again with `meshctl demo up`"},
		{Report{Dir: "/d", Phase: Failed}, false, "demo in /d: failed since"},
	} {
		var out strings.Builder
		require.NoError(t, tt.report.Write(&out))
		first, _, _ := strings.Cut(out.String(), "\n")
		assert.Contains(t, first, tt.want)
		assert.Equal(t, tt.healthy, tt.report.Healthy())
	}
}
