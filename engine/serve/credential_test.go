package serve

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestWhatIsWrongWithACredentialIsSaid takes from a cluster the right to renew its token,
// and then its Secret.
func TestWhatIsWrongWithACredentialIsSaid(t *testing.T) {
	t.Parallel()
	servers := sandboxtest.APIServers(t, 2)
	management, remote, client := configOf(t, servers[0]), configOf(t, servers[1]), clientOf(t, servers[0])
	options := registration.Options{Name: "east", RemoteConfig: remote, MgmtConfig: management}
	_, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	change := func(change func(*corev1.Secret)) {
		t.Helper()
		secret := sandboxtest.Secret(t, management, "gloo-mesh", "east")
		change(secret)
		_, err := sandboxtest.Clientset(t, management).CoreV1().Secrets("gloo-mesh").Update(t.Context(), secret, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	listed := func() registration.ClusterStatus {
		t.Helper()
		all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: management, Timeout: waittest.Limit()})
		require.NoError(t, err)
		require.Len(t, all, 1)
		return all[0]
	}
	failures := regexp.MustCompile(`(?m)^meshctl_credential_renewal_failures\{cluster="east"\} ([1-9].*)$`)

	require.NoError(t, sandboxtest.Clientset(t, remote).RbacV1().RoleBindings("gloo-mesh").Delete(t.Context(), registration.TokenRoleName("east"), metav1.DeleteOptions{}))
	change(func(s *corev1.Secret) { // it is due, and not old yet
		s.Annotations[cluster.IssuedAnnotation] = time.Now().Add(-9 * time.Hour).UTC().Format(time.RFC3339)
		s.Annotations[cluster.ExpiresAnnotation] = time.Now().Add(15 * time.Hour).UTC().Format(time.RFC3339)
	})
	serve := start(t, management, "serve")
	until(t, "ready", func() bool { code, _ := serve.get("/readyz"); return code == http.StatusOK })
	until(t, "it is said", func() bool { return strings.Contains(messageOf(t, client, "east"), "its token cannot be renewed: ") })
	said := messageOf(t, client, "east")
	t.Log(said)
	assert.Contains(t, said, "forbidden")
	assert.Regexp(t, `the one in use expires at 20\S+Z; if the cause cannot be removed before, run .meshctl cluster register --renew.`, said)
	_, metrics := serve.get("/metrics")
	assert.Regexp(t, failures, metrics)
	assert.Equal(t, snapshot.HealthDegraded, listed().Health)
	assert.Equal(t, said, listed().Reason)

	change(func(s *corev1.Secret) { s.Data[cluster.SecretKey] = []byte("garbage") })
	until(t, "the Secret is refused", func() bool {
		return strings.Contains(messageOf(t, client, "east"), "the previous connection stays in use")
	})
	assert.Equal(t, snapshot.HealthInvalid, listed().Health)
	assert.Contains(t, listed().Reason, "; serve says: its Secret is not used, and the previous connection stays in use")
	code, text := serve.get("/readyz")
	assert.Equal(t, http.StatusOK, code, text)
	_, metrics = serve.get("/metrics")
	assert.Contains(t, metrics, `meshctl_cluster_sync{cluster="east",state="synced"} 1`)

	done, err := registration.Renew(t.Context(), registration.RenewOptions{
		MgmtConfig: management, Contexts: []registration.Context{{Name: "cluster-1", Config: management}, {Name: "cluster-2", Config: remote}}})
	require.NoError(t, err)
	require.Len(t, done, 1)
	assert.Equal(t, "cluster-2", done[0].Context, done[0].Reason)
	until(t, "all is well", func() bool { return messageOf(t, client, "east") == "" })
	until(t, "no failures are counted", func() bool {
		_, metrics := serve.get("/metrics")
		return strings.Contains(metrics, `meshctl_credential_renewal_failures{cluster="east"} 0`)
	})
	assert.Equal(t, snapshot.Healthy, listed().Health, listed().Reason)
}
