package agent

import (
	"context"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// injectors makes a namespace that of a control plane.
const injectors = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: {name: istio-sidecar-injector-NAMESPACE, labels: {app: sidecar-injector}}
webhooks:
- name: namespace.sidecar-injector.istio.io
  clientConfig: {service: {name: istiod, namespace: NAMESPACE}}
  objectSelector: {matchLabels: {no: pod}}
  failurePolicy: Ignore
  sideEffects: None
  admissionReviewVersions: [v1]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: NAMESPACE, labels: {app: istiod}}
spec:
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod}}
    spec: {containers: [{name: discovery, image: docker.io/istio/pilot:1.31.1}]}
`

// register registers the first cluster of a story, which is the management cluster, too, and returns what its agent may use.
func (s *story) register() *rest.Config {
	s.t.Helper()
	m := s.meshes[0]
	require.NoError(s.t, m.api.AppsV1().Deployments(m.istio).Delete(s.t.Context(), storyControlPlane, metav1.DeleteOptions{}))
	sandboxtest.Apply(s.t, m.admin, []byte(strings.ReplaceAll(injectors, "NAMESPACE", m.istio)))
	client, err := dynamic.NewForConfig(m.admin)
	require.NoError(s.t, err)
	mesh := &unstructured.Unstructured{}
	mesh.SetGroupVersionKind(snapshot.Mesh.Info().GroupVersionKind)
	mesh.SetName(m.mesh)
	mesh.SetLabels(map[string]string{snapshot.DiscoveryOwnerLabel: s.namespace, snapshot.DiscoveryClusterLabel: m.name})
	_, err = client.Resource(snapshot.Mesh.GroupVersionResource()).Namespace(s.namespace).Create(s.t.Context(), mesh, metav1.CreateOptions{})
	require.NoError(s.t, err)
	_, err = registration.Register(s.t.Context(), registration.Options{
		Name: m.name, RemoteConfig: m.admin, MgmtConfig: s.management, MgmtNamespace: s.namespace, RemoteNamespace: m.own,
		Agent: &registration.Agent{OwnRules: OwnRules, MeshRules: MeshRules(), ClusterRules: ClusterRules(), OwnerAnnotation: OwnerAnnotation, FieldManager: FieldManager, Limits: Limits},
	})
	require.NoError(s.t, err)
	accounts, err := m.api.CoreV1().ServiceAccounts(m.own).List(s.t.Context(), metav1.ListOptions{})
	require.NoError(s.t, err)
	for _, account := range accounts.Items {
		if strings.HasPrefix(account.Name, registration.AgentName("")) {
			return sandboxtest.As(s.t, m.admin, m.own, account.Name)
		}
	}
	require.FailNow(s.t, "the registration made no account for the agent")
	return nil
}

// TestCredentialOfAnAgent: who has what a registration gives the agent of a cluster, here the management cluster itself, cannot
// read a key or a credential of others, or change what is asked of it, or what was signed.
func TestCredentialOfAnAgent(t *testing.T) {
	t.Parallel()
	servers := storyServers(t)
	s := newStory(t, servers, "credential", true, lives)
	config := s.register()
	s.join("vm", s.meshes...)
	s.until("both have joined", func() bool { return s.established("vm") })
	user, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	s.triesObjects(t, user)
	s.triesSignatures(t, user)
}

// triesObjects uses each verb on what is not the agent's.
func (s *story) triesObjects(t *testing.T, user dynamic.Interface) {
	t.Helper()
	ctx, m := t.Context(), s.meshes[0]
	secrets := user.Resource(snapshot.Secret.GroupVersionResource()).Namespace(m.own)
	_, err := secrets.Get(ctx, m.mesh, metav1.GetOptions{})
	require.NoError(t, err, "its own key: the account is in force")
	for namespace, name := range map[string]string{m.own: snapshot.GatewayCertificateName(m.mesh), m.istio: snapshot.GatewaySecret} {
		own := user.Resource(snapshot.Secret.GroupVersionResource()).Namespace(namespace)
		_, err := own.Get(ctx, name, metav1.GetOptions{})
		require.True(t, apierrors.IsNotFound(err), "%s is its own, too: %v", name, err)
	}
	type place struct {
		kind            snapshot.Kind
		namespace, name string
	}
	others := map[string]place{
		"the key of the root":                 {snapshot.Secret, s.namespace, s.rootSecrets()[0].Name},
		"the credential of a cluster":         {snapshot.Secret, s.namespace, m.name},
		"the registration of a cluster":       {snapshot.KubernetesCluster, s.namespace, m.name},
		"the VirtualMesh":                     {snapshot.VirtualMesh, s.namespace, "vm"},
		"a mesh":                              {snapshot.Mesh, s.namespace, m.mesh},
		"a key of its mesh, beside the roots": {snapshot.Secret, s.namespace, m.mesh},
		"a request beside the roots":          {snapshot.CertificateRequest, s.namespace, m.mesh},
		"a key that another mesh could have":  {snapshot.Secret, m.own, s.meshes[1].mesh},
		"a key of another mesh's gateways":    {snapshot.Secret, m.own, snapshot.GatewayCertificateName(s.meshes[1].mesh)},
		"a certificate of other gateways":     {snapshot.Secret, m.istio, snapshot.GatewaySecret + "-mine"},
		"gateways of another namespace":       {snapshot.Secret, "default", snapshot.GatewaySecret},
		"an IssuedCertificate in a namespace": {snapshot.IssuedCertificate, "default", m.mesh},
		"a request in a namespace":            {snapshot.CertificateRequest, "default", m.mesh},
	}
	for what, o := range others {
		client := user.Resource(o.kind.GroupVersionResource()).Namespace(o.namespace)
		object := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{}}}
		object.SetGroupVersionKind(o.kind.Info().GroupVersionKind)
		object.SetName(o.name)
		object.SetResourceVersion("1")
		named := metav1.ListOptions{FieldSelector: "metadata.name=" + o.name}
		tries := map[string]func() error{
			"get":        func() error { _, err := client.Get(ctx, o.name, metav1.GetOptions{}); return err },
			"list":       func() error { _, err := client.List(ctx, metav1.ListOptions{}); return err },
			"list one":   func() error { _, err := client.List(ctx, named); return err },
			"watch":      func() error { return ends(client.Watch(ctx, metav1.ListOptions{})) },
			"watch one":  func() error { return ends(client.Watch(ctx, named)) },
			"update":     func() error { _, err := client.Update(ctx, object, metav1.UpdateOptions{}); return err },
			"patch":      func() error { return patched(ctx, client, o.name, "") },
			"delete":     func() error { return client.Delete(ctx, o.name, metav1.DeleteOptions{}) },
			"delete all": func() error { return client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}) },
			"create": func() error {
				made := object.DeepCopy()
				made.SetResourceVersion("")
				made.SetName(o.name + "-2")
				_, err := client.Create(ctx, made, metav1.CreateOptions{})
				return err
			},
		}
		for verb, try := range tries {
			err := try()
			refused := apierrors.IsForbidden(err) || o.kind == snapshot.Secret && verb == "create" && apierrors.IsInvalid(err) && strings.Contains(err.Error(), "only the Secrets of its meshes")
			assert.True(t, refused, "%s %s: %v", verb, what, err)
		}
	}
	s.triesItsOwn(t, user)
}

func ends(w interface{ Stop() }, err error) error {
	if err == nil {
		w.Stop()
	}
	return err
}

func patched(ctx context.Context, client dynamic.ResourceInterface, name, subresource string) error {
	var more []string
	if subresource != "" {
		more = append(more, subresource)
	}
	_, err := client.Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"hosts":["spiffe://a/ns/b/sa/c"]},"status":{"state":"FINISHED","error":"forged"}}`), metav1.PatchOptions{}, more...)
	return err
}

