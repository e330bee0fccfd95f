package v1

// ApprovalState is the result for a resource.
//
// +kubebuilder:validation:Enum=PENDING;ACCEPTED;INVALID;FAILED
type ApprovalState string

const (
	// ApprovalStatePending: not processed yet.
	ApprovalStatePending ApprovalState = "PENDING"
	// ApprovalStateAccepted: valid and applied. Whether it is in force, or waits for a gateway, endpoints or a cluster, is for its
	// condition InForce to say.
	ApprovalStateAccepted ApprovalState = "ACCEPTED"
	// ApprovalStateInvalid: a bad parameter, a bad reference, or a conflict with a resource accepted earlier. The errors
	// and warnings say what is in force nevertheless.
	ApprovalStateInvalid ApprovalState = "INVALID"
	// ApprovalStateFailed: valid, but writing the result failed.
	ApprovalStateFailed ApprovalState = "FAILED"
)

// ApprovalStatus is the result for a policy on one of its targets.
type ApprovalStatus struct {
	// AcceptanceOrder is the policy's place among those accepted on the target, the first being 0. A lower place wins a
	// conflict.
	// +kubebuilder:validation:Minimum=0
	AcceptanceOrder uint32 `json:"acceptanceOrder,omitempty"`
	// State of the policy on this target.
	State ApprovalState `json:"state,omitempty"`
	// Errors are the reasons why the policy is not in force here, or not as written, and what to do about each.
	Errors []string `json:"errors,omitempty"`
	// Warnings are what the target's mesh cannot express, or what has no effect here.
	Warnings []string `json:"warnings,omitempty"`
}

// Counts are whole numbers of what a resource applies to. The lists and maps of a status are cut short when they grow
// large; these are not.
type Counts struct {
	// Meshes concerned.
	Meshes int32 `json:"meshes,omitempty"`
	// Destinations concerned.
	Destinations int32 `json:"destinations,omitempty"`
	// Workloads concerned.
	Workloads int32 `json:"workloads,omitempty"`
	// Problems is the number of targets on which the resource is not accepted; 0 is written, too, since it is good to read.
	// +optional
	Problems int32 `json:"problems"`
}
