package engine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestMeshOfUnknownKind: of a mesh that is stored, and that no renderer is for,
// policies and VirtualMeshes say that they have no effect.
func TestMeshOfUnknownKind(t *testing.T) {
	t.Parallel()
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, Namespace: snapshot.DefaultNamespace, Labels: map[string]string{
			snapshot.DiscoveryOwnerLabel: snapshot.DefaultNamespace, snapshot.DiscoveryClusterLabel: enginetest.Cluster(0),
		}}
	}
	ref := commonv1.ObjectRef{Name: "linkerd", Namespace: snapshot.DefaultNamespace}
	mesh := &discoveryv1.Mesh{ObjectMeta: meta(ref.Name)}
	mesh.Spec.Linkerd = &discoveryv1.LinkerdMesh{Installation: discoveryv1.MeshInstallation{Cluster: enginetest.Cluster(0), Namespace: "linkerd"}}
	policy := enginetest.TrafficPolicy(1, 0, 0, time.Second)
	destination := &discoveryv1.Destination{ObjectMeta: meta("service")}
	destination.Spec = discoveryv1.DestinationSpec{Mesh: &ref, KubeService: &discoveryv1.KubeService{
		Ref:                    commonv1.ClusterObjectRef{Name: enginetest.Service(0), Namespace: enginetest.Namespace(0), ClusterName: enginetest.Cluster(0)},
		WorkloadSelectorLabels: map[string]string{"app": "service"},
	}}
	access := enginetest.AccessPolicy(1, 0, 0)
	virtualMesh := &networkingv1.VirtualMesh{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: snapshot.DefaultNamespace}}
	virtualMesh.Spec = networkingv1.VirtualMeshSpec{
		Meshes: []commonv1.ObjectRef{ref}, GlobalAccessPolicy: networkingv1.GlobalAccessPolicyEnabled,
		Federation: &networkingv1.Federation{Selectors: []networkingv1.FederationSelector{{}}},
	}
	state := engine.Translate(&snapshot.Input{
		Clusters: []*snapshot.Cluster{{Name: enginetest.Cluster(0), Sync: snapshot.Unsynced, Reason: "it does not answer"}},
		Management: &snapshot.Management{
			Namespace: snapshot.DefaultNamespace, Meshes: []*discoveryv1.Mesh{mesh}, Destinations: []*discoveryv1.Destination{destination},
			TrafficPolicies: []*networkingv1.TrafficPolicy{policy}, AccessPolicies: []*networkingv1.AccessPolicy{access}, VirtualMeshes: []*networkingv1.VirtualMesh{virtualMesh},
		},
	})
	got := map[string]snapshot.Severity{}
	for _, issue := range state.Output.Issues {
		got[issue.Message] = issue.Severity
	}
	const because = "this version of meshctl does not support them"
	for message, severity := range map[string]snapshot.Severity{
		"TrafficPolicy cannot be expressed on meshes of this kind: " + because: snapshot.Error,
		"AccessPolicy cannot be expressed on meshes of this kind: " + because:  snapshot.Error,
		"federation does not include mesh linkerd: " + because:                 snapshot.Warning,
		"globalAccessPolicy is not in force in mesh linkerd: " + because:       snapshot.Error,
	} {
		assert.Equal(t, severity, got[message], "%s\namong %v", message, got)
	}
	for part := range state.Output.Parts.All() {
		require.Len(t, part.Objects, 1, "%s: only the discovered objects are known", part.Key)
	}
}
