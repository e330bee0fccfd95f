package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	networking "istio.io/api/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRemovalRestores: taking a policy away leaves the bytes from before it.
func TestRemovalRestores(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, rounds) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newRandomWorld(seed)
			translator := engine.New(engine.Options{})
			want := text(t, translator.Translate(w.input()).Output)
			before := *w
			w.addTraffic()
			w.addAccess()
			w.addDependency()
			w.addVirtual()
			w.changeExternals()
			translator.Translate(w.input())
			*w = before
			require.Equal(t, want, text(t, translator.Translate(w.input()).Output))
		})
	}
}

// TestInputIsLeftAlone: translating changes nothing in the input.
func TestInputIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newRandomWorld(1)
	for range 5 {
		w.change()
	}
	in := w.input()
	before, err := json.Marshal(in)
	require.NoError(t, err)
	engine.Translate(in)
	after, err := json.Marshal(in)
	require.NoError(t, err)
	require.JSONEq(t, string(before), string(after))
}

// TestNoTwoObjectsHaveOneRef over all random worlds.
func TestNoTwoObjectsHaveOneRef(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, rounds) {
		w := newRandomWorld(seed)
		for range 5 {
			w.change()
		}
		seen := map[snapshot.Ref]string{}
		for p := range engine.Translate(w.input()).Output.Parts.All() {
			for _, o := range p.Objects {
				require.Empty(t, seen[o.Ref], "%s is in %s, too", o.Ref, p.Key)
				seen[o.Ref] = p.Key
			}
		}
	}
}

// TestLoadsAreWhatProxiesGet: the numbers that a VirtualMesh tells are those of
// the ServiceEntries in the clusters of its members.
func TestLoadsAreWhatProxiesGet(t *testing.T) {
	t.Parallel()
	said := 0
	for seed := range seeds(t, rounds) {
		w := newRandomWorld(seed)
		for range 5 {
			w.change()
		}
		state := engine.Translate(w.input())
		type load struct{ entries, endpoints int }
		got := map[string]load{}
		others := map[string]bool{} // hosts that federation did not add
		for _, v := range state.Plan.VirtualDestinations {
			others[v.Hostname] = true
		}
		for _, e := range state.Plan.Externals {
			others[e.Destination.Spec.ExternalService.Hosts[0]] = true
		}
		for o := range state.Output.Objects {
			if o.Ref.Kind != snapshot.ServiceEntry {
				continue
			}
			entry := o.Content.Spec.(*networking.ServiceEntry)
			// "*" is written where the defaults of the mesh would hide the entry; others are for gateways.
			if len(entry.ExportTo) > 0 && !slices.Contains(entry.ExportTo, "*") || others[entry.Hosts[0]] {
				continue
			}
			l := got[o.Ref.Cluster]
			l.entries++
			l.endpoints += len(entry.Endpoints)
			got[o.Ref.Cluster] = l
		}
		for _, vm := range state.Plan.VirtualMeshes {
			for _, l := range vm.Loads {
				said++
				cluster := strings.TrimPrefix(l.Mesh.Name, "istiod-istio-system-")
				require.Equal(t, load{l.ServiceEntries, l.Endpoints}, got[cluster], "seed %d, %s", seed, l.Mesh)
			}
		}
	}
	require.Positive(t, said)
}

// text is all that an output says.
func text(t *testing.T, out *snapshot.Output) string {
	t.Helper()
	var b strings.Builder
	for o := range out.Objects {
		body, err := json.Marshal(o.Content)
		require.NoError(t, err)
		fmt.Fprintf(&b, "%s %s\n", o.Ref, body)
	}
	for s := range out.Statuses.All() {
		body, err := json.Marshal(s)
		require.NoError(t, err)
		fmt.Fprintf(&b, "status %s\n", body)
	}
	for _, i := range out.Issues {
		fmt.Fprintf(&b, "issue %v\n", i)
	}
	fmt.Fprintln(&b, out.Frozen, out.Clusters, out.Debounces)
	return b.String()
}

