package registration_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestListFromOutside lists a cluster whose address only serve can dial.
func TestListFromOutside(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	serveInside(t, management)
	_, err := registration.Register(t.Context(), registration.Options{
		Name: "east", RemoteConfig: remote, MgmtConfig: management, APIServerAddress: "east-control-plane.invalid:6443"})
	require.NoError(t, err)
	list := func(detours *registration.Detours) registration.ClusterStatus {
		t.Helper()
		all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: management, Timeout: waittest.Limit(), Detours: detours})
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0]
	}
	unreachable := "the host name of remote cluster (https://east-control-plane.invalid:6443) cannot be resolved"

	seen := list(nil)
	assert.Equal(t, snapshot.HealthUnreachable, seen.Health)
	assert.Empty(t, seen.Serve, "nobody serves")
	assert.Contains(t, seen.Reason, unreachable)

	holder, seconds, now := "serve-0", int32(3600), metav1.NowMicro()
	_, err = sandboxtest.Clientset(t, management).CoordinationV1().Leases("gloo-mesh").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Equal(t, registration.ServePending, list(nil).Serve)
	fingerprint := cluster.Fingerprint(sandboxtest.Secret(t, management, "gloo-mesh", "east"))
	setStatus(t, management, "east", map[string]any{"state": "ACCEPTED", "credential": fingerprint, "observedGeneration": 1})
	seen = list(nil)
	assert.Equal(t, registration.ServeReaches, seen.Serve)
	assert.Equal(t, snapshot.HealthUnreachable, seen.Health)
	assert.Contains(t, seen.Reason, "meshctl serve reaches it; from here: "+unreachable)

	asked := 0
	// A context that may do nothing there shows that it is the stored credential which is used.
	weak := as(remote, "weak")
	grant(t, remote, "weak", []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, ResourceNames: []string{"kube-system"}, Verbs: []string{"get"}}})
	detours := registration.NewDetours(func() []registration.Context {
		asked++
		return []registration.Context{{Name: "nobody"}, {Name: "west", Config: management}, {Name: "closed", Config: at(remote, closedPort(t))}, {Name: "east", Config: weak}}
	}, 0)
	for range 2 {
		seen = list(detours)
		assert.Equal(t, snapshot.Healthy, seen.Health, seen.Reason)
		assert.Equal(t, remote.Host, "https://"+seen.Detour)
		assert.Equal(t, "https://east-control-plane.invalid:6443", seen.Server)
		assert.NotEmpty(t, seen.Version)
	}
	assert.Equal(t, 1, asked, "once")
	assert.Equal(t, []string{"https://east-control-plane.invalid:6443 cannot be reached from here; the address of context east was used instead"}, detours.Notes())

	setStatus(t, management, "east", map[string]any{"state": "FAILED", "message": "unreachable: no route", "credential": fingerprint, "observedGeneration": 1,
		"reasons": because("ClusterFrozen", "no route", "")})
	seen = list(detours)
	assert.Equal(t, registration.ServeFails, seen.Serve)
	assert.Equal(t, snapshot.HealthDegraded, seen.Health)
	assert.Equal(t, "meshctl serve does not reach it: no route", seen.Reason)
}

// TestDetoursAskOnlyWhenNeeded: a cluster that answers, whatever it says, needs none.
func TestDetoursAskOnlyWhenNeeded(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	_, err := registration.Register(t.Context(), registration.Options{Name: "east", RemoteConfig: remote, MgmtConfig: management})
	require.NoError(t, err)
	detours := registration.NewDetours(func() []registration.Context {
		t.Error("it asks")
		return nil
	}, 0)
	for _, expired := range []bool{false, true} {
		if expired {
			expire(t, management, "east")
			require.NoError(t, sandboxtest.Clientset(t, remote).CoreV1().ServiceAccounts("gloo-mesh").Delete(t.Context(), "east", metav1.DeleteOptions{}))
		}
		require.Eventually(t, func() bool {
			all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: management, Timeout: waittest.Limit(), Detours: detours})
			require.NoError(t, err)
			return (all[0].Health == snapshot.HealthDenied) == expired
		}, waittest.Limit(), 100*time.Millisecond)
	}
	none := registration.NewDetours(func() []registration.Context { return []registration.Context{{Name: "west", Config: management}} }, 0)
	assert.Empty(t, none.Find(t.Context(), "https://nowhere.invalid", types.UID("another")), "no context leads there")
	assert.Empty(t, none.Notes())
}
