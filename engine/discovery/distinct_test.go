package discovery_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// shopIn is a cluster whose Service "a" stands in the given namespace.
func shopIn(cluster, istioNamespace, namespace string) *snapshot.Discovered {
	b := clustertest.New(cluster)
	b.Istiod("default").Namespace = istioNamespace
	b.ConfigMaps[0].Namespace = istioNamespace
	b.Pod(b.Deployment(namespace, "a", map[string]string{"app": "a"}), "a-1", "")
	b.Service(namespace, "a", map[string]string{"app": "a"})
	return discovery.Discover(b.Cluster, options())
}

func TestDistinctLeavesWhatCannotClash(t *testing.T) {
	t.Parallel()
	all := []*snapshot.Discovered{shopIn("cluster-1", "istio-system", "b"), shopIn("cluster-2", "istio-system", "b")}
	got := discovery.Distinct(all, &discovery.StoredNames{})
	assert.Same(t, &all[0], &got[0])
	got = discovery.Distinct(all, new(discovery.StoredNames).Update(storedOf(all...)))
	assert.Same(t, &all[0], &got[0])

	// The names of the clusters make a clash possible, but there is none.
	all = []*snapshot.Discovered{shopIn("c-d", "istio-system", "b"), shopIn("d", "istio-system", "b")}
	got = discovery.Distinct(all, &discovery.StoredNames{})
	assert.Same(t, all[0], got[0])
	assert.Same(t, all[1], got[1])
}

func TestDistinctRenamesTheLater(t *testing.T) {
	t.Parallel()
	first, later := shopIn("c-d", "istio", "b"), shopIn("d", "istio-c", "b-c")
	before := shopIn("d", "istio-c", "b-c")
	require.Equal(t, first.Meshes[0].Name, later.Meshes[0].Name)
	require.Equal(t, first.Destinations[0].Name, later.Destinations[0].Name)

	got := discovery.Distinct([]*snapshot.Discovered{first, later}, &discovery.StoredNames{})
	assert.Same(t, first, got[0])
	assert.Equal(t, before, later, "the argument was changed")
	mesh, workload, destination := got[1].Meshes[0], got[1].Workloads[0], got[1].Destinations[0]
	assert.Regexp(t, `^istiod-istio-c-d-[0-9a-f]{12}$`, mesh.Name)
	assert.Regexp(t, `^a-b-c-d-deployment-[0-9a-f]{12}$`, workload.Name)
	assert.Regexp(t, `^a-b-c-d-[0-9a-f]{12}$`, destination.Name)
	assert.Equal(t, mesh.Name, workload.Spec.Mesh.Name)
	assert.Equal(t, mesh.Name, destination.Spec.Mesh.Name)
	require.Len(t, got[1].Issues, 3)
	for _, issue := range got[1].Issues {
		assert.Equal(t, snapshot.NameCollision, issue.Code)
		assert.Equal(t, "d", issue.Ref.Cluster)
	}
	assert.Equal(t, got[1], discovery.Distinct([]*snapshot.Discovered{first, later}, &discovery.StoredNames{})[1], "the same each time")
}

// storedOf is a management plane that stores what was discovered.
func storedOf(all ...*snapshot.Discovered) *snapshot.Management {
	m := &snapshot.Management{Namespace: snapshot.DefaultNamespace}
	for _, d := range all {
		m.Meshes = append(m.Meshes, d.Meshes...)
		m.Workloads = append(m.Workloads, d.Workloads...)
		m.Destinations = append(m.Destinations, d.Destinations...)
	}
	slices.SortFunc(m.Meshes, snapshot.CompareNames)
	slices.SortFunc(m.Workloads, snapshot.CompareNames)
	slices.SortFunc(m.Destinations, snapshot.CompareNames)
	return m
}

