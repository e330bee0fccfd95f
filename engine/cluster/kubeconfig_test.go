package cluster_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/engine/cluster"
)

// token looks like a real one, and must not turn up in any error.
const token = "eyJhbGciOiJSUzI1NiIsImtpZCI6Ik1VQ0gifQ.eyJzdWIiOiJtdWNoIn0.c2VjcmV0"

// testCA is a certificate of nobody; only its form matters.
const testCA = `-----BEGIN CERTIFICATE-----
MIIBcjCCARmgAwIBAgIBATAKBggqhkjOPQQDAjAPMQ0wCwYDVQQDEwR0ZXN0MCAX
TESTCA
-----END CERTIFICATE-----
`

// yamlOf fills a kubeconfig that is good but for what the case changes.
func yamlOf(cluster, user string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: a\n" +
		"clusters: [{name: a, cluster: {" + cluster + "}}]\n" +
		"users: [{name: a, user: {" + user + "}}]\n" +
		"contexts: [{name: a, context: {cluster: a, user: a}}]\n"
}

const goodCluster = "server: 'https://1.2.3.4:6443'"

func goodUser() string { return "token: " + token }

func TestParseKubeconfigRefuses(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ data, want string }{
		"nothing":           {"", "it is empty"},
		"space":             {" \n\t", "it is empty"},
		"binary":            {"\x00\x01\x02", "not valid YAML"},
		"a token":           {token, "not a kubeconfig"},
		"a list":            {"- a\n- b\n", "not a kubeconfig"},
		"a token as a key":  {token + ": 1", "a field that is not accepted"},
		"too much":          {strings.Repeat("#", 1<<17), "131072 bytes"},
		"the same twice":    {yamlOf(goodCluster+", server: 'https://other'", goodUser()), "not valid YAML"},
		"wrong case":        {yamlOf("Server: 'https://1.2.3.4'", goodUser()), "its field Server"},
		"exec":              {yamlOf(goodCluster, "exec: {command: sh}"), "it runs a program (exec)"},
		"auth provider":     {yamlOf(goodCluster, "auth-provider: {name: gcp}"), "auth provider"},
		"token file":        {yamlOf(goodCluster, "tokenFile: /etc/passwd"), "(tokenFile)"},
		"key file":          {yamlOf(goodCluster, goodUser()+", client-key: /k"), "(client-key)"},
		"certificate file":  {yamlOf(goodCluster, goodUser()+", client-certificate: /c"), "(client-certificate)"},
		"private key":       {yamlOf(goodCluster, "client-key-data: YQ=="), "private key"},
		"password":          {yamlOf(goodCluster, "password: "+token), "password"},
		"impersonation":     {yamlOf(goodCluster, goodUser()+", as: admin"), "impersonates"},
		"CA file":           {yamlOf(goodCluster+", certificate-authority: /ca", goodUser()), "(certificate-authority)"},
		"no verification":   {yamlOf(goodCluster+", insecure-skip-tls-verify: true", goodUser()), "insecure-skip-tls-verify"},
		"proxy":             {yamlOf(goodCluster+", proxy-url: 'http://p'", goodUser()), "proxy-url"},
		"extensions":        {yamlOf(goodCluster+", extensions: []", goodUser()), "its field extensions"},
		"http":              {yamlOf("server: 'http://1.2.3.4'", goodUser()), "not an https URL"},
		"no server":         {yamlOf("", goodUser()), "not a URL"},
		"user in server":    {yamlOf("server: 'https://u:p@1.2.3.4'", goodUser()), "has a user"},
		"query in server":   {yamlOf("server: 'https://1.2.3.4?a=b'", goodUser()), "a query"},
		"metadata service":  {yamlOf("server: 'https://169.254.169.254'", goodUser()), "link-local"},
		"the same, mapped":  {yamlOf("server: 'https://[::ffff:169.254.169.254]'", goodUser()), "link-local"},
		"port out of range": {yamlOf("server: 'https://1.2.3.4:99999'", goodUser()), "host and port"},
		"no token":          {yamlOf(goodCluster, ""), "no usable token"},
		"token with a line": {yamlOf(goodCluster, `token: "a\nb"`), "no usable token"},
		"broken CA":         {yamlOf(goodCluster+", certificate-authority-data: YWJj", goodUser()), "no PEM certificates"},
		"half a CA": {yamlOf(goodCluster+", certificate-authority-data: "+base64.StdEncoding.EncodeToString([]byte(testCA)), goodUser()),
			"no PEM certificates"},
		"server name":    {yamlOf(goodCluster+", tls-server-name: 'a b'", goodUser()), "tls-server-name"},
		"wrong context":  {strings.Replace(yamlOf(goodCluster, goodUser()), "user: a}", "user: b}", 1), "does not lead to"},
		"wrong current":  {strings.Replace(yamlOf(goodCluster, goodUser()), "current-context: a", "current-context: b", 1), "does not lead to"},
		"two users":      {strings.Replace(yamlOf(goodCluster, goodUser()), "users: [", "users: [{name: b, user: {token: b}}, ", 1), "2 users"},
		"wrong type":     {yamlOf("server: {a: "+token+"}", goodUser()), "not a kubeconfig"},
		"unknown anchor": {"a: *" + token, "not valid YAML"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := cluster.ParseKubeconfig([]byte(c.data))
			var broken *cluster.KubeconfigError
			require.ErrorAs(t, err, &broken)
			assert.Contains(t, err.Error(), c.want)
			assert.NotContains(t, err.Error(), token)
			assert.Contains(t, err.Error(), "meshctl cluster register")
		})
	}
}

