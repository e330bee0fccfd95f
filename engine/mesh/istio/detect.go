package istio

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
)

const (
	revisionKey     = "istio.io/rev"
	statusKey       = "sidecar.istio.io/status"
	revisionEnv     = "REVISION"
	defaultRevision = "default"
	injectionKey    = "istio-injection"
	injectKey       = "sidecar.istio.io/inject"
	proxyName       = "istio-proxy"
	proxyImage      = "proxyv2"
	ztunnelImage    = "ztunnel"
	pilotWord       = "pilot"
	istiodName      = "istiod"
	istiodContainer = "discovery"
	settingsName    = "istio"
	exportToKey     = "networking.istio.io/exportTo"
)

// Detector detects Istio as it has been installed since 1.5, in sidecar mode and in ambient mode.
func Detector() discovery.Detector {
	return discovery.Detector{
		Name:          "Istio",
		ControlPlanes: controlPlanes,
		Sidecar:       sidecarOf,
		Namespace:     namespaceClaim,
		Stored:        storedRevision,
		Template:      templateClaim,
		Gateway:       isGateway,
		ExportTo:      exportToOfService,
		Ambient:       ambientDetector,
		Machines:      machines,
		Inbound:       inboundPast,
		Outbound:      outboundCapture,
		ProxyDNS:      proxyDNS,
		Identities:    func(spec *discoveryv1.MeshSpec) string { return spec.Istio.TrustDomain },
		// istio.io/api, label.ServiceCanonicalRevision and label.TopologySubzone.
		InjectedLabels: []string{"service.istio.io/canonical-revision"},
		SubzoneLabel:   "topology.istio.io/subzone",
		RevisionName:   "revision",
		Fix:            "restart it to get the sidecar of a running control plane, with its revision; each control plane needs its own revision",
		Reads: discovery.Reads{
			Annotations:    annotationsRead,
			Env:            []string{revisionEnv, skipTrustDomain, multiRoot, sharedSettings, enableCA, externalCA, debounceAfter, debounceMax, enableAmbient, multiNetwork, clusterID, alpnFilter, interceptionEnv, dnsCapture, secureStatsEnv},
			Args:           captureArgs,
			ConfigMaps:     configMapsOf,
			ConfigMapNames: []string{settingsName, rootsName},
			ConfigMap:      configMapKeys,
			Injector:       injectorLabel,
			Redact:         redact,
		},
	}
}

// exportToOfService reads the annotation of a Service (Istio, kube.ConvertService).
func exportToOfService(s *corev1.Service) []string {
	text := s.Annotations[exportToKey]
	if text == "" {
		return nil
	}
	const most = 256 // as the API has it
	names := strings.Split(text, ",")
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	slices.Sort(names)
	names = slices.Compact(names)
	return names[:min(len(names), most)]
}

// annotationsRead are those that say who knows a Service, that a pod is in ambient mode, what passes its proxy by, and those that ask for
// a sidecar, and with its
// revision. The status
// has much else, and is read only where the revision does not stand by itself.
func annotationsRead(annotations map[string]string) []string {
	var names []string
	if annotations[exportToKey] != "" {
		names = append(names, exportToKey)
	}
	for _, name := range []string{injectKey, redirectionKey} {
		if annotations[name] != "" {
			names = append(names, name)
		}
	}
	names = append(names, captureAnnotations(annotations)...)
	for _, name := range []string{revisionKey, statusKey} {
		if annotations[name] != "" {
			return append(names, name)
		}
	}
	return names
}

// sidecarOf looks for Istio's proxy: a sidecar injected as a container or
// as an init container that never ends, or a gateway.
func sidecarOf(_ *discovery.Index, pod *corev1.Pod) (discovery.Claim, bool) {
	if !hasProxy(&pod.Spec) {
		return discovery.Claim{}, false
	}
	revision, requested := revisionOf(pod)
	return discovery.Claim{Revision: revision, Requested: requested}, true
}

// isGateway: gateways run in the mode of a router, and have no other container but the proxy (Istio, model.Router).
func isGateway(pod *corev1.PodSpec) bool {
	return len(pod.Containers) > 0 && !slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool { return !isProxy(&c) })
}

func hasProxy(pod *corev1.PodSpec) bool {
	for i := range pod.Containers {
		if isProxy(&pod.Containers[i]) {
			return true
		}
	}
	for i := range pod.InitContainers {
		c := &pod.InitContainers[i]
		// istio-init has the same image, but ends.
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways && isProxy(c) {
			return true
		}
	}
	return false
}

// isProxy checks the container's name, which the injector relies on, and for
// other installations the image, in any registry. ztunnel has the
// container name, too, but is the node's proxy and not the pod's.
func isProxy(c *corev1.Container) bool {
	if c.Name == proxyName {
		return !strings.Contains(c.Image, ztunnelImage)
	}
	if !strings.Contains(c.Image, proxyImage) {
		return false
	}
	img, ok := discovery.ParseImage(c.Image)
	return ok && img.HasWord(proxyImage)
}

// revisionOf is the revision of a pod's sidecar: the one that the injector wrote,
// else that of the pod's label, which may be a revision tag.
func revisionOf(pod *corev1.Pod) (revision string, requested bool) {
	if r := pod.Annotations[revisionKey]; r != "" {
		return r, false
	}
	if status := pod.Annotations[statusKey]; status != "" {
		var injected struct {
			Revision string `json:"revision"`
		}
		// Other tools may write something else there: then it says nothing.
		if json.Unmarshal([]byte(status), &injected) == nil && injected.Revision != "" {
			return injected.Revision, false
		}
	}
	return pod.Labels[revisionKey], true
}

// namespaceClaim reads the labels by which injection is turned on.
func namespaceClaim(ns *corev1.Namespace) (discovery.Claim, bool) {
	switch injection := ns.Labels[injectionKey]; {
	case injection == "enabled":
		return discovery.Claim{Revision: defaultRevision, Requested: true}, true
	case injection == "" && ns.Labels[revisionKey] != "":
		return discovery.Claim{Revision: ns.Labels[revisionKey], Requested: true}, true
	}
	return discovery.Claim{}, false
}

// templateClaim follows the injector's rules; its label on pods used to be an
// annotation. See
// https://istio.io/latest/docs/setup/additional-setup/sidecar-injection/#controlling-the-injection-policy.
//
// A template may also have the proxy itself, as those of many gateways: then nothing is injected.
func templateClaim(ns *corev1.Namespace, t *corev1.PodTemplateSpec) (discovery.Claim, bool) {
	if hasProxy(&t.Spec) {
		return discovery.Claim{Revision: t.Labels[revisionKey], Requested: true}, true
	}
	inject := t.Labels[injectKey]
	if inject == "" {
		inject = t.Annotations[injectKey]
	}
	if inject == "false" || t.Spec.HostNetwork {
		return discovery.Claim{}, false
	}
	if ns != nil {
		if c, ok := namespaceClaim(ns); ok {
			return c, true
		}
		if ns.Labels[injectionKey] != "" {
			return discovery.Claim{}, false // pods cannot turn it on there
		}
	}
	revision := t.Labels[revisionKey]
	if revision == "" {
		revision = defaultRevision
	}
	return discovery.Claim{Revision: revision, Requested: true}, inject == "true"
}
