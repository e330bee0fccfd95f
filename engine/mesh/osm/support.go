package osm

import (
	"cmp"
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// dialect is read-only, and the only one: dialects are compared by pointer.
var dialect = &snapshot.Dialect{
	Name:   "OSM",
	Type:   "osm",
	Fields: slices.Concat(trafficFields(), accessFields(), otherFields()),

	Outside: []snapshot.Outside{
		{What: "MeshConfig", Regard: snapshot.Followed, Note: "permissive traffic policy mode"},
		{What: "TrafficTarget, TrafficSplit, HTTPRouteGroup, TCPRoute", Regard: snapshot.Ignored, Note: "those that users wrote"},
	},

	Describe: describe, Reads: reads,
	// Certificates have a DNS name (OSM's ServiceIdentity.AsPrincipal).
	Principal: func(trustDomain, namespace, account string) string {
		return account + "." + namespace + "." + trustDomain
	},
	Proxies: proxyNames, ByAccount: true, KeepsPort: true, SeesRequests: seesRequests, Inexpressible: inexpressible, Beside: beside,
}

// Dialect declares what Open Service Mesh 1.2 supports with the objects of the
// Service Mesh Interface.
func (Renderer) Dialect() *snapshot.Dialect { return dialect }

// describe reads the trust domain of an Open Service Mesh, and whether it permits all
// calls. If it does not, it denies what no policy allows, in a VirtualMesh or not.
func describe(plan *snapshot.MeshPlan) {
	spec := plan.Mesh.Spec.Osm
	plan.TrustDomain = cmp.Or(spec.TrustDomain, plan.TrustDomain)
	plan.Open = spec.PermissiveTrafficPolicyMode
	plan.AccessSetting = &snapshot.Origin{
		Ref:   snapshot.Ref{Kind: snapshot.MeshConfig, Cluster: plan.Cluster, Namespace: plan.Namespace, Name: "osm-mesh-config"},
		Field: "traffic.enablePermissiveTrafficPolicyMode",
	}
}

func trafficFields() []snapshot.Support {
	const (
		kind      = snapshot.TrafficPolicy
		targets   = "policy.trafficShift.destinations."
		mutualTLS = "there is always mutual TLS between proxies"
	)
	no := func(note string, paths ...string) []snapshot.Support {
		return snapshot.Declare(kind, snapshot.NotExpressible, note, paths...)
	}
	return append(slices.Concat(
		snapshot.Declare(kind, snapshot.Enforced, "",
			"destinationSelector.kubeServiceMatcher.clusters",
			"destinationSelector.kubeServiceMatcher.labels",
			"destinationSelector.kubeServiceMatcher.namespaces",
			"destinationSelector.kubeServiceRefs.services.clusterName",
			"destinationSelector.kubeServiceRefs.services.name",
			"destinationSelector.kubeServiceRefs.services.namespace",
			"sourceSelector.kubeWorkloadMatcher.clusters",
			targets+"kubeService.clusterName",
			targets+"kubeService.name",
			targets+"kubeService.namespace",
			targets+"kubeService.port",
			targets+"weight",
		),
		snapshot.Declare(kind, snapshot.Enforced, mutualTLS, "policy.mtls.istio.tlsMode"),
		no("a TrafficSplit applies to all callers of the mesh",
			"sourceSelector.kubeWorkloadMatcher.labels", "sourceSelector.kubeWorkloadMatcher.namespaces"),
		no("a TrafficSplit applies to all requests", "httpRequestMatchers"),
		no("SMI has no CORS", "policy.corsPolicy"),
		no("SMI has no protection against forged requests", "policy.csrf"),
		no("SMI has no fault injection", "policy.faultInjection"),
		no("SMI changes no headers", "policy.headerManipulation", targets+"options"),
		no("SMI has no mirroring", "policy.mirror"),
		no("SMI has no outlier detection", "policy.outlierDetection"),
		no("SMI has no rate limits", "policy.rateLimit"),
		no("SMI has no timeouts", "policy.requestTimeout"),
		no("SMI has no retries", "policy.retries"),
		no("a TrafficSplit names whole services", targets+"kubeService.subset"),
		no("a TrafficSplit names services of Kubernetes only",
			targets+"clusterHeader", targets+"staticDestination", targets+"virtualDestination"),
	),
		snapshot.Support{Kind: kind, Path: targets + "kubeService.clusterName", Case: snapshot.OtherCluster, Level: snapshot.NotExpressible,
			Note: "a TrafficSplit names services of its own cluster"},
		snapshot.Support{Kind: kind, Path: targets + "kubeService.namespace", Case: snapshot.OtherNamespace, Level: snapshot.NotExpressible,
			Note: "a TrafficSplit names services of its own namespace"},
		snapshot.Support{Kind: kind, Path: targets + "kubeService.port", Case: snapshot.OtherPort, Level: snapshot.NotExpressible,
			Note: "requests keep their port"},
		snapshot.Support{Kind: kind, Path: "policy.mtls.istio.tlsMode", Case: snapshot.NotMutual, Level: snapshot.NotExpressible,
			Note: mutualTLS},
		snapshot.Support{Kind: kind, Path: "policy.mtls.istio.tlsMode", Case: snapshot.NotMutualBeside, Level: snapshot.NotExpressible,
			Note: mutualTLS},
	)
}

func accessFields() []snapshot.Support {
	const (
		kind     = snapshot.AccessPolicy
		accounts = "sourceSelector.kubeServiceAccountRefs.serviceAccounts."
		expanded = "it stands for the service accounts under which workloads of the mesh run at present"
	)
	return append(slices.Concat(
		snapshot.Declare(kind, snapshot.Enforced, "",
			"action", "enforcement",
			"allowedMethods",
			"allowedPaths",
			"allowedPorts",
			"destinationSelector.kubeServiceMatcher.clusters",
			"destinationSelector.kubeServiceMatcher.labels",
			"destinationSelector.kubeServiceMatcher.namespaces",
			"destinationSelector.kubeServiceRefs.services.clusterName",
			"destinationSelector.kubeServiceRefs.services.name",
			"destinationSelector.kubeServiceRefs.services.namespace",
			accounts+"clusterName",
			accounts+"name",
			accounts+"namespace",
		),
		snapshot.Declare(kind, snapshot.Approximated, expanded,
			"sourceSelector.kubeIdentityMatcher.clusters", "sourceSelector.kubeIdentityMatcher.namespaces"),
	),
		snapshot.Support{Kind: kind, Path: "action", Case: snapshot.Denying, Level: snapshot.NotExpressible,
			Note: "a TrafficTarget allows, and nothing of SMI denies"},
		snapshot.Support{Kind: kind, Path: "destinationSelector", Case: snapshot.SharedAccount, Level: snapshot.NotExpressible,
			Note: "access is granted to a service account, and would be to all of its pods"},
		snapshot.Support{Kind: kind, Path: "destinationSelector", Case: snapshot.OpenMesh, Level: snapshot.NotExpressible,
			Note: "enablePermissiveTrafficPolicyMode of OSM's MeshConfig overrides all policies"},
		snapshot.Support{Kind: kind, Path: "sourceSelector", Case: snapshot.Omitted, Level: snapshot.Approximated, Note: expanded},
		snapshot.Support{Kind: kind, Path: accounts + "name", Case: snapshot.Omitted, Level: snapshot.Approximated, Note: expanded},
		snapshot.Support{Kind: kind, Path: accounts + "namespace", Case: snapshot.Omitted, Level: snapshot.Approximated, Note: expanded},
		snapshot.Support{Kind: kind, Path: accounts + "clusterName", Case: snapshot.OtherCluster, Level: snapshot.Approximated,
			Note: "such callers cannot reach the service, and are not allowed"},
		snapshot.Support{Kind: kind, Path: "allowedPaths", Case: snapshot.PathTemplate, Level: snapshot.NotExpressible,
			Note: "path templates exist only in Istio"},
		snapshot.Support{Kind: kind, Path: "allowedMethods", Case: snapshot.UnusualMethod, Level: snapshot.NotExpressible,
			Note: "an HTTPRouteGroup cannot name it"},
	)
}

func otherFields() []snapshot.Support {
	return append(slices.Concat(
		snapshot.Declare(snapshot.VirtualMesh, snapshot.Enforced, "", "meshes.name", "meshes.namespace", "globalAccessPolicy"),
		snapshot.Declare(snapshot.VirtualMesh, snapshot.NotExpressible, "OSM is limited to its own cluster", "federation"),
		snapshot.Declare(snapshot.VirtualMesh, snapshot.NotExpressible, "OSM has its own root certificate", "mtlsConfig"),
		snapshot.Declare(snapshot.Settings, snapshot.NotExpressible, "it is about Istio", "mtls", "discovery.istio", "federation"),
		snapshot.Declare(snapshot.Settings, snapshot.Enforced, "", "discovery.controlPlanes", "discovery.limits", "withdrawals", "policyNamespaces"),
		snapshot.Declare(snapshot.Settings, snapshot.NotExpressible, "OSM cannot restrict a policy to the callers of one namespace", "workloadClusterPolicies"),
		snapshot.Declare(snapshot.Settings, snapshot.NotExpressible, "OSM has its own root certificate", "trust"),
		snapshot.Declare(snapshot.Settings, snapshot.NotExpressible, "not available yet", "networkingExtensionServers", "relay"),
		snapshot.Declare(snapshot.VirtualDestination, snapshot.NotExpressible, "OSM is limited to its own cluster",
			"hostname", "localized", "meshList", "port", "static", "virtualMesh"),
		snapshot.Declare(snapshot.ServiceDependency, snapshot.NotExpressible, "proxies are configured with all that they may call",
			"destinationSelectors", "sourceSelectors"),
	),
		snapshot.Support{Kind: snapshot.VirtualMesh, Path: "globalAccessPolicy", Case: snapshot.AccessDisabled, Level: snapshot.NotExpressible,
			Note: "enablePermissiveTrafficPolicyMode of OSM's MeshConfig decides whether access is open"},
	)
}
