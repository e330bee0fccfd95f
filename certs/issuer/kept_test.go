package issuer

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/engine"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestWhatIsKeptIsNotSigned: an IssuedCertificate that stays as it is on a cluster may be what
// the administrator of that cluster wrote.
func TestWhatIsKeptIsNotSigned(t *testing.T) {
	t.Parallel()
	authority, _ := newRoot(t)
	root := &snapshot.Root{
		Fingerprint: fingerprint(authority), PEM: string(authority.Chain().PEM()),
		Secret: snapshot.Ref{Kind: snapshot.Secret, Namespace: "gloo-mesh", Name: "root"},
	}
	shared := &networkingv1.MTLSConfig{Shared: &networkingv1.SharedTrust{}}
	for name, c := range map[string]struct {
		mtls   *networkingv1.MTLSConfig
		roots  []*snapshot.Root
		signed []string
	}{
		"the roots were not read":             {mtls: shared},
		"the store has lost the root":         {mtls: shared, roots: []*snapshot.Root{}},
		"the root is of another trust model":  {mtls: &networkingv1.MTLSConfig{Limited: &networkingv1.LimitedTrust{}}, roots: []*snapshot.Root{root}},
		"the management plane asks for it so": {mtls: shared, roots: []*snapshot.Root{root}, signed: []string{"spiffe://cluster-02.example/ns/istio-system/sa/istiod"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := enginetest.World(enginetest.Size{Services: 1, Clusters: 2, FederateEvery: 1})
			vm := in.Management.VirtualMeshes[0]
			vm.Spec.MtlsConfig = c.mtls
			if c.roots != nil {
				roots := &snapshot.VirtualMeshRoots{VirtualMesh: snapshot.RefOf(snapshot.VirtualMesh, vm), Roots: c.roots, Problem: "none"}
				if len(c.roots) > 0 {
					roots.Signs = c.roots[0].Fingerprint
				}
				in.Roots = []*snapshot.VirtualMeshRoots{roots}
			}
			plan := engine.Translate(in).Plan
			member := plan.VirtualMeshes[0].Trust.Members[1]
			at := metav1.ObjectMeta{Namespace: member.Ref.Namespace, Name: member.Ref.Name, Generation: 1}
			cluster := in.Clusters[1]
			require.Equal(t, member.Ref.Cluster, cluster.Name)
			cluster.IssuedCertificates = []*certificatesv1.IssuedCertificate{{ObjectMeta: at, Spec: certificatesv1.IssuedCertificateSpec{
				Hosts: []string{"spiffe://victim.example/ns/istio-system/sa/istiod"}, Org: "forged",
				CertOptions: &certificatesv1.CommonCertOptions{TtlDays: 3650},
				Trust:       &certificatesv1.TrustRequest{Root: root.Fingerprint, Bundle: root.PEM},
			}}}
			cluster.CertificateRequests = []*certificatesv1.CertificateRequest{{ObjectMeta: at, Spec: certificatesv1.CertificateRequestSpec{
				CertificateSigningRequest: request(t, pki.Key{}, "spiffe://victim.example/ns/istio-system/sa/istiod"),
			}}}
			plan = engine.Translate(in).Plan
			var signed []string
			for _, j := range jobsOf(cluster, askedFor(plan)) {
				signed = append(signed, j.grant.Hosts...)
			}
			assert.Equal(t, c.signed, signed)
		})
	}
}
