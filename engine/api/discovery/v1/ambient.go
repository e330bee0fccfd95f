package v1

// DataPlaneMode is how pods take part in a mesh.
//
// +kubebuilder:validation:Enum=AMBIENT;AMBIENT_PENDING;WAYPOINT;HBONE_GATEWAY
type DataPlaneMode string

const (
	// ModeOwnProxy: each pod has a proxy of its own: a sidecar, or it is a gateway.
	ModeOwnProxy DataPlaneMode = ""
	// ModeAmbient: the proxy of the node (ztunnel) stands in front of the pods.
	ModeAmbient DataPlaneMode = "AMBIENT"
	// ModePending: labels ask for ambient mode, and no pod is in it yet.
	ModePending DataPlaneMode = "AMBIENT_PENDING"
	// ModeWaypoint: the pods are waypoints, which decide about requests to others in ambient mode.
	ModeWaypoint DataPlaneMode = "WAYPOINT"
	// ModeHBONEGateway: the pods are a gateway through which other clusters reach pods in ambient mode.
	ModeHBONEGateway DataPlaneMode = "HBONE_GATEWAY"
)

// IsAmbient reports whether pods have no proxy of their own, and have, or will have, that of their node.
func (m DataPlaneMode) IsAmbient() bool { return m == ModeAmbient || m == ModePending }

// IstioAmbient is the data plane of an Istio mesh without sidecars.
type IstioAmbient struct {
	// Evidence is what shows that the mesh has it: the DaemonSet in the namespace of the control plane, or a setting of istiod.
	// +kubebuilder:validation:MaxLength=600
	Evidence string `json:"evidence,omitempty"`
	// MultiNetwork: istiod passes on to ztunnel what is in other networks (AMBIENT_ENABLE_MULTI_NETWORK).
	MultiNetwork bool `json:"multiNetwork,omitempty"`
}

// AmbientService is what is known of a Service with pods in ambient mode.
type AmbientService struct {
	// Mode is that of its pods. Of pods that differ, it is the one that comes first of AMBIENT, AMBIENT_PENDING, WAYPOINT and
	// HBONE_GATEWAY.
	Mode DataPlaneMode `json:"mode,omitempty"`
	// Partly: other pods of the Service have proxies of their own.
	Partly bool `json:"partly,omitempty"`
	// Global: the label istio.io/global gives the Service to other clusters.
	Global bool `json:"global,omitempty"`
	// Waypoint is the one that the Service, or its namespace, asks for; omitted if none is asked for.
	Waypoint *Waypoint `json:"waypoint,omitempty"`
}

// Waypoint is a proxy that decides about requests to a Service.
type Waypoint struct {
	// Name is that of its Gateway.
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name,omitempty"`
	// Namespace of the Gateway.
	// +kubebuilder:validation:MaxLength=253
	Namespace string `json:"namespace,omitempty"`
	// State says whether it is there.
	State WaypointState `json:"state,omitempty"`
	// For is which traffic it takes, as the label istio.io/waypoint-for says: service, workload, all or none. Omitted means service.
	// +kubebuilder:validation:MaxLength=63
	For string `json:"for,omitempty"`
	// Global: the label istio.io/global gives it to other clusters.
	Global bool `json:"global,omitempty"`
}

// TakesServices reports whether a waypoint takes what is sent to Services.
func (w *Waypoint) TakesServices() bool { return w.For == "" || w.For == "service" || w.For == "all" }

// WaypointState says whether a waypoint is there.
//
// +kubebuilder:validation:Enum=READY;NOT_READY;MISSING
type WaypointState string

const (
	// WaypointReady: one of its pods is ready.
	WaypointReady WaypointState = "READY"
	// WaypointNotReady: it was made, and none of its pods is ready.
	WaypointNotReady WaypointState = "NOT_READY"
	// WaypointMissing: nothing of its name was made.
	WaypointMissing WaypointState = "MISSING"
)