// triesItsOwn changes what is asked of the agent, and how it is answered.
func (s *story) triesItsOwn(t *testing.T, user dynamic.Interface) {
	t.Helper()
	ctx, m := t.Context(), s.meshes[0]
	certificates := user.Resource(snapshot.IssuedCertificate.GroupVersionResource()).Namespace(m.own)
	before, err := certificates.Get(ctx, m.mesh, metav1.GetOptions{})
	require.NoError(t, err)
	assert.True(t, apierrors.IsForbidden(patched(ctx, certificates, m.mesh, "")), "its spec is patched")
	changed := before.DeepCopy()
	require.NoError(t, unstructured.SetNestedStringSlice(changed.Object, []string{"spiffe://a/ns/b/sa/c"}, "spec", "hosts"))
	_, err = certificates.Update(ctx, changed, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsForbidden(err), "its spec is updated: %v", err)
	assert.True(t, apierrors.IsForbidden(certificates.Delete(ctx, m.mesh, metav1.DeleteOptions{})), "it is deleted")
	made := before.DeepCopy()
	made.SetName("more")
	made.SetResourceVersion("")
	_, err = certificates.Create(ctx, made, metav1.CreateOptions{})
	assert.True(t, apierrors.IsForbidden(err), "another is created: %v", err)
	require.NoError(t, patched(ctx, certificates, m.mesh, "status"), "its status is the agent's")
	after, err := certificates.Get(ctx, m.mesh, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, before.Object["spec"], after.Object["spec"], "with its status nobody changes its spec")

	requests := user.Resource(snapshot.CertificateRequest.GroupVersionResource()).Namespace(m.own)
	request, err := requests.Get(ctx, m.mesh, metav1.GetOptions{})
	require.NoError(t, err)
	// It may patch the status: what a Vault signs, the agent answers itself. What it makes up is no certificate of the root.
	answered := request.DeepCopy()
	require.NoError(t, unstructured.SetNestedField(answered.Object, "forged", "status", "error"))
	_, err = requests.UpdateStatus(ctx, answered, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsForbidden(err), "its status is updated: %v", err)
	_, err = requests.Update(ctx, answered, metav1.UpdateOptions{})
	require.NoError(t, err)
	stored, err := requests.Get(ctx, m.mesh, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, request.Object["status"], stored.Object["status"], "nobody answers by writing the request")
}

