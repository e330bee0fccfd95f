package serve

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/registration"
)

// TestRegisterHearsWhatServeFinds registers a cluster at addresses that lead there and nowhere, while it is connected and while
// it is not: each time, serve answers for what was registered last.
func TestRegisterHearsWhatServeFinds(t *testing.T) {
	t.Parallel()
	servers := sandboxtest.APIServers(t, 2)
	management, remote := configOf(t, servers[0]), configOf(t, servers[1])
	_, err := registration.Install(t.Context(), registration.InstallOptions{Config: management, Image: "meshctl:1"})
	require.NoError(t, err)
	serve := start(t, management, "serve")
	until(t, "ready", func() bool { code, _ := serve.get("/readyz"); return code == http.StatusOK })
	options := registration.Options{Name: "east", RemoteConfig: remote, MgmtConfig: management, ServeWait: waittest.Limit()}
	register := func(address string, inside string) (registration.Report, error) {
		t.Helper()
		_, err := sandboxtest.Clientset(t, management).AppsV1().Deployments("gloo-mesh").Patch(t.Context(), registration.ServeName,
			types.MergePatchType, []byte(`{"spec":{"replicas":`+inside+`}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		o := options
		o.APIServerAddress = address
		return registration.Register(t.Context(), o)
	}
	nowhere := func(address, want string) {
		t.Helper()
		report, err := register(address, "1")
		var failed *registration.ServeError
		require.ErrorAs(t, err, &failed)
		require.ErrorContains(t, err, want)
		assert.Equal(t, registration.ServeFails, report.Serve)
	}
	reached := func() {
		t.Helper()
		report, err := register("", "0")
		require.NoError(t, err)
		assert.Equal(t, registration.ServeReaches, report.Serve)
	}

	nowhere("one.invalid:6443", "meshctl serve does not reach it: the host name of https://one.invalid:6443 cannot be resolved; ")
	nowhere("two.invalid:6443", "the host name of https://two.invalid:6443 cannot be resolved; ")
	reached()
	reached()
	nowhere("one.invalid:6443", "its Secret is not used, and the previous connection stays in use: the host name of https://one.invalid:6443 cannot be resolved; ")
	nowhere("two.invalid:6443", "the previous connection stays in use: the host name of https://two.invalid:6443 cannot be resolved; ")
	reached()
}
