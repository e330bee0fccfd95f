package wire

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/waittest"
)

// foreignDomain: the administrator of cluster-2, who has the key of its mesh's CA, makes an identity of cluster-1; and then claims
// the trust domain of cluster-1 for the mesh.
func foreignDomain(t *testing.T, e *environment) {
	t.Helper()
	e.tenantOf(t, "cluster-2")
	const details = "details.bookinfo.svc.cluster-1.global"
	const ratings = "ratings.bookinfo.svc.cluster-1.global"
	from := e.pod(t, "cluster-2", "reviews-v1")
	as := func(name, sni, spiffe string) string {
		return e.through(t, "cluster-2", "cluster-1", name, sni, "mode: MUTUAL, insecureSkipVerify: true, "+e.mint(t, spiffe))
	}
	forged := as("forged", details, "spiffe://cluster-1.example/ns/bookinfo/sa/bookinfo-productpage")
	closed := as("closed", details, "spiffe://cluster-2.example/ns/bookinfo/sa/bookinfo-reviews")
	own := as("own", ratings, "spiffe://cluster-2.example/ns/bookinfo/sa/bookinfo-reviews")
	waittest.NoError(t, "who may call, may call like this", func() error {
		return e.allAre(t.Context(), from, app.Call{URL: own, Count: 10}, "cluster-1 ratings-v1")
	})
	waittest.NoError(t, "the service checks who calls", func() error {
		x, err := e.one(t.Context(), from, app.Call{URL: closed})
		if err == nil && x.status != 403 {
			err = fmt.Errorf("%d %s", x.status, x.error)
		}
		return err
	})
	waittest.NoError(t, "nobody believes the other identity", func() error { return e.noneAnswered(t.Context(), from, app.Call{URL: forged, Count: 10}) })

	e.claims(t, "cluster-2", "cluster-1.example")
	e.warns(t, "says that its trust domain is cluster-1.example")
	for _, constraint := range e.authority(t, "cluster-2").certs[0].PermittedURIDomains {
		assert.Equal(t, "cluster-2.example", constraint)
	}
	asked, err := e.issued(t, "cluster-2")
	require.NoError(t, err)
	assert.NotContains(t, fmt.Sprint(asked), "cluster-1.example")
}

// claims changes the trust domain in the MeshConfig of a mesh for the time of the test, and waits until it has its own again.
func (e *environment) claims(t *testing.T, cluster, domain string) {
	t.Helper()
	admin, err := e.clusters[cluster].Client()
	require.NoError(t, err)
	configMaps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	write := func(ctx context.Context, domain string) (before string) {
		config, err := admin.Get(ctx, configMaps, "istio-system", "istio")
		require.NoError(t, err)
		data, _, _ := unstructured.NestedStringMap(config.Object, "data")
		lines := strings.Split(data["mesh"], "\n")
		for i, line := range lines {
			if value, found := strings.CutPrefix(line, "trustDomain: "); found {
				before, lines[i] = value, "trustDomain: "+domain
			}
		}
		require.NotEmpty(t, before, data["mesh"])
		data["mesh"] = strings.Join(lines, "\n")
		out := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "istio", "namespace": "istio-system"}}}
		require.NoError(t, unstructured.SetNestedStringMap(out.Object, data, "data"))
		require.NoError(t, admin.Apply(ctx, out))
		return before
	}
	before := write(t.Context(), domain)
	t.Cleanup(func() {
		write(context.WithoutCancel(t.Context()), before)
		waittest.NoError(t, "the mesh has its own name", func() error {
			warnings, err := e.warnings(t)
			if err == nil && strings.Contains(warnings, "says that its trust domain is "+domain) {
				err = errors.New(warnings)
			}
			return err
		})
	})
}

// signer is the CA of a mesh with its key, as its administrator has it.
type signer struct {
	certs []*x509.Certificate
	key   crypto.Signer
	chain []byte
}

func (e *environment) authority(t *testing.T, cluster string) signer {
	t.Helper()
	admin, err := e.clusters[cluster].Client()
	require.NoError(t, err)
	secret, err := admin.Get(t.Context(), kube.Secrets(), "istio-system", "cacerts")
	require.NoError(t, err)
	data := func(key string) []byte {
		text, _, _ := unstructured.NestedString(secret.Object, "data", key)
		decoded, err := base64.StdEncoding.DecodeString(text)
		require.NoError(t, err)
		return decoded
	}
	s := signer{chain: data("cert-chain.pem")}
	for block, rest := pem.Decode(data("ca-cert.pem")); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		require.NoError(t, err)
		s.certs = append(s.certs, cert)
	}
	require.NotEmpty(t, s.certs)
	block, _ := pem.Decode(data("ca-key.pem"))
	require.NotNil(t, block)
	var key any
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	require.NoError(t, err)
	s.key = key.(crypto.Signer)
	return s
}

