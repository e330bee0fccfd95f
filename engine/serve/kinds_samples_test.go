package serve

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// sample is an object of a kind and edits of it, as JSON merge patches.
type sample struct {
	// object is the JSON of all but API version, kind, name and namespace.
	object string
	// spec edits what the kind is about. Empty: nothing of it can be edited.
	spec string
	// status edits the status subresource. Empty: the kind has none.
	status string
	// seen are the edits that reach the Input, by what its object then holds in JSON.
	seen map[string]string
}

// The edits.
const (
	editLabels      = "labels"
	editAnnotations = "annotations"
	editStatus      = "status"
	editSpec        = "spec"
)

const (
	seenLabel      = `"edited":"label"`
	seenAnnotation = `"discovery.mesh.gloo.solo.io/enabled":"edited"`
	template       = `"selector":{"matchLabels":{"app":"sample"}},"template":{"metadata":{"labels":{"app":"sample"}},"spec":{"containers":[{"name":"c","image":"first"}]}}`
	newImage       = `{"spec":{"template":{"spec":{"containers":[{"name":"c","image":"edited-spec"}]}}}}`
	condition      = `{"status":{"conditions":[{"type":"Edited","status":"True"}]}}`
	generation     = `{"status":{"observedGeneration":7}}`
)

// workload is seen with labels, annotations and the images of its template.
func workload(object string) sample {
	return sample{object: object, spec: newImage, status: condition,
		seen: map[string]string{editLabels: seenLabel, editAnnotations: seenAnnotation, editSpec: "edited-spec"}}
}

// own is one of our custom resources: all of it is seen, but for the status.
func own(object, spec, seenSpec string) sample {
	return sample{object: object, spec: spec, status: generation,
		seen: map[string]string{editLabels: seenLabel, editAnnotations: seenAnnotation, editSpec: seenSpec}}
}

// found is a discovered object, of which the status is seen too.
func found(object, spec, seenSpec string) sample {
	s := own(object, spec, seenSpec)
	s.seen[editStatus] = `"observedGeneration":7`
	return s
}

// byHand is an object that a user wrote for a mesh: what it is about is seen.
func byHand(object, spec, seenSpec string) sample {
	return sample{object: object, spec: spec, status: condition, seen: map[string]string{editSpec: seenSpec}}
}

