package istio

import (
	"maps"
	"slices"
	"strconv"

	meshconfig "istio.io/api/mesh/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// networkKey names the network of pods. Its value on the namespace of a control plane is asked for where several control planes know
	// each other's pods (istio.io: Install Multi-Primary on different networks). Which clusters it knows is in Secrets with the label
	// istio/multiCluster: whoever may list these may read credentials of other clusters, so that they are not read.
	networkKey = "topology.istio.io/network"
	// clusterID is the name by which a control plane knows its own cluster, and usualClusterID the one of an installation that was given
	// none (Istio's chart istiod). Without another one, control planes do not know each other's pods (istio.io: Install Multicluster).
	clusterID      = "CLUSTER_ID"
	usualClusterID = "Kubernetes"
	// alpnFilter is false where proxies of callers lack the filter by which those of pods detect requests in mutual TLS (Istio,
	// features.ALPNFilter).
	alpnFilter = "PILOT_ENABLE_ALPN_FILTER"
	// maxLocalHosts is how many hosts of serviceSettings a Mesh keeps.
	maxLocalHosts = 256
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

// podTraits implements Dialect.PodTraits. Callers send plain text to a pod whose label says anything but istio; the injector adds that
// label where there is none, so that files without it mean it (Istio, xds/endpoints, checkMtlsEnabled). Pods of another network
// than the callers' are reached through a gateway of that network, if istiod knows one (EndpointsByNetworkFilter).
func podTraits(mesh *snapshot.MeshPlan, labels map[string]string) (out snapshot.PodTraits) {
	if mode, says := labels[tlsModeLabel]; says && mode != tlsModeMutual {
		out.Plain = "label " + tlsModeLabel + " of the pods is " + strconv.Quote(mode)
	}
	if name := labels[useWaypointKey]; name != noWaypoint {
		out.Waypoint = name
	}
	out.Network = labels[networkKey]
	if spec := specOf(mesh); spec != nil && out.Network == "" {
		out.Network = spec.Network
	}
	return out
}

// localHostsOf are the hosts of serviceSettings with clusterLocal, and those without, ascending: the last of the same name decides
// (Istio, clusterLocalProvider.onMeshUpdated). What istiod adds by itself (those of kube-system, kubernetes and istiod) is not among
// them. Of settings with too many hosts there are none: an answer then names what the control plane may know.
func localHostsOf(config *meshconfig.MeshConfig) (local, shared []string) {
	isLocal := map[string]bool{}
	for _, settings := range config.GetServiceSettings() {
		for _, h := range settings.GetHosts() {
			isLocal[h] = settings.GetSettings().GetClusterLocal()
		}
	}
	if len(isLocal) > maxLocalHosts {
		return nil, nil
	}
	for _, h := range slices.Sorted(maps.Keys(isLocal)) {
		if isLocal[h] {
			local = append(local, h)
		} else {
			shared = append(shared, h)
		}
	}
	return local, shared
}

// clusterIDOf is the name that the cluster of a control plane was given; empty if it was given none.
func clusterIDOf(pilot *corev1.Container) string {
	for _, e := range pilot.Env {
		if e.Name == clusterID && e.Value != usualClusterID {
			return e.Value
		}
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
