package istio

import (
	"maps"
	"strconv"

	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// healthKey on a WorkloadEntry says that the proxy of its machine reports its health, as condition healthy (Istio,
	// pilot/pkg/model/status).
	healthKey        = "proxy.istio.io/health-checks-enabled"
	healthyCondition = "Healthy"
)

// isUnhealthy reports whether istiod leaves a WorkloadEntry out, as it does with one that has not reported yet (Istio,
// serviceentry.isHealthy).
func isUnhealthy(o *istionetworkingv1.WorkloadEntry) bool {
	if reports, err := strconv.ParseBool(o.Annotations[healthKey]); err != nil || !reports {
		return false
	}
	for _, c := range o.Status.Conditions {
		if c.GetType() == healthyCondition {
			healthy, err := strconv.ParseBool(c.GetStatus())
			return err != nil || !healthy
		}
	}
	return true
}

func stripWorkloadEntry(o *istionetworkingv1.WorkloadEntry) {
	unhealthy, labels := isUnhealthy(o), machineLabels(o)
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, named(o.ObjectMeta)
	o.Status.Reset()
	if unhealthy {
		o.Annotations = map[string]string{healthKey: "true"}
	}
	address, ports, account := o.Spec.Address, o.Spec.Ports, o.Spec.ServiceAccount
	o.Spec.Reset()
	o.Spec.Address, o.Spec.Ports, o.Spec.Labels, o.Spec.ServiceAccount = address, ports, labels, account
}

// machines are the WorkloadEntries of a cluster that may be behind Services: those with an IP address and labels (Istio,
// kube/controller, workloadInstanceHandler).
func machines(c *snapshot.Cluster, planes []*discovery.ControlPlane) []discovery.Machine {
	var out []discovery.Machine
	for o := range snapshot.Each[*istionetworkingv1.WorkloadEntry](c.OfMeshes[snapshot.WorkloadEntry]) {
		labels := machineLabels(o)
		if o.Spec.Address == "" || isName(o.Spec.Address) || len(labels) == 0 || isUnhealthy(o) || !inAnyRevision(planes, o) {
			continue
		}
		out = append(out, discovery.Machine{
			Namespace: o.Namespace, Name: o.Name, Address: o.Spec.Address, Labels: labels, Ports: o.Spec.Ports, Mutual: takesMutualTLS(&o.Spec, labels),
		})
	}
	return out
}

// machineLabels are those of the object, and of its spec where the object has no other (Istio, serviceentry.ConvertWorkloadEntry).
func machineLabels(o *istionetworkingv1.WorkloadEntry) map[string]string {
	if len(o.Labels) == 0 {
		return o.Spec.Labels
	}
	labels := maps.Clone(o.Spec.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, o.Labels)
	return labels
}

// takesMutualTLS reports whether callers come with certificates (Istio, serviceentry.getTLSModeFromWorkloadEntry).
func takesMutualTLS(spec *networking.WorkloadEntry, labels map[string]string) bool {
	if mode, says := labels[tlsModeLabel]; says {
		return mode == tlsModeMutual
	}
	return spec.ServiceAccount != ""
}
