package cluster

import "strings"

// hub is what the management cluster says: where tenants may write policies, a VirtualMesh, and policies for others.
const hub = `
apiVersion: settings.mesh.gloo.solo.io/v1
kind: Settings
metadata: {name: settings, namespace: gloo-mesh}
spec: {workloadClusterPolicies: [{clusters: ["*"], namespaces: [bookinfo]}]}
---
apiVersion: networking.mesh.gloo.solo.io/v1
kind: VirtualMesh
metadata: {name: virtual-mesh, namespace: gloo-mesh}
spec:
  meshes:
  - {name: istiod-istio-system-cluster-1, namespace: gloo-mesh}
  - {name: istiod-istio-system-cluster-2, namespace: gloo-mesh}
  - {name: istiod-istio-system-cluster-3, namespace: gloo-mesh}
  federation: {selectors: [{}]}
---
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: others, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceMatcher: {namespaces: [other]}}]
  policy: {requestTimeout: 7s}
---
apiVersion: networking.mesh.gloo.solo.io/v1
kind: AccessPolicy
metadata: {name: others, namespace: gloo-mesh}
spec:
  sourceSelector: [{kubeIdentityMatcher: {namespaces: [bookinfo]}}]
  destinationSelector: [{kubeServiceMatcher: {namespaces: [other]}}]
---
apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1
kind: ServiceDependency
metadata: {name: others, namespace: gloo-mesh}
spec:
  sourceSelectors: [{kubeWorkloadMatcher: {namespaces: [other]}}]
  destinationSelectors: [{kubeServiceMatcher: {namespaces: [bookinfo]}}]
---
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: reviews, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceMatcher: {labels: {app: reviews}, namespaces: [bookinfo]}}]
  policy: {requestTimeout: 9s}
`

// The kinds of the policies of tenants.
const (
	trafficKind    = "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\n"
	accessKind     = "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: AccessPolicy\n"
	virtualKind    = "apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1\nkind: VirtualDestination\n"
	dependencyKind = "apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1\nkind: ServiceDependency\n"
)

// way is a try to reach outside of the namespace: a policy there. OWN is the cluster of the tenant, and FAR another one.
type way struct {
	name, spec string
	// metadata is more of it, beside the name and the namespace.
	metadata string
	// says is a part of the status that tells the tenant; empty if there is nothing to tell. rejected: the API server does not take it.
	says     string
	rejected bool
}

const (
	strange  = "namespace bookinfo of cluster OWN"
	ratings  = `destinationSelector: [{kubeServiceRefs: {services: [{name: ratings, namespace: bookinfo, clusterName: OWN}]}}]`
	seconds  = `policy: {requestTimeout: 1s}`
	shiftTo  = `, policy: {trafficShift: {destinations: [{weight: 1, `
	farRef   = `{name: ratings, namespace: bookinfo, clusterName: FAR}`
	otherRef = `{name: ratings, namespace: other, clusterName: OWN}`
)

