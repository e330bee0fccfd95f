package registration_test

import (
	"context"
	"io"
	"net"
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
	"github.com/meshctl/meshctl/engine/registration"
)

// TestRegisterWritesNothingBeforeAllHolds tries what cannot work, and looks at
// every object of both servers afterwards.
func TestRegisterWritesNothingBeforeAllHolds(t *testing.T) {
	t.Parallel()
	management, remote := emptyPair(t)
	restricted := as(remote, "somebody")
	grant(t, remote, "somebody", []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "serviceaccounts"}, Verbs: []string{"get", "create", "patch"}},
	})
	// Like an administrator but for what the role grants: no pods.
	unable := as(remote, "unable")
	grant(t, remote, "unable", []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"namespaces", "serviceaccounts", "serviceaccounts/token"}, Verbs: []string{"*"}},
		{APIGroups: []string{rbacv1.GroupName}, Resources: []string{"*"}, Verbs: []string{"get", "list", "create", "patch"}},
	})
	insecure := rest.CopyConfig(remote)
	insecure.TLSClientConfig = rest.TLSClientConfig{Insecure: true, CertData: remote.CertData, KeyData: remote.KeyData, CertFile: remote.CertFile, KeyFile: remote.KeyFile}
	nobody := rest.AnonymousClientConfig(remote)

	cases := map[string]struct {
		change func(*registration.Options)
		want   []string
		as     any
	}{
		"a name with a dot": {
			change: func(o *registration.Options) { o.Name = "a.b" }, want: []string{`cluster name "a.b"`, "no dot"}},
		"no name": {
			change: func(o *registration.Options) { o.Name = "" }, want: []string{`cluster name ""`}},
		"a token that is too short": {
			change: func(o *registration.Options) { o.TokenTTL = time.Minute }, want: []string{"10m0s"}},
		"a server that is not there": {
			change: func(o *registration.Options) { o.RemoteConfig, o.RemoteContext = at(remote, closedPort(t)), "typo" },
			want:   []string{`remote cluster (context "typo", https://`, "refuses connections"},
			as:     &registration.UnreachableError{}},
		"a server that never answers": {
			change: func(o *registration.Options) {
				o.MgmtConfig, o.Timeout = at(management, silentPort(t)), 300*time.Millisecond
			},
			want: []string{"management cluster (https://", "does not answer in time"}, as: &registration.UnreachableError{}},
		"a credential that is refused": {
			change: func(o *registration.Options) { o.RemoteConfig = nobody },
			want:   []string{"remote cluster", "get namespaces/kube-system"}, as: &registration.PermissionError{}},
		"both servers are not there": {
			change: func(o *registration.Options) {
				o.RemoteConfig, o.MgmtConfig = at(remote, closedPort(t)), at(management, closedPort(t))
			},
			want: []string{"remote cluster (", "management cluster ("}, as: &registration.UnreachableError{}},
		"a user who may do too little": {
			change: func(o *registration.Options) { o.RemoteConfig = restricted },
			want: []string{"create clusterroles.rbac.authorization.k8s.io/gloomesh-remote-access", "create serviceaccounts/token in namespace gloo-mesh",
				"create virtualservices.networking.istio.io"},
			as: &registration.PermissionError{}},
		"a user who may not grant": {
			change: func(o *registration.Options) { o.RemoteConfig = unable },
			want:   []string{"watch pods\n", "patch virtualservices.networking.istio.io"}, as: &registration.PermissionError{}},
		"a context without verification": {
			change: func(o *registration.Options) { o.RemoteConfig = insecure }, want: []string{"verification", "certificate-authority-data"}},
		"an address that does not answer": {
			change: func(o *registration.Options) { o.APIServerAddress = strings.TrimPrefix(closedPort(t), "https://") },
			want:   []string{"the address to store", "refuses connections"}, as: &registration.UnreachableError{}},
		"an address of clouds' metadata": {
			change: func(o *registration.Options) { o.APIServerAddress = "169.254.169.254" }, want: []string{"link-local"}},
		"an address that is none": {
			change: func(o *registration.Options) { o.APIServerAddress = "host/path" }, want: []string{"want HOST or HOST:PORT"}},
	}
	managementBefore, remoteBefore := inventory(t, management), inventory(t, remote)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management}
			c.change(&options)
			_, err := registration.Register(t.Context(), options)
			require.Error(t, err)
			for _, want := range c.want {
				assert.Contains(t, err.Error(), want)
			}
			if c.as != nil {
				assertType(t, err, c.as)
			}
		})
	}
	assert.Equal(t, managementBefore, inventory(t, management))
	assert.Equal(t, remoteBefore, inventory(t, remote))
}

func assertType(t *testing.T, err error, want any) {
	t.Helper()
	switch want.(type) {
	case *registration.UnreachableError:
		var target *registration.UnreachableError
		assert.ErrorAs(t, err, &target)
	case *registration.PermissionError:
		var target *registration.PermissionError
		assert.ErrorAs(t, err, &target)
	default:
		t.Fatalf("no case for %T", want)
	}
}

