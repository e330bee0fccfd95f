package registration_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// serveInside installs meshctl: its Deployment, of which no pod runs.
func serveInside(t *testing.T, management *rest.Config) {
	t.Helper()
	_, err := registration.Install(t.Context(), registration.InstallOptions{Config: management, Image: "meshctl:1"})
	require.NoError(t, err)
}

func stored(t *testing.T, management *rest.Config, name string) *cluster.Credential {
	t.Helper()
	c, err := cluster.ParseKubeconfig(sandboxtest.Secret(t, management, "gloo-mesh", name).Data[cluster.SecretKey])
	require.NoError(t, err)
	return c
}

// seen is whom a server sees in a stored token, asked at the caller's own address.
func seen(t *testing.T, c *cluster.Credential, at *rest.Config) string {
	t.Helper()
	own := rest.AnonymousClientConfig(at)
	own.BearerToken = c.Token
	return sandboxtest.UserInfo(t, own).Username
}

// TestRegisterForServeInside: addresses that only the caller can dial are not stored for serve's pods, and
// those that only the pods can dial are.
func TestRegisterForServeInside(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	serveInside(t, management)
	managementBefore, remoteBefore := inventory(t, management), inventory(t, remote)
	options := registration.Options{Name: "east", RemoteConfig: remote, RemoteContext: "kind-east", MgmtConfig: management}

	for _, c := range []struct{ address, want string }{
		{"", `(of context "kind-east") does not lead the pods of meshctl serve to the cluster: it stands for the machine of whoever uses it, ` +
			"and serve runs in the management cluster (Deployment gloo-mesh/meshctl); use --api-server-address east-control-plane:6443"},
		{"localhost:6443", "https://localhost:6443 (of context"},
		{"kubernetes.default.svc:443", "for them, that is the management cluster"},
	} {
		o := options
		o.APIServerAddress = c.address
		_, err := registration.Register(t.Context(), o)
		require.ErrorContains(t, err, c.want)
		var wrong *registration.AddressError
		require.ErrorAs(t, err, &wrong)
	}
	assert.Equal(t, managementBefore, inventory(t, management))
	assert.Equal(t, remoteBefore, inventory(t, remote))

	itself := registration.Options{Name: "west", RemoteConfig: management, MgmtConfig: management, KeepCredential: true}
	report, err := registration.Register(t.Context(), itself)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(report.Notes, "\n"), "serve reaches it at https://kubernetes.default.svc, so this address is stored instead of https://127.0.0.1:")
	c := stored(t, management, "west")
	assert.Equal(t, "https://kubernetes.default.svc", c.Server)
	assert.Empty(t, c.ServerName, "the certificate covers the name")
	assert.Equal(t, "system:serviceaccount:gloo-mesh-agent:west", seen(t, c, management))
	report, err = registration.Register(t.Context(), itself)
	require.NoError(t, err)
	assert.True(t, report.Unchanged(), "%+v", report.Changes)

	options.KeepCredential = true
	there := options
	there.APIServerAddress = "east-control-plane.invalid:6443"
	report, err = registration.Register(t.Context(), there)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(report.Notes, "\n"), "https://east-control-plane.invalid:6443 cannot be reached from here")
	c = stored(t, management, "east")
	assert.Equal(t, "https://east-control-plane.invalid:6443", c.Server)
	assert.Equal(t, "127.0.0.1", c.ServerName, "what the certificate covers")
	assert.Equal(t, "system:serviceaccount:gloo-mesh:east", seen(t, c, remote))
	for _, again := range []registration.Options{there, options} {
		report, err = registration.Register(t.Context(), again)
		require.NoError(t, err, "again, and without an address")
		assert.True(t, report.Unchanged(), "%+v", report.Changes)
	}
	assert.Contains(t, strings.Join(report.Notes, "\n"), "east-control-plane.invalid:6443, is kept")

	for _, name := range []string{"east", "west"} {
		expire(t, management, name)
	}
	done, err := registration.Renew(t.Context(), registration.RenewOptions{
		MgmtConfig: management, Contexts: []registration.Context{{Name: "kind-west", Config: management}, {Name: "kind-east", Config: remote}}})
	require.NoError(t, err)
	require.Len(t, done, 2)
	for i, want := range []*cluster.Credential{c, {Server: "https://kubernetes.default.svc"}} {
		assert.NotEmpty(t, done[i].Context, done[i].Reason)
		renewed := stored(t, management, done[i].Cluster)
		assert.Equal(t, want.Server, renewed.Server)
		assert.Equal(t, want.ServerName, renewed.ServerName)
	}
	assert.NotEqual(t, c.Token, stored(t, management, "east").Token)

	_, err = sandboxtest.Clientset(t, management).AppsV1().Deployments("gloo-mesh").Patch(t.Context(), registration.ServeName,
		types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err, "serve runs on this machine")
	assert.Equal(t, remote.Host, stored(t, management, "east").Server)
	_, err = registration.Register(t.Context(), there)
	require.ErrorContains(t, err, "the address to store (https://east-control-plane.invalid:6443)", "and has to reach it from here")
}

