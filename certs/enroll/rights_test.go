package enroll

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestServeNeedsNoMoreRights: what an installation lets meshctl serve do is enough for the relay, and no Secret elsewhere is among it.
func TestServeNeedsNoMoreRights(t *testing.T) {
	t.Parallel()
	config, err := sandboxtest.APIServers(t, 1)[0].Config()
	require.NoError(t, err)
	_, err = registration.Install(t.Context(), registration.InstallOptions{
		Config: config, Namespace: "mesh", Image: "meshctl:1", Relay: registration.InstallRelay{Enabled: ptr.To(true)},
	})
	require.NoError(t, err)
	account := rest.CopyConfig(config)
	account.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:mesh:" + registration.ServeName, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
	serve, err := kube.NewClientset(kube.Unlimited(account))
	require.NoError(t, err)
	admin := sandboxtest.Clientset(t, config)
	w := &world{t: t, uid: "uid-1"}
	w.at(0)
	clock := func() time.Time { return *w.now.Load() }
	w.store = &Store{Client: serve, Namespace: "mesh", Plane: "plane-1", Now: clock}
	w.keeper = &Keeper{
		Client: admin, Namespace: "default", Cluster: "west", Plane: "plane-1", ServerName: "hub.example", Hub: calls{w},
		Log: slog.New(slog.DiscardHandler), Now: clock,
	}
	own, err := w.store.Hub(t.Context(), "hub.example")
	require.NoError(t, err)
	w.give(w.invite("").Text())
	require.NoError(t, w.keeper.Start(t.Context()))
	w.at(time.Hour)
	require.NoError(t, w.keeper.Renew(t.Context()))
	w.at(25 * 24 * time.Hour)
	renewed, err := w.store.Hub(t.Context(), "hub.example")
	require.NoError(t, err)
	assert.NotEqual(t, own.Chain[0].SerialNumber, renewed.Chain[0].SerialNumber, "it was time")
	require.NoError(t, w.store.Revoke(t.Context(), "west"))

	for _, name := range []string{RootSecret, ServerSecret, recordPrefix + "west"} {
		secret, err := admin.CoreV1().Secrets("mesh").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, snapshot.ManagedBy, secret.Labels[snapshot.ManagedByLabel], "%s is removed with the installation", name)
	}
	elsewhere := &Store{Client: serve, Namespace: "default", Plane: "plane-1", Now: clock}
	_, _, err = elsewhere.Root(t.Context())
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}
