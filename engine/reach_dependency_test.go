package engine_test

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// localDependency is a ServiceDependency of the namespace.
func localDependency(name string, sources []commonv1.WorkloadSelector, destinations []commonv1.DestinationSelector) *enterprisev1beta1.ServiceDependency {
	return &enterprisev1beta1.ServiceDependency{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: reachNamespace, Generation: 1},
		Spec:       enterprisev1beta1.ServiceDependencySpec{SourceSelectors: sources, DestinationSelectors: destinations},
	}
}

// inside are the Sidecars of the namespace of the policies, as bytes.
func inside(t *testing.T, out *snapshot.Output) map[string]string {
	t.Helper()
	objects := map[string]string{}
	for o := range out.Objects {
		if o.Ref.Cluster == reachCluster && o.Ref.Namespace == reachNamespace && o.Ref.Kind.String() == "Sidecar" {
			text, err := json.Marshal(o.Content)
			require.NoError(t, err)
			objects[o.Ref.Name] = string(text)
		}
	}
	return objects
}

func dependencyOf(t *testing.T, state *snapshot.State, cluster, name string) *snapshot.DependencyPlan {
	t.Helper()
	at := slices.IndexFunc(state.Plan.Dependencies, func(p *snapshot.DependencyPlan) bool { return p.Ref.Cluster == cluster && p.Ref.Name == name })
	require.GreaterOrEqual(t, at, 0, "the dependency is planned")
	return state.Plan.Dependencies[at]
}

func issuesOfDependency(p *snapshot.DependencyPlan) string {
	all := slices.Clone(p.Issues)
	for _, v := range p.Verdicts {
		all = append(all, v.Issues...)
	}
	var b strings.Builder
	for _, issue := range all {
		fmt.Fprintf(&b, "%s %s: %s\n", issue.Severity, issue.Code, issue.Message)
	}
	return b.String()
}

// TestDependenciesOfClustersStayInTheirNamespace: whatever a user says that workloads call, no object outside of the namespace is another
// one, in each mode of federation.
func TestDependenciesOfClustersStayInTheirNamespace(t *testing.T) {
	t.Parallel()
	far := commonv1.ClusterObjectRef{Name: enginetest.Service(101), Namespace: "team-001", ClusterName: reachCluster}
	twin := commonv1.ClusterObjectRef{Name: enginetest.Service(1), Namespace: reachNamespace, ClusterName: "cluster-02"}
	for _, way := range []struct {
		name         string
		sources      []commonv1.WorkloadSelector
		destinations []commonv1.DestinationSelector
		// says is whether something was left out, and limits whether proxies of the namespace are limited.
		says, limits bool
	}{
		{"everything", nil, nil, false, true},
		{"all callers of one service", nil, servicesNamed(far), false, true},
		{"all callers of a service of another cluster", nil, servicesNamed(twin), false, true},
		{"an empty selector", []commonv1.WorkloadSelector{{}}, servicesNamed(far), false, true},
		{"callers with any labels", callersIn(nil, nil), servicesNamed(far), false, true},
		{"callers of another namespace", callersIn(nil, []string{"team-001"}), servicesNamed(far), true, false},
		{"callers of its own namespace and another", callersIn(nil, []string{reachNamespace, "team-001"}), servicesNamed(far), true, true},
		{"callers of another cluster", callersIn([]string{"cluster-02"}, nil), servicesNamed(far), true, false},
		{"callers of two clusters", callersIn([]string{reachCluster, "cluster-02"}, nil), servicesNamed(far), true, true},
		{"callers of the control plane", callersIn(nil, []string{"istio-system"}), servicesNamed(far), true, false},
		{"gateways", callersIn(nil, []string{"istio-system", "istio-ingress"}), nil, true, false},
		{"a service that is not there", nil, servicesNamed(commonv1.ClusterObjectRef{Name: "none", Namespace: "none", ClusterName: "none"}), false, false},
		{"all services", nil, destinationsIn(nil, nil), false, true},
		{"its own services", nil, destinationsIn([]string{reachCluster}, []string{reachNamespace}), false, true},
	} {
		for _, mode := range []networkingv1.FederationMode{networkingv1.FederationModeAll, networkingv1.FederationModeDeclared} {
			t.Run(way.name+"/"+string(mode), func(t *testing.T) {
				t.Parallel()
				world := func() *snapshot.Input {
					in := reachWorld()
					for _, vm := range in.Management.VirtualMeshes {
						vm.Spec.Federation.Mode = mode
					}
					return in
				}
				before := engine.Translate(world())
				after := engine.Translate(withLocal(t, world(), localDependency("way-out", way.sources, way.destinations)))
				was, is := outside(t, before.Output), outside(t, after.Output)
				require.NotEmpty(t, was)
				for ref, text := range was {
					assert.Equal(t, text, is[ref], ref)
				}
				assert.Len(t, is, len(was))
				assert.Empty(t, inside(t, before.Output))
				p := dependencyOf(t, after, reachCluster, "way-out")
				assert.Equal(t, way.limits, len(inside(t, after.Output)) > 0, issuesOfDependency(p))
				assert.Equal(t, way.says, strings.Contains(issuesOfDependency(p), string(snapshot.OutsideNamespace)), issuesOfDependency(p))
				for _, v := range p.Verdicts {
					assert.Contains(t, v.Destination.Name, "-"+reachNamespace+"-"+reachCluster)
				}
			})
		}
	}
}

