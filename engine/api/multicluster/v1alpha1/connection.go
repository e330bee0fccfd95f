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
	// Verified is the last comparison that somebody asked for.
	Verified *Verified `json:"verified,omitempty"`
}

// RefusedCaller is a caller that was refused as the agent of a cluster. Whose agent it is, is what the caller says.
type RefusedCaller struct {
	ClusterReason `json:",inline"`
	// Address of the caller, as meshctl serve sees it.
	Address string `json:"address,omitempty"`
	// Since is when the caller was first refused for this reason.
	Since *metav1.Time `json:"since,omitempty"`
}

// Verified is the result of a comparison of the objects of a cluster as meshctl serve has them, as its agent reports them, and as the
// cluster has them, listed for this. Somebody asked for it with the annotation registration.multicluster.solo.io/verify-relay.
type Verified struct {
	// Request is the value of the annotation that this answers.
	Request string `json:"request"`
	// Time of the comparison.
	Time *metav1.Time `json:"time,omitempty"`
	// Kinds that were compared.
	Kinds int64 `json:"kinds,omitempty"`
	// Objects that the agent reports of them.
	Objects int64 `json:"objects,omitempty"`
	// UnlistedKinds is how many kinds could not be listed in the cluster. Of these, only what meshctl serve and the agent have is compared.
	UnlistedKinds int64 `json:"unlistedKinds,omitempty"`
	// Differences are the kinds of which something differed for several seconds.
	// +kubebuilder:validation:MaxItems=256
	Differences []VerifiedDifference `json:"differences,omitempty"`
	// Error says why nothing was compared.
	Error string `json:"error,omitempty"`
}

// VerifiedDifference is a kind of which not all sides have the same objects.
type VerifiedDifference struct {
	// Kind is GROUP/VERSION/KIND. With written: before it, it is what the agent knows of objects that meshctl serve writes.
	Kind string `json:"kind"`
	// Hub is how many objects meshctl serve has.
	Hub int64 `json:"hub"`
	// Agent is how many objects the agent reports.
	Agent int64 `json:"agent"`
	// Cluster is how many objects the cluster has. It is absent if the kind could not be listed.
	Cluster *int64 `json:"cluster,omitempty"`
	// Objects are the first ones that differ.
	// +kubebuilder:validation:MaxItems=10
	Objects []VerifiedObject `json:"objects,omitempty"`
	// More is how many others differ.
	More int64 `json:"more,omitempty"`
}

// VerifiedObject is an object that differs. Of each side, there is the beginning of a hash; none if it has no such object.
type VerifiedObject struct {
	// Name is NAMESPACE/NAME, or NAME.
	Name string `json:"name"`
	// Hub is what meshctl serve has.
	Hub string `json:"hub,omitempty"`
	// Agent is what the agent reports.
	Agent string `json:"agent,omitempty"`
	// Cluster is what the cluster has.
	Cluster string `json:"cluster,omitempty"`
}