// mint signs an identity with the CA of cluster-2, and returns the fields of a DestinationRule that use it.
func (e *environment) mint(t *testing.T, spiffe string) string {
	t.Helper()
	ca := e.authority(t, "cluster-2")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	id, err := url.Parse(spiffe)
	require.NoError(t, err)
	now := time.Now()
	leaf, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), NotBefore: now.Add(-time.Minute), NotAfter: now.Add(time.Hour), URIs: []*url.URL{id},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}, ca.certs[0], key.Public(), ca.key)
	require.NoError(t, err)
	dir := t.TempDir()
	files := map[string][]byte{
		"cert.pem": append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf}), ca.chain...),
		"key.pem":  pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: marshal(t, key)}),
	}
	for name, data := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	return fmt.Sprintf("clientCertificate: %s/cert.pem, privateKey: %s/key.pem", dir, dir)
}

func certificates(plural string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "certificates.mesh.gloo.solo.io", Version: "v1", Resource: plural}
}

// issued are the specs of what meshctl has the agent of a cluster ask for.
func (e *environment) issued(t *testing.T, cluster string) (specs []any, err error) {
	t.Helper()
	admin, err := e.clusters[cluster].Client()
	require.NoError(t, err)
	list, err := admin.List(t.Context(), certificates("issuedcertificates"), "")
	for _, o := range list {
		specs = append(specs, o.Object["spec"])
	}
	return specs, err
}

// preparedRequest: the administrator of cluster-2 has prepared a request for a certificate of whomever it likes, of the name that the
// one of its gateways will have, when an administrator of all limits the trust to gateways. It is not signed, neither
// before that edit, nor meanwhile, nor after.
func preparedRequest(t *testing.T, e *environment) {
	t.Helper()
	namespace, err := kube.Namespace(e.clusters["cluster-2"].AgentFiles().Kubeconfig)
	require.NoError(t, err)
	const victim = "spiffe://victim.anything/ns/istio-system/sa/istiod"
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	id, err := url.Parse(victim)
	require.NoError(t, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{id}}, key)
	require.NoError(t, err)
	root, _ := e.trust(t)
	text := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	const name = "istiod-istio-system-cluster-2-gateways"
	admin, err := e.clusters["cluster-2"].Client()
	require.NoError(t, err)
	prepared := fmt.Appendf(nil, `apiVersion: certificates.mesh.gloo.solo.io/v1
kind: IssuedCertificate
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  hosts: [%[3]q]
  issuedCertificateSecret: {name: nowhere, namespace: istio-system}
  certOptions: {ttlDays: 3650, orgName: Pwned}
  trust: {root: %[4]s}
---
apiVersion: certificates.mesh.gloo.solo.io/v1
kind: CertificateRequest
metadata: {name: %[1]s, namespace: %[2]s}
spec: {certificateSigningRequest: %[5]s}
`, name, namespace, victim, root, text)
	require.NoError(t, admin.ApplyYAML(t.Context(), prepared))
	signed := func() error {
		list, err := admin.List(t.Context(), certificates("certificaterequests"), namespace)
		for i := range list {
			cert, _, _ := unstructured.NestedString(list[i].Object, "status", "signedCertificate")
			der, _ := base64.StdEncoding.DecodeString(cert)
			for block, rest := pem.Decode(der); block != nil; block, rest = pem.Decode(rest) {
				if c, parsed := x509.ParseCertificate(block.Bytes); parsed == nil && (strings.Contains(fmt.Sprint(c.URIs), "victim") || strings.Contains(c.Subject.String(), "Pwned")) {
					return errors.Join(err, fmt.Errorf("%s was signed: %s for %v", list[i].GetName(), c.Subject, c.URIs))
				}
			}
		}
		return err
	}
	e.sees(t)
	require.NoError(t, signed())
	vm, err := e.management.Get(t.Context(), kube.Policies("virtualmeshes"), "gloo-mesh", "virtual-mesh")
	require.NoError(t, err)
	mtls, _, _ := unstructured.NestedMap(vm.Object, "spec", "mtlsConfig")
	e.trustModel(t, map[string]any{"limited": map[string]any{}})
	e.warns(t, "an object of this name exists that is not ours")
	e.sees(t)
	require.NoError(t, signed())
	require.NoError(t, admin.DeleteYAML(t.Context(), prepared))
	e.establishes(t, "Gateway", signed)
	e.trustModel(t, mtls)
	e.establishes(t, "", signed)
}

// establishes waits until the trust is established with certificates of a usage, and checks meanwhile that nothing is wrong.
func (e *environment) establishes(t *testing.T, usage string, wrong func() error) {
	t.Helper()
	waittest.NoError(t, "the trust is established with certificates of usage "+usage, func() error {
		require.NoError(t, wrong())
		vm, err := e.management.Get(t.Context(), kube.Policies("virtualmeshes"), "gloo-mesh", "virtual-mesh")
		if err != nil {
			return err
		}
		observed, _, _ := unstructured.NestedInt64(vm.Object, "status", "observedGeneration")
		is, _, _ := unstructured.NestedString(vm.Object, "status", "trust", "usage")
		if _, stands := e.trust(t); observed != vm.GetGeneration() || is != usage || !settled(stands) {
			err = fmt.Errorf("generation %d of %d, usage %q: %s", observed, vm.GetGeneration(), is, stands)
		}
		return err
	})
}
