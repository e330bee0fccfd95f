package watch

import (
	"slices"
	"testing"
	"time"

	osmconfigv1alpha2 "github.com/openservicemesh/osm/pkg/apis/config/v1alpha2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/randfill"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// idempotent checks on random objects that stripping twice is stripping once,
// and that the name survives.
func idempotent[T object](t *testing.T, example T, strip func(T) bool) {
	t.Helper()
	filler := randfill.NewWithSeed(1).NilChance(0.3).NumElements(0, 3).MaxDepth(12)
	for range 50 {
		o, ok := example.DeepCopyObject().(T)
		require.True(t, ok)
		filler.Fill(o)
		name := keyOf(o)
		first := strip(o)
		once, ok := o.DeepCopyObject().(T)
		require.True(t, ok)
		require.Equal(t, first, strip(o))
		require.Equal(t, once, o)
		require.Equal(t, name, keyOf(o))
		require.Empty(t, o.GetManagedFields())
		require.Empty(t, o.GetResourceVersion())
	}
}

func TestStrippingIsIdempotent(t *testing.T) {
	t.Parallel()
	idempotent(t, &appsv1.Deployment{}, stripDeployment)
	idempotent(t, &appsv1.DaemonSet{}, stripDaemonSet)
	idempotent(t, &appsv1.StatefulSet{}, stripStatefulSet)
	idempotent(t, &appsv1.ReplicaSet{}, stripReplicaSet)
	idempotent(t, &corev1.Pod{}, stripPod)
	idempotent(t, &corev1.Service{}, stripService)
	idempotent(t, &endpointv1.EndpointSlice{}, stripEndpointSlice)
	idempotent(t, &corev1.Node{}, stripNode)
	idempotent(t, &corev1.Namespace{}, stripNamespace)
	idempotent(t, &corev1.ConfigMap{}, stripConfigMap)
	idempotent(t, &osmconfigv1alpha2.MeshConfig{}, ofMesh[*osmconfigv1alpha2.MeshConfig]())
	idempotent(t, &discoveryv1.Mesh{}, stripOwn[*discoveryv1.Mesh])
}

func TestWritingAStatusIsNoChange(t *testing.T) {
	t.Parallel()
	policy := func(state commonv1.ApprovalState) *networkingv1.TrafficPolicy {
		return &networkingv1.TrafficPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Generation: 3},
			Status:     networkingv1.TrafficPolicyStatus{State: state},
		}
	}
	changes := 0
	c := newStore(nil, unless(withoutStatuses, dropTrafficStatus), func() { changes++ })
	require.NoError(t, c.Replace([]any{policy("PENDING")}, ""))
	require.NoError(t, c.Update(policy("ACCEPTED")))
	assert.Equal(t, 1, changes)
	assert.EqualValues(t, 3, c.list()[0].Generation)

	kept := policy("ACCEPTED")
	assert.True(t, unless(withStatuses, dropTrafficStatus)(kept))
	assert.EqualValues(t, "ACCEPTED", kept.Status.State)
}

// TestVerifiedAtIsForReaders: that an agent has looked again is no change for the server,
// and tells a reader that the agent runs.
func TestVerifiedAtIsForReaders(t *testing.T) {
	t.Parallel()
	certificate := func(minute int) *certificatesv1.IssuedCertificate {
		at := metav1.Date(2026, 1, 1, 12, minute, 0, 0, time.UTC)
		return &certificatesv1.IssuedCertificate{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
			Status:     certificatesv1.IssuedCertificateStatus{Trust: &certificatesv1.TrustReport{VerifiedAt: &at}},
		}
	}
	for keep, want := range map[statuses]int{withStatuses: 2, withoutStatuses: 1} {
		changes := 0
		c := newStore(nil, unless(keep, dropVerifiedAt), func() { changes++ })
		require.NoError(t, c.Replace([]any{certificate(0)}, ""))
		require.NoError(t, c.Update(certificate(5)))
		assert.Equal(t, want, changes, "with statuses: %v", keep)
		assert.Equal(t, bool(keep), c.list()[0].Status.Trust.VerifiedAt != nil)
	}
}