// TestDependenciesOfTheManagementClusterWin: where it says what workloads call, users of the cluster add nothing, and are told which
// object says so; on other workloads of the namespace, they do.
func TestDependenciesOfTheManagementClusterWin(t *testing.T) {
	t.Parallel()
	own := func(n int) []commonv1.DestinationSelector {
		return servicesNamed(commonv1.ClusterObjectRef{Name: enginetest.Service(n), Namespace: reachNamespace, ClusterName: reachCluster})
	}
	in := reachWorld()
	free := engine.Translate(withLocal(t, in, localDependency("mine", nil, own(2))))
	all := dependencyOf(t, free, reachCluster, "mine").Verdicts
	require.Greater(t, len(all), 1)
	k := workloadOf(t, free, all[0].Destination)
	hub := localDependency("theirs", []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{
		Namespaces: []string{reachNamespace}, Clusters: []string{reachCluster}, Labels: k,
	}}}, own(1))
	hub.Namespace = snapshot.DefaultNamespace
	with, err := in.With("", hub)
	require.NoError(t, err)
	alone := inside(t, engine.Translate(with).Output)
	require.NotEmpty(t, alone)
	both := engine.Translate(withLocal(t, with, localDependency("mine", nil, own(2))))
	for name, text := range alone {
		assert.Equal(t, text, inside(t, both.Output)[name], "what the management cluster says stays as it is")
	}
	assert.Greater(t, len(inside(t, both.Output)), len(alone), "the others are limited")
	accepted, rejected := 0, 0
	for _, v := range dependencyOf(t, both, reachCluster, "mine").Verdicts {
		if v.Accepted {
			accepted++
			continue
		}
		rejected++
		at := slices.IndexFunc(v.Issues, func(i snapshot.Issue) bool { return i.Code == snapshot.FieldConflict })
		require.GreaterOrEqual(t, at, 0, v.Issues)
		assert.Equal(t, snapshot.Ref{Kind: snapshot.ServiceDependency, Namespace: snapshot.DefaultNamespace, Name: "theirs"}, v.Issues[at].Cause)
	}
	assert.Positive(t, accepted)
	assert.Positive(t, rejected)
	for _, v := range dependencyOf(t, both, "", "theirs").Verdicts {
		assert.True(t, v.Accepted, v.Issues)
	}
}

// workloadOf are the labels of the pods of a workload.
func workloadOf(t *testing.T, state *snapshot.State, ref snapshot.Ref) map[string]string {
	t.Helper()
	at := slices.IndexFunc(state.Plan.Workloads, func(w *discoveryv1.Workload) bool { return w.Name == ref.Name })
	require.GreaterOrEqual(t, at, 0)
	return state.Plan.Workloads[at].Spec.Kubernetes.PodLabels
}

// TestDependenciesOfClustersAreRemembered: what a Translator remembers of them changes nothing.
func TestDependenciesOfClustersAreRemembered(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewSource(int64(waittest.Seed(t))))
	in, translator := reachWorld(), engine.New(engine.Options{})
	for range 15 {
		name, cluster := fmt.Sprintf("d-%d", random.Intn(3)), reachCluster
		sources := callersIn(nil, [][]string{nil, {reachNamespace}, {"team-001"}, {reachNamespace, "team-001"}}[random.Intn(4)])
		if random.Intn(2) == 0 {
			sources[0].KubeWorkloadMatcher.Labels = map[string]string{"app": enginetest.Service(random.Intn(3))}
		}
		d := localDependency(name, sources, servicesNamed(commonv1.ClusterObjectRef{Name: enginetest.Service(random.Intn(3)), Namespace: reachNamespace, ClusterName: reachCluster}))
		if random.Intn(2) == 0 {
			cluster, d.Namespace = "", snapshot.DefaultNamespace
		}
		if random.Intn(4) == 0 {
			in = in.Without(snapshot.Ref{Kind: snapshot.ServiceDependency, Cluster: cluster, Namespace: d.Namespace, Name: name})
		} else {
			var err error
			in, err = in.With(cluster, d)
			require.NoError(t, err)
		}
		requireSameState(t, engine.Translate(in), translator.Translate(in), "what is remembered")
	}
}