// randomWorld is an inventory that changes at random.
type randomWorld struct {
	r       *rand.Rand
	base    *snapshot.Input
	traffic []*networkingv1.TrafficPolicy
	access  []*networkingv1.AccessPolicy
	depends []*enterprisev1beta1.ServiceDependency
	virtual []*enterprisev1beta1.VirtualDestination
	meshes  []*networkingv1.VirtualMesh
	setting []*settingsv1.Settings
	stored  []*discoveryv1.Destination
	// externals are services outside all clusters.
	externals []*discoveryv1.Destination
	// storedWorkloads are stored beside them.
	storedWorkloads []*discoveryv1.Workload

	fails []snapshot.Failure
	n     int
	last  string
	turns [2]int // of the fields of TrafficPolicies and VirtualDestinations
}

const (
	randomServices = 8
	randomClusters = 3
)

func newRandomWorld(seed int64) *randomWorld {
	w := &randomWorld{r: rand.New(rand.NewSource(seed)), turns: [2]int{4 * int(seed), 4 * int(seed)}}
	w.base = enginetest.World(enginetest.Size{Services: randomServices, Clusters: randomClusters, FederateEvery: 2})
	w.meshes = w.base.Management.VirtualMeshes
	w.changeExternals()
	for range 4 {
		w.sharePods()
		w.addTraffic()
		w.addAccess()
		w.changeDependencies()
		w.addVirtual()
	}
	return w
}

func (w *randomWorld) input() *snapshot.Input {
	in, m := *w.base, *w.base.Management
	in.Management, in.Failures = &m, w.fails
	in.Clusters = slices.Clone(w.base.Clusters)
	m.TrafficPolicies, m.AccessPolicies = w.traffic, w.access
	m.VirtualMeshes, m.Settings, m.Destinations = w.meshes, w.setting, w.stored
	m.VirtualDestinations = w.virtual
	if len(w.externals) > 0 {
		m.Destinations = slices.SortedFunc(slices.Values(slices.Concat(w.stored, w.externals)),
			func(a, b *discoveryv1.Destination) int { return strings.Compare(a.Name, b.Name) })
	}
	m.ServiceDependencies, m.Workloads = w.depends, w.storedWorkloads
	sortByName(m.TrafficPolicies)
	sortByName(m.AccessPolicies)
	sortByName(m.VirtualDestinations)
	sortByName(m.ServiceDependencies)
	return &in
}

// change changes one thing.
func (w *randomWorld) change() {
	changes := []struct {
		name string
		do   func()
	}{
		{"add a traffic policy", w.addTraffic},
		{"add an access policy", w.addAccess},
		{"remove a traffic policy", func() { w.traffic = without(w.r, w.traffic) }},
		{"remove an access policy", func() { w.access = without(w.r, w.access) }},
		{"edit a traffic policy", w.editTraffic},
		{"edit an access policy", w.editAccess},
		{"read late that policies were in force", w.readLate},
		{"change the dependencies", w.changeDependencies},
		{"write for a mesh by hand", w.changeHandWritten},
		{"add a virtual destination", w.addVirtual},
		{"remove a virtual destination", func() { w.virtual = without(w.r, w.virtual) }},
		{"edit a virtual destination", w.editVirtual},
		{"change a service outside of meshes", w.changeOutside},
		{"change the virtual mesh", w.changeVirtualMesh},
		{"change settings", w.changeSettings},
		{"store what is in force", w.store},
		{"change external services", w.changeExternals},
		{"change a cluster", w.changeCluster},
		{"change what decides beside objects", w.changeSurroundings},
		{"have services share pods", w.sharePods},
		{"fail a write", w.failWrite},
		{"freeze or thaw a cluster", w.freeze},
		{"store another name or address", w.storeOther},
	}
	c := changes[w.r.Intn(len(changes))]
	w.last = c.name
	c.do()
}

