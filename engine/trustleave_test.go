package engine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAgentsAreToldWhomNotToWaitFor: what Settings and the annotation of the VirtualMesh say, each cluster its own. Nothing of
// it depends on what stands in the cluster.
func TestAgentsAreToldWhomNotToWaitFor(t *testing.T) {
	t.Parallel()
	w := newTrustWorld(t, 2, rand.New(rand.NewPCG(1, 0)))
	w.translate() // an annotation is no new generation
	assert.Empty(t, w.agents[0].asked.Trust.LeaveOut)
	vm := *w.in.Management.VirtualMeshes[0]
	vm.Annotations = map[string]string{snapshot.TrustLeaveOutAnnotation: enginetest.Cluster(1) + "/one  all\n" + enginetest.Cluster(0) + "/two all a/b/c /x"}
	management := *w.in.Management
	management.VirtualMeshes = []*networkingv1.VirtualMesh{&vm}
	day := &metav1.Duration{Duration: 24 * time.Hour}
	management.Settings = []*settingsv1.Settings{{ObjectMeta: metav1.ObjectMeta{Namespace: snapshot.DefaultNamespace, Name: "settings"},
		Spec: settingsv1.SettingsSpec{Trust: &settingsv1.TrustSettings{NamespaceTimeout: day}}}}
	w.in.Management = &management
	for range 2 {
		w.translate()
		assert.Equal(t, []string{"all", "two"}, w.agents[0].asked.Trust.LeaveOut)
		assert.Equal(t, []string{"all", "one"}, w.agents[1].asked.Trust.LeaveOut)
		for _, a := range w.agents {
			assert.Equal(t, day, a.asked.Trust.NamespaceTimeout)
			a.asked = a.asked.DeepCopy()
			a.asked.Trust.LeaveOut, a.asked.Trust.NamespaceTimeout = []string{"by-a-member"}, &metav1.Duration{Duration: time.Minute}
		}
	}
}
