package engine_test

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// flooded is a world of two federated clusters, in the first of which somebody makes
// many Services over the one pod of a namespace, each a second younger than the one
// before.
func flooded(in *snapshot.Input, many int) *snapshot.Input {
	out := *in
	out.Clusters = slices.Clone(in.Clusters)
	c := *in.Clusters[0]
	at := slices.IndexFunc(c.Services, func(s *corev1.Service) bool { return s.Name == enginetest.Service(0) })
	c.Services = slices.Grow(slices.Clone(c.Services), many)
	for n := range many {
		s := *c.Services[at]
		s.Name = fmt.Sprintf("many-%05d-%d", n, many)
		s.CreationTimestamp = metav1.NewTime(time.Unix(int64(1_800_000_000+n), 0))
		c.Services = append(c.Services, &s)
	}
	slices.SortFunc(c.Services, func(a, b *corev1.Service) int {
		return strings.Compare(a.Namespace+" "+a.Name, b.Namespace+" "+b.Name)
	})
	out.Clusters[0] = &c
	return &out
}

// crowd is a cluster with services of several namespaces, beside one that sees them.
type crowd struct {
	r        *rand.Rand
	services map[enginetest.Place]int // the second at which each was created
	pods     map[enginetest.Place]int // how many are behind each
	clock    int
}

func newCrowd(seed int64) *crowd {
	return &crowd{r: rand.New(rand.NewSource(seed)), services: map[enginetest.Place]int{}, pods: map[enginetest.Place]int{}}
}

// add adds services to a namespace. Their names do not say which is older.
func (c *crowd) add(namespace string, n int) {
	for range n {
		c.clock++
		at := enginetest.Place{Namespace: namespace, Name: fmt.Sprintf("service-%04d-%03d", c.r.Intn(10_000), c.clock)}
		c.services[at], c.pods[at] = c.clock/2, 1 // some are of the same age
	}
}

func (c *crowd) places() []enginetest.Place {
	return slices.SortedFunc(maps.Keys(c.services), func(a, b enginetest.Place) int {
		return strings.Compare(a.Namespace+" "+a.Name, b.Namespace+" "+b.Name)
	})
}

// input is the crowd with limits and what is stored, which may be nil.
func (c *crowd) input(limits *settingsv1.FederationLimits, stored *snapshot.Input) *snapshot.Input {
	istiod := enginetest.Place{Namespace: "istio-system", Name: "istiod"}
	a, b := enginetest.NamedCluster(0, "a", istiod, c.places()...), enginetest.NamedCluster(1, "b", istiod)
	for _, s := range a.Services {
		at := enginetest.Place{Namespace: s.Namespace, Name: s.Name}
		s.CreationTimestamp = metav1.NewTime(time.Unix(int64(c.services[at]), 0))
	}
	for _, s := range a.EndpointSlices {
		at := enginetest.Place{Namespace: s.Namespace, Name: s.Labels["kubernetes.io/service-name"]}
		for n := 1; n < c.pods[at]; n++ {
			more := s.Endpoints[0]
			more.Addresses = []string{fmt.Sprintf("172.16.%d.%d", n/250, n%250)}
			s.Endpoints = append(s.Endpoints, more)
			for _, p := range a.Pods {
				if p.Namespace == s.Namespace && p.Name == more.TargetRef.Name {
					p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: more.Addresses[0]})
				}
			}
		}
	}
	in := contestedInput(c.r)
	in.Management.VirtualDestinations = nil
	in.Clusters = []*snapshot.Cluster{a, b}
	in.Management.VirtualMeshes[0].Spec.Meshes = []commonv1.ObjectRef{
		{Name: "istiod-istio-system-a", Namespace: snapshot.DefaultNamespace}, {Name: "istiod-istio-system-b", Namespace: snapshot.DefaultNamespace},
	}
	if stored != nil {
		m := stored.Management
		in.Management.Meshes, in.Management.Workloads, in.Management.Destinations = m.Meshes, m.Workloads, m.Destinations
	}
	settings := &settingsv1.Settings{}
	settings.Name, settings.Namespace = "settings", snapshot.DefaultNamespace
	settings.Spec.Federation = &settingsv1.FederationSettings{Limits: limits}
	in.Management.Settings = []*settingsv1.Settings{settings}
	in.Management.AccessPolicies = []*networkingv1.AccessPolicy{{
		ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: snapshot.DefaultNamespace, Generation: 1},
		Spec:       networkingv1.AccessPolicySpec{AllowedMethods: []string{"GET"}},
	}}
	return in
}

// federated are the services of the crowd that are federated.
func federated(state *snapshot.State) map[enginetest.Place]bool {
	out := map[enginetest.Place]bool{}
	for d := range state.Plan.Destinations.All() {
		if s := d.Destination.Spec.KubeService.Ref; d.Federation != nil {
			out[enginetest.Place{Namespace: s.Namespace, Name: s.Name}] = true
		}
	}
	return out
}

func inNamespace(places map[enginetest.Place]bool, namespace string) int {
	n := 0
	for p := range places {
		if p.Namespace == namespace {
			n++
		}
	}
	return n
}

// partlyStored is the Input after only some statuses were written.
func partlyStored(r *rand.Rand, in *snapshot.Input, state *snapshot.State) *snapshot.Input {
	before := map[string]discoveryv1.DestinationStatus{}
	for _, d := range in.Management.Destinations {
		before[d.Name] = d.Status
	}
	out := collected(in, state)
	for _, d := range out.Management.Destinations {
		if r.Intn(2) == 0 {
			d.Status = before[d.Name]
		}
	}
	return out
}

func namesOf(list []*discoveryv1.Destination) string {
	var out []string
	for _, d := range list {
		out = append(out, d.Name)
	}
	return strings.Join(out, " ")
}

// half is about half of a list.
func half[T any](r *rand.Rand, list []T) []T {
	var out []T
	for _, o := range list {
		if r.Intn(2) == 0 {
			out = append(out, o)
		}
	}
	return out
}

// limit sets limits that some namespaces exceed.
func (w *randomWorld) limit(spec *settingsv1.SettingsSpec) {
	upTo := func(n int) uint32 { return uint32(w.r.Intn(n + 1)) }
	switch w.r.Intn(4) {
	case 0:
		spec.Federation = &settingsv1.FederationSettings{Limits: &settingsv1.FederationLimits{
			ServicesPerNamespace: upTo(3), ServicesPerCluster: upTo(6), EndpointsPerNamespace: upTo(4),
		}}
	case 1:
		spec.Discovery = &settingsv1.DiscoverySettings{Limits: &settingsv1.DiscoveryLimits{
			ServicesPerNamespace: upTo(randomServices), WorkloadsPerNamespace: upTo(randomServices),
		}}
	}
}
