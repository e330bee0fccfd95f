package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestInRevision(t *testing.T) {
	t.Parallel()
	mesh := func(deployment string, podLabels map[string]string) *snapshot.MeshPlan {
		return &snapshot.MeshPlan{Mesh: &discoveryv1.Mesh{
			ObjectMeta: metav1.ObjectMeta{Name: deployment + "-istio-system-cluster-1"},
			Spec: discoveryv1.MeshSpec{Istio: &discoveryv1.IstioMesh{Installation: discoveryv1.MeshInstallation{
				Namespace: "istio-system", Cluster: "cluster-1", PodLabels: podLabels,
			}}},
		}}
	}
	usual := mesh("istiod", map[string]string{"app": "istiod"})
	canary := mesh("istiod-canary", nil)
	labelled := mesh("pilot", map[string]string{revisionKey: "canary"})
	for name, c := range map[string]struct {
		labels map[string]string
		readBy []*snapshot.MeshPlan
		plane  bool
	}{
		"none":             {nil, []*snapshot.MeshPlan{usual, canary, labelled}, true},
		"others":           {map[string]string{"app": "a"}, []*snapshot.MeshPlan{usual, canary, labelled}, true},
		"default":          {map[string]string{revisionKey: "default"}, []*snapshot.MeshPlan{usual}, true},
		"another":          {map[string]string{revisionKey: "canary"}, []*snapshot.MeshPlan{canary, labelled}, false},
		"empty":            {map[string]string{revisionKey: ""}, nil, false},
		"that of a tag":    {map[string]string{revisionKey: "stable"}, nil, false},
		"among other ones": {map[string]string{"app": "a", revisionKey: "canary"}, []*snapshot.MeshPlan{canary, labelled}, false},
	} {
		o := &istiosecurityv1.AuthorizationPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", Labels: c.labels}}
		for range 2 { // what is read of a cluster is stripped
			var readBy []*snapshot.MeshPlan
			for _, m := range []*snapshot.MeshPlan{usual, canary, labelled} {
				if inRevision(m, o) {
					readBy = append(readBy, m)
				}
			}
			assert.Equal(t, c.readBy, readBy, name)
			assert.Equal(t, c.plane, inAnyRevision([]*discovery.ControlPlane{{Revision: defaultRevision}}, o), name)
			stripAuthorizationPolicy(o)
		}
		assert.NotContains(t, o.Labels, "app", name)
	}
}