func without[T any](r *rand.Rand, list []T) []T {
	if len(list) == 0 {
		return list
	}
	at := r.Intn(len(list))
	return slices.Delete(slices.Clone(list), at, at+1)
}

func (w *randomWorld) addTraffic() {
	w.n++
	p := &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("traffic-%03d", w.r.Intn(1000)*100+w.n), Namespace: w.home(), Generation: 1,
		CreationTimestamp: metav1.NewTime(time.Unix(int64(w.r.Intn(3)), 0)),
	}}
	w.fill(&p.Spec)
	w.traffic = append(slices.Clone(w.traffic), p)
}

func (w *randomWorld) editTraffic() {
	if len(w.traffic) == 0 {
		return
	}
	w.traffic = slices.Clone(w.traffic)
	at := w.r.Intn(len(w.traffic))
	p := w.traffic[at].DeepCopy()
	p.Generation++
	w.fill(&p.Spec)
	w.traffic[at] = p
}

func (w *randomWorld) service() networkingv1.KubeDestination {
	n := w.r.Intn(randomServices + 1) // the last one does not exist
	d := networkingv1.KubeDestination{Name: enginetest.Service(n), Namespace: enginetest.Namespace(n), ClusterName: enginetest.Cluster(w.r.Intn(randomClusters))}
	if w.r.Intn(3) == 0 {
		d.Subset = map[string]string{"version": fmt.Sprintf("v%d", 1+w.r.Intn(2))}
	}
	return d
}

func (w *randomWorld) destinations() []commonv1.DestinationSelector {
	d := w.service()
	switch w.r.Intn(4) {
	case 0:
		return nil
	case 1:
		return []commonv1.DestinationSelector{{KubeServiceMatcher: &commonv1.KubeServiceMatcher{
			Labels: map[string]string{"federated": "true"}, Clusters: []string{d.ClusterName},
		}}}
	default:
		if w.r.Intn(3) == 0 {
			d.Name = sharingService(w.r.Intn(sharingServices))
		}
		return []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{
			{Name: d.Name, Namespace: d.Namespace, ClusterName: d.ClusterName},
		}}}}
	}
}

// fill writes a random spec.
func (w *randomWorld) fill(spec *networkingv1.TrafficPolicySpec) {
	*spec = networkingv1.TrafficPolicySpec{DestinationSelector: w.destinations(), Policy: &networkingv1.Policy{}}
	p := spec.Policy
	if w.r.Intn(2) == 0 {
		p.RequestTimeout = &metav1.Duration{Duration: time.Duration(1+w.r.Intn(2)) * time.Second}
	}
	if w.r.Intn(3) == 0 {
		p.TrafficShift = &networkingv1.MultiDestination{}
		for range 1 + w.r.Intn(2) {
			if w.r.Intn(2) == 0 {
				p.TrafficShift.Destinations = append(p.TrafficShift.Destinations, w.virtualTarget())
				continue
			}
			d := w.service()
			p.TrafficShift.Destinations = append(p.TrafficShift.Destinations, networkingv1.WeightedDestination{Weight: uint32(w.r.Intn(3)), KubeService: &d})
		}
		if w.r.Intn(3) == 0 {
			p.TrafficShift.Destinations[0].KubeService = nil
			p.TrafficShift.Destinations[0].StaticDestination = w.external()
		}
	}
	if w.r.Intn(4) == 0 {
		p.OutlierDetection = &networkingv1.OutlierDetection{ConsecutiveErrors: uint32(w.r.Intn(3))}
	}
	w.fillFilters(p)
	if w.r.Intn(2) == 0 {
		w.scatter(p, "")
	}
	defer w.next(spec, &w.turns[0])
	if w.r.Intn(3) == 0 {
		spec.HttpRequestMatchers = []networkingv1.HttpMatcher{{Uri: &commonv1.StringMatch{Prefix: []string{"/", "/a", "/ab"}[w.r.Intn(3)]}}}
		if w.r.Intn(4) == 0 {
			spec.HttpRequestMatchers[0].Uri = &commonv1.StringMatch{Regex: []string{"/a.*", ".*", "/a[b]"}[w.r.Intn(3)]}
		}
	} else if w.r.Intn(4) == 0 {
		w.scatter(spec, "httpRequestMatchers")
	}
	if w.r.Intn(3) == 0 {
		spec.SourceSelector = []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Clusters: []string{enginetest.Cluster(w.r.Intn(randomClusters))}}}}
	} else if w.r.Intn(8) == 0 {
		w.scatter(spec, []string{"sourceSelector", "destinationSelector"}[w.r.Intn(2)])
	}
}

