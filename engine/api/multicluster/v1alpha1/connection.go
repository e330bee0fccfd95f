package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Via is how a cluster is reached.
//
// +kubebuilder:validation:Enum=Relay;Direct
type Via string

const (
	// ViaRelay: an agent in the cluster dials meshctl serve.
	ViaRelay Via = "Relay"
	// ViaDirect: meshctl serve dials the API server of the cluster.
	ViaDirect Via = "Direct"
)

// ConnectionState is how far the connection of an agent is.
//
// +kubebuilder:validation:Enum=AWAITED;REFUSED;LOST;RESYNC;STUCK;CONNECTED
type ConnectionState string

const (
	// ConnectionStateAwaited: the agent has not connected.
	ConnectionStateAwaited ConnectionState = "AWAITED"
	// ConnectionStateRefused: the agent has no connection, and a caller was refused who says that it is the agent.
	ConnectionStateRefused ConnectionState = "REFUSED"
	// ConnectionStateLost: the agent was connected, and is not any more.
	ConnectionStateLost ConnectionState = "LOST"
	// ConnectionStateResync: what is known of the cluster is being compared with what the agent reports.
	ConnectionStateResync ConnectionState = "RESYNC"
	// ConnectionStateStuck: what is sent in one direction is not acknowledged.
	ConnectionStateStuck ConnectionState = "STUCK"
	// ConnectionStateConnected: both sides have everything.
	ConnectionStateConnected ConnectionState = "CONNECTED"
)

// Connection is how a cluster is reached, as meshctl serve last knew. It is written when one of its fields but objects changes.
type Connection struct {
	// Via is how it is reached.
	Via Via `json:"via"`
	// State of the connection.
	State ConnectionState `json:"state"`
	// Since is when the state began.
	Since *metav1.Time `json:"since,omitempty"`
	// Reason says why the agent is not connected, or not all is sent.
	Reason *ClusterReason `json:"reason,omitempty"`
	// AgentVersion is the version of the agent that was connected last.
	AgentVersion string `json:"agentVersion,omitempty"`
	// CertificateExpires is when the certificate of that agent ends.
	CertificateExpires *metav1.Time `json:"certificateExpires,omitempty"`
	// UpBehindSince is since when meshctl serve does not have all that the agent reports. It is empty for less than 30 seconds.
	UpBehindSince *metav1.Time `json:"upBehindSince,omitempty"`
	// DownBehindSince is since when the agent does not have all that meshctl serve sends. It is empty for less than 30 seconds.
	DownBehindSince *metav1.Time `json:"downBehindSince,omitempty"`
	// Objects is how many objects of the cluster meshctl serve had when this was written.
	Objects int64 `json:"objects,omitempty"`
	// Refused is the last caller that was refused as the agent of the cluster.
	Refused *RefusedCaller `json:"refused,omitempty"`
}

// RefusedCaller is a caller that was refused as the agent of a cluster. Whose agent it is, is what the caller says.
type RefusedCaller struct {
	ClusterReason `json:",inline"`
	// Address of the caller, as meshctl serve sees it.
	Address string `json:"address,omitempty"`
	// Since is when the caller was first refused for this reason.
	Since *metav1.Time `json:"since,omitempty"`
}
