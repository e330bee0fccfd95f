package help

// glossarySections explain the words that meshctl uses.
func glossarySections() []section {
	term := func(word, meaning string) row { return row{about: word, cells: []string{meaning}} }
	return []section{
		{title: "Clusters", rows: []row{
			term("management cluster", "The cluster that stores policies and discovered objects; `meshctl serve` watches it."),
			term("registered cluster", "A cluster with a KubernetesCluster object, which meshctl reads and writes: with a stored credential, or through its agent."),
			term("agent", "`meshctl agent` in a registered cluster. It keeps the key of the mesh's certificate there, restarts workloads, and can speak for the cluster: `meshctl help relay`."),
			term("unreachable", "Said of a cluster that cannot be read at present. Nothing is changed there until it answers; requests go on as last written."),
		}},
		{title: "What is discovered", rows: []row{
			term("Mesh", "An installed control plane, such as an istiod."),
			term("Workload", "What owns Pods that run a proxy of a Mesh: a Deployment, a Rollout, an operator's own kind."),
			term("Destination", "A service that can be called: a Kubernetes Service, or an external service that you declared."),
			term("subset", "Pods of a Destination that are chosen by labels, such as a version."),
		}},
		{title: "What you write", rows: []row{
			term("VirtualMesh", "Meshes that are managed as one: common trust, common access rules, and federation."),
			term("federation", "Makes a Destination of one cluster reachable from other meshes by a global host name: `meshctl help federation`."),
			term("TrafficPolicy", "What happens to requests on their way: shares, timeouts, retries, faults, mirrors."),
			term("AccessPolicy", "Which callers may send which requests to which Destinations."),
			term("VirtualDestination", "One host name with several Destinations behind it, with failover between clusters."),
			term("ServiceDependency", "What a Workload calls; its proxies then know nothing else."),
		}},
		{title: "What is said of it", rows: []row{
			term("trust domain", "The authority in identities of workloads, `spiffe://TRUST-DOMAIN/ns/NAMESPACE/sa/ACCOUNT`."),
			term("principal", "Such an identity, as a proxy sees it in the certificate of a caller."),
			term("accepted", "It is valid on all that it selects. What is not says why in its status."),
			term("in force", "What follows from it was written to all clusters concerned."),
			term("issue", "A problem that meshctl found: code, object, sentence, next step; the same in statuses, `describe`, `check` and the dashboard."),
		}},
	}
}
