package snapshot

// Codes of issues. A retired code stays here as a comment.
const (
	// ClusterFrozen: the cluster cannot be read; nothing is changed there.
	ClusterFrozen Code = "ClusterFrozen"
	// MeshUnreadable: a control plane was found whose configuration cannot be read.
	MeshUnreadable Code = "MeshUnreadable"
	// MeshVersionUnknown: a control plane's image names no version.
	MeshVersionUnknown Code = "MeshVersionUnknown"
	// WorkloadWithoutMesh: a sidecar belongs to no control plane that was found.
	WorkloadWithoutMesh Code = "WorkloadWithoutMesh"
	// NamespaceIgnored: a control plane reads nothing of a namespace that matters to its mesh.
	NamespaceIgnored Code = "NamespaceIgnored"
	// ServiceWithoutMesh: a Service asks to be a destination in a cluster without a mesh.
	ServiceWithoutMesh Code = "ServiceWithoutMesh"
	// NoDestination: a Service is asked for, or named, that can be no destination, such as an ExternalName.
	NoDestination Code = "NoDestination"
	// ProxyMissing: pods behind a Service run no proxy of its mesh: no policy protects them, and other clusters cannot call them.
	ProxyMissing Code = "ProxyMissing"
	// AmbientMode: pods are in ambient mode, and what is written for sidecars does not hold for them, or means something else.
	AmbientMode Code = "AmbientMode"
	// AmbientClosed: pods in ambient mode let in nobody, or fewer callers than are named.
	AmbientClosed Code = "AmbientClosed"
	// WaypointUnusable: a waypoint is not there, takes no traffic for services, or is not that of all clusters.
	WaypointUnusable Code = "WaypointUnusable"
	// PortsDiffer: pods behind a Service listen on different ports for one of its ports, or do not serve it.
	PortsDiffer Code = "PortsDiffer"
	// AmbiguousMesh: a workload or Service could belong to several control planes.
	AmbiguousMesh Code = "AmbiguousMesh"
	// ControlPlaneIgnored: a Deployment looks like a control plane, and anyone could have
	// made it; or it stays one, although the evidence has gone.
	ControlPlaneIgnored Code = "ControlPlaneIgnored"
	// ControlPlaneMissing: the control plane of a mesh is not there, and may come back.
	ControlPlaneMissing Code = "ControlPlaneMissing"
	// NameCollision: two objects would have the same generated name.
	NameCollision Code = "NameCollision"
	// MeshNotFound: a mesh or VirtualMesh is named that does not exist.
	MeshNotFound Code = "MeshNotFound"
	// MeshClaimed: a mesh is in an older VirtualMesh already.
	MeshClaimed Code = "MeshClaimed"
	// GatewayMissing: no east-west gateway with an address was found.
	GatewayMissing Code = "GatewayMissing"
	// GatewayUnusable: a gateway is made or selected so that other clusters cannot use it, such as without the port.
	GatewayUnusable Code = "GatewayUnusable"
	// GatewayNotReady: a gateway does not serve at present: none of its pods is ready, its address is pending, or its
	// Service is gone.
	GatewayNotReady Code = "GatewayNotReady"
	// GatewayIgnored: a service is labelled as a gateway where anyone could have made it.
	GatewayIgnored Code = "GatewayIgnored"
	// SmartDNSMissing: a mesh cannot resolve the federation's host names.
	SmartDNSMissing Code = "SmartDNSMissing"
	// DNSServerAssumed: whether callers in a mesh can resolve the host names that are made for it is up to a DNS server that is not
	// looked at.
	DNSServerAssumed Code = "DNSServerAssumed"
	// DestinationNotFound: a reference names a service that was not discovered.
	DestinationNotFound Code = "DestinationNotFound"
	// TargetMissing: a target of a policy in force cannot be reached any more; the
	// policy stays in force without it.
	TargetMissing Code = "TargetMissing"
	// SelectsNothing: the policy is valid, but matches nothing at present.
	SelectsNothing Code = "SelectsNothing"
	// NoLongerEnforced: the policy was in force before and is in force nowhere now.
	NoLongerEnforced Code = "NoLongerEnforced"
	// HandWritten: an object that a user wrote for the mesh configures the same.
	HandWritten Code = "HandWritten"
	// HostsHidden: an object that a user wrote keeps callers from knowing services of other meshes.
	HostsHidden Code = "HostsHidden"
	// HeaderSecret: an AccessLogRecord asks for a header that may have a secret.
	HeaderSecret Code = "HeaderSecret"
	// LogsMissing: no proxy of workloads that an AccessLogRecord selects sends its log.
	LogsMissing Code = "LogsMissing"
	// LimitsNothing: a ServiceDependency leaves proxies configured with every
	// service.
	LimitsNothing Code = "LimitsNothing"
	// WorkloadsAlike: a mesh cannot distinguish the pods of two workloads.
	WorkloadsAlike Code = "WorkloadsAlike"
	// SubsetEmpty: requests are sent to a subset that has no ready endpoint, and fail.
	SubsetEmpty Code = "SubsetEmpty"
	// NoEndpoints: requests are sent to a service that has no ready endpoint, and fail.
	NoEndpoints Code = "NoEndpoints"
	// NamespaceNotNamed: an object has no effect, because policies in its namespace of the
	// management cluster do not count.
	NamespaceNotNamed Code = "NamespaceNotNamed"
	// NamespaceKept: an object counts only because it did so before namespaces had to be named.
	NamespaceKept Code = "NamespaceKept"
	// OutsideNamespace: a policy of a registered cluster asks for more than its own namespace there.
	OutsideNamespace Code = "OutsideNamespace"
	// FieldInvalid: a field's value cannot be used.
	FieldInvalid Code = "FieldInvalid"
	// FieldUnsupported: the mesh, or this version, cannot express a field.
	FieldUnsupported Code = "FieldUnsupported"
	// FieldConflict: an older policy owns the field for the same requests.
	FieldConflict Code = "FieldConflict"
	// RuleShadowed: other routes match all requests that a rule selects.
	RuleShadowed Code = "RuleShadowed"
	// LastGoodInForce: the policy is invalid; its last accepted spec stays.
	LastGoodInForce Code = "LastGoodInForce"
	// TrustDomainForeign: a mesh accepts no callers of another member's trust domain.
	TrustDomainForeign Code = "TrustDomainForeign"
	// RootsDiffer: meshes trust no common root, so that requests between them fail.
	RootsDiffer Code = "RootsDiffer"
	// RootsUnknown: it is not known which roots a member of a VirtualMesh trusts.
	RootsUnknown Code = "RootsUnknown"
	// IdentityShared: callers are allowed that cannot be distinguished from those
	// that are named.
	IdentityShared Code = "IdentityShared"
	// TrustDomainClaimed: a member of a VirtualMesh says that its trust domain is one that is not
	// pinned to it.
	TrustDomainClaimed Code = "TrustDomainClaimed"
	// GatewayOpen: a gateway allows all callers, whatever an AccessPolicy on it says.
	GatewayOpen Code = "GatewayOpen"
	// WithdrawalHeld: so much would be deleted without an edit that explains it that
	// nothing is.
	WithdrawalHeld Code = "WithdrawalHeld"
	// ClusterLeaving: a cluster is deregistered through its agent, and something is still waited for. The cause says what.
	ClusterLeaving Code = "ClusterLeaving"
	// SecretRefused: the Secret of a cluster leads to what is not known to be that cluster;
	// what it led to before stays in use.
	SecretRefused Code = "SecretRefused"
	// AnotherPlane: another management plane writes to the same cluster.
	AnotherPlane Code = "AnotherPlane"
	// ObjectsWait: objects in a cluster stay different from what is wanted, although all works.
	ObjectsWait Code = "ObjectsWait"
	// CredentialNotRenewed: the credential of a cluster cannot be renewed, and expires.
	CredentialNotRenewed Code = "CredentialNotRenewed"
	// PodsShared: AccessPolicies on another service over the same pods restrict whom one
	// allows.
	PodsShared Code = "PodsShared"
	// CallersUnidentified: callers present no identity, although access is allowed by
	// identity.
	CallersUnidentified Code = "CallersUnidentified"
	// CallersPassBy: proxies of callers do not see what they send to services that a policy selects.
	CallersPassBy Code = "CallersPassBy"
	// PathsNotNormalized: requests for other paths pass as one that is allowed, because
	// the mesh compares paths before the application decodes them.
	PathsNotNormalized Code = "PathsNotNormalized"
	// SourceNarrowed: callers must match both parts of a selector.
	SourceNarrowed Code = "SourceNarrowed"
	// TrustPending: members do not trust each other yet, so that their services are not
	// federated to each other.
	TrustPending Code = "TrustPending"
	// TrustLeftOut: the exchange of a root does not wait for a namespace, whose workloads lose
	// their connections.
	TrustLeftOut Code = "TrustLeftOut"
	// RootMissing: a VirtualMesh has no root certificate to sign with.
	RootMissing Code = "RootMissing"
	// CertificateFailed: the agent of a mesh cannot do what is asked of it.
	CertificateFailed Code = "CertificateFailed"
	// RootExpires: a root certificate expires soon.
	RootExpires Code = "RootExpires"
	// CertificateOverdue: the certificate of a mesh should have been renewed by now.
	CertificateOverdue Code = "CertificateOverdue"
	// AgentSilent: the agent of a mesh does not answer.
	AgentSilent Code = "AgentSilent"
	// RootProblem: a VirtualMesh has a root certificate to sign with, and something is wrong
	// with it or with where it comes from.
	RootProblem Code = "RootProblem"
	// NotFederated: a policy needs a service in a cluster where it is not federated.
	NotFederated Code = "NotFederated"
	// FederationLarge: a VirtualMesh adds more to each proxy than the Settings allow
	// without a warning.
	FederationLarge Code = "FederationLarge"
	// BudgetExceeded: a namespace or a cluster has more services or workloads than the
	// Settings allow; the newest are left out.
	BudgetExceeded Code = "BudgetExceeded"
	// HostnameTaken: something older has the host name already.
	HostnameTaken Code = "HostnameTaken"
	// AmbiguousBacking: several services of one cluster are selected where only one
	// is possible.
	AmbiguousBacking Code = "AmbiguousBacking"
	// FailoverIncomplete: failing endpoints stay in use, or failover does not work as
	// written.
	FailoverIncomplete Code = "FailoverIncomplete"
	// EndpointIgnored: addresses of a Service are not those of its pods, and are left out.
	EndpointIgnored Code = "EndpointIgnored"
	// KindUnsupported: objects of this kind are stored but have no effect.
	KindUnsupported Code = "KindUnsupported"
	// ObjectUnreadable: an object exists that this program cannot process.
	ObjectUnreadable Code = "ObjectUnreadable"
	// StatusDiffers: the stored status refuses what would be accepted from what was read.
	StatusDiffers Code = "StatusDiffers"
	// WriteFailed: an API server rejected an object.
	WriteFailed Code = "WriteFailed"
	// ClusterAwaited: an object is not written before a cluster that does not answer.
	ClusterAwaited Code = "ClusterAwaited"
	// ForeignObject: an object of that name exists and was not created by meshctl.
	ForeignObject Code = "ForeignObject"
	// NotServed: no serve leads, so nothing is written.
	NotServed Code = "NotServed"
	// Drifted: a generated object is not in its cluster as it should be.
	Drifted Code = "Drifted"
	// RequestsFail: more requests to a service fail than should, as their callers count.
	RequestsFail Code = "RequestsFail"
	// ShiftOffWeights: the targets of a shift get other shares of the requests than are asked for, and not by chance.
	ShiftOffWeights Code = "ShiftOffWeights"
)
