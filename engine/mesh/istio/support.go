package istio

import (
	"cmp"
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// notYet is the reason for fields that Istio could express and that are not
// implemented.
const notYet = "not available yet"

// dialect is read-only, and the only one: dialects are compared by pointer.
var dialect = &snapshot.Dialect{
	Name:   "Istio",
	Type:   "istio",
	Fields: slices.Concat(trafficFields(), filterFields(), accessFields(), virtualMeshFields(), otherFields()),

	Outside: []snapshot.Outside{
		{What: "AuthorizationPolicy", Regard: snapshot.Followed, Note: "pod by pod; what depends on addresses, tokens, SNI or an external authorizer makes an answer UNKNOWN"},
		{What: "PeerAuthentication", Regard: snapshot.Followed, Note: "down to ports"},
		{What: "VirtualService", Regard: snapshot.Followed, Note: "for sidecars and gateways, with what it delegates to; what it redirects, rewrites or matches by authority makes an answer UNKNOWN"},
		{What: "HTTPRoute, GRPCRoute", Regard: snapshot.Followed, Note: "attached to Services and ServiceEntries, and at gateways; what they redirect, rewrite or send elsewhere than to Services makes an answer UNKNOWN"},
		{What: "TCPRoute, TLSRoute", Regard: snapshot.Followed, Note: "attached to Services and ServiceEntries, and at gateways; another name than the host's (SNI) makes an answer UNKNOWN"},
		{What: "DestinationRule", Regard: snapshot.Followed, Note: "its subsets and TLS modes; policies that set the same get a warning. One beside a generated one, or with another TLS than that of the mesh, makes an answer UNKNOWN. Load balancer PASSTHROUGH and proxyProtocol do so, too. Its limits, outlier detection, distribution by locality and tunnels are named; other load balancing is not looked at, nor where requests go if endpoints fail (failover)"},
		{What: "BackendTLSPolicy", Regard: snapshot.Followed, Note: "for Services and ServiceEntries, unless istiod is older than 1.28: it makes a DestinationRule of it, for sidecars, too, so that callers do TLS that proxies of the mesh do not take. An answer is UNKNOWN, or UNREACHABLE where pods take mutual TLS only"},
		{What: "XBackendTrafficPolicy", Regard: snapshot.Ignored, Note: "istiod reads it with PILOT_ENABLE_ALPHA_GATEWAY_API only; it sets how requests are balanced and a budget of retries"},
		{What: "ServiceEntry", Regard: snapshot.Named, Note: "one for a host of a policy, a VirtualDestination or a federated service gets a warning, and makes an answer UNKNOWN where it is, or may be, the older one, or is in the callers' own namespace"},
		{What: "Sidecar", Regard: snapshot.Followed, Note: "the hosts of spec.egress, and spec.outboundTrafficPolicy; what spec.ingress does with a port that is called, and a bind or captureMode NONE of spec.egress, are only named. Its limits are not looked at"},
		{What: "exportTo", Regard: snapshot.Followed, Note: "of Services and of the objects above, and the defaults of the mesh; a route to what is not exported to its callers may make an answer UNKNOWN"},
		{What: "label istio.io/rev", Regard: snapshot.Followed, Note: "of the objects above and below: one for another revision than that of the control plane decides nothing"},
		{What: "pods and Services", Regard: snapshot.Followed, Note: "which pods answer, and which of them have no proxy; an ExternalName is the service that it stands for; a headless Service with another port than that of its pods makes an answer UNKNOWN. That only pods on the callers' node answer (internalTrafficPolicy) is named. In flat networks, other clusters get the first address of a dual-stack pod only"},
		{What: "NetworkPolicy", Regard: snapshot.Followed, Note: "of the callers, the pods that are called and the gateways between them: one that lets a connection through for certain changes no answer. Another one is named, as the network of the cluster may not enforce it, and an AccessPolicy gets a warning if none of its callers gets through"},
		{What: "RequestAuthentication", Regard: snapshot.Followed, Note: "whether a request has a token that it reads; one that has makes an answer UNKNOWN"},
		{What: "EnvoyFilter, WasmPlugin, TrafficExtension", Regard: snapshot.Named, Note: "where they apply to callers, to the pods that are called, or to gateways between them"},
		{What: "WorkloadEntry", Regard: snapshot.Followed, Note: "behind Services, with the ports and labels that it has; other clusters do not get it, and it is no caller"},
		{What: "Gateway", Regard: snapshot.Followed, Note: "of Istio and of the Gateway API, with ListenerSets and ReferenceGrants: of what enters at a gateway, the VirtualServices and routes that are bound there decide together, as istiod merges them. One of a GatewayClass that its pods do not show to be Istio's makes an answer UNKNOWN"},
		{What: "Ingress", Regard: snapshot.Followed, Note: "of the classes that the mesh takes, by the settings of its meshConfig and IngressClasses, at its ingress gateway"},
		{What: "DNS capture", Regard: snapshot.Followed, Note: "ISTIO_META_DNS_CAPTURE of meshConfig.defaultConfig.proxyMetadata, and of the proxies' containers. Where proxies do not capture DNS, whether a DNS server answers for names that end in .global is named: those of clusters are not looked at, nor dnsCapture of istio-cni for ambient mode"},
		{What: "Telemetry", Regard: snapshot.Followed, Note: "which metrics it disables, for `meshctl top`: what proxies do not count is no data. Its other settings decide about no request"},
		{What: "ProxyConfig", Regard: snapshot.Ignored, Note: "it decides about no request, but for DNS capture, which is read off pods"},
		{What: "meshConfig", Regard: snapshot.Followed, Note: "trust domains, root namespace, defaults of exportTo, path normalization and DNS capture, also of the ConfigMap that SHARED_MESH_CONFIG names; outboundTrafficPolicy, discoverySelectors, serviceEntryVisibility and enableAutoMtls"},
		{What: "several control planes in a cluster", Regard: snapshot.Named, Note: "each reads all Services, so that an answer about callers of one and a service of another is UNKNOWN if they are in no VirtualMesh together"},
		{What: "protocols that proxies detect", Regard: snapshot.Named, Note: "on ports whose Service names none, where " + alpnFilter + " of istiod is false; and where Services name different ones for a port of the same pods"},
		{What: "meshConfig.defaultTrafficPolicy", Regard: snapshot.Named},
		{What: "meshConfig.localityLbSetting, meshNetworks", Regard: snapshot.Named, Note: "distribute, and networks that have a name"},
		{What: "meshConfig.inboundTrafficPolicy", Regard: snapshot.Named, Note: "LOCALHOST"},
		{What: "endpoints in other clusters", Regard: snapshot.Named, Note: "of a control plane with remote secrets, which are not read: where its namespace has the label " + networkKey + ", or where it has a " + clusterID + " and another cluster has a service of the same name; not for the hosts that serviceSettings in its meshConfig keep in the cluster (clusterLocal)"},
		{What: "label " + networkKey, Regard: snapshot.Named, Note: "of pods that are called, where callers have another one"},
		{What: "label " + tlsModeLabel, Regard: snapshot.Followed, Note: "of pods that are called"},
		{What: "traffic annotations", Regard: snapshot.Followed, Note: "of pods, and the same settings of their injector: ports and addresses that pass proxies by. What cannot be read, or depends on an address that is not known, or on the interface of a connection that callers open, makes an answer UNKNOWN. A policy gets a warning about callers of whom its proxies do not see what they send"},
		{What: "runAsUser and runAsGroup", Regard: snapshot.Followed, Note: "of pods that call, and of their containers that do not end: what these send as the user or group of their proxies (1337) passes these by. Where only some containers do, an answer is UNKNOWN. As whom an image runs by itself, and what init containers send, is not looked at"},
		{What: "spec.addresses of ServiceEntries", Regard: snapshot.Followed, Note: "one with an address to which callers of a service connect, for other than requests on the same port, takes their connections, and makes an answer UNKNOWN. Addresses in the status are not looked at"},
		{What: "shorter names of Services", Regard: snapshot.Named, Note: "NAME.NAMESPACE, where a ServiceEntry or VirtualService has it as a host of its own"},
		{What: "ports of ServiceEntries with a workloadSelector", Regard: snapshot.Named, Note: "where one names another protocol than a Service for a port of the same pods, and no Service that leads there is older: the oldest decides what their proxies see"},
		{What: "interception mode NONE", Regard: snapshot.Followed, Note: "it makes an answer UNKNOWN"},
		{What: "ambient mode", Regard: snapshot.Named, Note: "pods by the annotation of istio-cni, and the waypoints that Services, namespaces and pods ask for, also for gateways (istio.io/ingress-use-waypoint). Nothing is translated for them, and an answer is UNKNOWN, or REFUSED where ztunnel lets nobody in; users' objects that mean something else there get a warning"},
		{What: "waypoints of other kinds", Regard: snapshot.Ignored, Note: "those that ServiceEntries ask for, also by the labels of the namespace of the control plane, canaries, whom allowedRoutes lets attach, and Gateways of class istio-remote; of AMBIENT_ENABLE_MULTI_NETWORK only that it is set: with it, a control plane of remote clusters only may drop the endpoints of ServiceEntries"},
	},

	Ambient: &snapshot.AmbientHints{
		Policy: "exclude the service, or its namespace, from the policy, and write what Istio has for ambient mode by hand: AuthorizationPolicies by identities and ports, " +
			"and an HTTPRoute and a waypoint for requests; or have sidecars injected into its pods instead",
		Identity:      "have their callees take HBONE (label networking.istio.io/tunnel: http, with ISTIO_META_ENABLE_HBONE), or give the callers sidecars",
		Federation:    "have sidecars injected into their pods; or let Istio's own multi-network ambient mode reach them, by the label " + globalKey + " and an east-west gateway of class istio-east-west",
		MakeWaypoint:  "make it: a Gateway of class istio-waypoint of that name (istioctl waypoint apply); or remove the label " + useWaypointKey,
		ServeServices: "set " + waypointForKey + ": service on its Gateway, or name another one",
		ShareWaypoint: "set the label " + globalKey + ": \"true\" on its Service (or Gateway) as well",
	},
	Describe: describe, Inspect: inspect, Reads: reads, ByAge: byAge, Egress: snapshot.Sidecar, Proxies: proxyNames,
	SPIFFE: true, Tries: tries,
	Principal: func(trustDomain, namespace, account string) string {
		return "spiffe://" + trustDomain + "/ns/" + namespace + "/sa/" + account
	},
	CA: &snapshot.ControlPlaneCA{
		Secret: "cacerts", ConfigMap: rootsName, Key: rootsKey,
		Account: func(spec *discoveryv1.MeshSpec) string { return cmp.Or(spec.Istio.IstiodServiceAccount, istiodAccount) },
	},
	Gateways: &snapshot.GatewayLabels{
		// The charts label istio: ingressgateway, and the gateway chart istio: NAME, without a prefix "istio-" of the release.
		Role: "istio", EastWest: "eastwestgateway", Ingress: []string{"ingressgateway", "ingress"}, Egress: []string{"egressgateway", "egress"},
		// On what istiod deploys for a Gateway of the Gateway API.
		Deployed: "gateway.networking.k8s.io/gateway-name",
	},
	Unknown:     unknown,
	PodTraits:   podTraits,
	ResolveHint: "set ISTIO_META_DNS_CAPTURE to \"true\" in its meshConfig.defaultConfig.proxyMetadata",
	TrustHint: func(mesh, trustDomains string, apart bool) string {
		if apart {
			return "run the istiod of mesh " + mesh + " with PILOT_SKIP_VALIDATE_TRUST_DOMAIN=true; as trustDomainAliases, they could not be told apart"
		}
		return "add " + trustDomains + " to trustDomainAliases in the meshConfig of mesh " + mesh +
			", or, to have AccessPolicies tell the identities apart, run its istiod with PILOT_SKIP_VALIDATE_TRUST_DOMAIN=true"
	},
	MutualHint:      "write a PeerAuthentication with mode STRICT for its pods",
	RootHint:        "give each istiod a CA certificate of the same root, as Secret cacerts in its namespace, and restart istiod and the workloads",
	RootUnknownHint: "istiod writes them to ConfigMap istio-ca-root-cert in its own namespace; check that it is there and can be read",
}

// istiodAccount is the service account in the identity of an istiod whose own is not known, as in Gloo Mesh 1.x.
const istiodAccount = "istio-citadel"

// describe reads the MeshConfig of a mesh. Proxies accept callers of the trust domain
// of their mesh, its aliases, and the trust domains of its caCertificates (istio.io
// MeshConfig.trustDomainAliases).
func describe(plan *snapshot.MeshPlan) {
	spec := plan.Mesh.Spec.Istio
	plan.TrustDomain, plan.TrustDomainSet = cmp.Or(spec.TrustDomain, plan.TrustDomain), spec.TrustDomain != ""
	plan.TrustAliases, plan.TrustPeers = spec.TrustDomainAliases, spec.PeerTrustDomains
	plan.Roots = spec.RootFingerprints
	plan.RootNamespace = cmp.Or(spec.RootNamespace, plan.RootNamespace)
	plan.ExportTo = spec.DefaultExportTo
	plan.PathNormalization = cmp.Or(spec.PathNormalization, snapshot.PathsBase)
	plan.DNS.ResolvesAll = spec.SmartDnsProxyingEnabled
	plan.IgnoresOwn, plan.DefaultSettings = spec.IgnoresOwn, spec.DefaultTrafficPolicy
	plan.EndpointNotes = endpointNotes(plan)
	if spec.PlainByDefault {
		plan.PlainBy = "enableAutoMtls is false in the meshConfig of mesh " + plan.Ref.Name
	}
	plan.ForeignCA = spec.ForeignCA
	if spec.WithoutALPN {
		plan.Undetected = alpnFilter + " of the control plane of mesh " + plan.Ref.Name + " is false"
	}
	plan.LocalHosts, plan.SharedHosts = spec.LocalHosts, spec.SharedHosts
	if spec.ClusterID != "" {
		plan.ClusterID = clusterID + " is " + spec.ClusterID
	}
	if spec.InboundTrafficPolicy != "" {
		plan.InboundNote = "inboundTrafficPolicy in the meshConfig of mesh " + plan.Ref.Name + " is " + spec.InboundTrafficPolicy +
			": proxies pass requests on to 127.0.0.1, and what listens at the addresses of pods only gets none"
	}
	if spec.Network != "" {
		plan.MayKnowOthers = "label " + networkKey + " of namespace " + plan.Namespace
	}
	plan.Unknowns = unknownsOf(spec.OutboundTrafficPolicy)
}

// Dialect declares what Istio supports.
func (Renderer) Dialect() *snapshot.Dialect { return dialect }

func trafficFields() []snapshot.Support {
	const (
		kind      = snapshot.TrafficPolicy
		unlimited = "it applies to every request"
	)
	return append(slices.Concat(
		enforcedTrafficFields(),
		snapshot.Declare(kind, snapshot.Enforced, "it is a comment and has no effect", "httpRequestMatchers.name"),
		snapshot.Declare(kind, snapshot.Enforced,
			"without retryOn, GET, HEAD, OPTIONS, TRACE, PUT and DELETE are also retried after 502, 503, 504, resets and slow tries; other methods only after failed connections, refused streams, and UNAVAILABLE or CANCELLED of gRPC",
			"policy.retries.attempts", "policy.retries.perTryTimeout", "policy.retries.retryOn"),
		// Istio prefers endpoints by locality wherever it detects failing ones
		// (LocalityLoadBalancerSetting), and knows the localities of its own cluster
		// only.
		snapshot.Declare(kind, snapshot.Enforced, "callers then prefer the service's pods in their own zone, as Istio does by itself",
			"policy.outlierDetection.baseEjectionTime",
			"policy.outlierDetection.consecutiveErrors",
			"policy.outlierDetection.interval",
			"policy.outlierDetection.maxEjectionPercent",
		),
		snapshot.Declare(kind, snapshot.NotExpressible, "Istio routes to services, not to the proxy's clusters",
			"policy.trafficShift.destinations.clusterHeader"),
	),
		snapshot.Support{
			Kind: kind, Path: "policy.trafficShift.destinations.kubeService.name", Case: snapshot.Headless, Level: snapshot.NotExpressible,
			Note: "proxies of its cluster connect to the address that the caller has resolved, whatever target or subset is chosen",
		},
		snapshot.Support{
			Kind: kind, Path: "policy.outlierDetection", Case: snapshot.BesideCondition, Level: snapshot.Approximated,
			Note: unlimited,
		},
		snapshot.Support{
			Kind: kind, Path: "policy.outlierDetection", Case: snapshot.ThroughGateways, Level: snapshot.Approximated,
			Note: "gateways exclude pods to which they cannot connect; pods that answer with errors stay in use, as callers see gateways and would exclude one with all its pods",
		},
		snapshot.Support{
			Kind: kind, Path: "policy.mtls.istio.tlsMode", Case: snapshot.BesideCondition, Level: snapshot.Approximated,
			Note: unlimited,
		},
		snapshot.Support{
			Kind: kind, Path: "policy.mtls.istio.tlsMode", Case: snapshot.NotMutual, Level: snapshot.Approximated,
			Note: "callers in other clusters still use mutual TLS: gateways pass nothing else; others present no identity, so AccessPolicies that name callers allow none of them",
		},
		snapshot.Support{
			Kind: kind, Path: "policy.mtls.istio.tlsMode", Case: snapshot.NotMutualBeside, Level: snapshot.NotExpressible,
			Note: "it would turn mutual TLS off for callers and requests that the policy does not select",
		},
	)
}

// enforcedTrafficFields are the fields of a TrafficPolicy that hold without exception.
func enforcedTrafficFields() []snapshot.Support {
	const kind = snapshot.TrafficPolicy
	return snapshot.Declare(kind, snapshot.Enforced, "",
		"destinationSelector.kubeServiceMatcher.clusters",
		"destinationSelector.kubeServiceMatcher.labels",
		"destinationSelector.kubeServiceMatcher.namespaces",
		"destinationSelector.kubeServiceRefs.services.clusterName",
		"destinationSelector.kubeServiceRefs.services.name",
		"destinationSelector.kubeServiceRefs.services.namespace",
		"sourceSelector.kubeWorkloadMatcher.clusters",
		"sourceSelector.kubeWorkloadMatcher.labels",
		"sourceSelector.kubeWorkloadMatcher.namespaces",
		"httpRequestMatchers.headers.invertMatch",
		"httpRequestMatchers.headers.name",
		"httpRequestMatchers.headers.regex",
		"httpRequestMatchers.headers.value",
		"httpRequestMatchers.method",
		"httpRequestMatchers.queryParameters.name",
		"httpRequestMatchers.queryParameters.regex",
		"httpRequestMatchers.queryParameters.value",
		"httpRequestMatchers.uri.exact",
		"httpRequestMatchers.uri.ignoreCase",
		"httpRequestMatchers.uri.prefix",
		"httpRequestMatchers.uri.regex",
		"httpRequestMatchers.uri.suffix",
		"policy.corsPolicy.allowCredentials",
		"policy.corsPolicy.allowHeaders",
		"policy.corsPolicy.allowMethods",
		"policy.corsPolicy.allowOrigins.exact",
		"policy.corsPolicy.allowOrigins.ignoreCase",
		"policy.corsPolicy.allowOrigins.prefix",
		"policy.corsPolicy.allowOrigins.regex",
		"policy.corsPolicy.allowOrigins.suffix",
		"policy.corsPolicy.exposeHeaders",
		"policy.corsPolicy.maxAge",
		"policy.faultInjection.abort.httpStatus",
		"policy.faultInjection.fixedDelay",
		"policy.faultInjection.percentage",
		"policy.headerManipulation.appendRequestHeaders",
		"policy.headerManipulation.appendResponseHeaders",
		"policy.headerManipulation.removeRequestHeaders",
		"policy.headerManipulation.removeResponseHeaders",
		"policy.mirror.kubeService.clusterName",
		"policy.mirror.kubeService.name",
		"policy.mirror.kubeService.namespace",
		"policy.mirror.percentage",
		"policy.mirror.port",
		"policy.mtls.istio.tlsMode",
		"policy.requestTimeout",
		"policy.trafficShift.destinations.kubeService.clusterName",
		"policy.trafficShift.destinations.kubeService.name",
		"policy.trafficShift.destinations.kubeService.namespace",
		"policy.trafficShift.destinations.kubeService.port",
		"policy.trafficShift.destinations.kubeService.subset",
		"policy.trafficShift.destinations.options.headerManipulation.appendRequestHeaders",
		"policy.trafficShift.destinations.options.headerManipulation.appendResponseHeaders",
		"policy.trafficShift.destinations.options.headerManipulation.removeRequestHeaders",
		"policy.trafficShift.destinations.options.headerManipulation.removeResponseHeaders",
		"policy.trafficShift.destinations.staticDestination",
		"policy.trafficShift.destinations.virtualDestination",
		"policy.trafficShift.destinations.weight",
	)
}

// filterFields are the fields of a TrafficPolicy that need filters of our own.
func filterFields() []snapshot.Support {
	const kind = snapshot.TrafficPolicy
	return slices.Concat(
		snapshot.Declare(kind, snapshot.Enforced, "",
			"policy.csrf.additionalOrigins.exact",
			"policy.csrf.additionalOrigins.ignoreCase",
			"policy.csrf.additionalOrigins.prefix",
			"policy.csrf.additionalOrigins.regex",
			"policy.csrf.additionalOrigins.suffix",
			"policy.csrf.filterEnabled",
			"policy.csrf.percentage",
			"policy.csrf.shadowEnabled",
		),
		snapshot.Declare(kind, snapshot.Enforced, "by the proxy of each calling pod, separately for each matcher and port; beside retries without retryOn, also separately for methods that are idempotent and others",
			"policy.rateLimit.basic.anonymousLimits"),
		snapshot.Declare(kind, snapshot.NotExpressible, "proxies cannot tell users who have logged in from others",
			"policy.rateLimit.basic.authorizedLimits"),
		snapshot.Declare(kind, snapshot.NotExpressible, "it needs a server that counts, and none can be configured; use basic.anonymousLimits",
			"policy.rateLimit.advanced", "policy.rateLimit.configRefs"),
	)
}

func accessFields() []snapshot.Support {
	return append(snapshot.Declare(snapshot.AccessPolicy, snapshot.Enforced, "",
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
		"sourceSelector.kubeIdentityMatcher.clusters",
		"sourceSelector.kubeIdentityMatcher.namespaces",
		"sourceSelector.kubeServiceAccountRefs.serviceAccounts.clusterName",
		"sourceSelector.kubeServiceAccountRefs.serviceAccounts.name",
		"sourceSelector.kubeServiceAccountRefs.serviceAccounts.namespace",
	),
		snapshot.Support{Kind: snapshot.AccessPolicy, Path: "sourceSelector", Case: snapshot.Omitted, Level: snapshot.Enforced},
		snapshot.Support{
			Kind: snapshot.AccessPolicy, Path: "sourceSelector.kubeServiceAccountRefs.serviceAccounts.namespace", Case: snapshot.Omitted,
			Level: snapshot.Enforced, Note: "as the namespaces in which workloads run under the name",
		},
		snapshot.Support{
			Kind: snapshot.AccessPolicy, Path: "action", Case: snapshot.Denying, Level: snapshot.Enforced,
			Note: "what presents no identity is denied only without sourceSelector; with limited trust, single callers of other members are denied whole services, and not single requests",
		},
	)
}

func virtualMeshFields() []snapshot.Support {
	const kind = snapshot.VirtualMesh
	return slices.Concat(
		snapshot.Declare(kind, snapshot.Enforced, "",
			"meshes.name",
			"meshes.namespace",
			"globalAccessPolicy",
			"federation.eastWestIngressGatewaySelectors.destinationSelectors",
			"federation.eastWestIngressGatewaySelectors.portName",
			"federation.flatNetwork",
			"federation.hostnameSuffix",
			"federation.mode",
			"federation.tcpKeepalive.interval",
			"federation.tcpKeepalive.probes",
			"federation.tcpKeepalive.time",
		),
		snapshot.Declare(kind, snapshot.Enforced, "without a flat network, gateways balance connections, not requests: all requests of a connection reach the same pod",
			"federation.permissive", "federation.selectors.destinationSelectors", "federation.selectors.meshes"),
		snapshot.Declare(kind, snapshot.Enforced, "the agent of the cluster takes care of it", "mtlsConfig.shared", "mtlsConfig.autoRestartPods",
			"mtlsConfig.replaceUserCertificates", "mtlsConfig.shared.trustDomainPerMesh"),
		snapshot.Declare(kind, snapshot.Enforced, "gateways pass connections on and read no requests: policies on a service must allow callers of other members the same requests; VirtualDestinations leave out services of other members",
			"mtlsConfig.limited"),
		snapshot.Declare(kind, snapshot.NotExpressible, "the private key is made by the agent, and never leaves its cluster",
			"mtlsConfig.shared.intermediateCertificateAuthority.vault.csrPath"),
	)
}

func otherFields() []snapshot.Support {
	return slices.Concat(
		snapshot.Declare(snapshot.Settings, snapshot.Enforced, "", "mtls.istio.tlsMode",
			"federation.warnServiceEntriesPerProxy", "federation.warnEndpointsPerProxy", "federation.limits",
			"discovery.controlPlanes", "discovery.limits", "discovery.istio.ingressGatewayDetectors", "discovery.istio.gatewayNamespaces",
			"withdrawals.gracePeriod", "withdrawals.maxPercent", "policyNamespaces", "workloadClusterPolicies", "trust.namespaceTimeout"),
		snapshot.Declare(snapshot.Settings, snapshot.NotExpressible, notYet, "networkingExtensionServers", "relay"),
		virtualDestinationFields(),
		snapshot.Declare(snapshot.ServiceDependency, snapshot.Enforced, "",
			"destinationSelectors", "sourceSelectors"),
	)
}

func virtualDestinationFields() []snapshot.Support {
	const kind = snapshot.VirtualDestination
	const directives = "localized.failoverDirectives."
	return slices.Concat(
		snapshot.Declare(kind, snapshot.Enforced, "",
			"hostname",
			"localized.destinationSelectors",
			directives+"from.region",
			directives+"to.region",
			"meshList",
			"port",
			"static",
			"virtualMesh",
		),
		snapshot.Declare(kind, snapshot.Enforced, "callers in other clusters see each gateway as one endpoint, with all pods behind it",
			"localized.outlierDetection"),
		snapshot.Declare(kind, snapshot.NotExpressible, "failover is by cluster and region only",
			directives+"from.subZone",
			directives+"from.zone",
			directives+"to.subZone",
			directives+"to.zone",
		),
	)
}
