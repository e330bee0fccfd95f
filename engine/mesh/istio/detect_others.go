package istio

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/discovery"
)

const (
	// networkKey names the network of pods. Its value on the namespace of a control plane is asked for where several control planes know
	// each other's pods (istio.io: Install Multi-Primary on different networks). Which clusters it knows is in Secrets with the label
	// istio/multiCluster: whoever may list these may read credentials of other clusters, so that they are not read.
	networkKey = "topology.istio.io/network"
	// enableCA is false where the control plane signs no certificates (Istio, features.EnableCAServer).
	enableCA = "ENABLE_CA_SERVER"
	// externalCA has the API of Kubernetes sign them, for one value (Istio, ra.ExtCAK8s).
	externalCA     = "EXTERNAL_CA"
	externalCAKube = "ISTIOD_RA_KUBERNETES_API"
)

// networkOf is the network of the namespace of a control plane; empty if it has none.
func networkOf(x *discovery.Index, namespace string) string {
	if ns := x.Namespaces[namespace]; ns != nil {
		return ns.Labels[networkKey]
	}
	return ""
}

// foreignCA names the setting because of which a control plane does not sign the certificates of proxies; empty if there is none.
func foreignCA(pilot *corev1.Container) string {
	for _, e := range pilot.Env {
		if e.ValueFrom != nil {
			continue
		}
		if enabled, err := strconv.ParseBool(e.Value); e.Name == enableCA && err == nil && !enabled || e.Name == externalCA && e.Value == externalCAKube {
			return e.Name + " is " + e.Value
		}
	}
	return ""
}
