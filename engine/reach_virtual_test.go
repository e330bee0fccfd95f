package engine_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networking "istio.io/api/networking/v1alpha3"
	corev1 "k8s.io/api/core/v1"
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

// meshesOf names the meshes of clusters.
func meshesOf(clusters ...string) *enterprisev1beta1.MeshList {
	out := &enterprisev1beta1.MeshList{}
	for _, name := range clusters {
		out.Meshes = append(out.Meshes, commonv1.ObjectRef{Name: "istiod-istio-system-" + name, Namespace: snapshot.DefaultNamespace})
	}
	return out
}

// listed are services behind a VirtualDestination.
func listed(refs ...commonv1.ClusterObjectRef) *enterprisev1beta1.StaticDestinations {
	out := &enterprisev1beta1.StaticDestinations{}
	for _, ref := range refs {
		out.Destinations = append(out.Destinations, enterprisev1beta1.BackingDestination{KubeService: &ref})
	}
	return out
}

func localized(selectors []commonv1.DestinationSelector) *enterprisev1beta1.LocalizedDestinations {
	return &enterprisev1beta1.LocalizedDestinations{DestinationSelectors: selectors}
}

// ownService is the first service of the namespace.
func ownService() commonv1.ClusterObjectRef {
	return commonv1.ClusterObjectRef{Name: enginetest.Service(1), Namespace: reachNamespace, ClusterName: reachCluster}
}

// localVirtual is a VirtualDestination of the namespace, for its first service.
func localVirtual(name, hostname string, edits ...func(*enterprisev1beta1.VirtualDestination)) *enterprisev1beta1.VirtualDestination {
	v := &enterprisev1beta1.VirtualDestination{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: reachNamespace, Generation: 1},
		Spec: enterprisev1beta1.VirtualDestinationSpec{
			Hostname: hostname, Port: &enterprisev1beta1.VirtualDestinationPort{Number: 8080, Protocol: "http"}, MeshList: meshesOf(reachCluster), Static: listed(ownService()),
		},
	}
	for _, edit := range edits {
		edit(v)
	}
	return v
}

func virtualPlan(t *testing.T, state *snapshot.State, cluster, namespace, name string) *snapshot.VirtualDestinationPlan {
	t.Helper()
	ref := snapshot.Ref{Kind: snapshot.VirtualDestination, Cluster: cluster, Namespace: namespace, Name: name}
	at := slices.IndexFunc(state.Plan.VirtualDestinations, func(p *snapshot.VirtualDestinationPlan) bool { return p.Ref == ref })
	require.GreaterOrEqual(t, at, 0, "%s is planned", ref)
	return state.Plan.VirtualDestinations[at]
}

func codesOfVirtual(p *snapshot.VirtualDestinationPlan) string {
	var b strings.Builder
	for _, issue := range p.AllIssues() {
		fmt.Fprintf(&b, "%s %s: %s\n", issue.Severity, issue.Code, issue.Message)
	}
	return b.String()
}

// hostObjects are the objects in a namespace of the cluster that make hosts known there, each of which is for nobody else.
func hostObjects(t *testing.T, out *snapshot.Output, namespace string) (hosts []string) {
	t.Helper()
	for o := range out.Objects {
		if o.Ref.Cluster != reachCluster || o.Ref.Namespace != namespace {
			continue
		}
		switch spec := o.Content.Spec.(type) {
		case *networking.ServiceEntry:
			assert.Equal(t, []string{namespace}, spec.ExportTo, o.Ref)
			hosts = append(hosts, spec.Hosts...)
		case *networking.DestinationRule:
			assert.Equal(t, []string{namespace}, spec.ExportTo, o.Ref)
			assert.Contains(t, hosts, spec.Host, "DestinationRules are listed after ServiceEntries: %s", o.Ref)
		}
	}
	return hosts
}

// othersStatuses are the statuses of all but the VirtualDestinations of the cluster, as bytes.
func othersStatuses(t *testing.T, out *snapshot.Output) map[string]string {
	t.Helper()
	statuses := map[string]string{}
	for s := range out.Statuses.All() {
		if s.Ref.Kind == snapshot.VirtualDestination && s.Ref.Cluster == reachCluster {
			continue
		}
		text, err := json.Marshal(s.Value)
		require.NoError(t, err)
		statuses[s.Ref.String()] = string(text)
	}
	return statuses
}

