package registration_test

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	ageorder "github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const ownNamespace = cluster.DefaultNamespace

// home is a management cluster with a registered cluster, two policies in conflict, and the last good spec of one of them.
type home struct {
	*testing.T
	config *rest.Config
	client dynamic.Interface
}

func newHome(t *testing.T, config, remote *rest.Config) *home {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	h := &home{t, config, client}
	_, err = registration.Register(t.Context(), registration.Options{Name: "east", RemoteConfig: remote, MgmtConfig: config})
	require.NoError(t, err)
	sandboxtest.MakeNamespace(t, config, "team")
	const policy = "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nmetadata: {namespace: team, name: NAME}\nspec: {policy: {requestTimeout: TIMEs}}\n"
	h.apply(strings.NewReplacer("NAME", "zeta", "TIME", "3").Replace(policy))
	waittest.Until(t, "a second later, a younger policy is created whose name comes first", func() bool {
		h.apply(strings.NewReplacer("NAME", "alpha", "TIME", "5").Replace(policy))
		if older(h.policy("zeta"), h.policy("alpha")) {
			return true
		}
		require.NoError(t, h.policies().Delete(t.Context(), "alpha", metav1.DeleteOptions{}))
		return false
	})
	h.apply(strings.NewReplacer("NAME", "zeta", "TIME", "4").Replace(policy))
	h.apply(`
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Destination
metadata: {namespace: gloo-mesh, name: reviews, labels: {cluster.discovery.mesh.gloo.solo.io: east}}
spec: {kubeService: {ref: {name: reviews, namespace: team, clusterName: east}}}
`)
	h.status(snapshot.Destination, ownNamespace, "reviews", map[string]any{"observedGeneration": int64(1), "appliedTrafficPolicies": []any{
		map[string]any{"ref": map[string]any{"name": "zeta", "namespace": "team"}, "observedGeneration": int64(1), "spec": map[string]any{"policy": map[string]any{"requestTimeout": "3s"}}},
		map[string]any{"ref": map[string]any{"name": "alpha", "namespace": "team"}, "observedGeneration": int64(1), "spec": map[string]any{"policy": map[string]any{"requestTimeout": "5s"}}},
	}})
	h.status(snapshot.TrafficPolicy, "team", "zeta", map[string]any{"observedGeneration": int64(2), "lastEnforcedGeneration": int64(1), "state": "INVALID"})
	clientset := sandboxtest.Clientset(t, config)
	_, err = clientset.CoreV1().ConfigMaps(ownNamespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: snapshot.TrustRecord, Labels: map[string]string{snapshot.NetworkingOwnerLabel: ownNamespace}}, Data: map[string]string{"vm": "roots: [a]"},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	record, err := clientset.CoreV1().Secrets(ownNamespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: snapshot.RelayRecordPrefix + "west"}, Type: snapshot.RelayRecordType, StringData: map[string]string{"record": planted},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = clientset.CoreV1().ConfigMaps(ownNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Name: registration.LeftoverName("west"), Labels: map[string]string{cluster.ManagedByLabel: cluster.ManagedBy, registration.LeftoverLabel: "west"},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Secret", Name: record.Name, UID: record.UID}},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = clientset.CoreV1().ConfigMaps(ownNamespace).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a-users"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return h
}

// planted is in a Secret.
const planted = "PLANTED-CREDENTIAL"

func (h *home) apply(manifest string) {
	h.Helper()
	sandboxtest.Apply(h.T, h.config, []byte(manifest))
}

func (h *home) policies() dynamic.ResourceInterface {
	return h.client.Resource(snapshot.TrafficPolicy.GroupVersionResource()).Namespace("team")
}

func (h *home) policy(name string) *unstructured.Unstructured {
	h.Helper()
	return h.get(snapshot.TrafficPolicy, "team", name)
}

func (h *home) get(kind snapshot.Kind, namespace, name string) *unstructured.Unstructured {
	h.Helper()
	o, err := h.client.Resource(kind.GroupVersionResource()).Namespace(namespace).Get(h.Context(), name, metav1.GetOptions{})
	require.NoError(h, err)
	return o
}

// status writes a status as serve does.
func (h *home) status(kind snapshot.Kind, namespace, name string, status map[string]any) {
	h.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	o.SetGroupVersionKind(kind.Info().GroupVersionKind)
	o.SetNamespace(namespace)
	o.SetName(name)
	_, err := h.client.Resource(kind.GroupVersionResource()).Namespace(namespace).ApplyStatus(h.Context(), name, o, metav1.ApplyOptions{FieldManager: snapshot.FieldManager, Force: true})
	require.NoError(h, err)
}

func older(a, b metav1.Object) bool { return ageorder.CompareAge(a, b) < 0 }

// backup takes a backup, and reads it again from what it wrote.
func (h *home) backup(secrets bool) *registration.Backup {
	h.Helper()
	taken, err := registration.TakeBackup(h.Context(), registration.BackupOptions{Config: h.config, Secrets: secrets, Version: "v1.2.3", Now: time.Now()})
	require.NoError(h, err)
	var file bytes.Buffer
	require.NoError(h, taken.Write(&file))
	read, err := registration.ReadBackup(&file)
	require.NoError(h, err)
	return read
}

// TestRestore: what a backup has is the same in another cluster, and nothing changes in the registered one.
func TestRestore(t *testing.T) {
	t.Parallel()
	servers := sandboxtest.APIServers(t, 3)
	configs := make([]*rest.Config, len(servers))
	for i, s := range servers {
		var err error
		configs[i], err = s.Config()
		require.NoError(t, err)
	}
	from, remote := newHome(t, configs[0], configs[1]), configs[1]
	before := objectsOf(t, remote)
	backup := from.backup(true)
	client, err := dynamic.NewForConfig(configs[2])
	require.NoError(t, err)
	to := &home{t, configs[2], client}

	report, err := registration.Restore(t.Context(), backup, registration.RestoreOptions{Config: to.config, DryRun: true})
	require.NoError(t, err)
	assert.Contains(t, report.Changes, registration.Change{Action: registration.Created, Server: "management", Kind: "TrafficPolicy", Count: 2})
	_, err = to.client.Resource(snapshot.Namespace.GroupVersionResource()).Get(t.Context(), "team", metav1.GetOptions{})
	require.Error(t, err, "nothing was written")

	// Each run writes a little and is then interrupted; the next one goes on.
	runs := 0
	for ; ; runs++ {
		require.Less(t, runs, 50)
		ctx, cancel := context.WithCancel(t.Context())
		_, err = registration.Restore(ctx, backup, registration.RestoreOptions{Config: interrupting(to.config, cancel, 5+runs)})
		cancel()
		if err == nil {
			break
		}
		require.ErrorIs(t, err, context.Canceled)
	}
	assert.Greater(t, runs, 2)
	to.same(from)
	after := objectsOf(t, to.config)
	report, err = registration.Restore(t.Context(), backup, registration.RestoreOptions{Config: to.config})
	require.NoError(t, err)
	assert.True(t, report.Unchanged(), "%v", report.Changes)
	assert.Equal(t, after, objectsOf(t, to.config), "a further run writes nothing")
	assert.Equal(t, before, objectsOf(t, remote), "nothing changed in the registered cluster")
	to.occupied(backup)
}

// objectsOf is what a server has, without the types that it was given.
func objectsOf(t *testing.T, config *rest.Config) map[string]string {
	t.Helper()
	out := inventory(t, config)
	maps.DeleteFunc(out, func(key, _ string) bool { return strings.HasPrefix(key, "CustomResourceDefinition ") })
	return out
}

// interrupting is a client configuration that cancels after that many writes.
func interrupting(config *rest.Config, cancel context.CancelFunc, after int) *rest.Config {
	out := rest.CopyConfig(config)
	var writes atomic.Int64
	out.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "selfsubjectaccessreviews") && !strings.Contains(r.URL.Path, "customresourcedefinitions") && writes.Add(1) == int64(after) {
				cancel()
			}
			return response, err
		})
	})
	return out
}

