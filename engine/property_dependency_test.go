package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestOutputIsInOrder over all random worlds: what compares Outputs relies on it.
func TestOutputIsInOrder(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, rounds) {
		w := newRandomWorld(seed)
		for range 5 {
			w.change()
		}
		out := engine.Translate(w.input()).Output
		require.True(t, slices.IsSortedFunc(out.Parts.Slice(), func(a, b *snapshot.Part) int { return strings.Compare(a.Key, b.Key) }))
		require.True(t, slices.IsSortedFunc(out.Statuses.Slice(), func(a, b *snapshot.Status) int { return a.Ref.Compare(b.Ref) }))
	}
}

// TestNoPodHasTwoSidecars over all random worlds: it is undefined in Istio which
// of two holds. And whoever is said to have one has it.
func TestNoPodHasTwoSidecars(t *testing.T) {
	t.Parallel()
	checked := 0
	for seed := range seeds(t, rounds, func() bool { return checked > 100 }) {
		w := newRandomWorld(seed)
		for range 12 {
			w.change()
		}
		state := engine.Translate(w.input())
		for _, o := range state.Plan.Workloads {
			k := o.Spec.Kubernetes
			var matching []snapshot.Ref
			for _, s := range state.Plan.Sidecars {
				matches := s.Ref.Cluster == k.Controller.ClusterName && s.Ref.Namespace == k.Controller.Namespace
				for name, value := range s.Selector {
					matches = matches && k.PodLabels[name] == value
				}
				listed := slices.Contains(s.Workloads, snapshot.RefOf(snapshot.Workload, o))
				require.Equal(t, matches, listed, "%s and %s", o.Name, s.Ref)
				if matches {
					matching = append(matching, s.Ref)
					checked++
				}
			}
			require.LessOrEqual(t, len(matching), 1, "%s: %v", o.Name, matching)
		}
	}
}

// changeDependencies adds a ServiceDependency, or takes one away.
func (w *randomWorld) changeDependencies() {
	if w.r.Intn(3) == 0 {
		w.depends = without(w.r, w.depends)
		return
	}
	w.addDependency()
}

func (w *randomWorld) addDependency() {
	w.n++
	o := &enterprisev1beta1.ServiceDependency{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("depends-%03d", w.r.Intn(1000)*100+w.n), Namespace: w.home()},
		Spec:       enterprisev1beta1.ServiceDependencySpec{DestinationSelectors: w.destinations()},
	}
	if m := (&commonv1.KubeWorkloadMatcher{}); w.r.Intn(4) > 0 {
		switch n := w.r.Intn(randomServices); w.r.Intn(3) {
		case 0:
			m.Clusters = []string{enginetest.Cluster(w.r.Intn(randomClusters))}
		case 1:
			m.Labels = map[string]string{"app": enginetest.Service(n)}
		default:
			m.Labels = map[string]string{"version": "v1"}
		}
		o.Spec.SourceSelectors = []commonv1.WorkloadSelector{{KubeWorkloadMatcher: m}}
	}
	w.depends = append(slices.Clone(w.depends), o)
	slices.SortFunc(w.depends, func(a, b *enterprisev1beta1.ServiceDependency) int { return strings.Compare(a.Name, b.Name) })
}
