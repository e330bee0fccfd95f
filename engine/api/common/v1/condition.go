package v1

// The types of the conditions in a status (metav1.Condition). Those that may be absent are absent unless they are True.
const (
	// ConditionReady: it is accepted, and in force everywhere. `kubectl wait --for=condition=Ready`, Flux and Argo CD look at
	// this one, as kstatus has it (https://pkg.go.dev/sigs.k8s.io/cli-utils/pkg/kstatus).
	ConditionReady = "Ready"
	// ConditionAccepted: it is accepted on all that it selects.
	ConditionAccepted = "Accepted"
	// ConditionInForce: what follows from it is in all clusters concerned; if not, the message names clusters where it is not.
	ConditionInForce = "InForce"
	// ConditionConflicted: something older, or somebody else's, has what it asks for. May be absent.
	ConditionConflicted = "Conflicted"
	// ConditionReconciling: it is not ready, and gets ready without anybody's doing. May be absent.
	ConditionReconciling = "Reconciling"
	// ConditionStalled: it is not ready, and somebody has to do something. May be absent.
	ConditionStalled = "Stalled"
)

// Reasons of conditions that are no codes of issues. A condition that is True for no other reason has its type as its reason.
const (
	// ReasonNotAccepted: errors or verdicts in the status say why.
	ReasonNotAccepted = "NotAccepted"
	// ReasonNotInForce: another object of the kind is in force instead, or only those in another namespace count.
	ReasonNotInForce = "NotInForce"
	// ReasonAudited: nothing follows from it for requests, as it asks.
	ReasonAudited = "Audited"
)