// triesSignatures asks the real issuer, by what the account may write, for what the mesh may not have.
func (s *story) triesSignatures(t *testing.T, user dynamic.Interface) {
	t.Helper()
	ctx, m, other := t.Context(), s.meshes[0], s.meshes[1]
	for _, mesh := range s.meshes {
		mesh.away = true // else it would ask for the right one again
	}
	requests := user.Resource(snapshot.CertificateRequest.GroupVersionResource()).Namespace(m.own)
	host, theirs := m.certificate().Spec.Hosts[0], other.certificate().Spec.Hosts[0]
	require.NotEqual(t, host, theirs)
	key, err := ecKey(0)
	require.NoError(t, err)
	foreign, err := pki.ReadCertificates([]byte(m.certificate().Spec.Trust.Bundle))
	require.NoError(t, err)
	taken, err := other.reader.requests(ctx)
	require.NoError(t, err)
	for what, c := range map[string]struct {
		name string
		csr  []byte
		says string
	}{
		"another mesh's identity":      {m.mesh, csr(t, key, theirs), "does not own"},
		"its own and another's":        {m.mesh, csr(t, key, host, theirs), "does not own"},
		"another trust domain":         {m.mesh, csr(t, key, "spiffe://other.example"+strings.TrimPrefix(host, "spiffe://cluster-1.example")), "does not own"},
		"another account of its mesh":  {m.mesh, csr(t, key, strings.Replace(host, "/sa/", "/sa/not-", 1)), "does not own"},
		"a name of DNS beside it":      {m.mesh, csr(t, key, host, "istiod.istio-system.svc"), "does not own"},
		"another mesh's request":       {m.mesh, taken[other.mesh].Spec.CertificateSigningRequest, "does not own"},
		"a key that it does not have":  {m.mesh, foreignCSR(t, key, foreign[0].PublicKey, host), "is not signed by its own key"},
		"the name of another mesh":     {other.mesh, csr(t, key, theirs), "no VirtualMesh asks for a certificate"},
		"a name that nobody asked for": {"more", csr(t, key, host), "no VirtualMesh asks for a certificate"},
	} {
		status := s.asks(t, requests, c.name, c.csr)
		assert.Equal(t, certificatesv1.CertificateRequestFailed, status.State, what)
		assert.Contains(t, status.Error, c.says, what)
		assert.Empty(t, status.SignedCertificate, what)
	}
	// A CA with longer paths, more usages and another subject: it gets what it may have.
	status := s.asks(t, requests, m.mesh, greedyCSR(t, key, host))
	require.Equal(t, certificatesv1.CertificateRequestFinished, status.State, status.Error)
	certs, err := pki.ReadCertificates(status.SignedCertificate)
	require.NoError(t, err)
	assert.True(t, certs[0].MaxPathLen == 0 && certs[0].MaxPathLenZero, "no CA stands below it: %d", certs[0].MaxPathLen)
	assert.Equal(t, []string{m.mesh}, []string{certs[0].Subject.CommonName})
	require.Len(t, certs[0].URIs, 1)
	assert.Equal(t, host, certs[0].URIs[0].String())
	assert.Empty(t, certs[0].DNSNames)
	assert.Empty(t, certs[0].ExtKeyUsage)
	assert.Equal(t, x509.KeyUsageCertSign|x509.KeyUsageCRLSign, certs[0].KeyUsage&^x509.KeyUsageDigitalSignature)
}

