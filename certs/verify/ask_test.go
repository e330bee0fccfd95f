package verify

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
)

// TestAskIstiod asks a real istiod, and looks at its mesh.
func TestAskIstiod(t *testing.T) {
	shard.Only(t, shard.Clusters)
	t.Parallel()
	c := sandboxtest.Clusters(t, 1)[0]
	require.NoError(t, c.InstallIstio(t.Context(), local.IstioOptions{}))
	config, err := c.Config()
	require.NoError(t, err)
	api := sandboxtest.Clientset(t, config)
	token := func(audience string) string {
		account, err := api.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), "default", &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}, metav1.CreateOptions{})
		require.NoError(t, err)
		file := filepath.Join(t.TempDir(), audience)
		require.NoError(t, os.WriteFile(file, []byte(account.Status.Token+"\n"), 0o600))
		return file
	}
	var roots pki.Bundle
	waittest.NoError(t, "istiod writes its root", func() error {
		m, err := api.CoreV1().ConfigMaps("istio-system").Get(t.Context(), RootConfigMap, metav1.GetOptions{})
		if err != nil {
			return err
		}
		roots, err = pki.ReadBundle([]byte(m.Data[pki.RootCertKey]))
		return err
	})
	server := Server{Address: c.Istiod(), Names: []string{"istiod.istio-system.svc"}, Roots: roots, TokenFile: token("istio-ca"), ClusterID: c.Name()}

	var answered *Answer
	waittest.NoError(t, "istiod signs", func() error {
		answered, err = Ask(t.Context(), time.Now(), server)
		return err
	})
	assert.True(t, answered.Bundle.Equal(roots))
	assert.Equal(t, []string{answered.Root}, roots.Fingerprints())
	assert.Equal(t, "spiffe://cluster.local/ns/default/sa/default", answered.Chain[0].URIs[0].String(), "the token's identity, not the request's")
	assert.Equal(t, answered.Root, answered.Signer, "istiod signs with a root of its own")

	fails := func(says string, change func(*Server)) {
		t.Helper()
		bad := server
		change(&bad)
		_, err := Ask(t.Context(), time.Now(), bad)
		require.ErrorContains(t, err, says)
		t.Log(err)
	}
	other := newRoot(t, time.Now())
	fails("refused the token in ", func(s *Server) { s.TokenFile = token("other") })
	fails("token for istiod", func(s *Server) { s.TokenFile = filepath.Join(t.TempDir(), "none") })
	fails("trusted are \""+sum(other)[:8], func(s *Server) { s.Roots = bundle(other) })
	fails("which is not trusted", func(s *Server) { s.Roots = bundle(other) })
	fails("elsewhere", func(s *Server) { s.Names = []string{"elsewhere"} })
	fails("refused the token", func(s *Server) { s.ClusterID = "elsewhere" })

	t.Run("look", func(t *testing.T) { look(t, c, server, answered) })
	require.NoError(t, c.Kill(t.Context(), local.Istiod))
	fails("nothing listens there", func(*Server) {})
}

// look looks at the mesh of the cluster: istiod signs with its own root, and a workload is behind an address that nobody
// can connect to.
func look(t *testing.T, c *local.Cluster, server Server, answered *Answer) {
	t.Helper()
	config, err := c.Config()
	require.NoError(t, err)
	api := sandboxtest.Clientset(t, config)
	_, err = api.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{Name: "apps", Labels: map[string]string{"istio-injection": "enabled"}}}, metav1.CreateOptions{})
	require.NoError(t, err)
	waittest.NoError(t, "the pod is made", func() error {
		_, err = api.CoreV1().Pods("apps").Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "app"},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app", Ports: []corev1.ContainerPort{{ContainerPort: 8080}}}}},
		}, metav1.CreateOptions{})
		return err
	})
	greeted := 0
	looker := NewLooker(Options{
		Client: api, Namespace: "istio-system", ControlPlane: map[string]string{"app": "istiod"}, Address: server.Address,
		TokenFile: server.TokenFile, ClusterID: server.ClusterID,
		Greet: func(_ context.Context, to Target, a *Answer, _ pki.Bundle) (*Seen, error) {
			greeted++
			assert.Regexp(t, `^10\.\d+\.\d+\.\d+:8080$`, to.Address)
			assert.Equal(t, "apps/default", to.Namespace+"/"+to.ServiceAccount)
			return &Seen{Presents: a.Root, Client: a.Root, Accepts: Accepted}, nil
		},
	})
	root := newRoot(t, time.Now())
	request := Request{Root: answered.Root, Bundle: answered.Bundle}
	var result Result
	waittest.NoError(t, "the workload holds what istiod gives", func() error {
		result, err = looker.Look(t.Context(), request)
		if err == nil && result.Trusting.Done < 1 {
			err = fmt.Errorf("%+v", result)
		}
		return err
	})
	// The gateways cannot be seen, and started before anybody looked.
	assert.Empty(t, result.Trusted)
	assert.Equal(t, int32(1), result.Trusting.Done, "%+v", result.Trusting)
	assert.Zero(t, result.Trusting.Unseen)
	assert.Len(t, result.Trusting.Waiting, 2, "%+v", result.Trusting)
	assert.Equal(t, int32(2), result.Namespaces.Done)
	assert.Empty(t, result.Problems)
	assert.True(t, result.MultiRoot)
	assert.False(t, result.Blind)
	before := greeted
	_, err = looker.Look(t.Context(), request)
	require.NoError(t, err)
	assert.Equal(t, before, greeted, "it need not be seen again")

	// With another root in the Secret, the control plane has to restart: it signs with its own.
	request.Secret = newMesh(t, time.Now(), root)
	request.Root, request.Bundle = sum(root), bundle(root)
	result, err = looker.Look(t.Context(), request)
	require.NoError(t, err)
	assert.Contains(t, result.NeedsControlPlane, "signs with a key of its own")
	assert.Empty(t, result.NeedsWorkloads, "not before the control plane")
	assert.Zero(t, result.ControlPlane.Done)
	assert.Equal(t, []string{server.Address}, result.ControlPlane.Waiting)
}