// same compares what decides with the cluster of which the backup was made.
func (h *home) same(from *home) {
	h.Helper()
	assert.True(h, older(h.policy("zeta"), h.policy("alpha")), "the same policy is the older one")
	for _, o := range []struct {
		kind            snapshot.Kind
		namespace, name string
	}{
		{snapshot.TrafficPolicy, "team", "zeta"}, {snapshot.TrafficPolicy, "team", "alpha"}, {snapshot.Destination, ownNamespace, "reviews"},
		{snapshot.KubernetesCluster, ownNamespace, "east"}, {snapshot.Secret, ownNamespace, "east"}, {snapshot.ConfigMap, ownNamespace, snapshot.TrustRecord},
		{snapshot.ConfigMap, ownNamespace, cluster.PlaneName},
	} {
		was, is := from.get(o.kind, o.namespace, o.name), h.get(o.kind, o.namespace, o.name)
		assert.Equal(h, was.GetManagedFields(), is.GetManagedFields(), "%s: who owns its fields", o.name)
		assert.Equal(h, was.GetLabels(), is.GetLabels(), o.name)
		assert.Equal(h, was.GetAnnotations(), is.GetAnnotations(), o.name)
		for _, field := range []string{"spec", "data", "type", "immutable"} {
			assert.Equal(h, was.Object[field], is.Object[field], "%s: %s", o.name, field)
		}
	}
	status, _, _ := unstructured.NestedMap(h.policy("zeta").Object, "status")
	assert.Equal(h, map[string]any{"observedGeneration": int64(1), "lastEnforcedGeneration": int64(1), "state": "INVALID"}, status)
	applied, _, _ := unstructured.NestedSlice(h.get(snapshot.Destination, ownNamespace, "reviews").Object, "status", "appliedTrafficPolicies")
	require.Len(h, applied, 2)
	assert.Equal(h, map[string]any{"ref": map[string]any{"name": "zeta", "namespace": "team"}, "spec": map[string]any{"policy": map[string]any{"requestTimeout": "3s"}}}, applied[0],
		"the last good spec, of a generation that there is no more")
	assert.EqualValues(h, 1, applied[1].(map[string]any)["observedGeneration"])

	ours, err := cluster.PlaneID(h.Context(), sandboxtest.Clientset(h.T, h.config), ownNamespace)
	require.NoError(h, err)
	id, err := cluster.PlaneID(h.Context(), sandboxtest.Clientset(h.T, from.config), ownNamespace)
	require.NoError(h, err)
	assert.Equal(h, id, ours, "its objects in clusters stay its own")
	owners := h.get(snapshot.ConfigMap, ownNamespace, registration.LeftoverName("west")).GetOwnerReferences()
	require.Len(h, owners, 1)
	assert.Equal(h, h.get(snapshot.Secret, ownNamespace, snapshot.RelayRecordPrefix+"west").GetUID(), owners[0].UID)
	maps, err := sandboxtest.Clientset(h.T, h.config).CoreV1().ConfigMaps(ownNamespace).Get(h.Context(), "a-users", metav1.GetOptions{})
	require.Error(h, err, "%v", maps)
}