// asks writes a request with the account, and waits for the answer.
func (s *story) asks(t *testing.T, requests dynamic.ResourceInterface, name string, csr []byte) certificatesv1.CertificateRequestStatus {
	t.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	text, err := json.Marshal(certificatesv1.CertificateRequestSpec{CertificateSigningRequest: csr})
	require.NoError(t, err)
	var spec map[string]any
	require.NoError(t, json.Unmarshal(text, &spec))
	object.Object["spec"] = spec
	object.SetGroupVersionKind(snapshot.CertificateRequest.Info().GroupVersionKind)
	object.SetName(name)
	if have, err := requests.Get(t.Context(), name, metav1.GetOptions{}); err == nil {
		require.NoError(t, requests.Delete(t.Context(), have.GetName(), metav1.DeleteOptions{}))
	}
	_, err = requests.Create(t.Context(), object, metav1.CreateOptions{})
	require.NoError(t, err)
	var out certificatesv1.CertificateRequestStatus
	waittest.Until(t, "it is answered", func() bool {
		s.serve.step()
		all, err := s.meshes[0].reader.requests(t.Context())
		require.NoError(t, err)
		out = all[name].Status
		return out.ObservedGeneration == all[name].Generation
	})
	return out
}

func csr(t *testing.T, key pki.Key, hosts ...string) []byte {
	t.Helper()
	text, err := pki.NewRequest(rand.Reader, key, "Istio", hosts)
	require.NoError(t, err)
	return text
}

// foreignCSR has somebody else's public key, and the signature of a key that there is.
func foreignCSR(t *testing.T, key pki.Key, public crypto.PublicKey, host string) []byte {
	t.Helper()
	mine, err := signerOf(key)
	require.NoError(t, err)
	uri, err := url.Parse(host)
	require.NoError(t, err)
	good, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{URIs: []*url.URL{uri}}, mine)
	require.NoError(t, err)
	var parts struct {
		Info      asn1.RawValue
		Algorithm pkix.AlgorithmIdentifier
		Signature asn1.BitString
	}
	_, err = asn1.Unmarshal(good, &parts)
	require.NoError(t, err)
	// The public key is one element of the first part, and is replaced as bytes of the same form.
	own, err := x509.MarshalPKIXPublicKey(mine.Public())
	require.NoError(t, err)
	theirs, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	var info []asn1.RawValue
	for rest := parts.Info.Bytes; len(rest) > 0; {
		var element asn1.RawValue
		rest, err = asn1.Unmarshal(rest, &element)
		require.NoError(t, err)
		if string(element.FullBytes) == string(own) {
			element = asn1.RawValue{FullBytes: theirs}
		}
		info = append(info, element)
	}
	content, err := asn1.Marshal(info)
	require.NoError(t, err)
	parts.Info = asn1.RawValue{FullBytes: content}
	der, err := asn1.Marshal(parts)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// greedyCSR asks for a CA below which five others may stand, for servers and clients.
func greedyCSR(t *testing.T, key pki.Key, host string) []byte {
	t.Helper()
	mine, err := signerOf(key)
	require.NoError(t, err)
	uri, err := url.Parse(host)
	require.NoError(t, err)
	constraints, err := asn1.Marshal(struct {
		CA      bool `asn1:"optional"`
		PathLen int  `asn1:"optional,default:-1"`
	}{true, 5})
	require.NoError(t, err)
	usages, err := asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 1}, {1, 3, 6, 1, 5, 5, 7, 3, 2}})
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "kubernetes-admin", Organization: []string{"system:masters"}}, URIs: []*url.URL{uri},
		ExtraExtensions: []pkix.Extension{
			{Id: asn1.ObjectIdentifier{2, 5, 29, 19}, Critical: true, Value: constraints}, {Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Value: usages},
		},
	}, mine)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
}

// signerOf is a key as a crypto.Signer.
func signerOf(key pki.Key) (crypto.Signer, error) {
	text, err := key.PEM()
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		return parsed.(crypto.Signer), nil
	}
	return x509.ParseECPrivateKey(block.Bytes)
}
