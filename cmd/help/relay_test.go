package help

import (
	"crypto/x509"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestTheCertificateOfTheExample: what cert-manager makes of the Certificate in the help is one of an agent.
func TestTheCertificateOfTheExample(t *testing.T) {
	t.Parallel()
	_, after, found := strings.Cut(relayIntro, "\n  apiVersion: cert-manager.io/v1\n")
	require.True(t, found)
	text, _, found := strings.Cut(after, "\n\n")
	require.True(t, found)
	var example struct {
		Kind string
		Spec struct {
			SecretName string
			DNSNames   []string
			Usages     []string
			PrivateKey struct {
				Algorithm, RotationPolicy string
				Size                      int
			}
			IssuerRef struct{ Kind, Name string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &example), "%s", text)
	assert.Equal(t, "Certificate", example.Kind)
	assert.Equal(t, snapshot.RelayClientSecret, example.Spec.SecretName)
	// A certificate is for both ends of mutual TLS (cert-manager: usages of a Certificate).
	assert.Subset(t, example.Spec.Usages, []string{"client auth", "server auth"})
	cluster, err := identity.ClusterOf(&x509.Certificate{DNSNames: example.Spec.DNSNames}, "plane-1")
	require.NoError(t, err)
	assert.Equal(t, "cluster-2", cluster)
	assert.NotEmpty(t, example.Spec.IssuerRef.Name)
}
