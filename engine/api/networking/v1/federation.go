package v1

import commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"

// DefaultHostnameSuffix ends the names of federated Destinations unless the VirtualMesh says otherwise.
const DefaultHostnameSuffix = "global"

// FederationMode says which of the Destinations that may be federated a member imports.
//
// +kubebuilder:validation:Enum=ALL;DECLARED
type FederationMode string

const (
	// FederationModeAll: a member imports all that the selectors federate to it. The proxies of each member hold all
	// of it, so that it grows with the square of the number of members. This is the default.
	FederationModeAll FederationMode = "ALL"
	// FederationModeDeclared: of that, a member imports what its callers were declared to need.
	FederationModeDeclared FederationMode = "DECLARED"
)

// Federation makes Destinations reachable from other members of the VirtualMesh.
type Federation struct {
	// Mode says which of the Destinations that the selectors federate a member imports: ALL (the default) or DECLARED.
	// With DECLARED, a member imports a Destination of another one if a ServiceDependency selects both workloads of the
	// member and the Destination; if a TrafficPolicy that applies to callers of the member shifts or mirrors requests to
	// it; if a TrafficPolicy or an AccessPolicy names both sides: the cluster of the callers, and the Destination in
	// kubeServiceRefs; or if an element of selectors has both destinationSelectors and meshes.
	Mode FederationMode `json:"mode,omitempty"`
	// Selectors say what is federated to where. An omitted list federates nothing with mode ALL, and whatever is declared
	// with mode DECLARED; an element {} federates everything to everywhere.
	// +kubebuilder:validation:MaxItems=32
	Selectors []FederationSelector `json:"selectors,omitempty"`
	// Permissive federates everything to everywhere, unless there are selectors. Deprecated: use selectors: [{}].
	Permissive *PermissiveFederation `json:"permissive,omitempty"`
	// FlatNetwork says that pods reach the pods of other members directly, so that no gateway is needed.
	FlatNetwork bool `json:"flatNetwork,omitempty"`
	// HostnameSuffix ends the names of federated Destinations; "global" if omitted. Other suffixes need smart DNS on the
	// calling meshes.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(self) == 0 || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a DNS name in lower case without a dot at either end, for example global or soloio"
	HostnameSuffix string `json:"hostnameSuffix,omitempty"`
	// TcpKeepalive sets the keep-alive probes of connections to federated Destinations.
	TcpKeepalive *commonv1.TCPKeepalive `json:"tcpKeepalive,omitempty"`
	// EastWestIngressGatewaySelectors select the Services through which a member is reached; omitted means the mesh's
	// own default.
	// +kubebuilder:validation:MaxItems=32
	EastWestIngressGatewaySelectors []commonv1.IngressGatewaySelector `json:"eastWestIngressGatewaySelectors,omitempty"`
}

// FederationSelector says what is federated to where.
type FederationSelector struct {
	// DestinationSelectors select what is federated; omitted means every Destination of the members.
	// +kubebuilder:validation:MaxItems=32
	DestinationSelectors []commonv1.DestinationSelector `json:"destinationSelectors,omitempty"`
	// Meshes are where it can be reached from; omitted means every member.
	// +kubebuilder:validation:MaxItems=1000
	Meshes []commonv1.ObjectRef `json:"meshes,omitempty"`
}

// PermissiveFederation federates everything to everywhere.
type PermissiveFederation struct{}
