package help

import "slices"

// difference is one way in which meshctl differs from Gloo Mesh 1.x on purpose.
type difference struct {
	// topic is the field or the case, original what Gloo Mesh 1.x does, and here
	// what meshctl does.
	topic, original, here string
}

// area groups differences under a title.
type area struct {
	title string
	rows  []difference
}

// differences lists all of them. A decision to deviate is a row here.
func differences() []area {
	return []area{
		{"TrafficPolicy", trafficDifferences()},
		{"AccessPolicy", accessDifferences()},
		{"VirtualMesh", virtualMeshDifferences()},
		{"Federation", federationDifferences()},
		{"VirtualDestination", virtualDestinationDifferences()},
		{"ServiceDependency", []difference{
			{
				"services in a Sidecar",
				"The ones that ServiceDependencies select.",
				"Also the ones to which policies send or copy requests, and those in the mesh's own namespace, such as trace collectors.",
			},
			{
				"Sidecars for the same pods",
				"Can be written; Istio decides which one applies.",
				"Never written: workloads whose labels include those of another share its Sidecar, and a workload that cannot be told apart is rejected.",
			},
		}},
		{"Settings", []difference{
			{"no Settings object", "Nothing works.", "Defaults apply."},
			{
				"several Settings objects; fields without effect",
				"Not reported.",
				"The oldest object in the namespace of the management plane applies, and the statuses say what has no effect.",
			},
			{
				"policies and VirtualMeshes in other namespaces",
				"Count wherever they are; Roles restrict who may write them.",
				"Count in the namespace of the management plane, and in those that the Settings name in `spec.policyNamespaces` (`*` for all). Elsewhere they are INVALID, and say so. After an upgrade from a version without that field, namespaces in which something was in force count until the Settings name any; each object there has a warning.",
			},
			{
				"`discovery.istio.ingressGatewayDetectors`",
				"The gateways that it detects are listed in the Mesh.",
				"They are not listed. They serve traffic between clusters as before: after the gateways that a VirtualMesh selects, and before those found by their labels.",
			},
		}},
		{"Objects written by users and by meshctl", generatedDifferences()},
		{"Statuses and validation", statusDifferences()},
		{"Discovery", discoveryDifferences()},
		{"Clusters", clusterDifferences()},
		{"Open Service Mesh", osmDifferences()},
		{"Command line", []difference{
			{
				"`describe`",
				"Lists which policies apply.",
				"Also shows the resulting routes and callers, and what was rejected and why.",
			},
			{
				"missing flags",
				"Every flag is required, and each run reports one that is missing.",
				"On a terminal, commands ask, and offer what exists. Otherwise they list everything that is missing.",
			},
			{"exit codes", "1 for every error.", "Documented codes for scripts: `meshctl help exit-codes`."},
		}},
	}
}

func trafficDifferences() []difference {
	return slices.Concat(requestDifferences(), connectionDifferences())
}