// TestThatAPolicyWasInForceIsNotLost: what is read late, or was written by a
// translation that had not read it, takes nothing back.
func TestThatAPolicyWasInForceIsNotLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		uid  string // of the object that comes second
		gone bool   // the first one is deleted before
		want int64
	}{
		"the same object": {uid: "1", want: 4},
		"another object":  {uid: "2", want: 0},
		"after a gap":     {uid: "1", gone: true, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			traffic := newStore(nil, unless(withoutStatuses, dropTrafficStatus), func() {})
			access := newStore(nil, unless(withoutStatuses, dropAccessStatus), func() {})
			put := func(uid string, enforced int64) {
				head := metav1.ObjectMeta{Namespace: "default", Name: "a", UID: types.UID(uid)}
				require.NoError(t, traffic.Replace([]any{&networkingv1.TrafficPolicy{ObjectMeta: head, Status: networkingv1.TrafficPolicyStatus{LastEnforcedGeneration: enforced}}}, ""))
				require.NoError(t, access.Update(&networkingv1.AccessPolicy{ObjectMeta: head, Status: networkingv1.AccessPolicyStatus{LastEnforcedGeneration: enforced}}))
			}
			put("1", 4)
			if c.gone {
				require.NoError(t, traffic.Replace(nil, ""))
				require.NoError(t, access.Replace(nil, ""))
			}
			put(c.uid, 0)
			assert.Equal(t, c.want, traffic.list()[0].Status.LastEnforcedGeneration)
			assert.Equal(t, c.want, access.list()[0].Status.LastEnforcedGeneration)
		})
	}
}

func TestPodsKeepNoEnvironmentThatMayHoldSecrets(t *testing.T) {
	t.Parallel()
	always := corev1.ContainerRestartPolicyAlways
	o := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a",
			Annotations: map[string]string{"istio.io/rev": "default", "sidecar.istio.io/status": "{}", "vault/token": "hush"},
			OwnerReferences: []metav1.OwnerReference{
				{Kind: "Backup", Name: "other"},
				{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a-1", Controller: new(true), BlockOwnerDeletion: new(true), UID: "u"},
			},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "sa", NodeName: "node",
			InitContainers: []corev1.Container{{Name: "istio-proxy", Image: "istio/proxyv2:1", RestartPolicy: &always}},
			Containers: []corev1.Container{{
				Name: "app", Image: "app:1", Args: []string{"--password=hush"},
				Env: []corev1.EnvVar{
					{Name: "PASSWORD", Value: "hush"},
					{Name: "REVISION", Value: "1-31"},
					{Name: "PILOT_DEBOUNCE_MAX", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "hush"}}},
				},
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	}
	assert.True(t, stripPod(o))
	assert.Equal(t, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a",
			Annotations:     map[string]string{"istio.io/rev": "default"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "a-1", Controller: new(true)}},
		},
		Spec: corev1.PodSpec{
			ServiceAccountName: "sa", NodeName: "node",
			InitContainers: []corev1.Container{{Name: "istio-proxy", Image: "istio/proxyv2:1", RestartPolicy: &always}},
			Containers: []corev1.Container{{Name: "app", Image: "app:1", Env: []corev1.EnvVar{
				{Name: "REVISION", Value: "1-31"}, {Name: "PILOT_DEBOUNCE_MAX", ValueFrom: &corev1.EnvVarSource{}},
			}}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"},
	}, o)
}

func TestInjectionStatusStaysOnlyWithoutARevision(t *testing.T) {
	t.Parallel()
	o := essential(metav1.ObjectMeta{Annotations: map[string]string{"sidecar.istio.io/status": `{"revision":"canary"}`}})
	assert.Equal(t, map[string]string{"sidecar.istio.io/status": `{"revision":"canary"}`}, o.Annotations)
}

