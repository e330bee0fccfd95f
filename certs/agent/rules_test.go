package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/certs/restart"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// as is a user with exactly these rules, by namespace; those of "" are for all.
func (c *cluster) as(rules map[string][]rbacv1.PolicyRule) *rest.Config {
	c.t.Helper()
	account, err := c.api.CoreV1().ServiceAccounts(c.own).Create(c.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent"}}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.own, Name: account.Name}}
	for namespace, rules := range rules {
		meta := metav1.ObjectMeta{Name: "agent"}
		if namespace == "" {
			meta.Name = c.own
			_, err := c.api.RbacV1().ClusterRoles().Create(c.t.Context(), &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
			require.NoError(c.t, err)
			_, err = c.api.RbacV1().ClusterRoleBindings().Create(c.t.Context(), &rbacv1.ClusterRoleBinding{
				ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name}, Subjects: subjects,
			}, metav1.CreateOptions{})
			require.NoError(c.t, err)
			continue
		}
		_, err := c.api.RbacV1().Roles(namespace).Create(c.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		require.NoError(c.t, err)
		_, err = c.api.RbacV1().RoleBindings(namespace).Create(c.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "agent"},
			Subjects: subjects,
		}, metav1.CreateOptions{})
		require.NoError(c.t, err)
	}
	return kube.Unlimited(sandboxtest.As(c.t, c.admin, c.own, account.Name))
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
	// The look that wrote the last status ends after it.
	for _, path := range []string{"/readyz", "/healthz", "/metrics"} {
		waittest.NoError(t, path+" answers", func() error {
			response, err := http.Get("http://" + at + path) //nolint:noctx // a test
			if err != nil {
				return err
			}
			body, err := io.ReadAll(response.Body)
			if err == nil && response.StatusCode != http.StatusOK {
				err = fmt.Errorf("%s: %s", response.Status, body)
			}
			return errors.Join(err, response.Body.Close())
		})
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

// TestLimits: with its credential, nobody can do more than the agent does: no other change of a workload than a restart, no
// other Secret, and no token of another account.
func TestLimits(t *testing.T) {
	t.Parallel()
	waittest.SkipIfShort(t, "starts an API server")
	c := newCluster(t, "limits")
	config := c.as(map[string][]rbacv1.PolicyRule{c.own: slices.Concat(OwnRules(testName), VaultAccountRules("default")), c.mesh: MeshRules(), "": ClusterRules()})
	user := sandboxtest.Clientset(t, config)
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: c.mesh}, Spec: Limits(c.own, []string{c.mesh}, "our-vault", testName)}
	policy.Spec.MatchConditions = []admissionv1.MatchCondition{{
		Name: "agent", Expression: "request.userInfo.username == 'system:serviceaccount:" + c.own + ":agent'"}}
	admission := c.api.AdmissionregistrationV1()
	_, err := admission.ValidatingAdmissionPolicies().Create(t.Context(), policy, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, admission.ValidatingAdmissionPolicyBindings().Delete(context.Background(), c.mesh, metav1.DeleteOptions{}))
		assert.NoError(t, admission.ValidatingAdmissionPolicies().Delete(context.Background(), c.mesh, metav1.DeleteOptions{}))
	})
	_, err = admission.ValidatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: c.mesh},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: c.mesh, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "a"}, Annotations: map[string]string{"prometheus.io/scrape": "true"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}},
	}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	meta := metav1.ObjectMeta{Name: "a", Labels: map[string]string{"team": "a"}}
	_, err = c.api.AppsV1().Deployments(c.mesh).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template}}, metav1.CreateOptions{})
	require.NoError(t, err)
	bare := template.DeepCopy()
	bare.Annotations = nil
	_, err = c.api.AppsV1().DaemonSets(c.mesh).Create(t.Context(), &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: *bare}}, metav1.CreateOptions{})
	require.NoError(t, err)
	denied := func(err error, message string) bool {
		return apierrors.IsInvalid(err) && strings.Contains(err.Error(), message)
	}
	create := func(namespace, name string, secretType corev1.SecretType) error {
		_, err := user.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}}, Type: secretType,
			Data: map[string][]byte{pki.TLSCertKey: {}, pki.TLSKeyKey: {}}, // which one of type kubernetes.io/tls must have
		}, metav1.CreateOptions{})
		return err
	}
	waittest.Until(t, "the policy is in force", func() bool {
		return denied(create(c.mesh, fmt.Sprint("early-", time.Now().UnixNano()), corev1.SecretTypeOpaque), "only the Secrets of its meshes")
	})

	c.triesTokens(user, func(err error) bool { return denied(err, "makes tokens for Vault only") || apierrors.IsForbidden(err) })
	c.triesWorkloads(user, func(err error) bool { return denied(err, "only restarts workloads") })
	c.triesPods(user, func(err error) bool { return denied(err, "nothing of pods but the annotation") })
	const others = "only the Secrets of its meshes"
	gateways := snapshot.GatewayCertificateName(testName)
	for _, tt := range []struct {
		namespace, name string
		secretType      corev1.SecretType
		denied          string
	}{
		{c.mesh, "other", corev1.SecretTypeOpaque, others},
		{c.mesh, CACertsName, corev1.SecretTypeServiceAccountToken, others},
		{c.mesh, CACertsName, snapshot.RootSecretType, others},
		{c.mesh, CACertsName, "solo.io/kubeconfig", others},
		{c.mesh, CACertsName, KeyType, others},
		{c.mesh, testName, KeyType, others},
		{c.own, CACertsName, IssuedType, others},
		{c.own, CACertsName, snapshot.RootSecretType, others},
		{c.own, snapshot.GatewaySecret, corev1.SecretTypeTLS, others},
		{c.own, testName, snapshot.RootSecretType, others},
		{c.own, gateways, "solo.io/kubeconfig", others},
		{c.own, testName, corev1.SecretTypeOpaque, others},
		{c.mesh, snapshot.GatewaySecret, corev1.SecretTypeOpaque, others},
		{c.mesh, CACertsName, IssuedType, ""},
		{c.own, testName, KeyType, ""},
		{c.own, gateways, KeyType, ""},
		{c.own, gateways + "-2", KeyType, others},
		{c.mesh, snapshot.GatewaySecret, corev1.SecretTypeTLS, ""},
		{c.mesh, "ingress", corev1.SecretTypeTLS, others},
		{c.mesh, BackupName, corev1.SecretTypeOpaque, ""},
	} {
		err := create(tt.namespace, tt.name, tt.secretType)
		assert.True(t, tt.denied == "" && err == nil || tt.denied != "" && denied(err, tt.denied), "%+v: %v", tt, err)
	}
	_, err = c.api.CoreV1().Secrets(c.mesh).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "others"}}, metav1.CreateOptions{})
	assert.NoError(t, err, "others are not concerned")
}