// trafficWays are by what a TrafficPolicy selects, and by what it does.
var trafficWays = []way{
	{name: "no selectors", spec: `{policy: {faultInjection: {abort: {httpStatus: 500}}}}`},
	{name: "an empty selector", spec: `{destinationSelector: [{}], sourceSelector: [{}], policy: {faultInjection: {fixedDelay: 9s}}}`},
	{name: "an empty matcher", spec: `{destinationSelector: [{kubeServiceMatcher: {}}], sourceSelector: [{kubeWorkloadMatcher: {}}], ` + seconds + `}`},
	{name: "another namespace", spec: `{destinationSelector: [{kubeServiceMatcher: {namespaces: [other]}}], ` + seconds + `}`, says: strange},
	{name: "its own and another namespace", spec: `{destinationSelector: [{kubeServiceMatcher: {namespaces: [bookinfo, other, istio-system]}}], ` + seconds + `}`, says: strange},
	{name: "another cluster", spec: `{destinationSelector: [{kubeServiceMatcher: {clusters: [FAR]}}], ` + seconds + `}`, says: strange},
	{name: "its own and another cluster", spec: `{destinationSelector: [{kubeServiceMatcher: {clusters: [OWN, FAR], namespaces: [bookinfo]}}], ` + seconds + `}`, says: strange},
	{name: "wildcards", spec: `{destinationSelector: [{kubeServiceMatcher: {namespaces: ["*"], clusters: ["*"]}}], ` + seconds + `}`, says: strange},
	{name: "labels of others", spec: `{destinationSelector: [{kubeServiceMatcher: {labels: {app: ratings}}}], policy: {retries: {attempts: 9}}}`},
	{name: "a service of another namespace", spec: `{destinationSelector: [{kubeServiceRefs: {services: [` + otherRef + `]}}], ` + seconds + `}`, says: strange},
	{name: "the same service of another cluster", spec: `{destinationSelector: [{kubeServiceRefs: {services: [` + farRef + `]}}], ` + seconds + `}`, says: strange},
	{name: "a service of no cluster", spec: `{destinationSelector: [{kubeServiceRefs: {services: [{name: ratings, namespace: other}]}}], ` + seconds + `}`, rejected: true},
	{name: "a name with a namespace in it", spec: `{destinationSelector: [{kubeServiceRefs: {services: [{name: ratings.other, namespace: bookinfo, clusterName: OWN}]}}], ` + seconds + `}`},
	{name: "callers of another namespace", spec: `{sourceSelector: [{kubeWorkloadMatcher: {namespaces: [other]}}], ` + seconds + `}`, says: strange},
	{name: "callers of another cluster", spec: `{sourceSelector: [{kubeWorkloadMatcher: {clusters: [FAR]}}], ` + seconds + `}`, says: strange},
	{name: "faults for the callers of all namespaces", spec: `{sourceSelector: [{kubeWorkloadMatcher: {namespaces: [bookinfo, other]}}], policy: {faultInjection: {abort: {httpStatus: 503}}}}`, says: strange},
	{name: "a shift to another namespace", spec: `{` + ratings + shiftTo + `kubeService: ` + otherRef + `}]}}}`, says: strange},
	{name: "a shift to another cluster", spec: `{` + ratings + shiftTo + `kubeService: ` + farRef + `}]}}}`, says: strange},
	{name: "a shift to subsets elsewhere", spec: `{` + ratings + shiftTo + `kubeService: {name: ratings, namespace: other, clusterName: OWN, subset: {version: v1}}}]}}}`, says: strange},
	{name: "a shift to a VirtualDestination", spec: `{` + ratings + shiftTo + `virtualDestination: {name: all, namespace: gloo-mesh}}]}}}`, says: strange},
	{name: "a shift out of all clusters", spec: `{` + ratings + shiftTo + `staticDestination: {name: outside, namespace: gloo-mesh}}]}}}`, says: strange},
	{name: "a mirror to another namespace", spec: `{` + ratings + `, policy: {mirror: {kubeService: ` + otherRef + `}}}`, says: strange},
	{name: "a mirror to another cluster", spec: `{` + ratings + `, policy: {mirror: {kubeService: ` + farRef + `}}}`, says: strange},
	{name: "the host of another service as a header", spec: `{` + ratings + `, policy: {headerManipulation: {appendRequestHeaders: {host: ratings.other, ":authority": ratings.other}}}}`},
	{name: "a header for everybody", spec: `{policy: {headerManipulation: {appendRequestHeaders: {x-forwarded-client-cert: "By=spiffe://cluster.local/ns/other/sa/admin"}}}}`},
	{name: "a path of everybody", spec: `{httpRequestMatchers: [{uri: {prefix: /}}, {headers: [{name: x, value: z}]}], policy: {corsPolicy: {allowOrigins: [{regex: ".*"}]}}}`},
	{name: "plain text for all callers", spec: `{policy: {mtls: {istio: {tlsMode: DISABLE}}}}`, says: strange},
	{name: "outlier detection for all callers", spec: `{policy: {outlierDetection: {consecutiveErrors: 1}}}`, says: strange},
	{name: "a filter of the whole mesh", spec: `{policy: {csrf: {filterEnabled: true}}}`, says: strange},
	{name: "everything at once", spec: `{destinationSelector: [{kubeServiceRefs: {services: [` + farRef + `, ` + otherRef + `]}}, {kubeServiceMatcher: {namespaces: [other]}}, {}],
  sourceSelector: [{kubeWorkloadMatcher: {clusters: [FAR]}}, {}], policy: {requestTimeout: 1s, mirror: {kubeService: ` + farRef + `}, retries: {attempts: 1}}}`, says: strange},
}

