package osm

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// proxyNames are those of the sidecars of Open Service Mesh 1.2 (pkg/constants, EnvoyContainerName and EnvoyAdminPort). They name no object
// that a route or a cluster comes from.
var proxyNames = &snapshot.ProxyNames{
	Container: "envoy", AdminPort: 15000, PodPorts: true, Target: proxyTarget, Policy: proxyPolicy,
	Origin: func(map[string]json.RawMessage) snapshot.Ref { return snapshot.Ref{} },
}

// proxyTarget reads NAMESPACE/SERVICE|PORT (pkg/service, MeshService.EnvoyClusterName). Hosts have the domain cluster.local, whatever that of
// the cluster is (MeshService.FQDN).
func proxyTarget(cluster string) (target snapshot.ProxyTarget, passes bool) {
	if cluster == "passthrough-outbound" {
		return snapshot.ProxyTarget{}, true
	}
	name, text, _ := strings.Cut(cluster, "|")
	namespace, service, isService := strings.Cut(name, "/")
	port, err := strconv.ParseUint(text, 10, 16)
	if !isService || err != nil {
		return snapshot.ProxyTarget{}, false
	}
	return snapshot.ProxyTarget{Host: service + "." + namespace + ".svc.cluster.local", Port: uint32(port)}, false
}

// proxyPolicy reads NAMESPACE/NAME of a TrafficTarget (pkg/catalog, ListInboundTrafficTargetsWithRoutes). Policies of routes have no name of
// an object.
func proxyPolicy(name string) snapshot.Ref {
	namespace, target, isTarget := strings.Cut(name, "/")
	if !isTarget {
		return snapshot.Ref{}
	}
	return snapshot.Ref{Kind: snapshot.TrafficTarget, Namespace: namespace, Name: target}
}