func (w *randomWorld) changeVirtualMesh() {
	vm := w.base.Management.VirtualMeshes[0].DeepCopy()
	vm.Generation++
	switch w.r.Intn(4) {
	case 0:
		w.meshes = nil
		return
	case 1:
		vm.Spec.GlobalAccessPolicy = networkingv1.GlobalAccessPolicyEnabled
	case 2:
		vm.Spec.Federation.Selectors = []networkingv1.FederationSelector{{}}
	default:
		vm.Spec.Meshes = vm.Spec.Meshes[:2]
	}
	w.declareFederation(vm.Spec.Federation)
	w.meshes = []*networkingv1.VirtualMesh{vm}
}

func (w *randomWorld) changeSettings() {
	w.setting = nil
	modes := []networkingv1.TLSMode{networkingv1.TLSModeIstioMutual, networkingv1.TLSModeSimple, networkingv1.TLSModeDisable}
	if mode := modes[w.r.Intn(len(modes))]; w.r.Intn(2) == 0 {
		w.setting = []*settingsv1.Settings{{
			ObjectMeta: metav1.ObjectMeta{Name: "settings", Namespace: "gloo-mesh"},
			Spec: settingsv1.SettingsSpec{
				Mtls:             &networkingv1.MTLS{Istio: &networkingv1.IstioMTLS{TlsMode: mode}},
				PolicyNamespaces: [][]string{nil, {"team"}, {"*"}}[w.r.Intn(3)],
			},
		}}
		w.limit(&w.setting[0].Spec)
	}
}

// store writes back what the engine asks for, as a sink would.
func (w *randomWorld) store() {
	w.stored, w.storedWorkloads = nil, nil
	state := engine.Translate(w.input())
	w.storePolicies(state)
	w.storeVirtual(state)
	statuses := map[snapshot.Ref]*discoveryv1.DestinationStatus{}
	workloads := map[snapshot.Ref]*discoveryv1.WorkloadStatus{}
	for s := range state.Output.Statuses.All() {
		if v, ok := s.Value.(*discoveryv1.DestinationStatus); ok {
			statuses[s.Ref] = v
		}
		if v, ok := s.Value.(*discoveryv1.WorkloadStatus); ok {
			workloads[s.Ref] = v
		}
	}
	for _, o := range state.Plan.Workloads {
		stored := o.DeepCopy()
		stored.Generation = int64(1 + w.r.Intn(2))
		if v := workloads[snapshot.RefOf(snapshot.Workload, o)]; v != nil {
			stored.Status = *v.DeepCopy()
		}
		w.storedWorkloads = append(w.storedWorkloads, stored)
	}
	for d := range state.Plan.Destinations.All() {
		stored := d.Destination.DeepCopy()
		stored.Generation = int64(1 + w.r.Intn(2))
		stored.Status = *statuses[d.Ref].DeepCopy()
		w.stored = append(w.stored, stored)
	}
}

// TestEmptyInput: nothing registered, nothing to do.
func TestEmptyInput(t *testing.T) {
	t.Parallel()
	state := engine.Translate(&snapshot.Input{Management: &snapshot.Management{Namespace: "gloo-mesh"}})
	require.Zero(t, state.Output.Parts.Len())
	require.Zero(t, state.Output.Statuses.Len())
	require.Empty(t, state.Output.Issues)
}