// requestDifferences are those of fields that apply to requests.
func requestDifferences() []difference {
	return []difference{
		{"`httpRequestMatchers`", "Requests that match no matcher get a 404.", "They are routed as before."},
		{
			"`httpRequestMatchers.headers.value`, `queryParameters.value` omitted",
			"The header or parameter must be empty.",
			"It must be present, with any value.",
		},
		{"`httpRequestMatchers.uri.suffix`, `ignoreCase`", "Dropped.", "Translated to regular expressions."},
		{
			"order of header matches",
			"A match on the presence of a header may come before a match on its value, which then never applies.",
			"Matches on values come first. A matcher that can never apply, for example below a broad regular expression, is reported with the policy that takes its requests.",
		},
		{
			"`faultInjection.percentage`, `mirror.percentage` omitted",
			"0 %: the fault or the mirror applies to no request.",
			"100 %, as documented.",
		},
		{
			"`retries`",
			"Istio's own conditions: failed connections, refused streams, and two statuses of gRPC. A 503 or a slow try is not retried.",
			"Requests with an idempotent method (GET, HEAD, OPTIONS, TRACE, PUT, DELETE) are also retried after a 502, 503 or 504, a reset, and a try that exceeds `perTryTimeout`. Others, such as POST, may have been processed and are retried as before. The new field `retryOn` replaces these conditions for every method.",
		},
		{
			"`retries.perTryTimeout` not shorter than `requestTimeout`",
			"Has no effect, which is not reported.",
			"A warning.",
		},
		{
			"`faultInjection` in two policies",
			"If one delays and the other aborts the same requests, the second one is rejected.",
			"Both apply: delay and abort are two fields.",
		},
		{
			"two policies set the same field",
			"The name decides which policy applies.",
			"The older policy applies (creationTimestamp, then namespace/name). The status of the other one names the field and the older policy.",
		},
		{
			"two policies with the same matchers",
			"Merged only if their lists of matchers are equal.",
			"Equal matchers are merged one by one, whatever else is in the lists. A conflict rejects the younger policy on that destination.",
		},
		{
			"an edit that makes a policy invalid",
			"The policy is no longer applied.",
			"Its last accepted spec stays in force, and the status says so.",
		},
		{
			"reference to a service that does not exist",
			"The policy applies nowhere.",
			"The policy is INVALID and says so, and applies wherever it can.",
		},
		{
			"a target of `trafficShift` or `mirror` that disappears, or can no longer be reached",
			"The policy is no longer applied: timeouts, retries and other targets go with it.",
			"The policy stays in force without that target: the others take its share in proportion to their weights, or the service itself if none with a weight is left. The policy is INVALID and says so. When the target is back, it gets its share again.",
		},
		{
			"`trafficShift` to a service without ready pods",
			"Not reported.",
			"A warning. The service keeps its share of the requests, which fail until a pod is ready.",
		},
		{
			"`trafficShift` to a service that a mesh cannot reach",
			"Requests go to a host name that does not resolve.",
			"A new policy is rejected on that destination, and the status names the mesh.",
		},
		{"`trafficShift` to a service with another port", "Requests keep their port.", "Requests go to the port of the target service."},
		{
			"`trafficShift.destinations.staticDestination`",
			"Rejected.",
			"Sends requests to the only HTTP port of a Destination with `externalService` that you wrote in the management namespace. Meshes with a route to it get a ServiceEntry.",
		},
		{"`trafficShift.destinations.options.headerManipulation`", "Ignored.", "Applies on every route."},
		{
			"names of subsets",
			"Labels that give no valid name, for example with underscores, are written as they are and block the DestinationRule. Labels that give the same name (`v1` and `V1`, `1.2` and `1-2`) share their pods.",
			"Every subset has a name of its own, with a hash where it needs one.",
		},
		{
			"`csrf`, `rateLimit`",
			"Accepted, without effect.",
			"Enforced by the sidecars of callers, through an EnvoyFilter. `rateLimit.basic.anonymousLimits` applies to each calling pod; limits that need a rate limit server or known users are rejected.",
		},
	}
}

// connectionDifferences are those of fields that apply to connections, and of what
// follows from writing to Istio.
func connectionDifferences() []difference {
	return []difference{
		{
			"`outlierDetection`, `mtls.istio.tlsMode` beside matchers or source selectors",
			"Matchers, and labels and namespaces of sources, are ignored.",
			"`outlierDetection` and `ISTIO_MUTUAL` still apply to every request, with a warning; a selector with clusters only is respected. `DISABLE` and `SIMPLE` are rejected, because they would turn mutual TLS off for callers that are not selected.",
		},
		{
			"`outlierDetection` between clusters",
			"Written. Callers see a gateway as one endpoint, and exclude it with all pods behind it when one of them fails.",
			"Gateways exclude pods to which they cannot connect, callers nothing; with a warning. In a flat network callers exclude pods.",
		},
		{
			"`mtls.istio.tlsMode` between clusters",
			"Written, although gateways only pass mutual TLS.",
			"A mode other than `ISTIO_MUTUAL` is not applied across gateways.",
		},
		{
			"`mtls.istio.tlsMode` `DISABLE` or `SIMPLE` where access is restricted",
			"Callers present no identity and are denied, which is not reported.",
			"The same, with a warning on the TrafficPolicy and on every AccessPolicy that names callers. `describe` does not list such callers as allowed.",
		},
		{
			"routes that need new subsets, ServiceEntries or gateways",
			"Written at the same time: requests fail for a moment.",
			"A route is written when proxies know what it needs, and what it needs goes after the last route that uses it.",
		},
		{
			"values that only Istio rejects",
			"A duration below a millisecond, or an expression that is not RE2, blocks the whole VirtualService.",
			"Reported on the one policy that has the value.",
		},
	}
}