// namesIn are the names of a mesh, a workload and a service of each cluster.
func namesIn(all []*snapshot.Discovered) [][3]string {
	var out [][3]string
	for _, d := range all {
		out = append(out, [3]string{d.Meshes[0].Name, d.Workloads[0].Name, d.Destinations[0].Name})
	}
	return out
}

// TestStoredNamesStick: whoever is stored keeps its name, whatever sorts first, and the
// other one its hash when the first is gone.
func TestStoredNamesStick(t *testing.T) {
	t.Parallel()
	first, second := shopIn("c-d", "istio", "b"), shopIn("d", "istio-c", "b-c")
	plain := namesIn([]*snapshot.Discovered{second})[0]
	both := []*snapshot.Discovered{first, second}

	got := discovery.Distinct(both, new(discovery.StoredNames).Update(storedOf(second)))
	assert.Same(t, second, got[1])
	names := namesIn(got)
	assert.Equal(t, plain, names[1])
	for i := range plain {
		assert.True(t, discovery.IsHashedName(names[0][i], plain[i]), names[0][i])
	}
	assert.Equal(t, names[0][0], got[0].Workloads[0].Spec.Mesh.Name)
	assert.Equal(t, names[0][0], got[0].Destinations[0].Spec.Mesh.Name)
	require.Len(t, got[0].Issues, 3)
	assert.Equal(t, snapshot.Ref{Kind: snapshot.Deployment, Cluster: "c-d", Namespace: "b", Name: "a"}, got[0].Issues[0].Ref)
	assert.Equal(t, snapshot.Ref{Kind: snapshot.Deployment, Cluster: "d", Namespace: "b-c", Name: "a"}, got[0].Issues[0].Cause)

	stored := new(discovery.StoredNames).Update(storedOf(got...))
	assert.Equal(t, names, namesIn(discovery.Distinct(both, stored)), "both keep what they have")
	alone := discovery.Distinct([]*snapshot.Discovered{first}, new(discovery.StoredNames).Update(storedOf(got[0])))
	assert.Equal(t, names[:1], namesIn(alone), "a policy may name it")
	assert.Empty(t, alone[0].Issues, "nobody else has the name")
	assert.Equal(t, names[:1], namesIn(discovery.Distinct([]*snapshot.Discovered{first}, stored)), "nobody gets a name that is stored")

	older := storedOf(got...)
	for i, d := range older.Destinations {
		if d.Name == names[0][2] {
			renamed := *d
			renamed.Name = plain[2] + "-0123abcd"
			older.Destinations[i] = &renamed
		}
	}
	assert.Equal(t, plain[2]+"-0123abcd", discovery.Distinct(both, new(discovery.StoredNames).Update(older))[0].Destinations[0].Name, "an older version wrote it")
}

// TestStoredNamesStickWithinACluster: the later one by namespace is stored.
func TestStoredNamesStickWithinACluster(t *testing.T) {
	t.Parallel()
	shops := func(namespaces ...[2]string) *snapshot.Discovered {
		b := clustertest.New("c")
		b.Istiod("default")
		for _, n := range namespaces {
			b.Pod(b.Deployment(n[0], n[1], map[string]string{"app": n[1]}), "p", "")
			b.Service(n[0], n[1], map[string]string{"app": n[1]})
		}
		return discovery.Discover(b.Cluster, options())
	}
	victim, rival := [2]string{"b", "a-a"}, [2]string{"a-b", "a"} // both are a-a-b-c
	before := shops(victim)
	both := []*snapshot.Discovered{shops(rival, victim)}
	byNamespace := func(d *snapshot.Discovered) (destinations, workloads map[string]string) {
		destinations, workloads = map[string]string{}, map[string]string{}
		for _, o := range d.Destinations {
			destinations[o.Spec.KubeService.Ref.Namespace] = o.Name
		}
		for _, o := range d.Workloads {
			workloads[o.Spec.Kubernetes.Controller.Namespace] = o.Name
		}
		return destinations, workloads
	}
	fresh, _ := byNamespace(discovery.Distinct(both, &discovery.StoredNames{})[0])
	assert.Equal(t, "a-a-b-c", fresh["a-b"], "without anything stored, the first by namespace")
	assert.Regexp(t, "^a-a-b-c-[0-9a-f]{12}$", fresh["b"])

	after := discovery.Distinct(both, new(discovery.StoredNames).Update(storedOf(before)))[0]
	destinations, workloads := byNamespace(after)
	assert.Equal(t, "a-a-b-c", destinations["b"])
	assert.Equal(t, "a-a-b-c-deployment", workloads["b"])
	assert.Regexp(t, "^a-a-b-c-[0-9a-f]{12}$", destinations["a-b"])
	assert.Regexp(t, "^a-a-b-c-deployment-[0-9a-f]{12}$", workloads["a-b"])
	require.Len(t, after.Issues, 2)
	assert.Equal(t, snapshot.Ref{Kind: snapshot.Service, Cluster: "c", Namespace: "a-b", Name: "a"}, after.Issues[1].Ref)
	assert.Equal(t, snapshot.Ref{Kind: snapshot.Service, Cluster: "c", Namespace: "b", Name: "a-a"}, after.Issues[1].Cause)
}

