package explain_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const cases = "../../testdata/translate"

// load reads a case of the translation; cmd/describe has the golden answers to it.
func load(t *testing.T, name string) *snapshot.Input {
	t.Helper()
	input, _, err := offline.Load(offline.Dir(filepath.Join(cases, name, "in")))
	require.NoError(t, err)
	return input
}

// eachCase runs a test on each case of the translation, in parallel.
func eachCase(t *testing.T, run func(t *testing.T, name string)) {
	t.Helper()
	entries, err := os.ReadDir(cases)
	require.NoError(t, err)
	for _, entry := range entries {
		t.Run(entry.Name(), func(t *testing.T) {
			t.Parallel()
			run(t, entry.Name())
		})
	}
}

// TestEveryObject describes every object of every case: rows fit their headers,
// descriptions marshal and repeat, and lists are complete.
func TestEveryObject(t *testing.T) {
	t.Parallel()
	eachCase(t, func(t *testing.T, name string) {
		t.Helper()
		state := engine.Translate(load(t, name))
		index, again := explain.New(state), explain.New(state)
		asked := 0
		for _, kind := range explain.Kinds() {
			var listed []snapshot.Ref
			access := map[snapshot.Ref]explain.AccessMode{}
			for _, row := range index.List(kind).Rows {
				listed = append(listed, row.Ref)
				if d, ok := row.Item.(*explain.DestinationItem); ok {
					access[row.Ref] = d.Access
				}
				assert.Len(t, row.Cells, len(index.List(kind).Columns), row.Key)
				data, err := json.Marshal(row.Item)
				require.NoError(t, err)
				assert.Contains(t, string(data), `"issues":[`, row.Key)
			}
			assert.ElementsMatch(t, index.Refs(kind), listed)
			for _, ref := range index.Refs(kind) {
				value := index.Describe(ref)
				require.NotNil(t, value, ref)
				if d, ok := value.(*explain.Destination); ok {
					others := len(d.Access.ByHand) + len(d.Access.SharedWith) + len(d.Access.Denied) + len(d.Access.DeniedBeside)
					assert.Equal(t, d.Access.Default == explain.Allow && others == 0, access[ref] == explain.AccessOpen, "%s in the list and by itself", ref)
				}
				asked++
				fits(t, ref, value.Page())
				one, err := json.Marshal(value)
				require.NoError(t, err)
				two, err := json.Marshal(again.Describe(ref))
				require.NoError(t, err)
				assert.JSONEq(t, string(one), string(two))
				stored, err := index.YAML(ref)
				require.NoError(t, err)
				if kind != snapshot.KubernetesCluster { // a folder registers no clusters
					assert.Contains(t, string(stored), "\nkind: "+kind.String()+"\n", ref)
				}
				name := ref.Name
				if kind.Info().Access&snapshot.InClusters != 0 {
					name = ref.Identity()
				}
				assert.Equal(t, []snapshot.Ref{ref}, index.Find(kind, name))
			}
		}
		assert.NotZero(t, asked)
	})
}