// externalWorld has an external service as well, and a VirtualDestination of the management cluster whose address is stored.
func externalWorld() *snapshot.Input {
	in := reachWorld()
	in.Management.VirtualDestinations[0].Status.Address = "250.1.2.3"
	in.Management.Destinations = append(in.Management.Destinations, &discoveryv1.Destination{
		ObjectMeta: metav1.ObjectMeta{Name: "bank", Namespace: snapshot.DefaultNamespace, Generation: 1},
		Spec: discoveryv1.DestinationSpec{ExternalService: &discoveryv1.ExternalService{
			Name: "bank", Hosts: []string{"bank.example"}, Ports: []discoveryv1.ExternalServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
		}},
	})
	return in
}

// TestVirtualDestinationsOfClustersStayInTheirNamespace: whatever a user asks for, no object, status or passage of a gateway outside of
// the namespace is another one, and what is generated there is for callers there alone.
func TestVirtualDestinationsOfClustersStayInTheirNamespace(t *testing.T) {
	t.Parallel()
	far := commonv1.ClusterObjectRef{Name: enginetest.Service(101), Namespace: "team-001", ClusterName: reachCluster}
	twin := commonv1.ClusterObjectRef{Name: enginetest.Service(1), Namespace: reachNamespace, ClusterName: "cluster-02"}
	type spec = enterprisev1beta1.VirtualDestinationSpec
	of := func(edit func(*spec)) *enterprisev1beta1.VirtualDestination {
		return localVirtual("way-out", "way-out.example", func(v *enterprisev1beta1.VirtualDestination) { edit(&v.Spec) })
	}
	behind := func(static *enterprisev1beta1.StaticDestinations, local *enterprisev1beta1.LocalizedDestinations) *enterprisev1beta1.VirtualDestination {
		return of(func(s *spec) { s.Static, s.Localized = static, local })
	}
	seenBy := func(list *enterprisev1beta1.MeshList, vm string) *enterprisev1beta1.VirtualDestination {
		return of(func(s *spec) {
			if s.MeshList = list; list == nil {
				s.VirtualMesh = &commonv1.ObjectRef{Name: vm, Namespace: snapshot.DefaultNamespace}
			}
		})
	}
	called := func(hostname string) *enterprisev1beta1.VirtualDestination {
		return of(func(s *spec) { s.Hostname = hostname })
	}
	federated := enginetest.Service(101) + ".team-001.svc."
	for _, way := range []struct {
		name    string
		virtual *enterprisev1beta1.VirtualDestination
		// code is that of an issue; empty for none. known is whether callers in the namespace know the host.
		code  snapshot.Code
		known bool
	}{
		{"its own service", called("way-out.example"), "", true},
		{"its own service, by a selector", behind(nil, localized(servicesNamed(ownService()))), "", true},
		{"the whole VirtualMesh", seenBy(nil, "virtual-mesh"), snapshot.OutsideNamespace, true},
		{"the meshes of two clusters", seenBy(meshesOf(reachCluster, "cluster-02"), ""), snapshot.OutsideNamespace, true},
		{"the mesh of another cluster", seenBy(meshesOf("cluster-02"), ""), snapshot.OutsideNamespace, false},
		{"a mesh that is not there", seenBy(meshesOf("cluster-99"), ""), snapshot.MeshNotFound, false},
		{"a VirtualMesh that is not there", seenBy(nil, "none"), snapshot.MeshNotFound, false},
		{"a service of another namespace", behind(listed(far), nil), snapshot.OutsideNamespace, false},
		{"the same service of another cluster", behind(listed(twin), nil), snapshot.OutsideNamespace, false},
		{"its own service, which fails over to others", behind(listed(ownService(), twin, far), nil), snapshot.OutsideNamespace, true},
		{"others, which fail over to its own", behind(listed(twin, far, ownService()), nil), snapshot.OutsideNamespace, true},
		{"a service without a cluster", behind(listed(commonv1.ClusterObjectRef{Name: far.Name, Namespace: far.Namespace}), nil), snapshot.OutsideNamespace, false},
		{"a name with the namespace in it", behind(listed(commonv1.ClusterObjectRef{Name: far.Name + ".team-001", Namespace: reachNamespace, ClusterName: reachCluster}), nil), snapshot.DestinationNotFound, false},
		{"another namespace, by a selector", behind(nil, localized(destinationsIn(nil, []string{"team-001"}))), snapshot.OutsideNamespace, false},
		{"another cluster, by a selector", behind(nil, localized(destinationsIn([]string{"cluster-02"}, nil))), snapshot.OutsideNamespace, false},
		{"services of all clusters by name", behind(nil, localized(servicesNamed(ownService(), twin))), snapshot.OutsideNamespace, true},
		{"everything", behind(nil, localized(destinationsIn(nil, nil))), snapshot.AmbiguousBacking, false},
		{"nothing", behind(nil, localized(nil)), snapshot.AmbiguousBacking, false},
		{"an empty selector", behind(nil, localized([]commonv1.DestinationSelector{{}})), snapshot.SelectsNothing, false},
		{"both ways at once", behind(listed(ownService()), localized(destinationsIn(nil, []string{"team-001"}))), snapshot.OutsideNamespace, false},
		{"the host of the management cluster", called("everywhere.example"), snapshot.HostnameTaken, false},
		{"the host of an external service", called("bank.example"), snapshot.HostnameTaken, false},
		{"the name of a federated service", called(federated + "cluster-02.global"), snapshot.FieldInvalid, false},
		{"the name of a federated service that may come", called("none.team-001.svc.cluster-99.global"), snapshot.FieldInvalid, false},
		{"the name of a service", called(federated + "cluster.local"), snapshot.FieldInvalid, false},
		{"the short name of a service", called(enginetest.Service(101) + ".team-001"), snapshot.HostnameTaken, false},
		{"a name that pods complete", called("none.team-001.svc"), snapshot.FieldInvalid, false},
		{"all hosts", called("*"), snapshot.FieldInvalid, false},
		{"all hosts of a domain", called("*.example"), snapshot.FieldInvalid, false},
		{"a host in upper case", called("Everywhere.example"), snapshot.FieldInvalid, false},
		{"a host with a dot at its end", called("everywhere.example."), snapshot.FieldInvalid, false},
		{"an address", called("10.0.0.1"), snapshot.FieldInvalid, false},
		{"a name of gateways", called("everywhere.gloo-mesh.virtualdestination.global"), snapshot.FieldInvalid, false},
		{"the name of an object of the management cluster", localVirtual("everywhere", "way-out.example"), "", true},
		{"an address of the management cluster", localVirtual("way-out", "way-out.example", func(v *enterprisev1beta1.VirtualDestination) { v.Status.Address = "250.1.2.3" }), "", true},
		{"outlier detection of others", of(func(s *spec) {
			s.Static, s.Localized = nil, localized(servicesNamed(ownService()))
			s.Localized.OutlierDetection = &networkingv1.OutlierDetection{ConsecutiveErrors: 1, MaxEjectionPercent: 100}
		}), "", true},
	} {
		t.Run(way.name, func(t *testing.T) {
			t.Parallel()
			before, after := engine.Translate(externalWorld()), engine.Translate(withLocal(t, externalWorld(), way.virtual))
			assert.Equal(t, outside(t, before.Output), outside(t, after.Output))
			assert.Equal(t, othersStatuses(t, before.Output), othersStatuses(t, after.Output))
			assert.Equal(t, passed(before.Plan), passed(after.Plan))
			p := virtualPlan(t, after, reachCluster, reachNamespace, way.virtual.Name)
			if way.code != "" {
				assert.Contains(t, codesOfVirtual(p), string(way.code))
			} else {
				assert.Empty(t, codesOfVirtual(p))
			}
			var known []string
			if way.known {
				known = []string{way.virtual.Spec.Hostname}
				assert.NotEqual(t, "250.1.2.3", p.Address)
			}
			assert.Equal(t, known, hostObjects(t, after.Output, reachNamespace), codesOfVirtual(p))
			for _, b := range p.Backing {
				assert.Equal(t, [2]string{reachNamespace, reachCluster}, [2]string{b.Destination.Spec.KubeService.Ref.Namespace, b.Destination.Spec.KubeService.Ref.ClusterName})
			}
			for _, view := range p.Views {
				assert.Equal(t, reachCluster, view.Mesh.Cluster)
				assert.Empty(t, view.PassedAs)
			}
		})
	}
}

