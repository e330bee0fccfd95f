package engine_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// These are the shortest histories in which one translator once said something else than a new one.

// requireAsNew translates Inputs with one translator, and compares each State with that of a new one.
func requireAsNew(t *testing.T, inputs ...*snapshot.Input) {
	t.Helper()
	translator := engine.New(engine.Options{})
	for i, in := range inputs {
		d := compareStates(engine.Translate(in), translator.Translate(in))
		require.Empty(t, d.path, "after input %d: %s", i, d.text)
	}
}

// smallWorld has two services in each of two clusters, and a policy of each kind.
func smallWorld() *snapshot.Input {
	return enginetest.World(enginetest.Size{Services: 2, Clusters: 2, FederateEvery: 1, Policies: 1})
}

// with is an Input with an object.
func with(t *testing.T, in *snapshot.Input, cluster string, o snapshot.APIObject) *snapshot.Input {
	t.Helper()
	out, err := in.With(cluster, o)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func copyOf(o snapshot.APIObject) snapshot.APIObject {
	return o.DeepCopyObject().(snapshot.APIObject)
}

// shallow is an Input with its own Management and Clusters, which share their lists.
func shallow(in *snapshot.Input) *snapshot.Input {
	out, m := *in, *in.Management
	out.Management = &m
	out.Clusters = copies(in.Clusters, func(c *snapshot.Cluster) *snapshot.Cluster {
		own := *c
		return &own
	})
	return &out
}

// TestLabelsAreTheLatest: a Plan keeps policies and VirtualMeshes of which only labels changed; lists show the new labels.
func TestLabelsAreTheLatest(t *testing.T) {
	t.Parallel()
	in := smallWorld()
	in = with(t, in, "", &enterprisev1beta1.ServiceDependency{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: snapshot.DefaultNamespace}})
	translator := engine.New(engine.Options{})
	translator.Translate(in)
	labels := map[string]string{"team": "shop"}
	kinds := []snapshot.Kind{snapshot.VirtualMesh, snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.ServiceDependency}
	for _, kind := range kinds {
		o := copyOf(in.Management.List(kind).At(0))
		o.SetLabels(labels)
		in = with(t, in, "", o)
	}
	index := explain.New(translator.Translate(in))
	for _, kind := range kinds {
		assert.Equal(t, labels, index.List(kind).Rows[0].Labels, "%s", kind)
	}
}

// TestStatusesLeaveWithWorkloads: a Workload that is gone has no status any more, although no ServiceDependency changed.
func TestStatusesLeaveWithWorkloads(t *testing.T) {
	t.Parallel()
	in := smallWorld()
	written := engine.Translate(with(t, in, "", &enterprisev1beta1.ServiceDependency{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: snapshot.DefaultNamespace}}))
	// The ServiceDependency was deleted just now, so that all workloads get an empty status.
	in = echo(in, written.Output)
	requireAsNew(t, in, in.Without(snapshot.Ref{Kind: snapshot.Deployment, Cluster: enginetest.Cluster(0), Namespace: enginetest.Namespace(0), Name: enginetest.Service(0)}))
}

// TestStatusesLeaveWithFailures: the last policy, which selected nothing, is deleted while a write fails.
func TestStatusesLeaveWithFailures(t *testing.T) {
	t.Parallel()
	after := smallWorld()
	after.Management.TrafficPolicies, after.Management.AccessPolicies = nil, nil
	before := with(t, after, "", enginetest.TrafficPolicy(0, 99, 0, time.Second))
	after.Failures = []snapshot.Failure{{
		Ref:    snapshot.Ref{Kind: snapshot.VirtualService, Cluster: enginetest.Cluster(0), Namespace: "team", Name: "x"},
		Reason: snapshot.Reason{Code: snapshot.WriteFailed, What: "refused"},
	}}
	requireAsNew(t, before, after)
}

// TestStoredMeshesAreRead: a Mesh without a control plane that appears, or gets the labels of discovered ones, stays known.
func TestStoredMeshesAreRead(t *testing.T) {
	t.Parallel()
	in := smallWorld()
	stored := echo(in, engine.Translate(in).Output)
	missing := stored.Without(snapshot.Ref{Kind: snapshot.Deployment, Cluster: enginetest.Cluster(0), Namespace: "istio-system", Name: "istiod"})
	mesh := snapshot.Ref{Kind: snapshot.Mesh, Namespace: snapshot.DefaultNamespace, Name: "istiod-istio-system-" + enginetest.Cluster(0)}
	require.NotNil(t, missing.Find(mesh))
	foreign := copyOf(missing.Find(mesh))
	foreign.SetLabels(nil)
	requireAsNew(t, missing.Without(mesh), missing, with(t, missing, "", foreign), missing)
}

// TestStoredDestinationsAreRead: a Service whose workloads are gone has the mesh of a Destination that is stored now only, or is
// stored with another mesh or owner.
func TestStoredDestinationsAreRead(t *testing.T) {
	t.Parallel()
	in := smallWorld()
	stored := echo(in, engine.Translate(in).Output)
	at := snapshot.Ref{Cluster: enginetest.Cluster(0), Namespace: enginetest.Namespace(0), Name: enginetest.Service(0)}
	deployment, pod := at, at
	deployment.Kind, pod.Kind, pod.Name = snapshot.Deployment, snapshot.Pod, at.Name+"-1-1"
	asleep := stored.Without(deployment).Without(pod)
	destination := snapshot.Ref{Kind: snapshot.Destination, Namespace: snapshot.DefaultNamespace, Name: at.Name + "-" + at.Namespace + "-" + at.Cluster}
	require.NotNil(t, engine.Translate(asleep).Find(destination))
	require.Len(t, engine.Translate(asleep.Without(destination)).Discovered[0].Destinations, 2)
	moved := asleep.Find(destination).(*discoveryv1.Destination).DeepCopy()
	moved.Spec.Mesh.Name = "istiod-istio-system-" + enginetest.Cluster(1)
	foreign := copyOf(asleep.Find(destination))
	foreign.SetLabels(nil)
	requireAsNew(t, asleep.Without(destination), asleep, with(t, asleep, "", moved), asleep, with(t, asleep, "", foreign), asleep)
}

// TestRecordedTrustIsRead: which root a member has certificates of decides, with what its store has, what is asked of it.
func TestRecordedTrustIsRead(t *testing.T) {
	t.Parallel()
	w := newTrustWorld(t, 2, rand.New(rand.NewPCG(1, 0)))
	w.translate()
	w.rotate()
	before := shallow(w.state.Input)
	before.Roots = []*snapshot.VirtualMeshRoots{w.roots}
	for _, c := range before.Clusters {
		c.IssuedCertificates = nil
	}
	vm := before.Management.VirtualMeshes[0].DeepCopy()
	vm.Status.Trust = &networkingv1.TrustStatus{Members: []networkingv1.MemberTrust{{Mesh: vm.Spec.Meshes[0]}}}
	recorded := vm.DeepCopy()
	recorded.Status.Trust.Members[0].Root = w.roots.Roots[0].Fingerprint
	requireAsNew(t, with(t, before, "", vm), with(t, before, "", recorded))
}
