package cluster_test

import (
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestABadCredentialDoesNotTakeThePlaceOfAGoodOne changes the Secret of a cluster that is in
// use to credentials that do not work, or work less.
func TestABadCredentialDoesNotTakeThePlaceOfAGoodOne(t *testing.T) {
	t.Parallel()
	const name = "good-first"
	config := registerSelf(t, name)
	good, _, err := cluster.ParseSecret(sandboxtest.Secret(t, config, name, name))
	require.NoError(t, err)
	other := httptest.NewTLSServer(nil)
	t.Cleanup(other.Close)
	// changed is the good credential, but for one thing.
	changed := func(change func(*cluster.Credential)) []byte {
		c := *good
		change(&c)
		data, err := cluster.EncodeKubeconfig(name, &c)
		require.NoError(t, err)
		return data
	}
	withToken := func(token string) []byte { return changed(func(c *cluster.Credential) { c.Token = token }) }
	localhost := "https://localhost" + strings.TrimPrefix(good.Server, "https://127.0.0.1")
	bad := []struct {
		name       string
		kubeconfig []byte
		want       string
	}{
		{"garbage", []byte{0}, "not valid YAML"},
		{"a program", []byte("users: [{user: {exec: {command: sh}}}]"), "it runs a program (exec)"},
		{"no certificates", changed(func(c *cluster.Credential) { c.CA = []byte("no PEM") }), "certificate"},
		{"an address at which nothing listens", changed(func(c *cluster.Credential) { c.Server = "https://" + sandboxtest.Address(t) }), "refuses connections"},
		{"the certificates of another server", changed(func(c *cluster.Credential) {
			c.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: other.Certificate().Raw})
		}), "certificate"},
		{"a token that was never one", withToken("garbage"), "rejects the credential"},
		{"a revoked token", withToken(accountToken(t, config, name, "revoked", true)), "rejects the credential"},
		{"a token that may nothing", withToken(accountToken(t, config, name, "nothing", false)), "not allowed to get namespaces/kube-system"},
		{"the same at another address", changed(func(c *cluster.Credential) {
			c.Server, c.Token = localhost, accountToken(t, config, name, "nothing-there", false)
		}), "not allowed to get namespaces/kube-system"},
		{"a token that may less", withToken(accountToken(t, config, name, "less", false,
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces", "pods"}, Verbs: []string{"get", "list", "watch"}})),
			"list certificaterequests and"},
		{"a token that may read what others write, but not what is written here", withToken(accountToken(t, config, name, "blind", false, readRules(snapshot.Watch)...)),
			"not allowed to list podbouncedirectives"},
	}
	_, r := run(t, config, name)
	members, _ := r.state()
	first := members[name].Config
	user := sandboxtest.UserInfo(t, first)
	for _, c := range bad {
		setKubeconfig(t, config, name, c.kubeconfig)
		// Whatever becomes of it, it can be seen: it is refused, ends the connection, or is used.
		var now cluster.Connection
		require.Eventually(t, func() bool {
			members, _ := r.state()
			now = members[name]
			return now.Refused != nil || now.Err != nil || now.Config != first || userName(t, first) != user.Username
		}, waittest.Limit(), 20*time.Millisecond, c.name)
		t.Logf("%s: refused: %v; error: %v; the same connection: %v, as %q", c.name, now.Refused, now.Err, now.Config == first, userName(t, first))
		assert.NoError(t, now.Err, c.name)
		assert.Same(t, first, now.Config, c.name)
		assert.ErrorContains(t, now.Refused, "the previous connection stays in use", c.name)
		assert.ErrorContains(t, now.Refused, c.want, c.name)
		assert.Equal(t, user.Username, userName(t, first), c.name)
		assert.NotEmpty(t, now.UID, c.name)
		fingerprint := cluster.Fingerprint(&corev1.Secret{Data: map[string][]byte{cluster.SecretKey: c.kubeconfig}})
		require.Eventually(t, func() bool { return r.observedOf(name) == fingerprint }, waittest.Limit(), 20*time.Millisecond, "%s: whose refusal it is", c.name)

		setKubeconfig(t, config, name, withToken(good.Token))
		r.eventually(t, c.name+": restored", func(m map[string]cluster.Connection) bool {
			return m[name].Refused == nil && m[name].Err == nil && userName(t, m[name].Config) == user.Username
		})
		members, _ = r.state()
		first = members[name].Config
	}
	// A good one does, and so does one that may the same at another address.
	reissue(t, config, name)
	require.Eventually(t, func() bool {
		return credentialID(t, first) != user.Extra["authentication.kubernetes.io/credential-id"][0]
	}, waittest.Limit(), 20*time.Millisecond)
	setKubeconfig(t, config, name, changed(func(c *cluster.Credential) { c.Server = localhost }))
	now := r.eventually(t, "it moves", func(m map[string]cluster.Connection) bool { return m[name].Config != first })
	require.NoError(t, now[name].Refused)
	assert.Equal(t, localhost, now[name].Config.Host)
}

// userName is whom the server sees; empty if it refuses the credential.
func userName(t *testing.T, config *rest.Config) string {
	t.Helper()
	who, err := cluster.WhoAmI(t.Context(), sandboxtest.Clientset(t, config))
	if err != nil {
		return ""
	}
	return who.Username
}

// accountToken is a token of a new ServiceAccount with the rules; revoked if the account is
// deleted again.
func accountToken(t *testing.T, config *rest.Config, namespace, name string, revoked bool, rules ...rbacv1.PolicyRule) string {
	t.Helper()
	clientset := sandboxtest.Clientset(t, config)
	_, err := clientset.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	token := newToken(t, config, namespace, name)
	if revoked {
		require.NoError(t, clientset.CoreV1().ServiceAccounts(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	if len(rules) == 0 {
		return token
	}
	role := namespace + "-" + name
	_, err = clientset.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: role}, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = clientset.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return token
}

// readRules let an account read a cluster, of the kinds with an access.
func readRules(access snapshot.Access) []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	rules := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: read}}
	for _, k := range snapshot.Kinds(snapshot.ManagedSide, access) {
		gvr := k.GroupVersionResource()
		rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{gvr.Group}, Resources: []string{gvr.Resource}, Verbs: read})
	}
	return rules
}