// TestStoredNamesOfUsers: a Destination that a user wrote is not overwritten, and one
// that says nothing has no name to lose.
func TestStoredNamesOfUsers(t *testing.T) {
	t.Parallel()
	d := shopIn("d", "istio", "b")
	name := d.Destinations[0].Name
	external := &discoveryv1.Destination{Spec: discoveryv1.DestinationSpec{ExternalService: &discoveryv1.ExternalService{Hosts: []string{"a.example"}}}}
	external.Name, external.Namespace = name, snapshot.DefaultNamespace
	m := &snapshot.Management{Destinations: []*discoveryv1.Destination{external}}
	got := discovery.Distinct([]*snapshot.Discovered{d}, new(discovery.StoredNames).Update(m))[0]
	assert.True(t, discovery.IsHashedName(got.Destinations[0].Name, name), got.Destinations[0].Name)
	require.Len(t, got.Issues, 1)
	assert.Equal(t, snapshot.RefOf(snapshot.Destination, external), got.Issues[0].Cause)

	for what, change := range map[string]func(*discoveryv1.Destination){
		"hollow":    func(o *discoveryv1.Destination) { o.Spec = discoveryv1.DestinationSpec{} },
		"elsewhere": func(o *discoveryv1.Destination) { o.Namespace = "elsewhere" },
	} {
		o := external.DeepCopy()
		change(o)
		m := &snapshot.Management{Destinations: []*discoveryv1.Destination{o}}
		assert.Same(t, d, discovery.Distinct([]*snapshot.Discovered{d}, new(discovery.StoredNames).Update(m))[0], what)
	}
}

// TestStoredNamesAreTheSame until a name or a source is new or gone.
func TestStoredNamesAreTheSame(t *testing.T) {
	t.Parallel()
	m := storedOf(shopIn("d", "istio", "b"))
	names := new(discovery.StoredNames).Update(m)
	with := func(change func(*discoveryv1.Destination)) *snapshot.Management {
		out := *m
		o := m.Destinations[0].DeepCopy()
		change(o)
		out.Destinations = []*discoveryv1.Destination{o}
		return &out
	}
	assert.Same(t, names, names.Update(with(func(o *discoveryv1.Destination) { o.Status.LocalFqdn = "new" })))
	assert.Same(t, names, names.Update(with(func(o *discoveryv1.Destination) { o.Spec.KubeService.Region = "new" })))
	assert.NotSame(t, names, names.Update(with(func(o *discoveryv1.Destination) { o.Name = "new" })))
	assert.NotSame(t, names, names.Update(with(func(o *discoveryv1.Destination) { o.Spec.KubeService.Ref.Namespace = "new" })))
	assert.NotSame(t, names, names.Update(&snapshot.Management{}))
}
