package sandboxtest

import (
	"testing"

	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/waittest"
)

// Clientset returns a client of the built-in types.
func Clientset(t testing.TB, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	clientset, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	return clientset
}

// MakeNamespace creates a namespace unless it exists.
func MakeNamespace(t testing.TB, config *rest.Config, name string) {
	t.Helper()
	_, err := Clientset(t, config).CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		require.NoError(t, err)
	}
}

// Apply applies manifests. The API server may serve a new kind only a moment after
// its CRD is established, so it is repeated until it succeeds.
func Apply(t testing.TB, config *rest.Config, manifests []byte) {
	t.Helper()
	waittest.NoError(t, "the manifests are applied", func() error {
		client, err := kube.New("sandbox", config)
		if err != nil {
			return err
		}
		return client.ApplyYAML(t.Context(), manifests)
	})
}

// Secret reads a Secret, which must exist.
func Secret(t testing.TB, config *rest.Config, namespace, name string) *corev1.Secret {
	t.Helper()
	secret, err := Clientset(t, config).CoreV1().Secrets(namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return secret
}

// As returns a configuration with a token of a ServiceAccount, which must exist.
func As(t testing.TB, config *rest.Config, namespace, account string) *rest.Config {
	t.Helper()
	request, err := Clientset(t, config).CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	user := rest.AnonymousClientConfig(config)
	user.BearerToken = request.Status.Token
	return user
}

// UserInfo returns the user that the API server sees in the configuration.
func UserInfo(t testing.TB, config *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	review, err := Clientset(t, config).AuthenticationV1().SelfSubjectReviews().Create(t.Context(),
		&authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return review.Status.UserInfo
}

// Token returns a token of a new ServiceAccount that may do nothing but what the rules
// allow; the API server knows them soon, but not at once.
func Token(t testing.TB, config *rest.Config, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	api := Clientset(t, config)
	name := metav1.ObjectMeta{GenerateName: "test-"}
	accounts := api.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	account, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: name}, metav1.CreateOptions{})
	require.NoError(t, err)
	role, err := api.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = api.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: name,
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	request, err := accounts.CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return request.Status.Token
}

// MayGet is the rule that allows to get URLs that are no resources.
func MayGet(urls ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: urls}
}
