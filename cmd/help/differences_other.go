package help

func generatedDifferences() []difference {
	return []difference{
		{
			"DestinationRules",
			"One for every service.",
			"Only where there is something to set, such as subsets, outlier detection, keep-alive or TLS.",
		},
		{"annotations of a Service", "Copied to the generated objects.", "Not copied."},
		{
			"addresses in EndpointSlices",
			"All are given to other clusters.",
			"Only those of the pods that an EndpointSlice names, in its own namespace. For addresses that were written by hand, the Service has a warning.",
		},
		{
			"annotation parents.networking.mesh.gloo.solo.io",
			"Lists all objects that contributed to a generated one, which the API server rejects when there are thousands.",
			"Lists the first 100 of each kind.",
		},
		{
			"hand-written objects that intersect with a policy",
			"VirtualServices and DestinationRules are compared, only with `--disallow-intersecting-config`.",
			"Always compared, with AuthorizationPolicies, Sidecars, and ServiceEntries for the hosts of VirtualDestinations and external services as well. The policy warns. With the flag a TrafficPolicy or AccessPolicy is rejected, if the object is in the namespace of the service or in the root namespace of the mesh: nobody else decides about what callers of other namespaces rely on. VirtualMeshes, VirtualDestinations and ServiceDependencies warn with the flag, too. An object counts only where it takes effect: exportTo, the defaults for it in the MeshConfig, and the namespaces in which Istio looks for DestinationRules are read. It counts as generated only with the labels of this management plane and of its own cluster, with which it is deleted unless it is wanted.",
		},
		{
			"generated objects of a policy that is rejected for that reason",
			"Deleted.",
			"What a TrafficPolicy last had in force stays, and its status says so. An AccessPolicy is INVALID and stays in force: without it more callers would be allowed. Those of VirtualDestinations and ServiceDependencies are deleted.",
		},
		{
			"generated objects that are no longer wanted",
			"Deleted at once.",
			"Deleted at once if a user's edit explains it; an AuthorizationPolicy without which everybody is allowed, 5 seconds later, so that an AccessPolicy can be renamed. If something is missing instead, such as a Service, they stay for `withdrawals.gracePeriod` of the Settings (5 minutes); routes do not. If more than `withdrawals.maxPercent` (50) of a cluster's objects would go, or what denies by default, nothing is deleted there until `meshctl cluster release`. What users edited while nothing served counts as missing.",
		},
		{
			"two management planes on one cluster",
			"Whose an object is follows from the management namespace: if both have the same one, each deletes and overwrites what the other wrote.",
			"Each has an identity, in the ConfigMap meshctl-identity and in the label plane.multicluster.solo.io of what it writes. Neither changes what is the other's; of two objects with one name the first stays, and the status of the other's policy says so. `meshctl cluster list` shows that the other one exists. Take the ConfigMap along when the management plane moves to another cluster.",
		},
		{
			"objects that were written for a cluster of another name",
			"They stay.",
			"They are deleted like what is no longer wanted, where it is known that both are different clusters.",
		},
		{
			"the management namespace or a CustomResourceDefinition is deleted",
			"The objects in all clusters are deleted.",
			"Nothing is changed in any cluster; `meshctl serve` is not ready and says why.",
		},
	}
}

func statusDifferences() []difference {
	return []difference{
		{
			"invalid manifests",
			"Stored; the status reports the error.",
			"Rejected by the API server with a message. This includes incomplete references, weights that are all 0, lower-case methods and keys under 2048 bits.",
		},
		{
			"kinds and fields of the Enterprise edition",
			"Without effect, and not reported.",
			"Accepted by the API server; what has no effect yet gives a warning, in the status too where the kind has one.",
		},
		{
			"a write that an API server refuses",
			"Shows in a log only.",
			"Shows in the status of the policy that caused it, and in `describe`.",
		},
		{
			"a policy that was in force and now selects nothing",
			"ACCEPTED, without a message.",
			"ACCEPTED, with a warning. The status keeps `lastEnforcedGeneration`.",
		},
	}
}