// occupied restores where something else is.
func (h *home) occupied(backup *registration.Backup) {
	h.Helper()
	h.Log("other objects are in the way")
	h.apply("apiVersion: networking.mesh.gloo.solo.io/v1\nkind: TrafficPolicy\nmetadata: {namespace: team, name: zeta}\nspec: {policy: {requestTimeout: 99s}}\n")
	h.apply("apiVersion: networking.mesh.gloo.solo.io/v1\nkind: AccessPolicy\nmetadata: {namespace: team, name: later}\nspec: {allowedPaths: [/a]}\n")
	_, err := registration.Restore(h.Context(), backup, registration.RestoreOptions{Config: h.config})
	var occupied *registration.OccupiedError
	require.ErrorAs(h, err, &occupied)
	assert.Equal(h, []string{
		"AccessPolicy team/later (the backup does not have it)",
		"TrafficPolicy team/alpha (it is older than others that the backup has as older)",
		"TrafficPolicy team/zeta (it differs)",
	}, occupied.Objects)
	require.ErrorContains(h, err, "--force")
	report, err := registration.Restore(h.Context(), backup, registration.RestoreOptions{Config: h.config, Force: true})
	require.NoError(h, err)
	assert.Contains(h, report.Changes, registration.Change{Action: registration.Updated, Server: "management", Kind: "TrafficPolicy", Count: 2})
	assert.True(h, older(h.policy("zeta"), h.policy("alpha")))

	h.Log("a serve works there")
	_, err = registration.Install(h.Context(), registration.InstallOptions{Config: h.config, Image: "meshctl:1"})
	require.NoError(h, err)
	_, err = registration.Restore(h.Context(), backup, registration.RestoreOptions{Config: h.config, Force: true})
	var served *registration.ServedError
	require.ErrorAs(h, err, &served)
	require.ErrorContains(h, err, "--replicas 0")
}

