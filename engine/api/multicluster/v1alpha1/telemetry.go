package v1alpha1

// TelemetryDoor is how what proxies count comes in.
//
// +kubebuilder:validation:Enum=scrape;agent;push;prometheus;none
type TelemetryDoor string

const (
	// TelemetryDoorScrape: meshctl serve reads the proxies, by way of the API server. It needs the right to create
	// pods/portforward there.
	TelemetryDoorScrape TelemetryDoor = "scrape"
	// TelemetryDoorAgent: the agent of a cluster that connects by relay reads them, at the addresses of their pods.
	TelemetryDoorAgent TelemetryDoor = "agent"
	// TelemetryDoorPush: the proxies of a cluster that connects by relay send them to its agent, as the settings of the mesh say.
	TelemetryDoorPush TelemetryDoor = "push"
	// TelemetryDoorPrometheus: a Prometheus that has read them is asked.
	TelemetryDoorPrometheus TelemetryDoor = "prometheus"
	// TelemetryDoorNone: they are not read.
	TelemetryDoorNone TelemetryDoor = "none"
)

// Telemetry says how meshctl gets what the proxies of a cluster count.
//
// +kubebuilder:validation:XValidation:rule="(self.door == 'prometheus') == has(self.prometheus)",message="the door prometheus needs prometheus.url, and no other door has it"
type Telemetry struct {
	// Door by which it comes in: scrape, agent, push, prometheus or none.
	Door TelemetryDoor `json:"door"`
	// Prometheus to ask, with the door prometheus.
	Prometheus *PrometheusSource `json:"prometheus,omitempty"`
}

// PrometheusSource is a server with the HTTP API of Prometheus that has read the proxies of a cluster.
//
// +kubebuilder:validation:XValidation:rule="!has(self.secretName) || self.url.startsWith('https://')",message="a Secret is only used with a URL that begins with https://"
type PrometheusSource struct {
	// Url of the server, without /api/v1, as meshctl serve reaches it.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.matches('^https?://[^/?#@ ]+(/[^?#@ ]*)?$')",message="must be a URL such as https://prometheus.example:9090, without a user, a query or a fragment"
	Url string `json:"url"`
	// SecretName is a Secret in the same namespace. Its key ca.crt has the certificates by which the server is known, in PEM,
	// instead of those of the system; its key token is a bearer token. Either may be missing.
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
	// MatchLabels are labels that the numbers of this cluster have there, such as cluster: cluster-1, if the server has those
	// of several clusters.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(name, name.matches('^[a-zA-Z_][a-zA-Z0-9_]*$'))",message="must have names of labels of Prometheus, such as cluster"
	MatchLabels map[string]MatchedLabel `json:"matchLabels,omitempty"`
}

// MatchedLabel is the value of a label in a Prometheus.
//
// +kubebuilder:validation:MaxLength=256
type MatchedLabel string
