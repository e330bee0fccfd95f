package cluster

import (
	"bytes"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
)

// lists waits until `meshctl cluster list` prints lines that match: on a busy machine, an API server may not answer it in time.
func lists(t *testing.T, meshctl func(args ...string) error, out *bytes.Buffer, lines ...string) {
	t.Helper()
	waittest.Until(t, strings.Join(lines, " and ")+" are listed", func() bool {
		require.NoError(t, meshctl("list"))
		return !slices.ContainsFunc(lines, func(line string) bool { return !regexp.MustCompile(line).MatchString(out.String()) })
	})
}

// TestRegisterRenewRun renews the credentials of two clusters with one command that names
// neither of them.
func TestRegisterRenewRun(t *testing.T) {
	t.Parallel()
	all := contexts(t)
	f, out, errs := testFactory(all)
	f.Contexts = func(string) ([]string, string, error) { return slices.Sorted(maps.Keys(all)), "", nil }
	meshctl := func(args ...string) error {
		out.Reset()
		errs.Reset()
		return execute(t, NewCmd(f), append(args, "--mgmt-context", "cluster-1")...)
	}
	require.NoError(t, meshctl("register", "east", "--remote-context", "cluster-1"))
	require.NoError(t, meshctl("register", "west", "--remote-context", "cluster-2", "--remote-namespace", "mesh-agent", "--token-ttl", "168h"))
	lists(t, meshctl, out, `(?m)^west +healthy .* [67]d`)
	require.NoError(t, meshctl("register", "--renew"))
	assert.Contains(t, errs.String(), "nothing changed")

	// The one expired, the other is rejected.
	change := func(name string, change func(*corev1.Secret)) {
		t.Helper()
		secret := sandboxtest.Secret(t, all["cluster-1"], "gloo-mesh", name)
		change(secret)
		_, err := sandboxtest.Clientset(t, all["cluster-1"]).CoreV1().Secrets("gloo-mesh").Update(t.Context(), secret, metav1.UpdateOptions{})
		require.NoError(t, err)
	}
	change("east", func(s *corev1.Secret) {
		s.Annotations[cluster.IssuedAnnotation] = time.Now().Add(-25 * time.Hour).UTC().Format(time.RFC3339)
		s.Annotations[cluster.ExpiresAnnotation] = time.Now().Add(-time.Hour).UTC().Format(time.RFC3339)
	})
	spoil := func(s *corev1.Secret) {
		c, _, err := cluster.ParseSecret(s)
		require.NoError(t, err)
		c.Token = "garbage"
		s.Data[cluster.SecretKey], err = cluster.EncodeKubeconfig("west", c)
		require.NoError(t, err)
	}
	change("west", spoil)
	lists(t, meshctl, out, "(?m)^east +denied .*run `meshctl cluster register --renew`$", "(?m)^west +denied .*run `meshctl cluster register --renew`$")

	// Nobody who may register the one is in the kubeconfig.
	administrator := all["cluster-2"]
	all["cluster-2"] = rest.AnonymousClientConfig(administrator)
	err := meshctl("register", "--renew")
	require.ErrorContains(t, err, "not registered again: west (1 of 2)")
	assert.Equal(t, cmdutil.ExitFailure, cmdutil.ExitCode(err))
	assert.Regexp(t, `(?m)^east +renewed +cluster-1 +the token expired`, out.String())
	assert.Regexp(t, `(?m)^west +remains +- +the cluster refuses the credential.*no context of the kubeconfig leads to it.*could not be used: cluster-2, typo`, out.String())

	all["cluster-2-admin"] = administrator
	require.NoError(t, meshctl("register", "--renew"))
	assert.Regexp(t, `(?m)^west +renewed +cluster-2-admin +`, out.String())
	lists(t, meshctl, out, `(?m)^east +healthy .* 2[34]h`, `(?m)^west +healthy .* [67]d`) // with the lifetimes with which they were registered
	stored := sandboxtest.Secret(t, all["cluster-1"], "gloo-mesh", "west")
	c, _, err := cluster.ParseSecret(stored)
	require.NoError(t, err)
	assert.Regexp(t, "^system:serviceaccount:mesh-agent:west-.....$", sandboxtest.UserInfo(t, &rest.Config{
		Host: c.Server, BearerToken: c.Token, TLSClientConfig: rest.TLSClientConfig{CAData: c.CA, ServerName: c.ServerName}}).Username)
	require.NoError(t, meshctl("register", "--renew", "-o", "json"))
	assert.Equal(t, "[]\n", out.String())
}
