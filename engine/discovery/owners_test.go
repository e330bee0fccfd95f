package discovery_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestPodsOfAnyOwner: pods with a sidecar are of the mesh, whatever owns them.
func TestPodsOfAnyOwner(t *testing.T) {
	t.Parallel()
	rs := func(b clustertest.Builder, name string, owner []metav1.OwnerReference) {
		b.ReplicaSets = append(b.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", OwnerReferences: owner}})
	}
	for name, tt := range map[string]struct {
		owner []metav1.OwnerReference
		with  func(clustertest.Builder, *corev1.Pod)
		// want is the name of the Workload, and kind its controller's, if that is told; none if there is no Workload.
		want, kind string
	}{
		"a Rollout of Argo": {
			owner: clustertest.Owner("apps/v1", "ReplicaSet", "pay-6f7"),
			with: func(b clustertest.Builder, _ *corev1.Pod) {
				rs(b, "pay-6f7", clustertest.Owner("argoproj.io/v1alpha1", "Rollout", "pay"))
			},
			want: "pay-ns-cluster-1-rollout", kind: "Rollout",
		},
		"a ReplicaSet that nothing owns": {
			owner: clustertest.Owner("apps/v1", "ReplicaSet", "pay"),
			with:  func(b clustertest.Builder, _ *corev1.Pod) { rs(b, "pay", nil) },
			want:  "pay-ns-cluster-1-replicaset", kind: "ReplicaSet",
		},
		"a ReplicaSet that was not read":    {owner: clustertest.Owner("apps/v1", "ReplicaSet", "pay")},
		"a StatefulSet that was not read":   {owner: clustertest.Owner("apps/v1", "StatefulSet", "pay")},
		"a StatefulSet of others":           {owner: clustertest.Owner("apps.kruise.io/v1beta1", "StatefulSet", "pay"), want: "pay-ns-cluster-1-statefulset", kind: "StatefulSet"},
		"what an operator defines":          {owner: clustertest.Owner("postgresql.cnpg.io/v1", "Cluster", "pay"), want: "pay-ns-cluster-1-cluster", kind: "Cluster"},
		"nothing":                           {want: "pay-1-ns-cluster-1-pod", kind: "Pod"},
		"a Job":                             {owner: clustertest.Owner("batch/v1", "Job", "pay"), want: "pay-ns-cluster-1-job", kind: "Job"},
		"a Job of a CronJob":                {owner: clustertest.Owner("batch/v1", "Job", "pay-29876543"), want: "pay-ns-cluster-1-cronjob", kind: "CronJob"},
		"its node, as that of a static pod": {owner: clustertest.Owner("v1", "Node", "node-1")},
		"a Job that has ended": {
			owner: clustertest.Owner("batch/v1", "Job", "pay"),
			with:  func(_ clustertest.Builder, p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		},
		"an operator, and it has no sidecar": {
			owner: clustertest.Owner("postgresql.cnpg.io/v1", "Cluster", "pay"),
			with:  func(_ clustertest.Builder, p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clustertest.New("cluster-1")
			b.Istiod("default")
			made := b.Deployment("ns", "made", map[string]string{"app": "pay", "pod": "1"})
			for _, n := range []string{"1", "2"} {
				pod := b.Pod(made, "pay-"+n, "node-1")
				pod.OwnerReferences = tt.owner
				pod.Labels = map[string]string{"app": "pay", "pod": n}
				if n == "2" && tt.owner == nil {
					pod.Status.Phase = corev1.PodFailed
				}
				if tt.with != nil {
					tt.with(b, pod)
				}
			}
			b.Service("ns", "pay", map[string]string{"app": "pay"})
			b.Deployments, b.ReplicaSets = b.Deployments[:1], b.ReplicaSets[1:]
			got := discovery.Discover(b.Cluster, options())
			if tt.want == "" {
				assert.Empty(t, got.Workloads)
				assert.Empty(t, got.Destinations)
				return
			}
			if assert.Len(t, got.Workloads, 1) {
				assert.Equal(t, tt.want, got.Workloads[0].Name)
				assert.Equal(t, tt.kind, got.Workloads[0].Spec.Kubernetes.ControllerKind)
				assert.Equal(t, "pay", got.Workloads[0].Spec.Kubernetes.PodLabels["app"])
			}
			assert.Len(t, got.Destinations, 1, "the Service is of the mesh")
			assert.Empty(t, got.Issues)
		})
	}
}

// TestServicesSelectPods, and not templates: labels that an operator or a StatefulSet gives its pods are on no template.
func TestServicesSelectPods(t *testing.T) {
	t.Parallel()
	b := clustertest.New("cluster-1")
	b.Istiod("default")
	d := b.Deployment("ns", "db", map[string]string{"app": "db"})
	for _, n := range []string{"db-0", "db-1", "db-2"} {
		b.Pod(d, n, "node-1").Labels = map[string]string{"app": "db", "pod": n, "role": map[bool]string{true: "primary", false: "replica"}[n == "db-1"]}
	}
	b.Service("ns", "all", map[string]string{"app": "db"})
	b.Service("ns", "primary", map[string]string{"app": "db", "role": "primary"})
	b.Service("ns", "none", map[string]string{"app": "db", "role": "witness"})
	b.Service("elsewhere", "other", map[string]string{"pod": "db-0"})
	got := discovery.Discover(b.Cluster, options())
	var names []string
	for _, d := range got.Destinations {
		names = append(names, d.Name)
	}
	assert.Equal(t, []string{"all-ns-cluster-1", "primary-ns-cluster-1"}, names)
	if assert.Len(t, got.Workloads, 1) {
		k := got.Workloads[0].Spec.Kubernetes
		assert.Equal(t, map[string]string{"app": "db"}, k.PodLabels)
		assert.Equal(t, []map[string]string{{"app": "db", "role": "primary"}, {"app": "db", "role": "replica"}}, k.OtherPodLabels,
			"nothing selects by the label pod in this namespace")
	}
}

// TestForgedOwners: an API server takes any text as the owner of a pod, from whoever may create pods. It names no Workload that
// no object could have, and takes the name of no other one.
func TestForgedOwners(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string][]metav1.OwnerReference{
		"a name of many lines": clustertest.Owner("example.com/v1", "Database", "pay\nand more"),
		"a long name":          clustertest.Owner("example.com/v1", "Database", strings.Repeat("n", 254)),
		"no name":              clustertest.Owner("example.com/v1", "Database", ""),
		"a kind with a blank":  clustertest.Owner("example.com/v1", "Data base", "pay"),
		"a long kind":          clustertest.Owner("example.com/v1", strings.Repeat("K", 64), "pay"),
	} {
		b := clustertest.New("cluster-1")
		b.Istiod("default")
		d := b.Deployment("ns", "made", map[string]string{"app": "pay"})
		b.Pod(d, "pay-1", "node-1").OwnerReferences = owner
		got := discovery.Discover(b.Cluster, options())
		if assert.Len(t, got.Workloads, 1, name) {
			assert.Equal(t, "pay-1-ns-cluster-1-pod", got.Workloads[0].Name, name)
			assert.Equal(t, "Pod", got.Workloads[0].Spec.Kubernetes.ControllerKind, name)
		}
	}

	b := clustertest.New("cluster-1")
	b.Istiod("default")
	d := b.Deployment("ns", "pay", map[string]string{"app": "pay"})
	b.Pod(d, "b-real", "node-1")
	b.Pod(d, "a-forged", "node-1").OwnerReferences = clustertest.Owner("example.com/v1", "Deployment", "pay")
	stored := &snapshot.Management{Namespace: "gloo-mesh"}
	for range 2 {
		found := discovery.Distinct([]*snapshot.Discovered{discovery.Discover(b.Cluster, options())}, (&discovery.StoredNames{}).Update(stored))
		stored.Workloads = found[0].Workloads
		kinds := map[string]string{}
		for _, w := range found[0].Workloads {
			kinds[w.Name] = w.Spec.Kubernetes.ControllerKind
		}
		if assert.Len(t, kinds, 2) {
			assert.Contains(t, kinds, "pay-ns-cluster-1-deployment")
			assert.Empty(t, kinds["pay-ns-cluster-1-deployment"], "the Deployment has the name")
		}
	}
}

// TestLabelsOfRevisions are not those of the owner of pods: after the next rollout, or with the next pod, they are others.
func TestLabelsOfRevisions(t *testing.T) {
	t.Parallel()
	rollout := clustertest.Owner("argoproj.io/v1alpha1", "Rollout", "pay")
	for name, c := range map[string]struct {
		owner, replicaSet []metav1.OwnerReference
		labels            map[string]string
		want              map[string]string
	}{
		"a Rollout": {
			clustertest.Owner("apps/v1", "ReplicaSet", "pay-6f7"), rollout,
			map[string]string{"rollouts-pod-template-hash": "6f7", "example.com/colour": "6f7", "version": "v1"}, map[string]string{"version": "v1"},
		},
		"a ReplicaSet of its own": {
			clustertest.Owner("apps/v1", "ReplicaSet", "pay-v1"), nil,
			map[string]string{"version": "v1"}, map[string]string{"version": "v1"},
		},
		"a StatefulSet of others": {
			clustertest.Owner("apps.kruise.io/v1beta1", "StatefulSet", "pay"), nil,
			map[string]string{"controller-revision-hash": "pay-5d8", "statefulset.kubernetes.io/pod-name": "pay-1", "apps.kubernetes.io/pod-index": "1"}, map[string]string{},
		},
		"an operator": {
			clustertest.Owner("postgresql.cnpg.io/v1", "Cluster", "pay"), nil,
			map[string]string{"cnpg.io/instanceName": "pay-1", "cnpg.io/cluster": "pay", "example.com/spec-hash": "9"}, map[string]string{"cnpg.io/cluster": "pay"},
		},
		"a Job of a CronJob": {
			clustertest.Owner("batch/v1", "Job", "pay-29876543"), nil,
			map[string]string{"job-name": "pay-29876543", "batch.kubernetes.io/job-name": "pay-29876543", "controller-uid": "u"}, map[string]string{},
		},
		"nothing": {nil, nil, map[string]string{"name": "pay-1"}, map[string]string{"name": "pay-1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := clustertest.New("cluster-1")
			b.Istiod("default")
			pod := b.Pod(b.Deployment("ns", "made", map[string]string{"app": "pay"}), "pay-1", "node-1")
			pod.OwnerReferences, pod.Labels = c.owner, map[string]string{"app": "pay"}
			maps.Copy(pod.Labels, c.labels)
			c.want["app"] = "pay"
			b.Deployments, b.ReplicaSets = b.Deployments[:1], nil
			if len(c.owner) > 0 && c.owner[0].Kind == "ReplicaSet" {
				b.ReplicaSets = append(b.ReplicaSets, &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: c.owner[0].Name, Namespace: "ns", OwnerReferences: c.replicaSet}})
			}
			b.Service("ns", "canary", map[string]string{"app": "pay", "rollouts-pod-template-hash": "6f7"})
			got := discovery.Discover(b.Cluster, options())
			require.Len(t, got.Workloads, 1)
			assert.Equal(t, c.want, got.Workloads[0].Spec.Kubernetes.PodLabels)
			// What a controller has its Service select is known all the same.
			assert.Len(t, got.Destinations, map[bool]int{true: 1}[c.labels["rollouts-pod-template-hash"] != ""])
		})
	}
}
