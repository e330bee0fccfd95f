package snapshot

import (
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	kubenetworkingv1 "k8s.io/api/networking/v1"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
)

// Input is everything that one translation may know. It is immutable: on a change
// a source builds a new Input and shares what did not change, by pointer and by
// slice, so that readers recognize unchanged parts without comparing them.
type Input struct {
	// Clusters are the registered ones, ascending by name.
	Clusters []*Cluster
	// Management holds the management plane's own objects.
	Management *Management
	// Failures are the writes that the sink could not carry out and the objects
	// that the source could not process, ascending by Ref.
	Failures []Failure
	// Roots are the root certificates of VirtualMeshes, ascending by VirtualMesh; without
	// one that is not in it yet, nothing changes in the trust of that VirtualMesh.
	Roots []*VirtualMeshRoots
	// Gone are the names of stored Meshes whose control plane was not there for long enough
	// to be gone for good, ascending.
	Gone []string
	// Logging is which proxies send their access log; nil where nobody takes it, so that what the statuses say last stays.
	Logging *Logging
	// RefuseIntersecting makes it an error, not a warning, that hand-written objects
	// of the owner of a service or of a mesh intersect with a policy.
	RefuseIntersecting bool
	// Version is that of the meshctl that translates; statuses name it.
	Version string
}

// Cluster is one registered cluster as last read. Every list is ascending by
// namespace and name; objectlist.go has the table of lists.
type Cluster struct {
	// Name is the registration name.
	Name string
	// Domain is the DNS suffix of Services; cluster.local if empty.
	Domain string
	Sync   Sync
	// Reason says, for people, why Sync is not Synced. It names no time, which would
	// make it change all the time.
	Reason string
	// Cause is Reason as a code; empty if none is known. See NewOutage.
	Cause Code
	// Reading: it answers, or has a new connection of which nothing is known yet, and its objects are still being read.
	Reading bool
	// Credential is the fingerprint of the stored credential that Sync and Reason are about;
	// empty if there is none. See cluster.Fingerprint.
	Credential string
	// Relay is the connection of its agent; nil if the cluster is not reached through one.
	Relay *Relay

	Deployments    []*appsv1.Deployment
	DaemonSets     []*appsv1.DaemonSet
	StatefulSets   []*appsv1.StatefulSet
	ReplicaSets    []*appsv1.ReplicaSet
	Pods           []*corev1.Pod
	Services       []*corev1.Service
	EndpointSlices []*endpointv1.EndpointSlice
	Nodes          []*corev1.Node
	Namespaces     []*corev1.Namespace
	// NetworkPolicies decide about connections, whatever meshes say, if the network of the cluster enforces them.
	NetworkPolicies []*kubenetworkingv1.NetworkPolicy
	// ConfigMaps are those that hold a mesh's own settings, not all.
	ConfigMaps []*corev1.ConfigMap
	// Unread are the ConfigMaps of control planes that cannot be read, or have not been
	// read yet, ascending by Ref. One that is also in ConfigMaps is there as it was last
	// read. A ConfigMap that is in neither list does not exist.
	Unread []Unread
	// Denied are the kinds that the account of the management plane may not read, ascending: their lists say nothing.
	Denied []Kind
	// Unsent are those of Denied that nobody forbids: the agent of the cluster is older than they are, and does not send them.
	Unsent []Kind
	// MutatingWebhookConfigurations are those of the injectors of Istio.
	MutatingWebhookConfigurations []*admissionv1.MutatingWebhookConfiguration
	// WebhooksUnknown: MutatingWebhookConfigurations were not read, so that their absence
	// says nothing. Files may leave them out.
	WebhooksUnknown bool
	// OfMeshes are the objects that users wrote for meshes, by kind: their settings, and what they configure by hand. Folders may have
	// generated ones, too.
	OfMeshes ObjectsOfMeshes
	// TrafficPolicies, AccessPolicies, VirtualDestinations and ServiceDependencies are those that users of the cluster wrote there, for
	// their own namespaces.
	TrafficPolicies     []*networkingv1.TrafficPolicy
	AccessPolicies      []*networkingv1.AccessPolicy
	VirtualDestinations []*enterprisev1beta1.VirtualDestination
	ServiceDependencies []*enterprisev1beta1.ServiceDependency
	// AccessLogRecords are those that users of the cluster wrote there, for the workloads of their own namespaces.
	AccessLogRecords []*observabilityv1.AccessLogRecord
	// IssuedCertificates are those in the agent's namespace, also the generated ones: agents
	// report in their statuses. CertificateRequests are the agents' own.
	IssuedCertificates  []*certificatesv1.IssuedCertificate
	CertificateRequests []*certificatesv1.CertificateRequest
}

// Unread is an object that could not be read, or has not been read yet. If it is also in ConfigMaps, that is its last version.
type Unread struct {
	Ref Ref
	// Denied: the account of the management plane may not read it. Else it will be read
	// soon, or there is too much to read.
	Denied bool
	// Reason says why, as the end of a sentence. It changes only if the cause does.
	Reason string
}

// Sync says whether the lists of a Cluster are complete and current.
type Sync uint8

const (
	// Unsynced: nothing was ever read; the lists are empty and mean nothing.
	Unsynced Sync = iota
	// Stale: the lists were complete once, but the cluster does not answer now.
	Stale
	// Synced: the lists are complete and current.
	Synced
)

// SetReading notes that the objects of a cluster are still being read.
func (c *Cluster) SetReading() {
	c.Reading, c.Cause, c.Reason = true, StillRead, "its objects are still being read"
}

