package discovery

import corev1 "k8s.io/api/core/v1"

// pair is one label of a selector, or of the pods of a workload.
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
		for label, value := range wl.controller.template.Labels {
			p := pair{wl.controller.ref.Namespace, label, value}
			if with, asked := s[p]; asked {
				s[p] = append(with, wl)
			}
		}
	}
	return s
}

// selected lists the workloads of a namespace whose pods a selector matches,
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
		if contains(wl.controller.template.Labels, selector) {
			out = append(out, wl)
		}
	}
	return out
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
