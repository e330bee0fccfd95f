package inventory

import (
	"maps"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// Behind finds the workloads behind services.
type Behind struct {
	byPlace map[place][]*discoveryv1.Workload
}

// place is a namespace of a cluster: a Service selects pods of its own.
type place struct{ cluster, namespace string }

// NewBehind indexes workloads.
func NewBehind(workloads []*discoveryv1.Workload) *Behind {
	b := &Behind{byPlace: map[place][]*discoveryv1.Workload{}}
	for _, w := range workloads {
		if k := w.Spec.Kubernetes; k != nil {
			at := place{k.Controller.ClusterName, k.Controller.Namespace}
			b.byPlace[at] = append(b.byPlace[at], w)
		}
	}
	return b
}

// Of are the workloads of which pods are among those of a Service, in the order in which they were given. With labels, they are those of the
// pods of a subset that have these as well.
func (b *Behind) Of(s *discoveryv1.KubeService, labels map[string]string) (out []*discoveryv1.Workload) {
	if s == nil {
		return nil
	}
	for _, w := range b.byPlace[place{s.Ref.ClusterName, s.Ref.Namespace}] {
		if Backs(w.Spec.Kubernetes, s, labels) {
			out = append(out, w)
		}
	}
	return out
}

// Backs reports whether pods of a workload are among those of a Service, or of a subset with labels. One without a selector has none.
func Backs(w *discoveryv1.KubernetesWorkload, s *discoveryv1.KubeService, labels map[string]string) bool {
	if s == nil || len(s.WorkloadSelectorLabels) == 0 || s.Ref.ClusterName != w.Controller.ClusterName || s.Ref.Namespace != w.Controller.Namespace {
		return false
	}
	selector := s.WorkloadSelectorLabels
	if len(labels) > 0 {
		selector = maps.Clone(selector)
		maps.Copy(selector, labels)
	}
	return SelectsPods(selector, w)
}