// String returns "unsynced", "stale" or "synced".
func (s Sync) String() string { return [...]string{"unsynced", "stale", "synced"}[s] }

// Frozen reports whether nothing may be written to or collected from the cluster.
func (c *Cluster) Frozen() bool { return c.Sync != Synced }

// Unreachable says that nothing may be written to the cluster, and why: "unreachable: no answer
// from ..."; empty if something may.
func (c *Cluster) Unreachable() string { return c.Outage().Text() }

// DomainOrDefault is the DNS suffix of the cluster's Services.
func (c *Cluster) DomainOrDefault() string {
	if c.Domain == "" {
		return "cluster.local"
	}
	return c.Domain
}

// Management is what the management plane holds. Every list is ascending by
// namespace and name.
type Management struct {
	// Namespace is where discovered objects live and the value of owner
	// labels: gloo-mesh unless installed elsewhere.
	Namespace string
	// PlaneID is the identity of the management plane; empty if it is not known.
	PlaneID string
	// ClusterUID is the UID of the management cluster's namespace kube-system; empty if it is not known.
	ClusterUID string

	// Meshes, Workloads and Destinations are the discovered objects as stored,
	// with their statuses. They are used instead of clusters that cannot be read.
	Meshes       []*discoveryv1.Mesh
	Workloads    []*discoveryv1.Workload
	Destinations []*discoveryv1.Destination

	KubernetesClusters  []*multiclusterv1alpha1.KubernetesCluster
	Settings            []*settingsv1.Settings
	VirtualMeshes       []*networkingv1.VirtualMesh
	TrafficPolicies     []*networkingv1.TrafficPolicy
	AccessPolicies      []*networkingv1.AccessPolicy
	VirtualDestinations []*enterprisev1beta1.VirtualDestination
	ServiceDependencies []*enterprisev1beta1.ServiceDependency
	WasmDeployments     []*enterprisev1beta1.WasmDeployment
	AccessLogRecords    []*observabilityv1.AccessLogRecord
	Roles               []*rbacv1.Role
	RoleBindings        []*rbacv1.RoleBinding
}

// Itself is the name under which the management cluster is registered; empty if it is not, or if that is not known. It follows from what
// registration wrote here, and from nothing that a registered cluster says.
func (m *Management) Itself() string {
	for _, registration := range m.KubernetesClusters {
		if m.ClusterUID != "" && registration.Annotations[ClusterUIDAnnotation] == m.ClusterUID {
			return registration.Name
		}
	}
	return ""
}

// MayBe reports whether a registered cluster may be the management cluster, where Itself does not say which one is: its KubernetesCluster
// was written by hand or by another program, which noted no UID, or that of the management cluster is not known.
func (m *Management) MayBe(cluster string) bool {
	return m.ClusterUID == "" || !slices.ContainsFunc(m.KubernetesClusters, func(registration *multiclusterv1alpha1.KubernetesCluster) bool {
		return registration.Name == cluster && registration.Annotations[ClusterUIDAnnotation] != ""
	})
}

// Server returns the version and options of the server that wrote the statuses
// of the registered clusters; zero if no status has them.
func (m *Management) Server() multiclusterv1alpha1.Server {
	for _, registration := range m.KubernetesClusters {
		if s := registration.Status.Server; s != nil {
			return *s
		}
	}
	return multiclusterv1alpha1.Server{}
}

// KeptNamespaces are those in which policies count although nobody has named them, ascending: those that the server has
// noted or, if the last one was of a version that noted none, those of what it had in force. That is read from the statuses of
// discovered objects, which are in the management plane's own namespace.
func (m *Management) KeptNamespaces() []string {
	server := m.Server()
	var out []string
	add := func(namespace string) {
		if namespace != m.Namespace && !slices.Contains(out, namespace) {
			out = append(out, namespace)
		}
	}
	for _, namespace := range server.KeptNamespaces {
		add(namespace)
	}
	if server.Version == "" || len(server.KeptNamespaces) > 0 {
		return out
	}
	for _, o := range m.Meshes {
		if vm := o.Status.AppliedVirtualMesh; vm != nil {
			add(vm.Ref.Namespace)
		}
		for i := range o.Status.AppliedVirtualDestinations {
			add(o.Status.AppliedVirtualDestinations[i].Ref.Namespace)
		}
	}
	for _, o := range m.Destinations {
		for i := range o.Status.AppliedTrafficPolicies {
			if o.Status.AppliedTrafficPolicies[i].ClusterName == "" {
				add(o.Status.AppliedTrafficPolicies[i].Ref.Namespace)
			}
		}
		for i := range o.Status.AppliedAccessPolicies {
			if o.Status.AppliedAccessPolicies[i].ClusterName == "" {
				add(o.Status.AppliedAccessPolicies[i].Ref.Namespace)
			}
		}
	}
	for _, o := range m.Workloads {
		if of := o.Status.ServiceDependencies; of != nil {
			for i := range of.AppliedServiceDependencies {
				if of.AppliedServiceDependencies[i].ClusterName == "" {
					add(of.AppliedServiceDependencies[i].ServiceDependencyRef.Namespace)
				}
			}
		}
	}
	slices.Sort(out)
	return out
}

// DefaultNamespace is where the management plane lives by default.
const DefaultNamespace = "gloo-mesh"

// Failure is an object that could not be written, or not be read.
type Failure struct {
	Ref Ref
	// Reason says why. What a write failed with is the API server's own message.
	Reason
	// Parents are the policies whose status names the failure.
	Parents []Ref
}