func TestTemplatesKeepWhatTellsWhetherPodsGetASidecar(t *testing.T) {
	t.Parallel()
	got := template(corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}, Annotations: map[string]string{"sidecar.istio.io/inject": "false", "other": "b"}},
		Spec:       corev1.PodSpec{HostNetwork: true, HostPID: true, ServiceAccountName: "sa"},
	})
	assert.Equal(t, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}, Annotations: map[string]string{"sidecar.istio.io/inject": "false"}},
		Spec:       corev1.PodSpec{HostNetwork: true, ServiceAccountName: "sa", Containers: []corev1.Container{}, InitContainers: []corev1.Container{}},
	}, got)
}

// TestAgesStay: of what a namespace has too many of, the newest are left out.
func TestAgesStay(t *testing.T) {
	t.Parallel()
	created := metav1.NewTime(time.Unix(1_800_000_000, 0))
	meta := metav1.ObjectMeta{Name: "a", Namespace: "default", CreationTimestamp: created}
	service, deployment := &corev1.Service{ObjectMeta: meta}, &appsv1.Deployment{ObjectMeta: meta}
	daemonSet, statefulSet := &appsv1.DaemonSet{ObjectMeta: meta}, &appsv1.StatefulSet{ObjectMeta: meta}
	stripService(service)
	stripDeployment(deployment)
	stripDaemonSet(daemonSet)
	stripStatefulSet(statefulSet)
	for _, o := range []metav1.Object{service, deployment, daemonSet, statefulSet} {
		assert.Equal(t, created, o.GetCreationTimestamp(), "%T", o)
	}
}

func TestNodesKeepTheHintOfKind(t *testing.T) {
	t.Parallel()
	o := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node", Labels: map[string]string{"topology.kubernetes.io/region": "r"}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.Now()}},
			Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}},
			Images:     []corev1.ContainerImage{{Names: []string{"etcd"}}, {Names: []string{"docker.io/kindest/kindnetd:v1"}, SizeBytes: 5}},
		},
	}
	assert.True(t, stripNode(o))
	assert.Equal(t, corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}}, o.Status)
	assert.Equal(t, "r", o.Labels["topology.kubernetes.io/region"])
}

// TestPlanesFillEveryList ties the feeds to the lists of an Input, and to the
// table from which permissions are made.
func TestPlanesFillEveryList(t *testing.T) {
	t.Parallel()
	managed := managedCache(t, snapshot.Plane{Namespace: "gloo-mesh"}, "west", func() {})
	assert.ElementsMatch(t, listed(&snapshot.Cluster{}), kindsOf(slices.DeleteFunc(feedsOf(managed), func(f feeder) bool { return !isRead(f) })))
	assert.Subset(t, kindsOf(feedsOf(managed)), mirroredKinds(snapshot.ManagedSide))
	management := managementCache(t, snapshot.Plane{Namespace: "gloo-mesh"}, withoutStatuses)
	assert.ElementsMatch(t, listed(&snapshot.Management{}), kindsOf(management.feeds))
	assert.ElementsMatch(t, managementKinds(), kindsOf(management.feeds))
	for _, k := range kindsOf(feedsOf(managed)) {
		assert.NotZero(t, k.Info().Access&(snapshot.Watch|snapshot.Write), "%s may not be read", k)
	}
}

func listed(lists snapshot.ObjectLists) []snapshot.Kind {
	var kinds []snapshot.Kind
	for k := range lists.Lists {
		kinds = append(kinds, k)
	}
	return kinds
}

func kindsOf(feeds []feeder) []snapshot.Kind {
	var kinds []snapshot.Kind
	for _, f := range feeds {
		if !slices.Contains(kinds, f.kind()) {
			kinds = append(kinds, f.kind())
		}
	}
	return kinds
}
