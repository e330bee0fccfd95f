package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1alpha1 "istio.io/api/meta/v1alpha1"
	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestMachines: which WorkloadEntries are behind Services, before and after they are stripped.
func TestMachines(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"app": "a"}
	entry := func(change func(*istionetworkingv1.WorkloadEntry)) *istionetworkingv1.WorkloadEntry {
		o := &istionetworkingv1.WorkloadEntry{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"},
			Spec:       networking.WorkloadEntry{Address: "192.0.2.1", Labels: labels},
		}
		change(o)
		return o
	}
	reports := func(status string) func(*istionetworkingv1.WorkloadEntry) {
		return func(o *istionetworkingv1.WorkloadEntry) {
			o.Annotations = map[string]string{healthKey: "true"}
			if status != "" {
				o.Status.Conditions = []*metav1alpha1.IstioCondition{{Type: "Other", Status: "False"}, {Type: healthyCondition, Status: status}}
			}
		}
	}
	machine := discovery.Machine{Namespace: "shop", Name: "a", Address: "192.0.2.1", Labels: labels}
	with := func(change func(*discovery.Machine)) []discovery.Machine {
		m := machine
		change(&m)
		return []discovery.Machine{m}
	}
	for name, c := range map[string]struct {
		change func(*istionetworkingv1.WorkloadEntry)
		want   []discovery.Machine
	}{
		"plain":            {func(*istionetworkingv1.WorkloadEntry) {}, []discovery.Machine{machine}},
		"a host name":      {func(o *istionetworkingv1.WorkloadEntry) { o.Spec.Address = "a.example" }, nil},
		"a socket":         {func(o *istionetworkingv1.WorkloadEntry) { o.Spec.Address = "unix:///a" }, nil},
		"no labels":        {func(o *istionetworkingv1.WorkloadEntry) { o.Spec.Labels = nil }, nil},
		"not reported yet": {reports(""), nil},
		"not healthy":      {reports("False"), nil},
		"healthy":          {reports("True"), []discovery.Machine{machine}},
		"an identity":      {func(o *istionetworkingv1.WorkloadEntry) { o.Spec.ServiceAccount = "a" }, with(func(m *discovery.Machine) { m.Mutual = true })},
		"plain text all the same": {func(o *istionetworkingv1.WorkloadEntry) {
			o.Spec.ServiceAccount, o.Labels = "a", map[string]string{tlsModeLabel: "disabled"}
		}, with(func(m *discovery.Machine) { m.Labels = map[string]string{"app": "a", tlsModeLabel: "disabled"} })},
		"labels of the object": {func(o *istionetworkingv1.WorkloadEntry) { o.Labels = map[string]string{"app": "b"} },
			with(func(m *discovery.Machine) { m.Labels = map[string]string{"app": "b"} })},
	} {
		o := entry(c.change)
		for range 3 {
			cluster := &snapshot.Cluster{}
			cluster.OfMeshes[snapshot.WorkloadEntry] = []snapshot.APIObject{o}
			assert.Equal(t, c.want, machines(cluster, []*discovery.ControlPlane{{Revision: "default"}}), name)
			o = o.DeepCopy()
			stripWorkloadEntry(o)
		}
	}
}
