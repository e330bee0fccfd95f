package discovery

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// pair is one label of a selector, or of pods of a workload.
type pair struct{ namespace, label, value string }

// selection finds workloads by the labels of their pods without a walk over
// all of them for every Service.
type selection map[pair][]*workload

// newSelection indexes the workloads by those labels that services select by.
func newSelection(services []*corev1.Service, workloads []*workload) selection {
	s := make(selection, len(services))
	for _, service := range services {
		for label, value := range service.Spec.Selector {
			s[pair{service.Namespace, label, value}] = nil
		}
	}
	for _, wl := range workloads {
		k := wl.object.Spec.Kubernetes
		for _, labels := range append([]map[string]string{k.PodLabels}, k.OtherPodLabels...) {
			for label, value := range labels {
				p := pair{k.Controller.Namespace, label, value}
				if with, asked := s[p]; asked && (len(with) == 0 || with[len(with)-1] != wl) {
					s[p] = append(with, wl)
				}
			}
		}
	}
	return s
}

// selected lists the workloads of a namespace with pods that a selector matches,
// in the order in which they were given. An empty selector matches nothing.
func (s selection) selected(namespace string, selector map[string]string) []*workload {
	var candidates []*workload
	first := true
	for label, value := range selector {
		with := s[pair{namespace, label, value}]
		if first || len(with) < len(candidates) {
			candidates, first = with, false
		}
	}
	if len(selector) < 2 {
		return candidates
	}
	var out []*workload
	for _, wl := range candidates {
		k := wl.object.Spec.Kubernetes
		if contains(k.PodLabels, selector) || slices.ContainsFunc(k.OtherPodLabels, func(labels map[string]string) bool { return contains(labels, selector) }) {
			out = append(out, wl)
		}
	}
	return out
}

// selectedBy are the labels by which Services of each namespace select pods.
func selectedBy(services []*corev1.Service) map[string]map[string]bool {
	out := map[string]map[string]bool{}
	for _, s := range services {
		for label := range s.Spec.Selector {
			if out[s.Namespace] == nil {
				out[s.Namespace] = map[string]bool{}
			}
			out[s.Namespace][label] = true
		}
	}
	return out
}

// maxOtherLabels bounds the combinations of labels of one workload.
const maxOtherLabels = 1000

// otherLabels are the labels of pods, as far as Services select by them, that differ from those of the template: each combination
// once.
func otherLabels(ctl *controller, by map[string]bool) []map[string]string {
	found := map[string]map[string]string{}
	for _, pod := range ctl.pods {
		if len(by) == 0 || len(found) == maxOtherLabels {
			break
		}
		labels, differs := map[string]string{}, false
		for name := range by {
			value, has := pod.Labels[name]
			common, stated := ctl.template.Labels[name]
			differs = differs || has != stated || value != common
			if has {
				labels[name] = value
			}
		}
		if differs && len(labels) > 0 {
			found[spell(labels)] = labels
		}
	}
	var out []map[string]string
	for _, key := range slices.Sorted(maps.Keys(found)) {
		out = append(out, found[key])
	}
	return out
}

// spell is a text for labels, the same for the same labels.
func spell(labels map[string]string) string {
	var b strings.Builder
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(label + "=" + labels[label] + ",")
	}
	return b.String()
}

// contains reports whether labels has every label of selector.
func contains(labels, selector map[string]string) bool {
	for label, want := range selector {
		if got, ok := labels[label]; !ok || got != want {
			return false
		}
	}
	return true
}
