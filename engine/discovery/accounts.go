package discovery

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
)

const (
	// mostAccounts bounds the service accounts of a Service; see KubeService.ServiceAccounts.
	mostAccounts = 32
	// defaultAccount is that of pods which name none.
	defaultAccount = "default"
)

// serviceAccounts lists the service accounts of all pods that may answer for a Service,
// ascending; nil if they are not all known. Callers refuse what is missing in the list, so
// that any doubt empties it.
//
// The accounts of templates come first in time: a template changes before its pods do, and
// a pod needs seconds until it is ready, so that callers know a new account before they
// meet it. An old one stays until its last pod is gone, ready or not.
func (x *Index) serviceAccounts(kinds []*detected, of candidate) []string {
	if len(of.workloads) == 0 {
		return nil // of such a Service not even the endpoints are known
	}
	accounts := map[string]bool{}
	for _, wl := range of.workloads {
		if !sameIdentities(wl.mesh, of.mesh) {
			return nil
		}
		accounts[accountOf(&wl.controller.template.Spec)] = true
		for _, pod := range wl.controller.pods {
			if !hasEnded(pod) {
				accounts[accountOf(&pod.Spec)] = true
			}
		}
	}
	for _, slice := range x.slices[keyOf(of.service)] {
		if slice.AddressType == endpointv1.AddressTypeFQDN {
			continue // as in endpointSubsets
		}
		for i := range slice.Endpoints {
			if !x.addAccountOf(accounts, kinds, of, &slice.Endpoints[i]) {
				return nil
			}
		}
	}
	if len(accounts) > mostAccounts {
		return nil
	}
	return slices.Sorted(maps.Keys(accounts))
}

// addAccountOf adds the account of the pod behind an endpoint of a Service. It returns
// false if the account is not known.
func (x *Index) addAccountOf(accounts map[string]bool, kinds []*detected, of candidate, e *endpointv1.Endpoint) bool {
	if len(e.Addresses) == 0 {
		return true
	}
	pod, named := backing{x}.podOf(of.service.Namespace, e)
	if pod == nil {
		// The endpoint of a pod that was deleted, as happens with each, stays a moment longer.
		return named && !isReady(e)
	}
	if k := kindOf(kinds, of.mesh); k != nil {
		if _, proxied := k.Sidecar(x, pod); !proxied {
			if of.mesh.Ambient && (ambient{x}).modeOfPod(k, pod).IsAmbient() {
				accounts[accountOf(&pod.Spec)] = true
			}
			return true // it has no certificate of the mesh, and callers in other meshes do not get its address
		}
	}
	if !sameIdentities(x.meshOfPod(kinds, pod), of.mesh) {
		return false
	}
	accounts[accountOf(&pod.Spec)] = true
	return true
}

// podOf is the pod that an endpoint is of, whether it has the address or not; nil if it is not known. Named is set if the endpoint
// names one of the namespace.
func (x backing) podOf(namespace string, e *endpointv1.Endpoint) (pod *corev1.Pod, named bool) {
	switch target := e.TargetRef; {
	case target == nil || target.Kind != podKind:
		return x.podAt(namespace, e.Addresses[0]), false
	case cmp.Or(target.Namespace, namespace) != namespace:
		return nil, false
	default:
		return x.podsByKey[key{namespace, target.Name}], true
	}
}

// meshOfPod is the mesh whose sidecar a pod has; nil if there is none, or it is in doubt.
func (x *Index) meshOfPod(kinds []*detected, pod *corev1.Pod) *ControlPlane {
	for _, k := range kinds {
		c, ok := k.Sidecar(x, pod)
		if !ok {
			continue
		}
		r := k.resolve(c)
		if ctl := x.byPod[keyOf(pod)]; ctl != nil {
			r = x.stayed(r, ctl)
		}
		return r.plane
	}
	return nil
}

// sameIdentities reports whether two meshes give a service account the same identity, such
// as two revisions of one control plane. Either may be nil.
func sameIdentities(a, b *ControlPlane) bool {
	if a == nil || b == nil {
		return false
	}
	return a == b || a.identities != "" && a.identities == b.identities
}

// hasEnded reports whether a pod runs no more, but is still there.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func accountOf(s *corev1.PodSpec) string { return cmp.Or(ServiceAccount(s), defaultAccount) }