// triesTokens makes tokens of an account that VirtualMeshes may name for Vault.
func (c *cluster) triesTokens(user kubernetes.Interface, denied func(error) bool) {
	c.t.Helper()
	_, err := c.api.CoreV1().ServiceAccounts(c.own).Create(c.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.True(c.t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	for what, tt := range map[string]struct {
		audiences []string
		seconds   int64
		good      bool
	}{
		"for Vault":               {[]string{"our-vault"}, tokenSeconds, true},
		"for longer":              {[]string{"our-vault"}, tokenSeconds + 1, false},
		"for the API server":      {nil, tokenSeconds, false},
		"for another":             {[]string{"istio-ca"}, tokenSeconds, false},
		"for Vault and another":   {[]string{"our-vault", "istio-ca"}, tokenSeconds, false},
		"for Vault and ten years": {[]string{"our-vault"}, 10 * 365 * 24 * 3600, false},
	} {
		_, err := user.CoreV1().ServiceAccounts(c.own).CreateToken(c.t.Context(), "default", &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{Audiences: tt.audiences, ExpirationSeconds: &tt.seconds},
		}, metav1.CreateOptions{})
		assert.True(c.t, tt.good && err == nil || !tt.good && denied(err), "%s: %v", what, err)
	}
}

// triesWorkloads changes what a Deployment and a DaemonSet run, and restarts them.
func (c *cluster) triesWorkloads(user kubernetes.Interface, denied func(error) bool) {
	c.t.Helper()
	patch := func(text string) error {
		_, err := user.AppsV1().Deployments(c.mesh).Patch(c.t.Context(), "a", types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	for _, change := range []string{
		`{"spec":{"replicas":7}}`,
		`{"spec":{"paused":true}}`,
		`{"spec":{"template":{"spec":{"serviceAccountName":"admin"}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"a","image":"evil"}]}}}}`,
		`{"spec":{"template":{"spec":{"containers":[{"name":"b","image":"evil"}]}}}}`,
		`{"spec":{"template":{"metadata":{"labels":{"b":"b"}}}}}`,
		`{"spec":{"template":{"metadata":{"annotations":{"sidecar.istio.io/proxyImage":"evil"}}}}}`,
		`{"spec":{"template":{"metadata":{"annotations":{"prometheus.io/scrape":null}}}}}`,
		`{"spec":{"template":{"metadata":{"annotations":{"prometheus.io/scrape":"false"}}}}}`,
		`{"metadata":{"labels":{"team":null}}}`,
		`{"metadata":{"labels":{"team":"b"}}}`,
		`{"metadata":{"annotations":{"a":"b"}}}`,
		`{"metadata":{"finalizers":["a.example/b"]}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"a"}]}}`,
	} {
		err := patch(change)
		assert.True(c.t, denied(err), "%s: %v", change, err)
	}
	roller := &restart.Roller{Client: user, Cause: "because"}
	for _, kind := range []string{"Deployment", "DaemonSet"} {
		controller := restart.Controller{Kind: kind, Namespace: c.mesh, Name: "a"}
		_, err := roller.Step(c.t.Context(), restart.Plan{Controllers: []restart.Controller{controller}})
		// The DaemonSet waits for the Deployment, which never becomes ready here; so it is restarted with another cause.
		require.NoError(c.t, err)
		roller.Cause = "so"
	}
	restarted, err := c.api.AppsV1().Deployments(c.mesh).Get(c.t.Context(), "a", metav1.GetOptions{})
	require.NoError(c.t, err)
	assert.NotEmpty(c.t, restarted.Spec.Template.Annotations[restart.RestartedAt])
	rolled, err := c.api.AppsV1().DaemonSets(c.mesh).Get(c.t.Context(), "a", metav1.GetOptions{})
	require.NoError(c.t, err)
	assert.NotEmpty(c.t, rolled.Spec.Template.Annotations[restart.RestartedAt])
}

// triesPods changes pods of the control plane, and has their kubelet pass the Secret on.
func (c *cluster) triesPods(user kubernetes.Interface, denied func(error) bool) {
	c.t.Helper()
	pods := c.api.CoreV1().Pods(c.mesh)
	_, err := c.api.CoreV1().ServiceAccounts(c.mesh).Create(c.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	require.NoError(c.t, err)
	labels := map[string]string{"app": "istiod", "istio.io/rev": "a"}
	for name, of := range map[string]map[string]string{"istiod-1": labels, "istiod-2": labels, "other": {"app": "istiod", "istio.io/rev": "b"}} {
		_, err := pods.Create(c.t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: of, Annotations: map[string]string{"a": "b"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "discovery", Image: "a"}}, ServiceAccountName: "default"},
		}, metav1.CreateOptions{})
		require.NoError(c.t, err)
	}
	for _, change := range []string{
		`{"spec":{"containers":[{"name":"discovery","image":"evil"}]}}`,
		`{"spec":{"activeDeadlineSeconds":1}}`,
		`{"metadata":{"labels":{"app":"reviews"}}}`,
		`{"metadata":{"annotations":{"a":"c"}}}`,
		`{"metadata":{"annotations":{"a":null}}}`,
		`{"metadata":{"annotations":{"ambient.istio.io/redirection":"disabled"}}}`,
		`{"metadata":{"finalizers":["a.example/b"]}}`,
		`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"a","uid":"a"}]}}`,
	} {
		_, err := user.CoreV1().Pods(c.mesh).Patch(c.t.Context(), "istiod-1", types.StrategicMergePatchType, []byte(change), metav1.PatchOptions{})
		assert.True(c.t, denied(err), "%s: %v", change, err)
	}
	_, err = user.CoreV1().Pods(c.own).Patch(c.t.Context(), "other", types.MergePatchType, []byte(`{}`), metav1.PatchOptions{})
	assert.True(c.t, apierrors.IsForbidden(err), "in other namespaces: %v", err)

	parts := &Parts{Client: user}
	target := MeshTarget{Namespace: c.mesh, Labels: labels}
	refreshed := func() (out map[string]string, versions []string) {
		list, err := pods.List(c.t.Context(), metav1.ListOptions{})
		require.NoError(c.t, err)
		out = map[string]string{}
		for i := range list.Items {
			out[list.Items[i].Name] = list.Items[i].Annotations[RefreshAnnotation]
			versions = append(versions, list.Items[i].ResourceVersion)
		}
		return out, versions
	}
	require.NoError(c.t, parts.Refresh(c.t.Context(), target, true))
	first, versions := refreshed()
	assert.NotEmpty(c.t, first["istiod-1"])
	assert.Equal(c.t, map[string]string{"istiod-1": first["istiod-1"], "istiod-2": first["istiod-1"], "other": ""}, first)
	require.NoError(c.t, parts.Refresh(c.t.Context(), target, true))
	_, again := refreshed()
	assert.Equal(c.t, versions, again, "each pod is told once for a while")
	long := time.Now().Add(-time.Hour).Format(time.RFC3339)
	_, err = pods.Patch(c.t.Context(), "istiod-1", types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, RefreshAnnotation, long), metav1.PatchOptions{})
	require.NoError(c.t, err)
	require.NoError(c.t, parts.Refresh(c.t.Context(), target, true))
	second, _ := refreshed()
	assert.NotEqual(c.t, long, second["istiod-1"], "and then once more")
	require.NoError(c.t, parts.Refresh(c.t.Context(), target, false))
	gone, versions := refreshed()
	assert.Equal(c.t, map[string]string{"istiod-1": "", "istiod-2": "", "other": ""}, gone)
	require.NoError(c.t, parts.Refresh(c.t.Context(), target, false))
	_, again = refreshed()
	assert.Equal(c.t, versions, again)
}

func keysOf(m map[string]int) string {
	var out []string
	for key := range m {
		out = append(out, key)
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