func TestRegisterRefusesTakenNamesAndForeignObjects(t *testing.T) {
	t.Parallel()
	management, remote := emptyPair(t)
	_, err := registration.Register(t.Context(), registration.Options{Name: "one", RemoteConfig: remote, MgmtConfig: management})
	require.NoError(t, err)
	createSecret(t, management, "foreign", corev1.SecretTypeOpaque, map[string][]byte{"a": []byte("b")})
	createSecret(t, management, "unmarked", cluster.SecretType, map[string][]byte{"kubeconfig": sandboxtest.Secret(t, management, "gloo-mesh", "one").Data["kubeconfig"]})
	sandboxtest.MakeNamespace(t, management, "gloo-mesh-agent")
	_, err = sandboxtest.Clientset(t, management).CoreV1().ServiceAccounts("gloo-mesh-agent").Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "users"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	before := inventory(t, management)

	cases := map[string]struct {
		options registration.Options
		want    string
	}{
		"another cluster has the name": {
			registration.Options{Name: "one", RemoteConfig: management, MgmtConfig: management}, "it is the name of another cluster"},
		"the cluster has another name": {
			registration.Options{Name: "two", RemoteConfig: remote, MgmtConfig: management}, "it is registered as one already"},
		"somebody's Secret has the name": {
			registration.Options{Name: "foreign", RemoteConfig: management, MgmtConfig: management}, "Secret gloo-mesh/foreign exists and was not created by meshctl"},
		"a Secret leads elsewhere": {
			registration.Options{Name: "unmarked", RemoteConfig: management, MgmtConfig: management}, "leads to https://"},
		"somebody's ServiceAccount has the name": {
			registration.Options{Name: "users", RemoteConfig: management, MgmtConfig: management}, "ServiceAccount gloo-mesh-agent/users exists and was not created by meshctl"},
		"another management plane has the name": {
			registration.Options{Name: "one", RemoteConfig: remote, MgmtConfig: remote, MgmtNamespace: "twin"}, "another management plane"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := registration.Register(t.Context(), c.options)
			require.ErrorContains(t, err, c.want)
		})
	}
	assert.Equal(t, before, inventory(t, management))
}

func TestRegisterKeepsVerifyingAtAnotherAddress(t *testing.T) {
	t.Parallel()
	config := sandboxtest.APIServer(t)
	address := forward(t, strings.TrimPrefix(config.Host, "https://"))
	report, err := registration.Register(t.Context(), registration.Options{
		Name: "elsewhere", RemoteConfig: config, MgmtConfig: config, MgmtNamespace: "elsewhere", RemoteNamespace: "elsewhere-agent", APIServerAddress: address})
	require.NoError(t, err)
	require.NotEmpty(t, report.Notes)
	assert.Contains(t, report.Notes[0], "tls-server-name")
	stored, err := cluster.ParseKubeconfig(sandboxtest.Secret(t, config, "elsewhere", "elsewhere").Data["kubeconfig"])
	require.NoError(t, err)
	assert.Equal(t, "https://"+address, stored.Server)
	assert.Equal(t, "127.0.0.1", stored.ServerName)
	assert.NotEmpty(t, stored.CA)
}

func TestRegisterReplacesAGarbageSecret(t *testing.T) {
	t.Parallel()
	config := sandboxtest.APIServer(t)
	sandboxtest.MakeNamespace(t, config, "garbage")
	_, err := sandboxtest.Clientset(t, config).CoreV1().Secrets("garbage").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "garbage"}, Type: cluster.SecretType, Data: map[string][]byte{"kubeconfig": []byte("\x00")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = registration.Register(t.Context(), registration.Options{
		Name: "garbage", RemoteConfig: config, MgmtConfig: config, MgmtNamespace: "garbage", RemoteNamespace: "garbage-agent"})
	require.NoError(t, err)
	sandboxtest.UserInfo(t, storedConfig(t, sandboxtest.Secret(t, config, "garbage", "garbage")))
}

// as is the same server seen by a user without a group that may do everything.
func as(config *rest.Config, user string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	return config
}

func grant(t *testing.T, config *rest.Config, user string, rules []rbacv1.PolicyRule) {
	t.Helper()
	clientset := sandboxtest.Clientset(t, config)
	_, err := clientset.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = clientset.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, Name: user}},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: user},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := sandboxtest.Clientset(t, as(config, user)).CoreV1().Namespaces().Get(context.Background(), "kube-system", metav1.GetOptions{})
		assert.NoError(c, err)
	}, waittest.Limit(), 50*time.Millisecond)
}

func createSecret(t *testing.T, config *rest.Config, name string, kind corev1.SecretType, data map[string][]byte) {
	t.Helper()
	_, err := sandboxtest.Clientset(t, config).CoreV1().Secrets("gloo-mesh").Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind, Data: data}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func at(config *rest.Config, host string) *rest.Config {
	config = rest.CopyConfig(config)
	config.Host = host
	return config
}

// closedPort is the URL of a server that does not exist.
func closedPort(t *testing.T) string {
	t.Helper()
	return "https://" + sandboxtest.Address(t)
}

// silentPort is the URL of a server that accepts connections and never answers.
func silentPort(t *testing.T) string {
	t.Helper()
	listener := sandboxtest.Listen(t, "127.0.0.1:0")
	return "https://" + listener.Addr().String()
}

// forward makes a server answer at an address that its certificate does not cover.
func forward(t *testing.T, to string) string {
	t.Helper()
	return forwardFrom(t, "127.0.0.2:0", to)
}

func forwardFrom(t *testing.T, from, to string) string {
	t.Helper()
	listener := sandboxtest.Listen(t, from)
	go func() {
		for {
			in, err := listener.Accept()
			if err != nil {
				return
			}
			go pipe(in, to)
		}
	}()
	return listener.Addr().String()
}

func pipe(in net.Conn, to string) {
	defer func() { _ = in.Close() }() // the other end may have closed it
	var dialer net.Dialer
	out, err := dialer.DialContext(context.Background(), "tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	go func() { _, _ = io.Copy(out, in) }()
	_, _ = io.Copy(in, out)
}