// passed is what gateways pass on.
func passed(plan *snapshot.Plan) (hosts []string) {
	for _, p := range plan.Passages {
		hosts = append(hosts, p.Gateway.Destination.Name+": "+strings.Join(p.Hosts, ","))
	}
	return hosts
}

// twoTenants are two namespaces of the cluster in which policies count.
func twoTenants() *snapshot.Input {
	in := externalWorld()
	in.Management.Settings[0].Spec.WorkloadClusterPolicies = []settingsv1.WorkloadClusterPolicies{{Clusters: []string{reachCluster}, Namespaces: []string{reachNamespace, "team-001"}}}
	return in
}

// inOther puts a VirtualDestination into the other namespace, with a service there.
func inOther(v *enterprisev1beta1.VirtualDestination) *enterprisev1beta1.VirtualDestination {
	v.Namespace, v.Spec.Static = "team-001", listed(commonv1.ClusterObjectRef{Name: enginetest.Service(101), Namespace: "team-001", ClusterName: reachCluster})
	return v
}

func at(minute int64) func(*enterprisev1beta1.VirtualDestination) {
	return func(v *enterprisev1beta1.VirtualDestination) {
		v.CreationTimestamp = metav1.NewTime(time.Unix(60*minute, 0))
	}
}

// TestHostnamesOfNamespaces: the management cluster's come first, whatever their age; each namespace has its own; and within one, the
// older has the name.
func TestHostnamesOfNamespaces(t *testing.T) {
	t.Parallel()
	in := twoTenants()
	in.Management.VirtualDestinations[0].CreationTimestamp = metav1.NewTime(time.Unix(6000, 0))
	state := engine.Translate(withLocal(t, in,
		localVirtual("a-younger", "mine.example", at(2)), localVirtual("older", "mine.example", at(1)), localVirtual("taken", "everywhere.example", at(1)),
		inOther(localVirtual("other", "mine.example", at(3)))))
	assert.Equal(t, []string{"mine.example"}, hostObjects(t, state.Output, reachNamespace))
	assert.Equal(t, []string{"mine.example"}, hostObjects(t, state.Output, "team-001"))
	for _, c := range []struct {
		namespace, name string
		cause           snapshot.Ref
	}{
		{reachNamespace, "older", snapshot.Ref{}},
		{"team-001", "other", snapshot.Ref{}},
		{reachNamespace, "a-younger", snapshot.Ref{Kind: snapshot.VirtualDestination, Cluster: reachCluster, Namespace: reachNamespace, Name: "older"}},
		{reachNamespace, "taken", snapshot.Ref{Kind: snapshot.VirtualDestination, Namespace: snapshot.DefaultNamespace, Name: "everywhere"}},
	} {
		p := virtualPlan(t, state, reachCluster, c.namespace, c.name)
		var cause snapshot.Ref
		for _, issue := range p.AllIssues() {
			if issue.Code == snapshot.HostnameTaken {
				cause = issue.Cause
			}
		}
		assert.Equal(t, c.cause, cause, c.name)
	}
	assert.Empty(t, codesOfVirtual(virtualPlan(t, state, "", snapshot.DefaultNamespace, "everywhere")))
}