// fits checks that the rows of a page have as many cells as columns, and that each section says
// something.
func fits(t *testing.T, about snapshot.Ref, page explain.Page) {
	t.Helper()
	for _, s := range page.Sections {
		assert.True(t, len(s.Rows) > 0 || s.Text != "", "%s: section %q says nothing", about, s.Title)
		if s.Refs != nil {
			assert.Len(t, s.Refs, len(s.Rows), "%s: section %q", about, s.Title)
		}
		for _, row := range s.Rows {
			want := 2
			if s.Header != nil {
				want = len(s.Header)
			}
			assert.Len(t, row, want, "%s: section %q", about, s.Title)
		}
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	index := explain.New(engine.Translate(load(t, "bookinfo")))
	named := func(kind snapshot.Kind, name string) []string {
		var names []string
		for _, ref := range index.Find(kind, name) {
			names = append(names, ref.Name)
		}
		return names
	}
	both := []string{"reviews-bookinfo-cluster-1", "reviews-bookinfo-cluster-2"}
	assert.Equal(t, both, named(snapshot.Destination, "reviews"))
	assert.Equal(t, both, named(snapshot.Destination, "reviews.bookinfo"))
	assert.Equal(t, both[:1], named(snapshot.Destination, "reviews.bookinfo.cluster-1"))
	assert.Equal(t, both[:1], named(snapshot.Destination, "gloo-mesh/reviews-bookinfo-cluster-1"))
	assert.Empty(t, named(snapshot.Destination, "review"), "a name is not a beginning")
	assert.Len(t, named(snapshot.Workload, "reviews-v2"), 2)
	assert.Nil(t, index.Describe(snapshot.Ref{Kind: snapshot.Mesh, Name: "none"}))
	assert.Nil(t, index.Describe(snapshot.Ref{Kind: snapshot.Pod, Name: "none"}))
}

func describe[T explain.Description](t *testing.T, index *explain.Index, kind snapshot.Kind, name string) T {
	t.Helper()
	value, ok := index.Describe(snapshot.Ref{Kind: kind, Namespace: "gloo-mesh", Name: name}).(T)
	require.True(t, ok, name)
	return value
}

func TestWhoMayCall(t *testing.T) {
	t.Parallel()
	input := load(t, "bookinfo")
	index := explain.New(engine.Translate(input))

	reviews := describe[*explain.Destination](t, index, snapshot.Destination, "reviews-bookinfo-cluster-1")
	assert.Equal(t, explain.Deny, reviews.Access.Default)
	require.Len(t, reviews.Access.Callers, 1)
	assert.Equal(t, "productpage-v1-bookinfo-cluster-1-deployment", reviews.Access.Callers[0].Name)

	// Both sides give the same answer for every pair of a workload and a destination.
	for _, ref := range index.Refs(snapshot.Workload) {
		for _, call := range describe[*explain.Workload](t, index, snapshot.Workload, ref.Name).Calls {
			d := describe[*explain.Destination](t, index, snapshot.Destination, call.Destination.Name)
			want := d.Access.Default == explain.Allow || slices.Contains(d.Access.Callers, ref)
			assert.Equal(t, want, call.Allowed, "%s calls %s", ref, call.Destination)
		}
	}
}

// TestOpenByDefault: without a global access policy, services that no policy
// selects are open to all that reach them.
func TestOpenByDefault(t *testing.T) {
	t.Parallel()
	input := load(t, "bookinfo")
	input.Management.VirtualMeshes[0].Spec.GlobalAccessPolicy = ""
	index := explain.New(engine.Translate(input))
	productpage := describe[*explain.Destination](t, index, snapshot.Destination, "productpage-bookinfo-cluster-1")
	assert.Equal(t, explain.Allow, productpage.Access.Default)
	ratings := describe[*explain.Destination](t, index, snapshot.Destination, "ratings-bookinfo-cluster-1")
	assert.Equal(t, explain.Deny, ratings.Access.Default, "a policy that allows some callers denies all others")
}

// TestSharesAddUp: what the route table shows is all of the traffic.
func TestSharesAddUp(t *testing.T) {
	t.Parallel()
	input := load(t, "bookinfo")
	shift := input.Management.TrafficPolicies[1].Spec.Policy.TrafficShift
	require.NotNil(t, shift)
	for i, weight := range []uint32{2, 1, 1} {
		shift.Destinations[i].Weight = weight
	}
	index := explain.New(engine.Translate(input))
	reviews := describe[*explain.Destination](t, index, snapshot.Destination, "reviews-bookinfo-cluster-1")
	shifted := 0
	for _, view := range reviews.Views {
		for _, route := range view.Routes {
			if len(route.Targets) == 0 {
				continue
			}
			shifted++
			var sum float64
			for _, target := range route.Targets {
				sum += target.Share
				assert.NotEmpty(t, target.Cluster)
			}
			assert.InDelta(t, 100, sum, 0.001)
			assert.InDelta(t, 50, route.Targets[0].Share, 0.001)
		}
	}
	assert.Equal(t, 2, shifted, "from its own mesh and from the other one")
}

// stored is the Input of a reader that has access to the management plane only.
func stored(live *snapshot.State) *snapshot.Input {
	management := *live.Input.Management
	management.Meshes, management.Workloads, management.Destinations = nil, nil, nil
	out := &snapshot.Input{Management: &management}
	for _, found := range live.Discovered {
		management.Meshes = append(management.Meshes, found.Meshes...)
		management.Workloads = append(management.Workloads, found.Workloads...)
		management.Destinations = append(management.Destinations, found.Destinations...)
	}
	for _, c := range live.Input.Clusters {
		out.Clusters = append(out.Clusters, &snapshot.Cluster{Name: c.Name, Domain: c.Domain, Reason: "not read"})
	}
	return out
}

// TestStoredSaysTheSame: the management plane alone gives the answers that the
// clusters give, but for the states that only a server can write.
func TestStoredSaysTheSame(t *testing.T) {
	t.Parallel()
	live := engine.Translate(load(t, "bookinfo"))
	index, again := explain.New(live), explain.NewStored(engine.Translate(stored(live)))
	for _, kind := range []snapshot.Kind{snapshot.Mesh, snapshot.Workload, snapshot.Destination} {
		require.NotEmpty(t, index.Refs(kind))
		require.Equal(t, index.Refs(kind), again.Refs(kind))
		for _, ref := range index.Refs(kind) {
			assert.Equal(t, index.Describe(ref).Page(), again.Describe(ref).Page())
		}
	}
	assert.Equal(t, commonv1.ApprovalStatePending, describe[*explain.VirtualMesh](t, again, snapshot.VirtualMesh, "virtual-mesh").State)
}

// TestAnswersNameWhatWasNotRead: what users wrote in clusters decides, too.
func TestAnswersNameWhatWasNotRead(t *testing.T) {
	t.Parallel()
	live := engine.Translate(load(t, "bookinfo"))
	from, to := theOnly(t, explain.New(live), snapshot.Workload, "productpage-v1"), theOnly(t, explain.New(live), snapshot.Destination, "reviews.bookinfo.cluster-1")
	assert.Empty(t, explain.New(live).Why(from, to, explain.Request{}).NotRead)

	why := explain.NewStored(engine.Translate(stored(live))).Why(from, to, explain.Request{})
	assert.Equal(t, "cluster-1, cluster-2 were not read: not read", why.NotRead)
	assert.Equal(t, []string{"Answer", "ALLOWED, as far as was read"}, why.Page().Sections[0].Rows[0])

	in := load(t, "bookinfo")
	for _, c := range in.Clusters {
		c.Denied = []snapshot.Kind{snapshot.Node, snapshot.PeerAuthentication}
	}
	why = explain.New(engine.Translate(in)).Why(from, to, explain.Request{})
	assert.Contains(t, why.NotRead, "PeerAuthentication of cluster-1, PeerAuthentication of cluster-2, which meshctl may not read")

	// The agent of one of them is old.
	in.Clusters[1].Unsent = []snapshot.Kind{snapshot.PeerAuthentication}
	why = explain.New(engine.Translate(in)).Why(from, to, explain.Request{})
	assert.Contains(t, why.NotRead, "PeerAuthentication of cluster-1, which meshctl may not read, and which may decide otherwise: register the cluster again; "+
		"PeerAuthentication of cluster-2, which the agent is too old to send")
}

// theOnly is the only object of that name.
func theOnly(t *testing.T, x *explain.Index, kind snapshot.Kind, name string) snapshot.Ref {
	t.Helper()
	found := x.Find(kind, name)
	require.Len(t, found, 1)
	return found[0]
}

// TestStoredFailures: frozen clusters and rejected writes are read from statuses.
func TestStoredFailures(t *testing.T) {
	t.Parallel()
	input := stored(engine.Translate(load(t, "frozen")))
	vm := input.Management.VirtualMeshes[0]
	vm.Status.State, vm.Status.Errors = commonv1.ApprovalStateFailed, []string{"write error: denied"}
	registration := input.Management.KubernetesClusters[0]
	registration.Status.Status = []multiclusterv1alpha1.ClusterStatus{{State: multiclusterv1alpha1.ClusterStateFailed, Message: "no answer"}}
	index := explain.NewStored(engine.Translate(input))

	yaml, err := index.YAML(snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: "gloo-mesh", Name: registration.Name})
	require.NoError(t, err)
	assert.Contains(t, string(yaml), "kind: KubernetesCluster\n")

	first := describe[*explain.Mesh](t, index, snapshot.Mesh, "istiod-istio-system-cluster-1")
	assert.Empty(t, first.Frozen)
	third := describe[*explain.Mesh](t, index, snapshot.Mesh, "istiod-istio-system-cluster-3")
	assert.Equal(t, "no answer", third.Frozen)

	virtual := describe[*explain.VirtualMesh](t, index, snapshot.VirtualMesh, "virtual-mesh")
	assert.Equal(t, commonv1.ApprovalStateFailed, virtual.State)
	require.NotEmpty(t, virtual.Issues)
	assert.Equal(t, snapshot.WriteFailed, virtual.Issues[0].Code)
	assert.Contains(t, virtual.Issues[0].Message, "denied")
}

