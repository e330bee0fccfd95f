package agent

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const gatewayHost = "spiffe://vm.gloo-mesh.virtualmesh/ns/istio-system/sa/" + testName

// slowest is how long gateways of a world take to load their Secret, at most.
const slowest = 50 * time.Second

// gatewayWorld is a cluster with an agent and gateways, each of which loads the Secret some time after it has changed.
type gatewayWorld struct {
	*world
	gateways []*party
	// changed is when a gateway found a version of the Secret first that it has not loaded.
	changed map[*party]time.Time
	seen    map[*party]string
}

func newGatewayWorld(t testing.TB, seed uint64, gateways int) *gatewayWorld {
	t.Helper()
	w := &gatewayWorld{world: newWorld(t, seed), changed: map[*party]time.Time{}, seen: map[*party]string{}}
	w.vault, w.blind = nil, true
	for range gateways {
		w.gateways = append(w.gateways, &party{})
	}
	return w
}

// ask asks for a certificate of a root, with these roots to trust.
func (w *gatewayWorld) ask(root *pki.Authority, bundle ...*pki.Authority) {
	if w.certificate == nil {
		w.certificate = &certificatesv1.IssuedCertificate{}
		w.certificate.Namespace, w.certificate.Name = ownNS, testName
	}
	w.certificate.Generation++
	w.certificate.Spec = certificatesv1.IssuedCertificateSpec{
		Hosts: []string{gatewayHost}, IssuedCertificateSecret: &commonv1.ObjectRef{Namespace: meshNS, Name: snapshot.GatewaySecret},
		Trust: &certificatesv1.TrustRequest{
			Usage: certificatesv1.TrustUsageGateway, Root: rootPrint(root), Bundle: string(bundleOf(bundle...).PEM()),
		},
	}
}

// load has a gateway load the Secret. What it cannot read it refuses, and keeps what it has.
func (w *gatewayWorld) load(g *party) {
	if w.cacerts == nil {
		return
	}
	w.seen[g] = w.cacerts.ResourceVersion
	delete(w.changed, g)
	if certs, err := pki.ReadCertificates(w.cacerts.Data[pki.TLSCertKey]); err == nil {
		for print, root := range w.known {
			if certs[0].CheckSignatureFrom(rootOf(root)) == nil {
				g.root = print
			}
		}
	}
	if roots, err := pki.ReadBundle(w.cacerts.Data[pki.TLSRootKey]); err == nil {
		g.trusted = roots
	}
}

// pass lets time pass, in which the slowest gateways load the Secret.
func (w *gatewayWorld) pass(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(min(5*time.Second, end.Sub(w.now)))
		for _, g := range w.gateways {
			if w.cacerts == nil || w.seen[g] == w.cacerts.ResourceVersion {
				continue
			}
			if w.changed[g].IsZero() {
				w.changed[g] = w.now.Add(-5 * time.Second)
			}
			if w.now.Sub(w.changed[g]) >= slowest {
				w.load(g)
			}
		}
	}
}

// safe checks that the Secret can be used, and that no gateway has what the report rules out.
func (w *gatewayWorld) safe(after string) {
	w.t.Helper()
	if w.cacerts != nil && w.cacerts.ResourceVersion != w.verified {
		w.verified = w.cacerts.ResourceVersion
		read, err := pki.ReadGatewayTLS(w.cacerts.Data)
		require.NoError(w.t, err, "after %s", after)
		require.Len(w.t, w.cacerts.Data, 3)
		require.NoError(w.t, pki.Verify(read.Chain, read.Roots, w.now, pki.Want{Usage: pki.ForWorkload, Hosts: []string{gatewayHost}}), "after %s", after)
	}
	w.honest(after)
}

// honest: gateways trust what is reported as trusted, and present nothing but what is reported as presented, or is asked for.
func (w *gatewayWorld) honest(after string) {
	w.t.Helper()
	if w.certificate == nil || w.certificate.Status.Trust == nil || w.certificate.Status.ObservedGeneration != w.certificate.Generation {
		return
	}
	report, asked := w.certificate.Status.Trust, w.certificate.Spec.Trust
	bundle, err := pki.ReadBundle([]byte(asked.Bundle))
	require.NoError(w.t, err)
	for i, g := range w.gateways {
		if g.root == "" {
			continue // it has loaded nothing, so that it has no listener
		}
		require.Contains(w.t, append(report.Presented, asked.Root), g.root, "after %s: gateway %d presents what is not reported; %v", after, i, w.writes)
		for _, root := range report.Trusted {
			if !slices.Contains(bundle.Fingerprints(), root) {
				continue // nobody relies on one that is to go
			}
			require.Contains(w.t, g.trusted.Fingerprints(), root, "after %s: gateway %d does not trust what is reported; %v", after, i, w.writes)
		}
	}
}

// churn lets things happen in any order.
func (w *gatewayWorld) churn(n int) {
	w.t.Helper()
	events := map[string]func(){
		"agent": func() { w.step() }, "issue": w.issue, "time": func() { w.pass(5 * time.Second) }, "more time": func() { w.pass(20 * time.Second) },
	}
	for i, g := range w.gateways {
		events[fmt.Sprint("gateway ", i)] = func() { w.load(g) }
	}
	names := slices.Sorted(maps.Keys(events))
	for range n {
		name := names[w.random.IntN(len(names))]
		events[name]()
		w.safe(name)
	}
}

// work lets the agent and the issuer work, without time that passes.
func (w *gatewayWorld) work() {
	w.t.Helper()
	for range 3 {
		for w.step() {
			w.safe("a write")
			require.Less(w.t, len(w.writes), 500, "it does not come to rest: %v", w.writes)
			if w.done {
				return
			}
		}
		w.issue()
	}
}

// settle lets everything happen until nothing changes any more.
func (w *gatewayWorld) settle() {
	w.t.Helper()
	for range 12 {
		w.work()
		w.safe("the agent is at rest")
		w.pass(10 * time.Second)
	}
	before := len(w.writes)
	for w.step() {
	}
	require.Len(w.t, w.writes, before, "it does not come to rest: %v", w.writes)
}

func (w *gatewayWorld) established(root *pki.Authority, bundle ...*pki.Authority) bool {
	status := w.certificate.Status
	return status.State == certificatesv1.IssuedCertificateFinished && status.ObservedGeneration == w.certificate.Generation &&
		slices.Equal(status.Trust.Presented, []string{rootPrint(root)}) && slices.Equal(status.Trust.Trusted, bundleOf(bundle...).Fingerprints())
}

func (w *gatewayWorld) assertEstablished(root *pki.Authority, bundle ...*pki.Authority) {
	w.t.Helper()
	status := w.certificate.Status
	require.True(w.t, w.established(root, bundle...), "%s %s %+v", status.State, status.Error, status.Trust)
	assert.Empty(w.t, status.Error)
	assert.Empty(w.t, status.Trust.WaitingFor)
	assert.Nil(w.t, status.Trust.ControlPlane)
	assert.Nil(w.t, status.Trust.Namespaces)
	assert.Nil(w.t, status.Trust.Trusting)
	assert.Nil(w.t, status.Trust.VerifiedAt)
	read, err := pki.ReadGatewayTLS(w.cacerts.Data)
	require.NoError(w.t, err)
	assert.Equal(w.t, rootPrint(root), pki.Fingerprint(read.Chain.Root()))
	assert.Equal(w.t, pki.Fingerprint(read.Chain[0]), status.Trust.Issuer.Fingerprint)
	assert.True(w.t, read.Roots.Equal(bundleOf(bundle...)))
}