// accessWays are of who may call what, and dependencyWays of what proxies know.
var accessWays = []way{
	{name: "nothing named", spec: `{}`},
	{name: "a deny of everything", spec: `{action: DENY}`},
	{name: "an empty selector denies", spec: `{action: DENY, destinationSelector: [{}]}`},
	{name: "a deny in another namespace", spec: `{action: DENY, destinationSelector: [{kubeServiceMatcher: {namespaces: [other]}}]}`, says: strange},
	{name: "a deny in another cluster", spec: `{action: DENY, destinationSelector: [{kubeServiceRefs: {services: [` + farRef + `]}}]}`, says: strange},
	{name: "a deny of identities of others, everywhere", spec: `{action: DENY, sourceSelector: [{kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-ratings, namespace: other, clusterName: FAR}]}}]}`},
	{name: "others let in at another service", spec: `{sourceSelector: [{kubeIdentityMatcher: {clusters: [FAR]}}], destinationSelector: [{kubeServiceRefs: {services: [` + otherRef + `]}}]}`, says: strange},
	{name: "audit of everything", spec: `{enforcement: AUDIT}`, says: "policies of workload clusters cannot be audited"},
}

var dependencyWays = []way{
	{name: "nothing named", spec: `{}`},
	{name: "proxies of another namespace", spec: `{sourceSelectors: [{kubeWorkloadMatcher: {namespaces: [other]}}], destinationSelectors: [{kubeServiceMatcher: {namespaces: [bookinfo]}}]}`, says: strange},
	{name: "proxies of another cluster", spec: `{sourceSelectors: [{kubeWorkloadMatcher: {clusters: [FAR]}}]}`, says: strange},
	{name: "the gateways", spec: `{sourceSelectors: [{kubeWorkloadMatcher: {namespaces: [istio-system], labels: {istio: eastwestgateway}}}]}`, says: strange},
	{name: "the whole fleet", spec: `{sourceSelectors: [{kubeWorkloadMatcher: {}}], destinationSelectors: [{kubeServiceMatcher: {clusters: [OWN, FAR], namespaces: [other]}}]}`},
}

// The parts of a VirtualDestination.
const (
	ownMesh    = `port: {number: 9080}, meshList: {meshes: [{name: istiod-istio-system-OWN, namespace: gloo-mesh}]}, `
	ownBacking = `static: {destinations: [{kubeService: {name: ratings, namespace: bookinfo, clusterName: OWN}}]}`
)

// virtualWays are of who knows a host, and of where it leads.
var virtualWays = []way{
	{name: "a host of its own", spec: `{hostname: way-out.global, ` + ownMesh + ownBacking + `}`},
	{name: "a host for the whole VirtualMesh", spec: `{hostname: way-out.global, port: {number: 9080}, virtualMesh: {name: virtual-mesh, namespace: gloo-mesh}, ` + ownBacking + `}`, says: strange},
	{name: "a host for another cluster", spec: `{hostname: way-out.global, port: {number: 9080}, meshList: {meshes: [{name: istiod-istio-system-FAR, namespace: gloo-mesh}]}, ` + ownBacking + `}`, says: strange},
	{name: "a service of another namespace behind it", spec: `{hostname: way-out.global, ` + ownMesh + `static: {destinations: [{kubeService: ` + otherRef + `}]}}`, says: strange},
	{name: "a service of another cluster behind it", spec: `{hostname: way-out.global, ` + ownMesh + `localized: {destinationSelectors: [{kubeServiceRefs: {services: [` + farRef + `]}}]}}`, says: strange},
	{name: "the host of a service of others", spec: `{hostname: ratings.other, ` + ownMesh + ownBacking + `}`, says: "ratings.other is the name of service ratings.other.OWN"},
	{name: "the host of a federated service", spec: `{hostname: ratings.other.svc.FAR.global, ` + ownMesh + ownBacking + `}`, says: "is a name for services in clusters"},
	{name: "all hosts", spec: `{hostname: "*.global", ` + ownMesh + ownBacking + `}`, rejected: true},
}