// TestBackupWithoutSecrets: no credential is in it, and the restoration says what to register again.
func TestBackupWithoutSecrets(t *testing.T) {
	t.Parallel()
	servers := sandboxtest.APIServers(t, 2)
	config, err := servers[0].Config()
	require.NoError(t, err)
	target, err := servers[1].Config()
	require.NoError(t, err)
	_, err = registration.TakeBackup(t.Context(), registration.BackupOptions{Config: config, Now: time.Now()})
	var none *registration.NoPlaneError
	require.ErrorAs(t, err, &none)

	h := newHome(t, config, config)
	taken, err := registration.TakeBackup(t.Context(), registration.BackupOptions{Config: config, Now: time.Now()})
	require.NoError(t, err)
	for _, o := range taken.Objects {
		text, err := o.MarshalJSON()
		require.NoError(t, err)
		assert.NotEqual(t, "Secret", o.GetKind())
		assert.NotContains(t, string(text), planted)
	}
	names := make([]string, len(taken.LeftOut))
	for i, s := range taken.LeftOut {
		names[i] = s.Name
	}
	assert.ElementsMatch(t, []string{"east", snapshot.RelayRecordPrefix + "west"}, names)
	report, err := registration.Restore(t.Context(), taken, registration.RestoreOptions{Config: target})
	require.NoError(t, err)
	assert.True(t, slices.ContainsFunc(report.Notes, func(n string) bool { return strings.Contains(n, "meshctl cluster register east") }), "%v", report.Notes)
	assert.NotEmpty(t, h.policy("zeta").GetUID())
}

// TestReadBackup: what is no backup is an error that says so.
func TestReadBackup(t *testing.T) {
	t.Parallel()
	whole := func(b registration.Backup) []byte {
		var file bytes.Buffer
		require.NoError(t, b.Write(&file))
		return file.Bytes()
	}
	good := registration.Backup{Format: "meshctl-backup", Version: 1, Namespace: "gloo-mesh", Plane: "1", Taken: time.Unix(1, 0)}
	_, err := registration.ReadBackup(bytes.NewReader(whole(good)))
	require.NoError(t, err)
	later, foreign := good, good
	later.Version, later.Meshctl = 2, "v9.0.0"
	role := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "all"}}}
	foreign.Objects = []*unstructured.Unstructured{role}
	for want, file := range map[string][]byte{
		"it is no backup of meshctl": []byte("apiVersion: v1\n"),
		"no backup":                  whole(registration.Backup{Format: "other"}),
		"cut off or damaged":         whole(good)[:40],
		"v9.0.0":                     whole(later),
		"ClusterRole all: it is of a kind that no backup has": whole(foreign),
	} {
		_, err := registration.ReadBackup(bytes.NewReader(file))
		require.ErrorContains(t, err, want)
	}
}
