package local

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo/proc"
)

func created(t *testing.T) *Cluster {
	t.Helper()
	c, err := create(Options{Name: "cluster-1", Dir: filepath.Join(t.TempDir(), "c"), Helper: "/helper", Index: 1})
	require.NoError(t, err)
	return c
}

func TestStateIsFoundAgain(t *testing.T) {
	t.Parallel()
	c := created(t)
	p := proc.Process{Spec: proc.Spec{Name: Etcd, Path: "/helper", Args: []string{"etcd"}}, PID: 1 << 30, Started: "7"}
	c.state.put(proc.Process{Spec: proc.Spec{Name: Etcd}})
	c.state.put(p)
	require.NoError(t, c.state.write(c.dir))

	again, err := Open(c.dir, nil)
	require.NoError(t, err)
	assert.Equal(t, c.state, again.state)
	assert.Equal(t, []proc.Process{p}, again.Processes(), "the second process of a role replaces the first")
	require.NoError(t, again.Stop(t.Context()), "to stop a process that is gone is not an error")
	require.ErrorContains(t, again.Kill(t.Context(), Istiod), "never had a process istiod")
}

func TestOpenWithoutACluster(t *testing.T) {
	t.Parallel()
	_, err := Open(t.TempDir(), nil)
	require.ErrorIs(t, err, ErrNoCluster)
}

func TestPortsDiffer(t *testing.T) {
	t.Parallel()
	c := created(t)
	seen := map[int]string{}
	for name, port := range c.state.Ports {
		assert.Empty(t, seen[port], "%s has the same port", name)
		seen[port] = name
	}
	names := slices.Concat(slices.Collect(maps.Values(portNames()))...)
	assert.Len(t, seen, len(names))
}

func TestSecretsAreTheOwnersAlone(t *testing.T) {
	t.Parallel()
	c := created(t)
	files := 0
	require.NoError(t, filepath.WalkDir(c.dir, func(path string, entry os.DirEntry, err error) error {
		require.NoError(t, err)
		info, err := entry.Info()
		require.NoError(t, err)
		assert.Zero(t, info.Mode().Perm()&0o077, "%s is open to others: %s", path, info.Mode())
		files++
		return nil
	}))
	assert.Greater(t, files, 10)
}

func TestClientsAreKnownToTheAPIServerOnly(t *testing.T) {
	t.Parallel()
	c := created(t)
	for _, client := range clients() {
		config, err := clientcmd.LoadFromFile(c.pki.file(client.file))
		require.NoError(t, err)
		require.Equal(t, "cluster-1", config.CurrentContext)
		user := config.AuthInfos[config.Contexts["cluster-1"].AuthInfo]
		pair, err := tls.X509KeyPair(user.ClientCertificateData, user.ClientKeyData)
		require.NoError(t, err)
		assert.Equal(t, client.subject.CommonName, pair.Leaf.Subject.CommonName)
		assert.Equal(t, client.subject.Organization, pair.Leaf.Subject.Organization)

		usage := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots(t, c, "ca.crt"), KeyUsages: usage})
		require.NoError(t, err)
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots(t, c, "etcd-ca.crt"), KeyUsages: usage})
		require.Error(t, err, "%s could read etcd past the API server", client.file)
	}
}

func TestAPIServerCertificateServesLoopback(t *testing.T) {
	t.Parallel()
	c := created(t)
	pair, err := tls.LoadX509KeyPair(c.pki.file("apiserver.crt"), c.pki.file("apiserver.key"))
	require.NoError(t, err)
	for _, name := range []string{"127.0.0.1", "localhost"} {
		_, err = pair.Leaf.Verify(x509.VerifyOptions{Roots: roots(t, c, "ca.crt"), DNSName: name})
		require.NoError(t, err, name)
	}
}

func roots(t *testing.T, c *Cluster, file string) *x509.CertPool {
	t.Helper()
	data, err := os.ReadFile(c.pki.file(file))
	require.NoError(t, err)
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(data))
	return pool
}
