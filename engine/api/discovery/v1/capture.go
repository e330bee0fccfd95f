package v1

// The values of EndpointPort.PastProxy.
const (
	// PastProxyExcluded: the pod takes the port out of its proxy.
	PastProxyExcluded = "EXCLUDED"
	// PastProxyUncaptured: the proxy sees only what is sent to where it listens by itself.
	PastProxyUncaptured = "UNCAPTURED"
)

// The values of Capture.AsProxy.
const (
	// AsProxyAll: all containers beside the proxy.
	AsProxyAll = "ALL"
	// AsProxySome: some of them.
	AsProxySome = "SOME"
)

// Capture is which connections that an application opens its proxy sees, where that is not each: what is excluded, it does not see.
// It is what the traffic annotations of Istio and its injector say (https://istio.io/latest/docs/reference/config/annotations/), and as
// whom containers run.
type Capture struct {
	// None says that the proxy sees only what the application sends to it (interception mode NONE).
	None bool `json:"none,omitempty"`
	// Unclear says that it is not known: what says it cannot be read, is too much, or names interfaces.
	Unclear bool `json:"unclear,omitempty"`
	// AsProxy says that containers run as the user or the group of the proxy (runAsUser, runAsGroup), which sees nothing of what they
	// send, whatever includes it: ALL of them or SOME. Omitted if none does.
	// +kubebuilder:validation:Enum=ALL;SOME
	AsProxy string `json:"asProxy,omitempty"`
	// ExcludePorts are ports of destinations that are excluded, whatever else includes them.
	// +kubebuilder:validation:MaxItems=64
	ExcludePorts []uint32 `json:"excludePorts,omitempty"`
	// ExcludeRanges are addresses of destinations that are excluded, whatever else includes them, in CIDR notation.
	// +kubebuilder:validation:MaxItems=64
	ExcludeRanges []string `json:"excludeRanges,omitempty"`
	// OnlyIncluded says that all is excluded but IncludePorts and IncludeRanges; else all else is included.
	OnlyIncluded bool `json:"onlyIncluded,omitempty"`
	// IncludePorts are ports of destinations that are included.
	// +kubebuilder:validation:MaxItems=64
	IncludePorts []uint32 `json:"includePorts,omitempty"`
	// IncludeRanges are addresses of destinations that are included, in CIDR notation.
	// +kubebuilder:validation:MaxItems=64
	IncludeRanges []string `json:"includeRanges,omitempty"`
}
