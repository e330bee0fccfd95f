package engine_test

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestEchoAsksForNothing: what was written comes back as a new Input. Nothing
// may follow from that: not another answer, and not the same one made anew,
// which would have to be compared with what is there.
func TestEchoAsksForNothing(t *testing.T) {
	t.Parallel()
	inEachCase(t, func(t *testing.T, _ int, in *snapshot.Input) {
		t.Helper()
		translator := engine.New(engine.Options{})
		before := translator.Translate(in).Output
		for range 2 {
			// The first echo may be news: a policy was in force once, and is not.
			in = echo(in, before)
			after := translator.Translate(in).Output
			for _, ref := range renewed(before, after) {
				assert.Fail(t, "made anew", "%s", ref)
			}
			before = after
		}
		require.Equal(t, text(t, before), text(t, translator.Translate(echo(in, before)).Output), "it does not come to rest")
	})
}

// renewed lists what of an Output is another object than before, and says the same.
func renewed(before, after *snapshot.Output) []snapshot.Ref {
	objects, statuses := map[snapshot.Ref]*snapshot.Object{}, map[snapshot.Ref]*snapshot.Status{}
	for o := range before.Objects {
		objects[o.Ref] = o
	}
	for s := range before.Statuses.All() {
		statuses[s.Ref] = s
	}
	var out []snapshot.Ref
	for o := range after.Objects {
		if was := objects[o.Ref]; was != o && reflect.DeepEqual(was, o) {
			out = append(out, o.Ref)
		}
	}
	for s := range after.Statuses.All() {
		if was := statuses[s.Ref]; was != s && reflect.DeepEqual(was, s) {
			out = append(out, s.Ref)
		}
	}
	return out
}

// echo is the Input with what was written to the management plane, each object
// a new one.
func echo(in *snapshot.Input, out *snapshot.Output) *snapshot.Input {
	next, m := *in, *in.Management
	next.Management = &m
	statuses := map[snapshot.Ref]any{}
	for s := range out.Statuses.All() {
		statuses[s.Ref] = s.Value
	}
	m.Meshes, m.Workloads = nil, nil
	discovered := map[string]bool{}
	var destinations []*discoveryv1.Destination
	for o := range out.Objects {
		meta := metav1.ObjectMeta{Name: o.Ref.Name, Namespace: o.Ref.Namespace, Generation: 1}
		meta.Labels = o.Content.Labels
		switch spec := o.Content.Spec.(type) {
		case *discoveryv1.MeshSpec:
			mesh := &discoveryv1.Mesh{ObjectMeta: meta, Spec: *spec}
			stored(statuses[o.Ref], &mesh.Status)
			m.Meshes = append(m.Meshes, mesh)
		case *discoveryv1.WorkloadSpec:
			workload := &discoveryv1.Workload{ObjectMeta: meta, Spec: *spec}
			stored(statuses[o.Ref], &workload.Status)
			m.Workloads = append(m.Workloads, workload)
		case *discoveryv1.DestinationSpec:
			destination := &discoveryv1.Destination{ObjectMeta: meta, Spec: *spec}
			stored(statuses[o.Ref], &destination.Status)
			destinations = append(destinations, destination)
			discovered[o.Ref.Name] = true
		}
	}
	for _, d := range in.Management.Destinations {
		if !discovered[d.Name] {
			destinations = append(destinations, d.DeepCopy())
		}
	}
	m.Destinations = destinations
	sortByName(m.Meshes)
	sortByName(m.Workloads)
	sortByName(m.Destinations)
	m.KubernetesClusters = copies(m.KubernetesClusters, func(p *multiclusterv1alpha1.KubernetesCluster) *multiclusterv1alpha1.KubernetesCluster {
		p = p.DeepCopy()
		stored(statuses[snapshot.RefOf(snapshot.KubernetesCluster, p)], &p.Status)
		return p
	})
	m.TrafficPolicies = copies(m.TrafficPolicies, func(p *networkingv1.TrafficPolicy) *networkingv1.TrafficPolicy {
		p = p.DeepCopy()
		stored(statuses[snapshot.RefOf(snapshot.TrafficPolicy, p)], &p.Status)
		return p
	})
	m.AccessPolicies = copies(m.AccessPolicies, func(p *networkingv1.AccessPolicy) *networkingv1.AccessPolicy {
		p = p.DeepCopy()
		stored(statuses[snapshot.RefOf(snapshot.AccessPolicy, p)], &p.Status)
		return p
	})
	m.VirtualMeshes = copies(m.VirtualMeshes, func(p *networkingv1.VirtualMesh) *networkingv1.VirtualMesh {
		p = p.DeepCopy()
		stored(statuses[snapshot.RefOf(snapshot.VirtualMesh, p)], &p.Status)
		return p
	})
	m.Settings = copies(m.Settings, (*settingsv1.Settings).DeepCopy)
	m.VirtualDestinations = copies(m.VirtualDestinations, func(v *enterprisev1beta1.VirtualDestination) *enterprisev1beta1.VirtualDestination {
		v = v.DeepCopy()
		stored(statuses[snapshot.RefOf(snapshot.VirtualDestination, v)], &v.Status)
		return v
	})
	m.ServiceDependencies = copies(m.ServiceDependencies, (*enterprisev1beta1.ServiceDependency).DeepCopy)
	return &next
}

// stored puts a written status into an object, if there is one.
func stored[S any](written any, into *S) {
	if status, ok := written.(*S); ok {
		*into = *status
	}
}

func copies[T any](list []T, each func(T) T) []T {
	out := make([]T, len(list))
	for i, x := range list {
		out[i] = each(x)
	}
	return out
}

func sortByName[T metav1.Object](list []T) {
	slices.SortFunc(list, func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	})
}