func accessDifferences() []difference {
	return []difference{
		{
			"`kubeServiceAccountRefs` without a cluster, trust domain unknown",
			"Every caller is allowed.",
			"The trust domain is `cluster.local`. A policy never allows more than is written.",
		},
		{
			"`kubeServiceAccountRefs` with a name and no namespace",
			"Allows the whole trust domain.",
			"Allows the namespaces in which workloads run under that name.",
		},
		{
			"identities of `cluster.local`",
			"Also allow the mesh's own callers if its trust domain is another one.",
			"Allow nobody, with a warning.",
		},
		{"no source is known", "No rule is written, so everybody may call.", "Nobody may call."},
		{
			"service accounts of one cluster",
			"Also allow accounts of the same name wherever the trust domain is the same, or an alias.",
			"The same, because certificates do not tell clusters apart, but a warning names the clusters.",
		},
		{"`allowedPorts`", "Written unchanged, although Istio matches the ports of pods.", "Ports of the service, translated to those of its pods."},
		{"a service without a selector", "The policy would apply to the whole namespace.", "The policy is rejected on that service."},
		{
			"policies on services with the same pods",
			"Whom the policies on one of the services allow may call all of its pods.",
			"Callers must be allowed by the policies on each of the services that has any. A warning says so where that makes a difference.",
		},
		{"a gateway that stays open", "ACCEPTED, although everybody may call.", "ACCEPTED, with a warning."},
	}
}

func virtualMeshDifferences() []difference {
	return []difference{
		{
			"one mesh in two VirtualMeshes",
			"The VirtualMesh with the later name gets it.",
			"The older VirtualMesh keeps it; the other one is INVALID and names the older one.",
		},
		{
			"references to services or meshes",
			"Services that do not exist and meshes that are not members are not reported.",
			"Each one is an error in the status. A selector that matches nothing is a warning.",
		},
		{
			"`mtlsConfig` with shared trust and no CA",
			"An error.",
			"The root is made and signs itself, as documented.",
		},
		{
			"a root that changes: a new Secret, other options, its end",
			"Intermediates are not issued again, or all workloads fail until they restart.",
			"Members trust the new root first, then sign with it, then stop trusting the old one. `meshctl trust show` says where that stands; it waits for members that do not answer, and two days (`spec.trust.namespaceTimeout` of the Settings) for a namespace whose workloads do not follow, which it names. `meshctl trust` also pauses it, and returns to the former root.",
		},
		{
			"members without a common root yet",
			"Are federated, and calls between them fail.",
			"Are federated when they trust each other; until then the VirtualMesh is PENDING and says what is missing.",
		},
		{
			"callers of two clusters with the same namespace and service account",
			"Are one, also where a policy names the cluster.",
			"Can be told apart with a trust domain for each mesh, which `mtlsConfig.shared.trustDomainPerMesh` requires; the CA of a cluster then cannot sign for another one. Without it, AccessPolicies that allow more than they name say so.",
		},
		{
			"`mtlsConfig.limited`",
			"An error.",
			"Each mesh keeps its root. Requests to other members pass a gateway of both meshes, which trust each other by certificates of a root of the VirtualMesh. Callers are checked by the gateways, and requests by the service: policies on a service must allow callers of other members the same requests. VirtualDestinations leave out services of other members.",
		},
		{
			"`mtlsConfig` without a trust model",
			"An error for each mesh.",
			"An error.",
		},
		{
			"generated root certificates",
			"Options changed later have no effect, expiry is not noticed, and a root goes at once with its VirtualMesh.",
			"Another root follows in time, or when options change or `meshctl trust rotate` asks for it; it goes ten minutes after its VirtualMesh.",
		},
		{
			"certificates signed by a Vault",
			"Enterprise only. Vault makes the private key (`csrPath`), and a sidecar of istiod keeps it in memory. A root that changes in Vault is not noticed.",
			"The agent of each cluster makes the key, and has Vault sign at `caPath`; `csrPath` has no effect. The result is in the Secret cacerts. A new root in Vault is exchanged like any other. The agent uses only a Vault that `meshctl cluster register --vault-server` allowed on its cluster, by https unless that URL says http. It uses only credentials in its own namespace or below /var/run/secrets, and logs in with a token that has the audience `vault` (`--vault-audience`) and no other: the role in Vault has to name it, and Vault needs a `token_reviewer_jwt` of its own.",
		},
		{
			"what a cluster gets signed",
			"What the IssuedCertificate on that cluster says.",
			"What the management plane asks for. A request for other names is refused.",
		},
		{
			"trust domains that a member does not accept",
			"Shows when calls fail.",
			"The VirtualMesh warns about it, and names the setting to change.",
		},
		{
			"members that trust different roots",
			"Shows when calls fail.",
			"The VirtualMesh, these members and their federated services say so. The VirtualMesh is INVALID; what was written stays.",
		},
		{
			"`globalAccessPolicy` and gateways",
			"Closes gateways that a VirtualMesh selects.",
			"Gateways stay open, in whatever namespace they run.",
		},
		{
			"namespace of the global access policy",
			"That of the control plane, where it has no effect on a mesh with another root namespace.",
			"The root namespace.",
		},
	}
}

