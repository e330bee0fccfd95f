package engine_test

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	networking "istio.io/api/networking/v1alpha3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// virtualNames are few, so that policies name VirtualDestinations that are
// there, and host names clash.
const virtualNames = 5

// addVirtual adds a VirtualDestination, or writes one anew.
func (w *randomWorld) addVirtual() {
	w.n++
	v := &enterprisev1beta1.VirtualDestination{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("virtual-%d", w.r.Intn(virtualNames)), Namespace: w.home(), Generation: int64(w.n),
		CreationTimestamp: metav1.NewTime(time.Unix(int64(w.r.Intn(3)), 0)),
	}}
	w.fillVirtual(&v.Spec)
	w.virtual = slices.DeleteFunc(slices.Clone(w.virtual), func(o *enterprisev1beta1.VirtualDestination) bool { return o.Name == v.Name })
	w.virtual = append(w.virtual, v)
	slices.SortFunc(w.virtual, func(a, b *enterprisev1beta1.VirtualDestination) int { return strings.Compare(a.Name, b.Name) })
}

func (w *randomWorld) editVirtual() {
	if len(w.virtual) == 0 {
		return
	}
	w.virtual = slices.Clone(w.virtual)
	at := w.r.Intn(len(w.virtual))
	v := w.virtual[at].DeepCopy()
	v.Generation++
	w.fillVirtual(&v.Spec)
	w.virtual[at] = v
}

// virtualHost may be that of a service outside all clusters, too.
func virtualHost(r *rand.Rand) string {
	return fmt.Sprintf("h%d.%s", r.Intn(4), []string{"global", "global", "example.com"}[r.Intn(3)])
}

// changeOutside makes or deletes a Service in no mesh, which may have the host name of a
// VirtualDestination.
func (w *randomWorld) changeOutside() {
	at := w.r.Intn(len(w.base.Clusters))
	base, c := *w.base, *w.base.Clusters[at]
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "global", Name: fmt.Sprintf("h%d", w.r.Intn(4))}}
	left := slices.DeleteFunc(slices.Clone(c.Services), func(o *corev1.Service) bool { return o.Namespace == service.Namespace && o.Name == service.Name })
	if len(left) == len(c.Services) {
		left = append(left, service)
		slices.SortFunc(left, snapshot.CompareNames[*corev1.Service])
	}
	c.Services = left
	base.Clusters = slices.Clone(base.Clusters)
	base.Clusters[at] = &c
	w.base = &base
}

func (w *randomWorld) fillVirtual(spec *enterprisev1beta1.VirtualDestinationSpec) {
	*spec = enterprisev1beta1.VirtualDestinationSpec{
		Hostname: virtualHost(w.r),
		Port:     &enterprisev1beta1.VirtualDestinationPort{Number: 8080},
	}
	if w.r.Intn(3) == 0 {
		spec.MeshList = &enterprisev1beta1.MeshList{Meshes: slices.Clone(w.base.Management.VirtualMeshes[0].Spec.Meshes[:1])}
	} else {
		spec.VirtualMesh = &commonv1.ObjectRef{Name: w.base.Management.VirtualMeshes[0].Name, Namespace: "gloo-mesh"}
	}
	if w.r.Intn(4) == 0 {
		w.scatter(spec.Port, "")
	}
	if w.r.Intn(2) == 0 {
		defer w.next(spec, &w.turns[1])
	}
	if w.r.Intn(2) == 0 {
		spec.Static = &enterprisev1beta1.StaticDestinations{}
		for range 1 + w.r.Intn(3) {
			d := w.service()
			spec.Static.Destinations = append(spec.Static.Destinations, enterprisev1beta1.BackingDestination{
				KubeService: &commonv1.ClusterObjectRef{Name: d.Name, Namespace: d.Namespace, ClusterName: d.ClusterName},
			})
		}
		return
	}
	spec.Localized = &enterprisev1beta1.LocalizedDestinations{}
	for c := range randomClusters {
		d := w.service()
		if w.r.Intn(4) == 0 {
			continue
		}
		spec.Localized.DestinationSelectors = append(spec.Localized.DestinationSelectors, commonv1.DestinationSelector{
			KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{{Name: d.Name, Namespace: d.Namespace, ClusterName: enginetest.Cluster(c)}}},
		})
	}
	if w.r.Intn(2) == 0 {
		spec.Localized.OutlierDetection = &networkingv1.OutlierDetection{MaxEjectionPercent: uint32(w.r.Intn(101))}
	}
}

// virtualTarget is a VirtualDestination that may be there, or a subset of it.
func (w *randomWorld) virtualTarget() networkingv1.WeightedDestination {
	v := &networkingv1.VirtualDestinationRef{Name: fmt.Sprintf("virtual-%d", w.r.Intn(virtualNames)), Namespace: "gloo-mesh"}
	if w.r.Intn(2) == 0 {
		v.Subset = map[string]string{"version": fmt.Sprintf("v%d", 1+w.r.Intn(2))}
	}
	return networkingv1.WeightedDestination{Weight: uint32(w.r.Intn(3)), VirtualDestination: v}
}

// TestGatewaysKnowTheWay: wherever callers reach a service behind a
// VirtualDestination through gateways, these know the name by which connections
// arrive, and nothing behind it but pods of their own cluster.
func TestGatewaysKnowTheWay(t *testing.T) {
	t.Parallel()
	checked := 0
	for seed := range seeds(t, rounds, func() bool { return checked > 50 }) {
		w := newRandomWorld(seed)
		for range 5 {
			w.change()
		}
		state := engine.Translate(w.input())
		entries := map[snapshot.Ref]*networking.ServiceEntry{}
		for o := range state.Output.Objects {
			if e, ok := o.Content.Spec.(*networking.ServiceEntry); ok {
				entries[o.Ref] = e
			}
		}
		for _, v := range state.Plan.VirtualDestinations {
			for _, view := range v.Views {
				for _, p := range view.Priorities {
					for _, target := range p.Targets {
						if len(target.Through) == 0 {
							continue
						}
						home := target.Backing.Mesh
						e := entries[snapshot.Ref{Kind: snapshot.ServiceEntry, Cluster: home.Cluster, Namespace: home.Namespace, Name: view.PassedAs}]
						require.NotNil(t, e, "%s in %s", v.Ref, home.Cluster)
						for _, endpoint := range e.Endpoints {
							require.Regexp(t, "^10[.]", endpoint.Address, "a pod")
						}
						checked++
					}
				}
			}
		}
	}
}
