package agent

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// as is a user with exactly these rules, by namespace.
func (c *cluster) as(rules map[string][]rbacv1.PolicyRule) *rest.Config {
	c.t.Helper()
	account, err := c.api.CoreV1().ServiceAccounts(c.own).Create(c.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	for namespace, rules := range rules {
		meta := metav1.ObjectMeta{Name: "agent"}
		_, err := c.api.RbacV1().Roles(namespace).Create(c.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		require.NoError(c.t, err)
		_, err = c.api.RbacV1().RoleBindings(namespace).Create(c.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "agent"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.own, Name: account.Name}},
		}, metav1.CreateOptions{})
		require.NoError(c.t, err)
	}
	request, err := c.api.CoreV1().ServiceAccounts(c.own).CreateToken(c.t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	config := rest.AnonymousClientConfig(c.admin)
	config.BearerToken = request.Status.Token
	return kube.Unlimited(config)
}

// recorder notes the requests of an agent and their answers.
type recorder struct {
	mu   sync.Mutex
	used map[string]int
}

type recorded struct {
	base http.RoundTripper
	to   *recorder
}

func (r *recorded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.base.RoundTrip(request)
	if err == nil {
		verb := request.Method
		if request.URL.Query().Get("watch") != "" {
			verb = "WATCH"
		}
		r.to.mu.Lock()
		r.to.used[fmt.Sprintf("%d %s %s", response.StatusCode, verb, request.URL.Path)]++
		r.to.mu.Unlock()
	}
	return response, err
}

// TestRunsWithItsRules runs the whole agent, with Lease and watches, as a user who may do nothing but what the rules allow:
// through a join, an edit, a deletion by hand and a leave. It is refused nothing, and can read no other Secret.
func TestRunsWithItsRules(t *testing.T) {
	t.Parallel()
	waittest.SkipIfShort(t, "starts an API server")
	c := newCluster(t, "rules")
	config := c.as(map[string][]rbacv1.PolicyRule{c.own: OwnRules(testName), c.mesh: MeshRules()})
	seen := &recorder{used: map[string]int{}}
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return &recorded{base, seen} })
	waittest.Until(t, "the API server knows the rules", func() bool {
		_, err := sandboxtest.Clientset(t, config).CoreV1().Secrets(c.mesh).Get(t.Context(), SelfSignedName, metav1.GetOptions{})
		return err == nil
	})
	clear(seen.used)
	directive := &certificatesv1.PodBounceDirective{
		TypeMeta: metav1.TypeMeta{APIVersion: certificatesv1.GroupVersion.String(), Kind: "PodBounceDirective"}, ObjectMeta: metav1.ObjectMeta{Namespace: c.own, Name: testName},
	}
	require.NoError(t, c.store.client.Post().AbsPath(kube.Path(snapshot.PodBounceDirective, c.own, "", "")...).Body(directive).Do(t.Context()).Error())

	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	options := c.options(config)
	options.Resync = time.Minute // the watches have to say what changed
	options.HealthBind = "127.0.0.1:0"
	address := make(chan string, 1)
	options.OnListen = func(at string) { address <- at }
	go func() { ended <- Run(ctx, options) }()
	c.ask()
	finished := func() bool {
		c.issue()
		certificate := c.certificate()
		return certificate.Status.State == certificatesv1.IssuedCertificateFinished
	}
	waittest.Until(t, "the mesh has joined", finished)
	c.assertJoined("with its rules")
	at := <-address
	for _, path := range []string{"/readyz", "/healthz", "/metrics"} {
		response, err := http.Get("http://" + at + path) //nolint:noctx // a test
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Equal(t, http.StatusOK, response.StatusCode, path)
	}

	good := c.secret(c.mesh, CACertsName)
	edited := good.DeepCopy()
	edited.Data[pki.RootCertKey] = append(edited.Data[pki.RootCertKey], c.self.Chain().PEM()...)
	_, err := c.api.CoreV1().Secrets(c.mesh).Update(t.Context(), edited, metav1.UpdateOptions{})
	require.NoError(t, err)
	back := func() bool {
		secret := c.secret(c.mesh, CACertsName)
		return secret != nil && bytes.Equal(secret.Data[pki.RootCertKey], good.Data[pki.RootCertKey]) && bytes.Equal(secret.Data[pki.CACertKey], good.Data[pki.CACertKey])
	}
	waittest.Until(t, "an edit is put back", back)
	require.NoError(t, c.api.CoreV1().Secrets(c.mesh).Delete(t.Context(), CACertsName, metav1.DeleteOptions{}))
	waittest.Until(t, "a deleted Secret is written again", func() bool { return c.secret(c.mesh, CACertsName) != nil })

	c.withdraw()
	require.NoError(t, c.store.client.Delete().AbsPath(kube.Path(snapshot.PodBounceDirective, c.own, testName, "")...).Do(t.Context()).Error())
	waittest.Until(t, "the mesh has left", func() bool {
		requests, err := c.store.requests(t.Context())
		require.NoError(t, err)
		return len(requests) == 0
	})
	c.assertLeft("with its rules")
	stop()
	require.NoError(t, <-ended)
	c.assertNothingShown()
	assert.Positive(t, c.restarter.calls)

	var refused []string
	seen.mu.Lock()
	used := maps.Clone(seen.used)
	seen.mu.Unlock()
	for request := range used {
		if strings.HasPrefix(request, "403") || strings.HasPrefix(request, "401") {
			refused = append(refused, request)
		}
	}
	assert.Empty(t, refused, "the rules are enough")
	t.Logf("used: %v", keysOf(used))

	// The namespaces have other Secrets, such as keys of roots.
	c.createSecret(c.own, "root-key", corev1.SecretTypeOpaque, nil)
	c.createSecret(c.mesh, "others", corev1.SecretTypeOpaque, nil)
	c.createSecret("default", c.own, corev1.SecretTypeOpaque, nil)
	user := sandboxtest.Clientset(t, config)
	for namespace, name := range map[string]string{c.own: "root-key", c.mesh: "others", "default": c.own} {
		_, err := user.CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
		assert.True(t, apierrors.IsForbidden(err), "%s/%s: %v", namespace, name, err)
		_, err = user.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{})
		assert.True(t, apierrors.IsForbidden(err), "%s: %v", namespace, err)
	}
}

func keysOf(m map[string]int) string {
	var out []string
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
