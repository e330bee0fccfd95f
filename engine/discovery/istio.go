package discovery

import (
	"encoding/json"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

const (
	istioRevisionKey   = "istio.io/rev"
	istioStatusKey     = "sidecar.istio.io/status"
	istioRevisionEnv   = "REVISION"
	istioDefault       = "default"
	istioInjectionKey  = "istio-injection"
	istioInjectKey     = "sidecar.istio.io/inject"
	istioProxyName     = "istio-proxy"
	istioProxyImage    = "proxyv2"
	istioZtunnelImage  = "ztunnel"
	istioPilotWord     = "pilot"
	istiodName         = "istiod"
	istiodContainer    = "discovery"
	istioConfigMapName = "istio"
)

// Istio detects Istio in sidecar mode, as it has been installed since 1.5.
func Istio() Detector {
	return Detector{
		Name:          "Istio",
		ControlPlanes: istioControlPlanes,
		Sidecar:       istioSidecar,
		Namespace:     istioNamespace,
		Stored:        istioStored,
		Template:      istioTemplate,
		RevisionName:  "revision",
		Fix:           "restart it to get the sidecar of a running control plane, with its revision; each control plane needs its own revision",
		Reads: Reads{
			Annotations: istioAnnotations,
			Env:         []string{istioRevisionEnv, istioSkipTrustDomain, istioMultiRoot, istioDebounceAfter, istioDebounceMax},
			ConfigMaps:  istioConfigMaps,
			ConfigMap:   istioConfigMap,
		},
	}
}

// istioConfigMap is what is read of a ConfigMap: the settings of a control plane, or
// the roots that proxies trust. There may be one of the latter in every namespace;
// one byte more than can be used shows that it has too many.
func istioConfigMap(name string) (key string, most int) {
	switch {
	case name == istioRootsName:
		return istioRootsKey, maxRootsText + 1
	case name == istioConfigMapName || strings.HasPrefix(name, istioConfigMapName+"-"):
		return istioConfigKey, math.MaxInt
	}
	return "", 0
}

// istioAnnotations are those that ask for a sidecar, and with its revision. The status
// has much else, and is read only where the revision does not stand by itself.
func istioAnnotations(annotations map[string]string) []string {
	var names []string
	if annotations[istioInjectKey] != "" {
		names = append(names, istioInjectKey)
	}
	for _, name := range []string{istioRevisionKey, istioStatusKey} {
		if annotations[name] != "" {
			return append(names, name)
		}
	}
	return names
}

// istioSidecar looks for Istio's proxy: a sidecar injected as a container or
// as an init container that never ends, or a gateway.
func istioSidecar(_ *Index, pod *corev1.Pod) (Claim, bool) {
	if !hasIstioProxy(pod) {
		return Claim{}, false
	}
	revision, requested := istioRevisionOf(pod)
	return Claim{Revision: revision, Requested: requested}, true
}

func hasIstioProxy(pod *corev1.Pod) bool {
	for i := range pod.Spec.Containers {
		if isIstioProxy(&pod.Spec.Containers[i]) {
			return true
		}
	}
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		// istio-init has the same image, but ends.
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways && isIstioProxy(c) {
			return true
		}
	}
	return false
}

// isIstioProxy checks the container's name, which the injector relies on, and for
// other installations the image, in any registry. ztunnel has the
// container name, too, but is the node's proxy and not the pod's.
func isIstioProxy(c *corev1.Container) bool {
	if c.Name == istioProxyName {
		return !strings.Contains(c.Image, istioZtunnelImage)
	}
	if !strings.Contains(c.Image, istioProxyImage) {
		return false
	}
	img, ok := parseImage(c.Image)
	return ok && img.hasWord(istioProxyImage)
}

// istioRevisionOf is the revision of a pod's sidecar: the one that the injector wrote,
// else that of the pod's label, which may be a revision tag.
func istioRevisionOf(pod *corev1.Pod) (revision string, requested bool) {
	if r := pod.Annotations[istioRevisionKey]; r != "" {
		return r, false
	}
	if status := pod.Annotations[istioStatusKey]; status != "" {
		var injected struct {
			Revision string `json:"revision"`
		}
		// Other tools may write something else there: then it says nothing.
		if json.Unmarshal([]byte(status), &injected) == nil && injected.Revision != "" {
			return injected.Revision, false
		}
	}
	return pod.Labels[istioRevisionKey], true
}

// istioNamespace reads the labels by which injection is turned on.
func istioNamespace(ns *corev1.Namespace) (Claim, bool) {
	switch injection := ns.Labels[istioInjectionKey]; {
	case injection == "enabled":
		return Claim{Revision: istioDefault, Requested: true}, true
	case injection == "" && ns.Labels[istioRevisionKey] != "":
		return Claim{Revision: ns.Labels[istioRevisionKey], Requested: true}, true
	}
	return Claim{}, false
}

// istioTemplate follows the injector's rules; its label on pods used to be an
// annotation. See
// https://istio.io/latest/docs/setup/additional-setup/sidecar-injection/#controlling-the-injection-policy.
func istioTemplate(ns *corev1.Namespace, t *corev1.PodTemplateSpec) (Claim, bool) {
	inject := t.Labels[istioInjectKey]
	if inject == "" {
		inject = t.Annotations[istioInjectKey]
	}
	if inject == "false" || t.Spec.HostNetwork {
		return Claim{}, false
	}
	if ns != nil {
		if c, ok := istioNamespace(ns); ok {
			return c, true
		}
		if ns.Labels[istioInjectionKey] != "" {
			return Claim{}, false // pods cannot turn it on there
		}
	}
	revision := t.Labels[istioRevisionKey]
	if revision == "" {
		revision = istioDefault
	}
	return Claim{Revision: revision, Requested: true}, inject == "true"
}