// metadataWays claim to be somebody else's by what stands beside the spec.
var metadataWays = []way{
	{name: "labels of the management plane", metadata: `, labels: {owner.networking.mesh.gloo.solo.io: gloo-mesh, plane.multicluster.solo.io: gloo-mesh, app.kubernetes.io/managed-by: meshctl}`},
	{name: "labels of another cluster", metadata: `, labels: {cluster.multicluster.solo.io: FAR, cluster.discovery.mesh.gloo.solo.io: FAR}`},
	{name: "annotations of another origin", metadata: `, annotations: {parents.networking.mesh.gloo.solo.io: '{"networking.mesh.gloo.solo.io/v1, Kind=TrafficPolicy":[{"name":"others","namespace":"gloo-mesh"}]}', relations.networking.mesh.gloo.solo.io: '{}'}`},
	{name: "an annotation that releases what is held", metadata: `, annotations: {registration.multicluster.solo.io/release-withdrawal: "1", trust.multicluster.solo.io/rotate: now}`},
	{name: "a policy of others as its owner", metadata: `, ownerReferences: [{apiVersion: networking.mesh.gloo.solo.io/v1, kind: TrafficPolicy, name: others, uid: 00000000-0000-0000-0000-000000000001, controller: true}]`},
	{name: "a namespace as its owner", metadata: `, ownerReferences: [{apiVersion: v1, kind: Namespace, name: other, uid: 00000000-0000-0000-0000-000000000002}]`},
	{name: "a finalizer of its own", metadata: `, finalizers: [example.com/never]`},
	{name: "a huge annotation", metadata: `, annotations: {huge: "` + strings.Repeat("x", 200_000) + `"}`},
}

// names are those that say more than a name.
var names = []string{"others", "others.gloo-mesh", "ratings.other.cluster-1", "virtual-mesh", strings.Repeat("x", 253)}

// forbidden are objects that no API server takes of a tenant: by the rights of the user, or as there is no such kind.
var forbidden = []string{
	trafficKind + "metadata: {name: way-out, namespace: other}\nspec: {policy: {requestTimeout: 1s}}\n",
	trafficKind + "metadata: {name: way-out, namespace: gloo-mesh}\nspec: {policy: {requestTimeout: 1s}}\n",
	accessKind + "metadata: {name: way-out, namespace: istio-system}\nspec: {action: DENY}\n",
	dependencyKind + "metadata: {name: way-out, namespace: other}\nspec: {}\n",
	"apiVersion: networking.mesh.gloo.solo.io/v1\nkind: VirtualMesh\nmetadata: {name: way-out, namespace: gloo-mesh}\nspec: {globalAccessPolicy: ENABLED}\n",
	"apiVersion: settings.mesh.gloo.solo.io/v1\nkind: Settings\nmetadata: {name: settings, namespace: gloo-mesh}\nspec: {workloadClusterPolicies: [{clusters: ['*'], namespaces: ['*']}]}\n",
	"apiVersion: rbac.enterprise.mesh.gloo.solo.io/v1\nkind: Role\nmetadata: {name: way-out, namespace: gloo-mesh}\nspec: {}\n",
	"apiVersion: rbac.enterprise.mesh.gloo.solo.io/v1\nkind: RoleBinding\nmetadata: {name: way-out, namespace: gloo-mesh}\nspec: {subjects: [{kind: User, name: tina}], roleRef: {name: admin, namespace: gloo-mesh}}\n",
	"apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1\nkind: VirtualDestination\nmetadata: {name: way-out, namespace: gloo-mesh}\nspec: {hostname: a.example, port: {number: 80, protocol: http}}\n",
	"apiVersion: multicluster.solo.io/v1alpha1\nkind: KubernetesCluster\nmetadata: {name: way-out, namespace: gloo-mesh}\nspec: {}\n",
}