// TestAddressesOfNamespaces: nobody takes an address from another namespace, or from the management cluster, by a status.
func TestAddressesOfNamespaces(t *testing.T) {
	t.Parallel()
	stored := func(address string) func(*enterprisev1beta1.VirtualDestination) {
		return func(v *enterprisev1beta1.VirtualDestination) { v.Status.Address = address }
	}
	in := twoTenants()
	in.Management.VirtualDestinations[0].Status.Address = ""
	chosen := virtualPlan(t, engine.Translate(in), "", snapshot.DefaultNamespace, "everywhere").Address
	federated := ""
	for d := range engine.Translate(in).Plan.Destinations.All() {
		if d.Federation != nil {
			federated = d.Federation.Address
		}
	}
	require.NotEmpty(t, federated)
	address := func(state *snapshot.State, namespace, name string) string {
		return virtualPlan(t, state, reachCluster, namespace, name).Address
	}
	state := engine.Translate(withLocal(t, in,
		localVirtual("a", "a.example", stored("241.0.0.1")), localVirtual("b", "b.example", stored("241.0.0.1")), localVirtual("c", "c.example", stored(chosen)),
		localVirtual("d", "d.example", stored(federated)), localVirtual("e", "e.example", stored("10.0.0.1")), inOther(localVirtual("a", "a.example", stored("241.0.0.1")))))
	assert.Equal(t, "241.0.0.1", address(state, reachNamespace, "a"))
	assert.Equal(t, "241.0.0.1", address(state, "team-001", "a"), "the other namespace does not see it")
	assert.Equal(t, chosen, virtualPlan(t, state, "", snapshot.DefaultNamespace, "everywhere").Address)
	taken := []string{"241.0.0.1", chosen, federated, "10.0.0.1"}
	for _, name := range []string{"b", "c", "d", "e"} {
		got := address(state, reachNamespace, name)
		assert.NotContains(t, taken, got, name)
		taken = append(taken, got)
	}
}