func discoveryDifferences() []difference {
	return []difference{
		{
			"what counts as a control plane",
			"Every Deployment that looks like one, in any namespace.",
			"It needs evidence that an editor of its namespace cannot write: the MutatingWebhookConfiguration of its injector, or the MeshConfig of Open Service Mesh; else `discovery.controlPlanes` of the Settings has to name its namespace. What is ignored is reported.",
		},
		{
			"a control plane or the workloads of a Service are missing",
			"The Mesh or Destination is deleted, and all that follows from it.",
			"The Mesh stays for `withdrawals.gracePeriod` of the Settings (5 minutes); the Destination, as long as there is its Service and nothing says that it has another mesh.",
		},
		{
			"a namespace with very many Services or workloads",
			"All become Destinations and Workloads.",
			"Beyond `discovery.limits` of the Settings (10,000 each by default, above what Kubernetes supports) the newest are left out, and reported. What was discovered before stays, also when a limit is lowered.",
		},
		{
			"two control planes with the same revision",
			"The pods belong to one of them at random.",
			"Workloads stay with the one that they had; new ones belong to none. Both are reported.",
		},
		{
			"what is read",
			"Endpoints, one ConfigMap, one name for istiod.",
			"EndpointSlices, the ConfigMap of each revision, images by tag or digest.",
		},
		{
			"sidecars of Open Service Mesh",
			"Recognized by two images. With several such meshes in a cluster, a sidecar belongs to the first one.",
			"Recognized by what the injector writes, from any registry. A sidecar belongs to the mesh for which its namespace is labelled.",
		},
		{
			"workloads of Istio without pods, scaled to zero or between two",
			"Are forgotten; with their services go all policies for them, and their names in other clusters.",
			"Stay, if the injector would give their pods a sidecar.",
		},
		{
			"Services with the discovery annotation",
			"Belong to the last mesh of their cluster.",
			"Belong to the mesh for which their namespace is labelled; to none if only Open Service Mesh could have them and does not monitor the namespace.",
		},
		{
			"names of Meshes, Workloads and Destinations",
			"Two sources can have the same name, and overwrite each other.",
			"A name belongs to the source that is stored with it. A Service, workload, control plane or cluster that comes later gets a name with a hash, and keeps it; an issue says so.",
		},
		{
			"version of a control plane whose image has a digest only",
			"The digest.",
			"For Open Service Mesh the label `app.kubernetes.io/version`, which its charts set.",
		},
	}
}

func clusterDifferences() []difference {
	return []difference{
		{
			"kubeconfig Secrets",
			"Read in every namespace, with any content.",
			"Read in the management namespace only. Only server, CA and token are used, and certificates are always verified.",
		},
		{
			"credentials",
			"A token that never expires, with all verbs on all Secrets.",
			"A token with a limited lifetime that is renewed in time, and only the verbs that are used; a test compares them with the audit log of the API server. No Secrets, and no ConfigMaps but those named istio and istio-ca-root-cert, and those in the namespaces of control planes.",
		},
		{
			"addresses of API servers",
			"Stored as the kubeconfig has them, or as a flag does, whether or not they lead anywhere from the pods of the server.",
			"Where serve runs in a cluster, one of the caller's own machine is refused, with what to use instead; the management cluster is stored under its name in the cluster. The command waits until serve says whether it reaches the cluster, and fails with the reason.",
		},
		{
			"deregistering",
			"Deletes the CRDs, and with them every object.",
			"Removes what belongs to the cluster, on both sides, and records what could not be removed. The CRDs stay.",
		},
		{
			"a cluster that does not answer",
			"Delays or loses what depends on it.",
			"Is unreachable: nothing is changed there, and other clusters keep what refers to it.",
		},
	}
}

func osmDifferences() []difference {
	return []difference{
		{
			"AccessPolicy: paths, ports and sources",
			"Paths and single ports are lost. A `kubeIdentityMatcher` and several service accounts are rejected.",
			"Paths become regular expressions, ports become TCPRoutes on the ports of pods, a matcher becomes the known service accounts, and each account gets a TrafficTarget.",
		},
		{
			"AccessPolicy: a service that shares its service account",
			"The policy applies to everything that runs under the account.",
			"The policy is rejected where it would allow more than is written, and where two policies on one account would mix or have no defined result.",
		},
		{
			"AccessPolicy: no sources; accounts of another cluster",
			"Nobody is allowed; the policy is invalid.",
			"All accounts of the mesh are allowed; accounts elsewhere are left out, with a warning.",
		},
		{
			"TrafficPolicy",
			"Outlier detection, TLS modes and matchers are accepted without effect. Every source selector and port is rejected.",
			"What Open Service Mesh cannot express is rejected. Sources by cluster, and the port that requests have anyway, are accepted.",
		},
		{
			"permissive mode",
			"Not reported.",
			"Policies that such a mesh ignores are rejected. `globalAccessPolicy: ENABLED` is an error.",
		},
		{
			"VirtualMesh",
			"Has no effect, which is not reported.",
			"The status says which members ignore `federation` and `mtlsConfig`.",
		},
	}
}