// TestBrokenObjects: an object that cannot be processed is an issue, and its
// cluster's status names it for who reads the management plane only.
func TestBrokenObjects(t *testing.T) {
	t.Parallel()
	input := load(t, "bookinfo")
	registration := &multiclusterv1alpha1.KubernetesCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "gloo-mesh", Name: "cluster-1"}}
	input.Management.KubernetesClusters = []*multiclusterv1alpha1.KubernetesCluster{registration}
	policy := snapshot.RefOf(snapshot.TrafficPolicy, input.Management.TrafficPolicies[0])
	for _, ref := range []snapshot.Ref{{Kind: snapshot.ServiceEntry, Cluster: "cluster-1", Namespace: "default", Name: "odd"}, policy} {
		input.Failures = append(input.Failures, snapshot.Failure{Ref: ref, Reason: snapshot.Reason{Code: snapshot.ObjectUnreadable, What: "it is odd"}, Parents: []snapshot.Ref{ref}})
	}
	live := engine.Translate(input)
	var found []snapshot.Ref
	for _, issue := range explain.New(live).Issues() {
		if issue.Code == snapshot.ObjectUnreadable {
			found = append(found, issue.Ref)
		}
	}
	assert.ElementsMatch(t, []snapshot.Ref{input.Failures[0].Ref, policy}, found)

	checked := 0
	for s := range live.Output.Statuses.All() {
		switch status := s.Value.(type) {
		case *multiclusterv1alpha1.KubernetesClusterStatus:
			assert.Equal(t, multiclusterv1alpha1.ClusterStateAccepted, status.Status[0].State)
			assert.Equal(t, "ServiceEntry cluster-1/default/odd: it is odd", status.Status[0].Message)
			registration.Status = *status
			checked++
		case *networkingv1.TrafficPolicyStatus:
			if s.Ref == policy {
				assert.Equal(t, commonv1.ApprovalStateFailed, status.State)
				assert.Contains(t, status.Errors[0], "read error: TrafficPolicy ")
				checked++
			}
		}
	}
	require.Equal(t, 2, checked)
	assert.Contains(t, explain.NewStored(engine.Translate(stored(live))).Issues(), snapshot.Issue{
		Code: snapshot.ObjectUnreadable, Severity: snapshot.Error, Ref: snapshot.RefOf(snapshot.KubernetesCluster, registration),
		Message: "ServiceEntry cluster-1/default/odd: it is odd", Hint: "report this defect of meshctl with the log of `meshctl serve`, or undo the last edit of the object",
	})
}
