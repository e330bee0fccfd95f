package registration_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestUninstall: both clusters are as they were, whichever of install and register came first, and what
// users have in the namespace stays.
func TestUninstall(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ registerFirst, inhabited bool }{
		"registered first": {registerFirst: true}, "installed first, and with an object of a user": {inhabited: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			management, remote := configs(t, sandboxtest.Preparation{}, translatedTypes())
			before := []map[string]string{inventory(t, management), inventory(t, remote)}
			install := func() {
				_, err := registration.Install(t.Context(), registration.InstallOptions{Config: management, Image: "meshctl:1"})
				require.NoError(t, err)
			}
			if !c.registerFirst {
				install()
			}
			for name, config := range map[string]*rest.Config{"here": management, "there": remote} {
				o := registration.Options{Name: name, RemoteConfig: config, MgmtConfig: management, Agent: anAgent("")}
				if config == remote && !c.registerFirst {
					o.APIServerAddress = "there.invalid:6443" // the pods of serve do not reach this machine
				}
				_, err := registration.Register(t.Context(), o)
				require.NoError(t, err)
			}
			install()
			plane, err := cluster.PlaneID(t.Context(), sandboxtest.Clientset(t, management), snapshot.DefaultNamespace)
			require.NoError(t, err)
			put(t, remote, snapshot.ServiceEntry, "default", "written", map[string]string{
				snapshot.NetworkingOwnerLabel: snapshot.DefaultNamespace, snapshot.ClusterLabel: "there", snapshot.PlaneLabel: plane,
			}, nil)
			put(t, management, snapshot.ConfigMap, snapshot.DefaultNamespace, snapshot.TrustRecord, nil, nil) // as serve does
			if c.inhabited {
				put(t, management, snapshot.Secret, snapshot.DefaultNamespace, "of-a-user", nil, nil)
			}

			found, err := registration.PlanUninstall(t.Context(), registration.UninstallOptions{Config: management})
			require.NoError(t, err)
			_, err = found.Run(t.Context())
			require.ErrorContains(t, err, "no context of the kubeconfig leads to it")

			found, err = registration.PlanUninstall(t.Context(), registration.UninstallOptions{
				Config: management, Context: "mgmt", Contexts: []registration.Context{{Name: "gone", Config: &rest.Config{Host: "https://127.0.0.1:1"}}, {Name: "b", Config: remote}},
			})
			require.NoError(t, err)
			require.Len(t, found.Clusters, 2)
			assert.Equal(t, "b", found.Clusters[1].Context)
			assert.Equal(t, 1, found.Clusters[1].Objects)
			assert.Equal(t, "meshctl:1", found.Server.Image)
			report, err := found.Run(t.Context())
			require.NoError(t, err, "%v", report)

			for i, config := range []*rest.Config{management, remote} {
				finishNamespaces(t, config)
				left := without(inventory(t, config), before[i])
				if c.inhabited && i == 0 {
					assert.Equal(t, []string{"Namespace /" + snapshot.DefaultNamespace, "Secret " + snapshot.DefaultNamespace + "/of-a-user"}, left)
					assert.Contains(t, strings.Join(report.Notes, "\n"), "of-a-user")
					continue
				}
				assert.Empty(t, left, "%v", report.Notes)
			}
			again, err := registration.PlanUninstall(t.Context(), registration.UninstallOptions{Config: management})
			require.NoError(t, err)
			nothing, err := again.Empty(t.Context())
			require.NoError(t, err)
			assert.True(t, nothing)
		})
	}
}

// TestUninstallKeepsTraffic: what was written for meshes stays as if somebody had written it by hand.
func TestUninstallKeepsTraffic(t *testing.T) {
	t.Parallel()
	management, remote := translatedPair(t)
	_, err := registration.Register(t.Context(), registration.Options{Name: "there", RemoteConfig: remote, MgmtConfig: management, Agent: anAgent("meshctl:1")})
	require.NoError(t, err)
	plane, err := cluster.PlaneID(t.Context(), sandboxtest.Clientset(t, management), snapshot.DefaultNamespace)
	require.NoError(t, err)
	labels := map[string]string{snapshot.NetworkingOwnerLabel: snapshot.DefaultNamespace, snapshot.ClusterLabel: "there", snapshot.PlaneLabel: plane, "theirs": "stays"}
	put(t, remote, snapshot.ServiceEntry, "default", "written", labels, map[string]string{snapshot.ParentsAnnotation: "{}", "theirs": "stays"})
	put(t, remote, snapshot.ServiceEntry, "default", "by-hand", map[string]string{"theirs": "stays"}, nil)
	put(t, remote, snapshot.IssuedCertificate, snapshot.DefaultNamespace, "mesh", labels, nil)
	put(t, remote, snapshot.CertificateRequest, snapshot.DefaultNamespace, "mesh", nil, nil)

	found, err := registration.PlanUninstall(t.Context(), registration.UninstallOptions{
		Config: management, Contexts: []registration.Context{{Name: "b", Config: remote}}, KeepTraffic: true,
	})
	require.NoError(t, err)
	_, err = found.Run(t.Context())
	require.NoError(t, err)
	finishNamespaces(t, remote)
	client, err := dynamic.NewForConfig(remote)
	require.NoError(t, err)
	left, err := client.Resource(snapshot.ServiceEntry.GroupVersionResource()).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, left.Items, 2)
	for _, o := range left.Items {
		assert.Equal(t, map[string]string{"theirs": "stays"}, o.GetLabels(), o.GetName())
	}
	assert.Equal(t, map[string]string{"theirs": "stays"}, left.Items[1].GetAnnotations())
	for key := range inventory(t, remote) {
		assert.NotContains(t, key, snapshot.DefaultNamespace)
	}
}

// TestUninstallOneOfTwo: the types and all policies stay for the other management plane.
func TestUninstallOneOfTwo(t *testing.T) {
	t.Parallel()
	management := single(t)
	for _, namespace := range []string{"one", "two"} {
		_, err := registration.Install(t.Context(), registration.InstallOptions{Config: management, Namespace: namespace, Image: "meshctl:1"})
		require.NoError(t, err)
	}
	put(t, management, snapshot.VirtualMesh, "default", "vm", nil, nil)
	found, err := registration.PlanUninstall(t.Context(), registration.UninstallOptions{Config: management, Namespace: "one"})
	require.NoError(t, err)
	require.Len(t, found.Kept, 1)
	assert.Contains(t, found.Kept[0], "namespace two")
	assert.Empty(t, found.Policies, "they stay")
	_, err = found.Run(t.Context())
	require.NoError(t, err)
	finishNamespaces(t, management)
	_, err = sandboxtest.Clientset(t, management).CoreV1().Namespaces().Get(t.Context(), "one", metav1.GetOptions{})
	require.Error(t, err)
	assert.NotNil(t, deploymentOf(t, management, "two"))
	found, err = registration.PlanUninstall(t.Context(), registration.UninstallOptions{Config: management, Namespace: "two"})
	require.NoError(t, err)
	assert.Equal(t, map[string]int{"VirtualMesh": 1}, found.Policies)
}
