package agent

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var gatewaysName = snapshot.GatewayCertificateName(testName)

// gatewayCluster is a cluster in which time can pass quickly.
type gatewayCluster struct {
	*cluster
	b     *pki.Authority
	ahead atomic.Int64
}

func (c *gatewayCluster) time() time.Time { return time.Now().Add(time.Duration(c.ahead.Load())) }

// askGateways asks for a certificate of a root for the gateways.
func (c *gatewayCluster) askGateways(root *pki.Authority, bundle ...*pki.Authority) {
	c.t.Helper()
	certificate := c.gateways()
	fresh := certificate == nil
	if fresh {
		certificate = &certificatesv1.IssuedCertificate{ObjectMeta: metav1.ObjectMeta{Namespace: c.own, Name: gatewaysName}}
	}
	certificate.TypeMeta = metav1.TypeMeta{APIVersion: certificatesv1.GroupVersion.String(), Kind: "IssuedCertificate"}
	certificate.Spec = certificatesv1.IssuedCertificateSpec{
		Hosts: []string{gatewayHost}, IssuedCertificateSecret: &commonv1.ObjectRef{Namespace: c.mesh, Name: snapshot.GatewaySecret},
		Trust: &certificatesv1.TrustRequest{Usage: certificatesv1.TrustUsageGateway, Root: rootPrint(root), Bundle: string(bundleOf(bundle...).PEM())},
	}
	request := c.store.client.Post().AbsPath(kube.Path(snapshot.IssuedCertificate, c.own, "", "")...)
	if !fresh {
		request = c.store.client.Put().AbsPath(kube.Path(snapshot.IssuedCertificate, c.own, gatewaysName, "")...)
	}
	require.NoError(c.t, request.Body(certificate).Do(c.t.Context()).Error())
}

func (c *gatewayCluster) gateways() *certificatesv1.IssuedCertificate {
	c.t.Helper()
	all, err := c.store.certificates(c.t.Context())
	require.NoError(c.t, err)
	return all[gatewaysName]
}

// pass lets time pass, and has the agent look.
func (c *gatewayCluster) pass(d time.Duration) {
	c.t.Helper()
	c.ahead.Add(int64(d))
	body := []byte(`{"metadata":{"annotations":{"time":"` + c.time().Format(time.RFC3339Nano) + `"}}}`)
	require.NoError(c.t, c.store.client.Patch(types.MergePatchType).AbsPath(kube.Path(snapshot.IssuedCertificate, c.own, gatewaysName, "")...).Body(body).Do(c.t.Context()).Error())
}

// issueAll signs what is requested, for the control plane and for gateways.
func (c *gatewayCluster) issueAll() {
	c.t.Helper()
	requests, err := c.store.requests(c.t.Context())
	require.NoError(c.t, err)
	for name, request := range requests {
		if request.Status.ObservedGeneration == request.Generation {
			continue
		}
		chain := signed(c.t, c.a, request.Spec.CertificateSigningRequest, c.time(), time.Hour)
		if name == gatewaysName {
			root := map[string]*pki.Authority{rootPrint(c.a): c.a, rootPrint(c.b): c.b}[c.gateways().Spec.Trust.Root]
			chain = signedLeaf(c.t, root, request.Spec.CertificateSigningRequest, c.time(), time.Hour)
		}
		err := c.store.putStatus(c.t.Context(), snapshot.CertificateRequest, request, certificatesv1.CertificateRequestStatus{
			ObservedGeneration: request.Generation, State: certificatesv1.CertificateRequestFinished,
			SignedCertificate: chain[:1].PEM(), SigningRootCa: chain[1:].PEM(),
		})
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			require.NoError(c.t, err)
		}
	}
}

// secretOf is what gateways load; it must be usable whenever it is there.
func (c *gatewayCluster) secretOf() *pki.GatewayTLS {
	c.t.Helper()
	secret := c.secret(c.mesh, snapshot.GatewaySecret)
	if secret == nil {
		return nil
	}
	require.Equal(c.t, corev1.SecretTypeTLS, secret.Type)
	read, err := pki.ReadGatewayTLS(secret.Data)
	require.NoError(c.t, err)
	c.keepsQuiet(secret)
	return &read
}

// keepsQuiet searches the log and all statuses for the key of a Secret.
func (c *gatewayCluster) keepsQuiet(secret *corev1.Secret) {
	c.t.Helper()
	line := strings.Split(string(secret.Data[pki.TLSKeyKey]), "\n")[1]
	assert.NotContains(c.t, c.log.String(), line[:32])
	for _, kind := range []snapshot.Kind{snapshot.IssuedCertificate, snapshot.CertificateRequest} {
		text, err := c.store.client.Get().AbsPath(kube.Path(kind, c.own, "", "")...).Do(c.t.Context()).Raw()
		require.NoError(c.t, err)
		require.NotEmpty(c.t, text)
		assert.NotContains(c.t, string(text), line[:32])
		assert.NotContains(c.t, string(text), "PRIVATE KEY")
	}
	for _, annotation := range secret.Annotations {
		assert.NotContains(c.t, annotation, line[:32])
	}
}

