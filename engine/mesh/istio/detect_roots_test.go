package istio

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// newRoot makes a self-signed certificate, and its fingerprint.
func newRoot(t *testing.T) (bundle, fingerprint string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	sum := sha256.Sum256(der)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), hex.EncodeToString(sum[:])
}

func TestFingerprints(t *testing.T) {
	t.Parallel()
	a, isA := newRoot(t)
	b, isB := newRoot(t)
	notDER := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("no certificate")}))
	key := string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: []byte("hush")}))
	for name, tt := range map[string]struct {
		text string
		want []string
		err  string
	}{
		"one":                  {text: a, want: []string{isA}},
		"two":                  {text: a + b, want: []string{isA, isB}},
		"text around":          {text: "# the old one\n" + a + "\n# the new one\r\n" + strings.ReplaceAll(b, "\n", "\r\n") + "\n", want: []string{isA, isB}},
		"nothing":              {text: "", err: "it has no certificate"},
		"text":                 {text: "garbage", err: "it has no certificate"},
		"no certificate":       {text: a + notDER, err: "certificate 2: "},
		"a key":                {text: a + key, err: `it contains a "EC PRIVATE KEY"`},
		"cut off":              {text: a + b[:len(b)-40], err: "a certificate is damaged"},
		"not base64":           {text: strings.Replace(a, "MI", "!!", 1) + b, err: "a certificate is damaged"},
		"too many":             {text: strings.Repeat(a, maxRoots+1), err: "more than 32 certificates"},
		"too long":             {text: strings.Repeat(" ", maxRootsText+1), err: "more than 65536 bytes"},
		"as many as there may": {text: strings.Repeat(a, maxRoots), want: slices.Repeat([]string{isA}, maxRoots)},
	} {
		got, err := fingerprints(tt.text)
		assert.Equal(t, tt.want, got, name)
		if tt.err == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, tt.err, name)
			assert.NotContains(t, err.Error(), "hush", name)
		}
	}
}

// TestRootsOfTheMeshConfig: with ISTIO_MULTIROOT_MESH, proxies also trust the
// caCertificates of the MeshConfig.
func TestRootsOfTheMeshConfig(t *testing.T) {
	t.Parallel()
	own, isOwn := newRoot(t)
	other, isOther := newRoot(t)
	with := "caCertificates:\n- pem: |\n    " + strings.ReplaceAll(other, "\n", "\n    ") + "\n- pem: garbage\n"
	both := []string{isOwn, isOther}
	slices.Sort(both)
	for name, tt := range map[string]struct {
		config    string
		multiRoot string
		want      []string
	}{
		"as by default":        {config: with, want: []string{isOwn}},
		"multi-root":           {config: with, multiRoot: "true", want: both},
		"multi-root, no other": {config: "trustDomain: a\n", multiRoot: "true", want: []string{isOwn}},
		"broken settings":      {config: "trustDomain: [a]\n", multiRoot: "true"},
		"broken, no others":    {config: "trustDomain: [a]\n", want: []string{isOwn}},
		"fetched":              {config: with + "- spiffeBundleUrl: https://a.example\n", multiRoot: "true"},
	} {
		b := clustertest.New("cluster-1")
		istiod := b.Istiod(defaultRevision)
		istiod.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: multiRoot, Value: tt.multiRoot}}
		b.ConfigMaps[0].Data = map[string]string{settingsKey: tt.config}
		for namespace, text := range map[string]string{"istio-system": own, "team": other} {
			b.ConfigMaps = append(b.ConfigMaps, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: rootsName, Namespace: namespace}, Data: map[string]string{rootsKey: text},
			})
		}
		got := discovery.Discover(b.Cluster, discovery.Options{Detectors: detectors})
		require.Len(t, got.Meshes, 1, name)
		assert.Equal(t, tt.want, got.Meshes[0].Spec.Istio.RootFingerprints, name)
		assert.Equal(t, strings.HasPrefix(name, "broken"), len(got.Issues) > 0, name)
	}
}

// TestRootsWhileTheSettingsAreUnread: istiod's Deployment is made again, and its two
// ConfigMaps are read one after the other. What is known of the mesh stays, unless its own
// roots are others now.
func TestRootsWhileTheSettingsAreUnread(t *testing.T) {
	t.Parallel()
	own, isOwn := newRoot(t)
	other, isOther := newRoot(t)
	both := []string{isOwn, isOther}
	slices.Sort(both)
	b := clustertest.New("cluster-1")
	b.Istiod(defaultRevision).Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: multiRoot, Value: "true"}}
	b.ConfigMaps[0].Data = map[string]string{settingsKey: "caCertificates:\n- pem: |\n    " + strings.ReplaceAll(other, "\n", "\n    ")}
	roots := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: rootsName, Namespace: "istio-system"}, Data: map[string]string{rootsKey: own},
	}
	b.ConfigMaps = append(b.ConfigMaps, roots)
	first := discovery.Discover(b.Cluster, discovery.Options{Detectors: detectors}).Meshes
	require.Len(t, first, 1)
	require.Equal(t, both, first[0].Spec.Istio.RootFingerprints)

	b.Unread = []snapshot.Unread{{Ref: configMapRef("istio"), Reason: "later"}}
	b.ConfigMaps = []*corev1.ConfigMap{roots}
	stored := discovery.Options{Detectors: detectors, Stored: &snapshot.Management{Namespace: "gloo-mesh", Meshes: first}}
	got := discovery.Discover(b.Cluster, stored).Meshes
	require.Len(t, got, 1)
	assert.Equal(t, first[0].Spec, got[0].Spec)

	roots.Data = map[string]string{rootsKey: own + other}
	assert.Equal(t, both, discovery.Discover(b.Cluster, stored).Meshes[0].Spec.Istio.RootFingerprints, "all of them are known")
	third, _ := newRoot(t)
	roots.Data = map[string]string{rootsKey: own + third}
	assert.Empty(t, discovery.Discover(b.Cluster, stored).Meshes[0].Spec.Istio.RootFingerprints, "nobody knows whether the others stayed")
}

func FuzzFingerprints(f *testing.F) {
	const begin, end = "-----BEGIN CERTIFICATE-----\n", "\n-----END CERTIFICATE-----\n"
	for _, seed := range []string{"", begin, begin + end, begin + "MIIB" + end, begin + "A: b\n\nMIIB" + end, begin + begin + "MIIB" + end} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := fingerprints(text)
		if (len(got) == 0) != (err != nil) {
			t.Fatalf("%d fingerprints and error %v", len(got), err)
		}
	})
}