func TestParseKubeconfigAccepts(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		data string
		want cluster.Credential
	}{
		"the least":   {yamlOf(goodCluster, goodUser()), cluster.Credential{Server: "https://1.2.3.4:6443", Token: token}},
		"with a path": {yamlOf("server: 'https://rancher.example/k8s/clusters/c-1/'", goodUser()), cluster.Credential{Server: "https://rancher.example/k8s/clusters/c-1", Token: token}},
		"IPv6":        {yamlOf("server: 'https://[fd00::1]:6443', tls-server-name: kubernetes", goodUser()), cluster.Credential{Server: "https://[fd00::1]:6443", ServerName: "kubernetes", Token: token}},
		"preferences": {"preferences: {}\n" + yamlOf(goodCluster, goodUser()), cluster.Credential{Server: "https://1.2.3.4:6443", Token: token}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := cluster.ParseKubeconfig([]byte(c.data))
			require.NoError(t, err)
			assert.Equal(t, c.want, *got)
		})
	}
}

func TestEncodedKubeconfigIsReadByOthers(t *testing.T) {
	t.Parallel()
	in := &cluster.Credential{Server: "https://1.2.3.4:6443", ServerName: "kubernetes", Token: token}
	data, err := cluster.EncodeKubeconfig("cluster-1", in)
	require.NoError(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	require.NoError(t, err)
	assert.Equal(t, in.Server, config.Host)
	assert.Equal(t, in.ServerName, config.ServerName)
	assert.Equal(t, in.Token, config.BearerToken)
	back, err := cluster.ParseKubeconfig(data)
	require.NoError(t, err)
	assert.Equal(t, in, back)
}

func TestCredentialIsNotPrinted(t *testing.T) {
	t.Parallel()
	c := cluster.Credential{Server: "https://1.2.3.4", Token: token}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		assert.NotContains(t, fmt.Sprintf(verb, c), token)
		assert.NotContains(t, fmt.Sprintf(verb, &c), token)
	}
}

func FuzzParseKubeconfig(f *testing.F) {
	f.Add(yamlOf(goodCluster, goodUser()))
	f.Add(yamlOf("server: 'https://[::1%25eth0]:1/a/..//b'", goodUser()))
	f.Add(yamlOf(goodCluster+", certificate-authority-data: YWJj", "exec: {command: sh}"))
	f.Add("a: &a [*a, *a]")
	f.Add("- \x00")
	f.Add(token)
	f.Fuzz(func(t *testing.T, data string) {
		c, err := cluster.ParseKubeconfig([]byte(data))
		if err != nil {
			if len(err.Error()) > 300 || strings.Contains(err.Error(), token) || strings.ContainsAny(err.Error(), "\n\x1b\x00") {
				t.Fatalf("an error that repeats its input: %q", err)
			}
			return
		}
		if !strings.HasPrefix(c.Server, "https://") || c.Token == "" || strings.ContainsAny(c.Server+c.Token, "\r\n ") {
			t.Fatalf("accepted %+v with token %q", c, c.Token)
		}
		again, err := cluster.EncodeKubeconfig("x", c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := cluster.ParseKubeconfig(again)
		if err != nil || back.Server != c.Server || back.ServerName != c.ServerName || back.Token != c.Token || string(back.CA) != string(c.CA) {
			t.Fatalf("%v: %+v came back as %+v", err, c, back)
		}
	})
}
