package snapshot

import "slices"

// CodeClass says what fixes the issues of a code: an edit of their object, or something else.
type CodeClass uint8

const (
	// ClassDefinition: an edit of the object that the issue is on fixes it. An error of this class rejects the object: it is INVALID.
	ClassDefinition CodeClass = iota
	// ClassRuntime: what the object relies on does not work at present, such as a gateway, the endpoints of a service or a whole cluster.
	// The object is as it should be and stays ACCEPTED; an error of this class says that it is not in force.
	ClassRuntime
	// ClassInformative: it is never an error.
	ClassInformative
)

// codeClasses has each code of issues once: a test compares it with codes.go.
var codeClasses = map[CodeClass][]Code{
	ClassDefinition: {
		NamespaceIgnored, NoDestination, AmbientMode, AmbiguousMesh, WorkloadWithoutMesh, MeshNotFound, MeshClaimed, GatewayMissing, GatewayUnusable, SmartDNSMissing,
		DestinationNotFound, SelectsNothing, HandWritten, WorkloadsAlike, NamespaceNotNamed, OutsideNamespace, FieldInvalid, FieldUnsupported, FieldConflict, TrustDomainForeign, RootsDiffer, IdentityShared,
		TrustDomainClaimed, PodsShared, RootMissing, NotFederated, BudgetExceeded, HostnameTaken, AmbiguousBacking, KindUnsupported, HeaderSecret,
	},
	ClassRuntime: {
		ClusterFrozen, MeshUnreadable, GatewayNotReady, TargetMissing, SubsetEmpty, NoEndpoints, WithdrawalHeld, SecretRefused, CredentialNotRenewed,
		CertificateFailed, RootExpires, CertificateOverdue, ObjectUnreadable, StatusDiffers, WriteFailed, ClusterAwaited, ForeignObject, NotServed, Drifted, LogsMissing, RequestsFail,
	},
	ClassInformative: {
		MeshVersionUnknown, ServiceWithoutMesh, ProxyMissing, AmbientClosed, WaypointUnusable, PortsDiffer, ControlPlaneIgnored, ControlPlaneMissing, NameCollision, GatewayIgnored,
		NoLongerEnforced, HostsHidden, LimitsNothing, NamespaceKept, RuleShadowed, LastGoodInForce, RootsUnknown, GatewayOpen, AnotherPlane, ObjectsWait, ClusterLeaving, CallersUnidentified,
		CallersPassBy, PathsNotNormalized, SourceNarrowed, TrustPending, TrustLeftOut, AgentSilent, RootProblem, FederationLarge, FailoverIncomplete, EndpointIgnored,
		ShiftOffWeights, DNSServerAssumed,
	},
}

// classOf are the codeClasses by code.
var classOf = func() map[Code]CodeClass {
	out := map[Code]CodeClass{}
	for class, codes := range codeClasses {
		for _, code := range codes {
			out[code] = class
		}
	}
	return out
}()

// Class is that of the code. A code that is in no class, such as that of a Reason, is ClassDefinition: what is not known to
// pass by itself needs somebody.
func (c Code) Class() CodeClass { return classOf[c] }

// Rejects reports whether the issue rejects its object.
func (i *Issue) Rejects() bool { return i.Severity == Error && i.Code.Class() != ClassRuntime }

// Rejected reports whether any issue rejects its object. Others may say that it is not in force at present: see Unmet.
func Rejected(issues []Issue) bool {
	return slices.ContainsFunc(issues, func(i Issue) bool { return i.Rejects() })
}

// Unmet is the first issue because of which an object that is accepted is not in force; nil if there is none.
func Unmet(issues []Issue) *Issue {
	for i := range issues {
		if issues[i].Severity == Error && !issues[i].Rejects() {
			return &issues[i]
		}
	}
	return nil
}