// TestVirtualDestinationsOfClustersAreBounded: of very many in a namespace, the oldest count; those of another namespace all do.
func TestVirtualDestinationsOfClustersAreBounded(t *testing.T) {
	t.Parallel()
	in, most := withLocal(t, twoTenants(), inOther(localVirtual("other", "mine.example", at(9000)))), 100
	c := *in.Cluster(reachCluster)
	for n := range 3 * most {
		c.VirtualDestinations = append(c.VirtualDestinations, localVirtual(fmt.Sprintf("v-%03d", n), fmt.Sprintf("v-%03d.example", n), at(int64(1000-n))))
	}
	slices.SortFunc(c.VirtualDestinations, snapshot.CompareNames)
	crowded := *in
	crowded.Clusters = slices.Clone(in.Clusters)
	crowded.Clusters[slices.IndexFunc(in.Clusters, func(c *snapshot.Cluster) bool { return c.Name == reachCluster })] = &c
	before, after := engine.Translate(in), engine.Translate(&crowded)
	assert.Equal(t, outside(t, before.Output), outside(t, after.Output))
	assert.Equal(t, othersStatuses(t, before.Output), othersStatuses(t, after.Output))
	assert.Len(t, hostObjects(t, after.Output, reachNamespace), most)
	assert.Len(t, hostObjects(t, after.Output, "team-001"), 1)
	for n, counts := range map[int]bool{0: false, 199: false, 200: true, 299: true} {
		got := codesOfVirtual(virtualPlan(t, after, reachCluster, reachNamespace, fmt.Sprintf("v-%03d", n)))
		assert.Equal(t, !counts, strings.Contains(got, string(snapshot.BudgetExceeded)), "%d: %s", n, got)
	}
}

// TestNoVirtualDestinationOfAClusterUnasked: it counts only where Settings name its namespace and its cluster, never in the namespace of
// a control plane, and not where callers in ambient mode would know its host in all namespaces.
func TestNoVirtualDestinationOfAClusterUnasked(t *testing.T) {
	t.Parallel()
	named := func(namespaces ...string) func(*snapshot.Input) {
		return func(in *snapshot.Input) {
			in.Management.Settings[0].Spec.WorkloadClusterPolicies = []settingsv1.WorkloadClusterPolicies{{Clusters: []string{"*"}, Namespaces: namespaces}}
		}
	}
	inMesh := localVirtual("v", "v.example")
	inMesh.Namespace, inMesh.Spec.Static = "istio-system", listed(commonv1.ClusterObjectRef{Name: "istio-eastwestgateway", Namespace: "istio-system", ClusterName: reachCluster})
	inMesh.Spec.Port.Number = 15443
	for name, c := range map[string]struct {
		virtual *enterprisev1beta1.VirtualDestination
		world   func(*snapshot.Input)
		code    snapshot.Code
	}{
		"no Settings":                      {localVirtual("v", "v.example"), func(in *snapshot.Input) { in.Management.Settings = nil }, snapshot.NamespaceNotNamed},
		"another namespace is named":       {localVirtual("v", "v.example"), named("team-001"), snapshot.NamespaceNotNamed},
		"the namespace of a control plane": {inMesh, named("*"), snapshot.OutsideNamespace},
		"a mesh with ambient mode": {localVirtual("v", "v.example"), func(in *snapshot.Input) {
			for i, d := range in.Cluster(reachCluster).Deployments {
				if d.Name == "istiod" {
					d = d.DeepCopy()
					d.Spec.Template.Spec.Containers[0].Env = append(d.Spec.Template.Spec.Containers[0].Env, corev1.EnvVar{Name: "PILOT_ENABLE_AMBIENT", Value: "true"})
					in.Cluster(reachCluster).Deployments[i] = d
				}
			}
		}, snapshot.AmbientMode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := reachWorld()
			c.world(in)
			before, after := engine.Translate(in), engine.Translate(withLocal(t, in, c.virtual))
			assert.Equal(t, outside(t, before.Output), outside(t, after.Output))
			assert.Equal(t, othersStatuses(t, before.Output), othersStatuses(t, after.Output))
			assert.Empty(t, hostObjects(t, after.Output, reachNamespace))
			assert.Contains(t, codesOfVirtual(virtualPlan(t, after, reachCluster, c.virtual.Namespace, "v")), string(c.code))
		})
	}
}