// until signs what is requested until something holds.
func (c *gatewayCluster) until(what string, holds func(status certificatesv1.IssuedCertificateStatus) bool) {
	c.t.Helper()
	waittest.Until(c.t, what, func() bool {
		c.issueAll()
		c.secretOf()
		certificate := c.gateways()
		return certificate.Status.ObservedGeneration == certificate.Generation && holds(certificate.Status)
	})
}

func finished(status certificatesv1.IssuedCertificateStatus) bool {
	return status.State == certificatesv1.IssuedCertificateFinished
}

// TestGatewaysOnAServer runs the whole agent, with Lease and watches, as a user with its rules: it makes the Secret of gateways,
// puts an edit back, renews the certificate, exchanges its root, and deletes all of it, while the mesh joins and stays joined. It
// is refused nothing.
func TestGatewaysOnAServer(t *testing.T) {
	t.Parallel()
	waittest.SkipIfShort(t, "starts an API server")
	c := &gatewayCluster{cluster: newCluster(t, "gateways"), b: liveRoot(t, "b")}
	config := c.as(map[string][]rbacv1.PolicyRule{c.own: OwnRules(testName), c.mesh: MeshRules()})
	seen := &recorder{used: map[string]int{}}
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return &recorded{base, seen} })
	waittest.Until(t, "the API server knows the rules", func() bool {
		_, err := sandboxtest.Clientset(t, config).CoreV1().Secrets(c.mesh).Get(t.Context(), snapshot.GatewaySecret, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	clear(seen.used)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	options := c.options(dateless(config))
	options.Resync, options.Now = time.Minute, c.time // the watches have to say what changed
	go func() { ended <- Run(ctx, options) }()

	c.ask()
	c.askGateways(c.a, c.a)
	c.until("the gateways have a certificate", finished)
	first := c.secretOf()
	assert.Equal(t, rootPrint(c.a), pki.Fingerprint(first.Chain.Root()))
	waittest.Until(t, "the mesh has joined", func() bool {
		c.issueAll()
		return finished(c.certificate().Status)
	})
	c.assertJoined("beside its gateways")

	good := c.secret(c.mesh, snapshot.GatewaySecret)
	edited := good.DeepCopy()
	edited.Data[pki.TLSRootKey] = c.self.Chain().PEM()
	_, err := c.api.CoreV1().Secrets(c.mesh).Update(t.Context(), edited, metav1.UpdateOptions{})
	require.NoError(t, err)
	waittest.Until(t, "an edit is put back", func() bool {
		return bytes.Equal(c.secret(c.mesh, snapshot.GatewaySecret).Data[pki.TLSRootKey], good.Data[pki.TLSRootKey])
	})
	c.pass(time.Minute)
	c.until("the edit is over", finished)

	c.pass(50 * time.Minute)
	c.until("it is renewed", func(status certificatesv1.IssuedCertificateStatus) bool {
		return finished(status) && status.Trust.Issuer.Fingerprint != pki.Fingerprint(first.Chain[0])
	})
	assert.Equal(t, rootPrint(c.a), pki.Fingerprint(c.secretOf().Chain.Root()))

	c.askGateways(c.a, c.a, c.b)
	c.until("the other root is there, and not counted yet", func(status certificatesv1.IssuedCertificateStatus) bool {
		return status.State == certificatesv1.IssuedCertificateIssued && c.secretOf().Roots.Equal(bundleOf(c.a, c.b))
	})
	assert.Equal(t, []string{rootPrint(c.a)}, c.gateways().Status.Trust.Trusted)
	c.pass(time.Minute)
	c.until("it is trusted", finished)
	c.askGateways(c.b, c.a, c.b)
	c.until("it signs", func(status certificatesv1.IssuedCertificateStatus) bool {
		return status.Trust.Issuer.Root == rootPrint(c.b) && status.State == certificatesv1.IssuedCertificateIssued
	})
	assert.Len(t, c.gateways().Status.Trust.Presented, 2)
	c.pass(time.Minute)
	c.until("nobody presents the former one", finished)
	c.askGateways(c.b, c.b)
	c.until("the former one is gone", func(status certificatesv1.IssuedCertificateStatus) bool {
		return finished(status) && c.secretOf().Roots.Equal(bundleOf(c.b))
	})
	assert.Equal(t, []string{rootPrint(c.b)}, c.gateways().Status.Trust.Presented)

	require.NoError(t, c.store.client.Delete().AbsPath(kube.Path(snapshot.IssuedCertificate, c.own, gatewaysName, "")...).Do(t.Context()).Error())
	waittest.Until(t, "all of the gateways is gone", func() bool {
		requests, err := c.store.requests(t.Context())
		require.NoError(t, err)
		return requests[gatewaysName] == nil
	})
	assert.Nil(t, c.secret(c.mesh, snapshot.GatewaySecret))
	assert.Nil(t, c.secret(c.own, gatewaysName))
	c.assertNothingShown()
	assert.NotNil(t, c.secret(c.mesh, CACertsName), "the mesh is still a member")
	stop()
	require.NoError(t, <-ended)

	seen.mu.Lock()
	defer seen.mu.Unlock()
	for request := range seen.used {
		assert.False(t, strings.HasPrefix(request, "403") || strings.HasPrefix(request, "401"), request)
	}
	assert.Contains(t, keysOf(seen.used), "/secrets/"+snapshot.GatewaySecret)
}