// samples has one for each kind that is watched.
var samples = map[snapshot.Kind]sample{
	snapshot.Mesh: found(`{"spec":{"istio":{"installation":{"namespace":"sample","cluster":"sample","version":"1.0.0"}}}}`,
		`{"spec":{"istio":{"trustDomain":"edited-spec"}}}`, "edited-spec"),
	snapshot.Workload:    found(`{"spec":{"mesh":{"name":"sample","namespace":"gloo-mesh"}}}`, `{"spec":{"mesh":{"name":"edited-spec"}}}`, "edited-spec"),
	snapshot.Destination: found(`{"spec":{"mesh":{"name":"sample","namespace":"gloo-mesh"}}}`, `{"spec":{"mesh":{"name":"edited-spec"}}}`, "edited-spec"),
	snapshot.KubernetesCluster: {
		object: `{"spec":{"secretName":"sample"}}`, spec: `{"spec":{"clusterDomain":"edited-spec"}}`, status: `{"status":{"namespace":"edited"}}`,
		seen: map[string]string{editLabels: seenLabel, editAnnotations: seenAnnotation, editSpec: "edited-spec"},
	},
	snapshot.Settings:      own(`{"spec":{}}`, `{"spec":{"federation":{"warnEndpointsPerProxy":77777}}}`, "77777"),
	snapshot.VirtualMesh:   own(`{"spec":{"meshes":[{"name":"none","namespace":"gloo-mesh"}]}}`, `{"spec":{"meshes":[{"name":"edited-spec","namespace":"gloo-mesh"}]}}`, "edited-spec"),
	snapshot.TrafficPolicy: own(`{"spec":{"destinationSelector":[{"kubeServiceMatcher":{"namespaces":["none"]}}],"policy":{"requestTimeout":"3s"}}}`, `{"spec":{"policy":{"requestTimeout":"77s"}}}`, "1m17s"),
	snapshot.AccessPolicy:  own(`{"spec":{"destinationSelector":[{"kubeServiceMatcher":{"namespaces":["none"]}}],"allowedPorts":[80]}}`, `{"spec":{"allowedPorts":[7777]}}`, "7777"),
	snapshot.VirtualDestination: own(`{"spec":{"hostname":"sample.global","port":{"number":80,"protocol":"http"},"virtualMesh":{"name":"none","namespace":"gloo-mesh"},
		"static":{"destinations":[{"kubeService":{"name":"none","namespace":"none","clusterName":"none"}}]}}}`,
		`{"spec":{"hostname":"edited-spec.global"}}`, "edited-spec"),
	snapshot.ServiceDependency: own(`{"spec":{"sourceSelectors":[{"kubeWorkloadMatcher":{"namespaces":["none"]}}],"destinationSelectors":[{"kubeServiceMatcher":{"namespaces":["none"]}}]}}`,
		`{"spec":{"destinationSelectors":[{"kubeServiceMatcher":{"namespaces":["edited-spec"]}}]}}`, "edited-spec"),
	snapshot.WasmDeployment:  own(`{"spec":{"filters":[{"wasmImageSource":{"wasmImageTag":"sample:1"},"staticFilterConfig":{"@type":"x"}}]}}`, `{"spec":{"weight":7777}}`, "7777"),
	snapshot.AccessLogRecord: own(`{"spec":{"includedRequestHeaders":["sample"]}}`, `{"spec":{"includedRequestHeaders":["edited-spec"]}}`, "edited-spec"),
	snapshot.Role:            own(`{"spec":{"virtualMeshScopes":[{"virtualMeshActions":["ALL"]}]}}`, `{"spec":{"wasmDeploymentScopes":[{"workloadSelectors":[{"kubeWorkloadMatcher":{"namespaces":["edited-spec"]}}]}]}}`, "edited-spec"),
	snapshot.RoleBinding: {
		object: `{"spec":{"roleRef":{"name":"sample","namespace":"gloo-mesh"}}}`, spec: `{"spec":{"roleRef":{"name":"edited-spec"}}}`,
		status: `{"status":{}}`, // it has no fields
		seen:   map[string]string{editLabels: seenLabel, editAnnotations: seenAnnotation, editSpec: "edited-spec"},
	},

	// Agents report in the first, and answers to requests are read back.
	snapshot.IssuedCertificate:  found(`{"spec":{"hosts":["first.example"]}}`, `{"spec":{"hosts":["edited-spec"]}}`, "edited-spec"),
	snapshot.CertificateRequest: found(`{"spec":{"certificateSigningRequest":"Zmlyc3Q="}}`, `{"spec":{"certificateSigningRequest":"ZWRpdGVk"}}`, "ZWRpdGVk"),
	snapshot.PodBounceDirective: {
		object: `{"spec":{"podsToBounce":[{"namespace":"kinds","labels":{"app":"first"}}]}}`,
		spec:   `{"spec":{"podsToBounce":[{"namespace":"kinds","labels":{"app":"edited"}}]}}`, status: generation,
	},

	snapshot.Deployment:  workload(`{"spec":{"replicas":0,` + template + `}}`),
	snapshot.DaemonSet:   workload(`{"spec":{` + template + `}}`),
	snapshot.StatefulSet: workload(`{"spec":{"replicas":0,"serviceName":"sample",` + template + `}}`),
	snapshot.ReplicaSet: {
		object: `{"spec":{"replicas":0,` + template + `}}`, spec: `{"spec":{"minReadySeconds":7}}`, status: condition,
		seen: map[string]string{editAnnotations: seenAnnotation},
	},
	snapshot.Pod: {
		object: `{"spec":{"automountServiceAccountToken":false,"containers":[{"name":"c","image":"first"}]}}`, spec: `{"spec":{"containers":[{"name":"c","image":"edited-spec"}]}}`,
		status: `{"status":{"phase":"Succeeded"}}`,
		seen:   map[string]string{editLabels: seenLabel, editAnnotations: seenAnnotation, editSpec: "edited-spec", editStatus: `"phase":"Succeeded"`},
	},
	snapshot.Service: {
		object: `{"spec":{"type":"LoadBalancer","ports":[{"name":"http","port":80}]}}`, spec: `{"spec":{"selector":{"app":"edited-spec"}}}`,
		status: `{"status":{"loadBalancer":{"ingress":[{"hostname":"edited-status"}]}}}`,
		seen:   map[string]string{editLabels: seenLabel, editAnnotations: seenAnnotation, editSpec: "edited-spec", editStatus: "edited-status"},
	},
	snapshot.EndpointSlice: {
		object: `{"addressType":"IPv4","endpoints":[{"addresses":["10.7.7.1"]}],"ports":[]}`, spec: `{"endpoints":[{"addresses":["10.7.7.7"]}]}`,
		seen: map[string]string{editSpec: "10.7.7.7"},
	},
	snapshot.Node: {
		object: `{"spec":{"unschedulable":true}}`, spec: `{"spec":{"providerID":"edited-spec"}}`,
		status: `{"status":{"addresses":[{"type":"Hostname","address":"edited-status"}]}}`,
		seen:   map[string]string{editLabels: seenLabel, editAnnotations: seenAnnotation, editStatus: "edited-status"},
	},
	// The spec of a Namespace cannot be edited.
	snapshot.Namespace: {
		object: `{}`, status: `{"status":{"conditions":[{"type":"Edited","status":"True"}]}}`,
		seen: map[string]string{editLabels: seenLabel, editAnnotations: seenAnnotation},
	},
	snapshot.NetworkPolicy: {
		object: `{"spec":{"podSelector":{"matchLabels":{"app":"first"}}}}`, spec: `{"spec":{"podSelector":{"matchLabels":{"app":"edited-spec"}}}}`,
		seen: map[string]string{editSpec: "edited-spec"},
	},
	snapshot.ConfigMap: {
		object: `{"data":{"mesh":"trustDomain: first"}}`, spec: `{"data":{"mesh":"trustDomain: edited-spec"}}`,
		seen: map[string]string{editLabels: seenLabel, editAnnotations: seenAnnotation, editSpec: "edited-spec"},
	},
	// Only injectors are watched.
	snapshot.MutatingWebhookConfiguration: {
		object: `{"metadata":{"labels":{"app":"sidecar-injector"}},"webhooks":[{"name":"first.example.com","clientConfig":{"url":"https://first.example.com"},"sideEffects":"None","admissionReviewVersions":["v1"]}]}`,
		spec:   `{"webhooks":[{"name":"edited-spec.example.com","clientConfig":{"url":"https://first.example.com"},"sideEffects":"None","admissionReviewVersions":["v1"]}]}`,
		seen:   map[string]string{editLabels: seenLabel, editAnnotations: seenAnnotation, editSpec: "edited-spec"},
	},

	// The CustomResourceDefinitions of Open Service Mesh have no status.
	snapshot.MeshConfig: {
		object: `{"spec":{"sidecar":{"envoyImage":"first"}}}`, spec: `{"spec":{"sidecar":{"envoyImage":"edited-spec"}}}`,
		seen: map[string]string{editSpec: "edited-spec"},
	},
	snapshot.HTTPRouteGroup: {object: `{"spec":{"matches":[]}}`, spec: `{"spec":{"matches":[{"name":"edited"}]}}`},
	snapshot.TCPRoute:       {object: `{"spec":{"matches":{}}}`, spec: `{"spec":{"matches":{"ports":[7]}}}`},
	snapshot.TrafficTarget:  {object: `{"spec":{"sources":[]}}`, spec: `{"spec":{"sources":[{"kind":"ServiceAccount","name":"edited"}]}}`},
	snapshot.TrafficSplit:   {object: `{"spec":{"service":"first"}}`, spec: `{"spec":{"service":"edited"}}`},

	// Istiod itself writes addresses into the status of a ServiceEntry with DNS resolution.
	snapshot.ServiceEntry: {
		object: `{"spec":{"hosts":["first.example"],"location":"MESH_EXTERNAL","resolution":"DNS","ports":[{"number":443,"name":"tls","protocol":"TLS"}]}}`,
		spec:   `{"spec":{"hosts":["edited-spec.example"]}}`, status: `{"status":{"addresses":[{"host":"first.example","value":"240.240.7.7"}]}}`,
		seen: map[string]string{editSpec: "edited-spec"},
	},
	snapshot.DestinationRule: byHand(`{"spec":{"host":"first.example"}}`, `{"spec":{"host":"edited-spec.example"}}`, "edited-spec"),
	snapshot.VirtualService: byHand(`{"spec":{"hosts":["first.example"],"http":[{"route":[{"destination":{"host":"first.example"}}]}]}}`,
		`{"spec":{"hosts":["edited-spec.example"]}}`, "edited-spec"),
	snapshot.Sidecar: byHand(`{"spec":{"workloadSelector":{"labels":{"app":"first"}},"egress":[{"hosts":["./*"]}]}}`,
		`{"spec":{"workloadSelector":{"labels":{"app":"edited-spec"}}}}`, "edited-spec"),
	snapshot.AuthorizationPolicy: byHand(`{"spec":{"selector":{"matchLabels":{"app":"first"}},"rules":[{}]}}`,
		`{"spec":{"selector":{"matchLabels":{"app":"edited-spec"}}}}`, "edited-spec"),
	snapshot.Gateway: byHand(`{"spec":{"selector":{"app":"first"},"servers":[{"port":{"number":80,"name":"http","protocol":"HTTP"},"hosts":["first.example"]}]}}`,
		`{"spec":{"selector":{"app":"edited-spec"}}}`, "edited-spec"),
	snapshot.EnvoyFilter:           bySelector(`"workloadSelector":{"labels":{"app":"%s"}},"configPatches":[]`),
	snapshot.PeerAuthentication:    bySelector(`"selector":{"matchLabels":{"app":"%s"}},"mtls":{"mode":"STRICT"}`),
	snapshot.RequestAuthentication: bySelector(`"selector":{"matchLabels":{"app":"%s"}}`),
	snapshot.WasmPlugin:            bySelector(`"selector":{"matchLabels":{"app":"%s"}},"url":"oci://example.com/sample:1"`),
	snapshot.TrafficExtension:      bySelector(`"selector":{"matchLabels":{"app":"%s"}},"wasm":{"url":"oci://example.com/sample:1"}`),
	snapshot.Telemetry:             bySelector(`"selector":{"matchLabels":{"app":"%s"}},"metrics":[{"overrides":[{"disabled":true}]}]`),
	snapshot.WorkloadEntry:         bySelector(`"address":"10.7.7.7","labels":{"app":"%s"}`),

	// Served with any fields here, and without a status.
	snapshot.HTTPRoute:       loose(`"hostnames":["%s"]`),
	snapshot.GRPCRoute:       loose(`"hostnames":["%s"]`),
	snapshot.TLSRoute:        loose(`"hostnames":["%s"]`),
	snapshot.GatewayTCPRoute: loose(`"parentRefs":[{"name":"%s"}]`),
	snapshot.KubeGateway:     loose(`"gatewayClassName":"%s"`),
	snapshot.ListenerSet:     loose(`"parentRef":{"name":"%s"}`),
	snapshot.ReferenceGrant:  loose(`"from":[{"group":"gateway.networking.k8s.io","kind":"HTTPRoute","namespace":"%s"}],"to":[]`),

	snapshot.BackendTLSPolicy: loose(`"targetRefs":[{"group":"","kind":"Service","name":"%s"}],"validation":{"hostname":"first.example","wellKnownCACertificates":"System"}`),

	snapshot.Ingress: loose(`"ingressClassName":"%s","defaultBackend":{"service":{"name":"first","port":{"number":80}}}`),
	// The controller cannot be edited, and nothing else is read.
	snapshot.IngressClass: {object: `{"spec":{"controller":"example.com/first"}}`, seen: map[string]string{}},
}

// bySelector is byHand for a spec with a place for what is edited.
func bySelector(spec string) sample {
	spec = `{"spec":{` + spec + `}}`
	return byHand(fmt.Sprintf(spec, "first"), fmt.Sprintf(spec, "edited-spec"), "edited-spec")
}

// loose is bySelector for a kind without a status.
func loose(spec string) sample {
	s := bySelector(spec)
	s.status = ""
	return s
}

// TestEachKindHasASample: a kind that is watched is edited by TestObjectsOfAnyKindAreEdited.
func TestEachKindHasASample(t *testing.T) {
	t.Parallel()
	for _, kind := range watchedKinds() {
		assert.Contains(t, samples, kind, "%s", kind)
	}
}

// watchedKinds are those of both sides.
func watchedKinds() []snapshot.Kind {
	return append(snapshot.Kinds(snapshot.ManagementSide, snapshot.Watch|snapshot.Write),
		snapshot.Kinds(snapshot.ManagedSide, snapshot.Watch|snapshot.Write)...)
}