// TestRegisterChecksWhatItCanReach: an address that the caller can dial is verified although serve runs inside.
func TestRegisterChecksWhatItCanReach(t *testing.T) {
	t.Parallel()
	outside := ""
	addresses, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && !ip.IP.IsLoopback() && !ip.IP.IsLinkLocalUnicast() {
			outside = ip.IP.String()
		}
	}
	if outside == "" {
		t.Skip("this machine has no address but loopback ones")
	}
	management, remote := pair(t)
	serveInside(t, management)
	options := registration.Options{Name: "east", RemoteConfig: remote, MgmtConfig: management}
	proxy := func(to string) string {
		u, err := url.Parse(to)
		require.NoError(t, err)
		return forwardFrom(t, net.JoinHostPort(outside, "0"), u.Host)
	}
	options.APIServerAddress = proxy(management.Host)
	_, err = registration.Register(t.Context(), options)
	require.ErrorContains(t, err, "signed by an unknown authority", "another cluster")
	options.APIServerAddress = proxy(remote.Host)
	report, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	assert.NotContains(t, strings.Join(report.Notes, "\n"), "cannot be reached from here")
	assert.Equal(t, "https://"+options.APIServerAddress, stored(t, management, "east").Server)
}

func expire(t *testing.T, management *rest.Config, name string) {
	t.Helper()
	secret := sandboxtest.Secret(t, management, "gloo-mesh", name)
	secret.Annotations[cluster.IssuedAnnotation] = time.Now().Add(-25 * time.Hour).UTC().Format(time.RFC3339)
	secret.Annotations[cluster.ExpiresAnnotation] = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	_, err := sandboxtest.Clientset(t, management).CoreV1().Secrets("gloo-mesh").Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// TestRegisterWaitsForServe: what serve said of another credential, or of another spec, does not count.
func TestRegisterWaitsForServe(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	options := registration.Options{Name: "east", RemoteConfig: remote, MgmtConfig: management, ServeWait: time.Second, KeepCredential: true}
	report, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	assert.Empty(t, report.Serve, "nobody serves")
	assert.Empty(t, report.Notes)

	holder, seconds, now := "serve-0", int32(3600), metav1.NowMicro()
	_, err = sandboxtest.Clientset(t, management).CoordinationV1().Leases("gloo-mesh").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	secret := sandboxtest.Secret(t, management, "gloo-mesh", "east")
	fingerprint := cluster.Fingerprint(secret)
	assert.Equal(t, fingerprint, cluster.Fingerprint(&corev1.Secret{Data: secret.Data}))

	for name, c := range map[string]struct {
		status map[string]any
		want   registration.ServeStatus
		note   string
		err    string
	}{
		"nothing":           {nil, registration.ServePending, "has not reported within 1s", ""},
		"of an older one":   {map[string]any{"state": "ACCEPTED", "credential": "0123", "observedGeneration": 1}, registration.ServePending, "has not reported", ""},
		"of an older spec":  {map[string]any{"state": "ACCEPTED", "credential": fingerprint, "observedGeneration": 7}, registration.ServePending, "has not reported", ""},
		"of an older serve": {map[string]any{"state": "ACCEPTED", "observedGeneration": 1}, registration.ServePending, "has not reported", ""},
		"it connects":       {map[string]any{"state": "PROCESSING", "credential": fingerprint, "observedGeneration": 1}, registration.ServePending, "has not reported", ""},
		"it is reached":     {map[string]any{"state": "ACCEPTED", "credential": fingerprint, "observedGeneration": 1}, registration.ServeReaches, "", ""},
		"it is reached, but": {map[string]any{
			"state": "FAILED", "message": "held; let go", "credential": fingerprint, "observedGeneration": 1,
			"reasons": because("WithdrawalHeld", "held", "let go"),
		}, registration.ServeReaches, "serve says: held; let go", ""},
		"it is not reached": {map[string]any{
			"state": "FAILED", "message": "unreachable: no route", "credential": fingerprint, "observedGeneration": 1,
			"reasons": because("ClusterFrozen", "no route", ""),
		}, registration.ServeFails, "", "meshctl serve does not reach it: no route; "},
		"the Secret is broken": {map[string]any{"state": "INVALID", "message": "broken", "credential": fingerprint, "observedGeneration": 1}, registration.ServeFails, "", "meshctl serve does not reach it: broken; "},
	} {
		setStatus(t, management, "east", c.status)
		report, err := registration.Register(t.Context(), options)
		assert.Equal(t, c.want, report.Serve, name)
		if c.err == "" {
			require.NoError(t, err, name)
		} else {
			var failed *registration.ServeError
			require.ErrorAs(t, err, &failed, name)
			require.ErrorContains(t, err, "cluster east is registered, but "+c.err, name)
			assert.Contains(t, err.Error(), "meshctl cluster deregister east")
		}
		if c.note == "" {
			assert.Empty(t, report.Notes, name)
		} else {
			assert.Contains(t, strings.Join(report.Notes, "\n"), c.note, name)
		}
	}
}

// because is a reason in a status.
func because(code, what, hint string) []any {
	return []any{map[string]any{"code": code, "what": what, "hint": hint, "releaseCode": "ab"}}
}

// TestMessagesDecideNothing: whatever the words of serve are, commands answer the same.
func TestMessagesDecideNothing(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	_, err := registration.Register(t.Context(), registration.Options{Name: "east", RemoteConfig: remote, MgmtConfig: management})
	require.NoError(t, err)
	holder, seconds, now := "serve-0", int32(3600), metav1.NowMicro()
	_, err = sandboxtest.Clientset(t, management).CoordinationV1().Leases("gloo-mesh").Create(t.Context(), &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.LeaseName},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	fingerprint := cluster.Fingerprint(sandboxtest.Secret(t, management, "gloo-mesh", "east"))

	type answers struct {
		registered, listed registration.ServeStatus
		health             snapshot.Health
		codes              []snapshot.Code
		held               bool
		released           string
	}
	answer := func(state string, reasons []any, message string) (a answers) {
		setStatus(t, management, "east", map[string]any{"state": state, "message": message, "credential": fingerprint, "observedGeneration": 1, "reasons": reasons})
		report, _ := registration.Register(t.Context(), registration.Options{ // an error says that serve fails
			Name: "east", RemoteConfig: remote, MgmtConfig: management, ServeWait: time.Second, KeepCredential: true,
		})
		a.registered = report.Serve
		all, err := registration.List(t.Context(), registration.ListOptions{MgmtConfig: management, Timeout: waittest.Limit()})
		require.NoError(t, err)
		require.Len(t, all, 1)
		a.listed, a.health = all[0].Serve, all[0].Health
		for _, r := range all[0].Reasons {
			a.codes = append(a.codes, r.Code)
		}
		held, err := registration.Release(t.Context(), registration.ReleaseOptions{MgmtConfig: management, Name: "east"})
		require.NoError(t, err)
		a.held = held != ""
		_, err = registration.Release(t.Context(), registration.ReleaseOptions{MgmtConfig: management, Name: "east", Code: "00"})
		require.Error(t, err)
		_, a.released, _ = strings.Cut(err.Error(), "have the code ")
		a.released, _, _ = strings.Cut(a.released, ",")
		return a
	}
	seen := map[string]bool{}
	for _, c := range []struct {
		state string
		codes []snapshot.Code
	}{
		{"ACCEPTED", nil}, {"FAILED", []snapshot.Code{snapshot.ClusterFrozen}}, {"FAILED", []snapshot.Code{snapshot.WithdrawalHeld}},
		{"FAILED", []snapshot.Code{snapshot.CredentialNotRenewed}}, {"FAILED", []snapshot.Code{snapshot.SecretRefused}},
		{"FAILED", []snapshot.Code{snapshot.ClusterFrozen, snapshot.WithdrawalHeld}}, {"ACCEPTED", []snapshot.Code{snapshot.AnotherPlane}},
		{"ACCEPTED", []snapshot.Code{snapshot.ObjectUnreadable}}, {"PENDING", []snapshot.Code{snapshot.ClusterFrozen}},
	} {
		with := func(what, hint string) (all []any) {
			for _, code := range c.codes {
				all = append(all, because(string(code), what, hint)...)
			}
			return all
		}
		first := answer(c.state, with("its token cannot be renewed: no", "run `meshctl cluster release east --code cd`"), "its token cannot be renewed: no; run `meshctl cluster release east --code cd`")
		assert.Equal(t, first, answer(c.state, with("x", "y"), "z"), "%s %v", c.state, c.codes)
		seen[fmt.Sprint(first)] = true
	}
	assert.Len(t, seen, 9, "the cases differ: %v", seen)
}

// setStatus writes what serve would say.
func setStatus(t *testing.T, management *rest.Config, name string, status map[string]any) {
	t.Helper()
	client, err := dynamic.NewForConfig(management)
	require.NoError(t, err)
	all := []any{}
	if status != nil {
		all = append(all, status)
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"status": all}})
	require.NoError(t, err)
	_, err = client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace("gloo-mesh").
		Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	require.NoError(t, err)
}