func federationDifferences() []difference {
	return []difference{
		{
			"which Services are gateways",
			"Every Service with the labels, in any namespace, with the `externalIPs` that it claims.",
			"Those in the namespace of the control plane, and those that a VirtualMesh names (by reference, or with their namespace) or whose namespace the Settings name in `discovery.istio.gatewayNamespaces`. Only the latter may use `externalIPs`. Others are reported.",
		},
		{
			"gateways that `globalAccessPolicy` leaves open",
			"Every Service with the labels, in any namespace.",
			"The same as above; `status.openGateways` of the VirtualMesh lists them.",
		},
		{
			"names that an east-west gateway passes",
			"Every name with the host name suffix, including services of other meshes.",
			"Names of services in its own cluster, and those by which VirtualDestinations are passed on.",
		},
		{
			"`eastWestIngressGatewaySelectors` without `destinationSelectors`",
			"Select every service.",
			"Select the labelled gateways of the mesh: east-west gateways (`istio: eastwestgateway`) before ingress gateways.",
		},
		{
			"whose certificate callers of a federated service accept",
			"Any of the common root: who can lead connections elsewhere can answer with the certificate of another workload.",
			"Only those of the service accounts of its pods (`spec.kubeService.serviceAccounts` of the Destination, `subjectAltNames` of the ServiceEntry), in the trust domain of its mesh and that one's aliases. They are known before a rollout replaces a pod. If one is not known, any is accepted as before: an endpoint without a pod, or with one of another namespace or outside of the mesh, more than 32 accounts, no `trustDomain` in the MeshConfig, or, for a VirtualDestination, a service behind it of which this holds. `describe destination` tells. A cluster that cannot be written to does not learn of a new account. A hand-written DestinationRule for such a host with another TLS mode than `ISTIO_MUTUAL` has to name the `subjectAltNames` that it expects.",
		},
		{"gateways", "Are federated themselves, and all use the port of the last one.", "Are not federated, and each uses its own port."},
		{
			"how many services are federated",
			"All that are selected: 50,000 Services over one pod become 50,000 ServiceEntries in every other cluster.",
			"At most `federation.limits` of the Settings: by default 5,000 services of a namespace, 10,000 of a cluster, and 30,000 endpoints of a namespace, which is what Kubernetes supports or more. Beyond that those that are federated stay, and the newest of the others are left out; `status.notFederated` of the Destination says so, as does the VirtualMesh. No namespace takes a place from another. A lowered limit holds at once. Policies hold on what is left out.",
		},
		{
			"load balancing behind gateways",
			"By connection, because gateways pass on mutual TLS without reading it: a caller with one HTTP/2 connection stays with one pod.",
			"The same; `describe destination` and `meshctl help meshes` say so. In a flat network (`federation.flatNetwork`) callers balance requests over the pods.",
		},
		{
			"endpoints behind gateways",
			"Need a DestinationRule for mutual TLS.",
			"Carry the label that asks for it. Equal endpoints are merged into one, with a weight.",
		},
		{
			"one port number for TCP and UDP",
			"Gives a ServiceEntry that Istio rejects.",
			"Other clusters get the TCP port, the only one that gateways pass.",
		},
		{
			"names of federated objects",
			"`<service>-<namespace>-<cluster>`, which two services can share.",
			"The name of the Destination, which is unique.",
		},
		{
			"virtual IP addresses of federated names",
			"Two names can get the same address, or one that Istio assigns itself (240.240.0.0/16).",
			"The second name gets the next free address; whoever has an address, by the status of its Destination or VirtualDestination, keeps it. Addresses of Istio are not used.",
		},
	}
}

func virtualDestinationDifferences() []difference {
	return []difference{
		{
			"failover",
			"Off unless each service behind the VirtualDestination has outlier detection.",
			"On, with defaults. What limits it (`maxEjectionPercent`), or may limit it (a hand-written DestinationRule for its host), is a warning. If every endpoint of every cluster is excluded, all are used again.",
		},
		{
			"requirements on the VirtualMesh",
			"Not documented.",
			"It joins the meshes, and has gateways (`federation: {}`) or a flat network. The services need not be federated. Gateways pass connections on to pods of their own cluster only.",
		},
		{
			"TrafficPolicies for its host",
			"Not documented.",
			"A policy that selects the services behind it does not apply, except `outlierDetection` with `static`. A policy that shifts requests to it applies up to its host.",
		},
	}
}
