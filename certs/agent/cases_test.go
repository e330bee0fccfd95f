package agent

import (
	crand "crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// TestTrustInTrouble tells stories in which something goes wrong that no part can help.
func TestTrustInTrouble(t *testing.T) {
	t.Parallel()
	inTrouble(t, map[string]func(s *story){
		"a cluster is frozen in a rotation": frozenInARotation,
		"a user takes the root away":        rootTakenAway,
		"a mesh leaves and comes back":      comesBack,
		"two VirtualMeshes":                 twoVirtualMeshes,
	})
}

// TestTrustWhereClocksDiffer tells the story of a VirtualMesh with clocks that are wrong.
func TestTrustWhereClocksDiffer(t *testing.T) {
	shard.Only(t, shard.Serve)
	t.Parallel()
	inTrouble(t, map[string]func(s *story){
		"serve's clock is an hour ahead":     func(s *story) { s.ahead.Store(int64(time.Hour)); clocksDiffer(s, 0) },
		"serve's clock is an hour behind":    func(s *story) { s.ahead.Store(-int64(time.Hour)); clocksDiffer(s, 0) },
		"an agent's clock is an hour ahead":  func(s *story) { clocksDiffer(s, time.Hour) },
		"an agent's clock is an hour behind": func(s *story) { clocksDiffer(s, -time.Hour) },
	})
}

func inTrouble(t *testing.T, stories map[string]func(s *story)) {
	t.Helper()
	servers := storyServers(t)
	for name, tell := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell(newStory(t, servers, strings.ToLower(strings.NewReplacer(" ", "-", "'", "").Replace(name)), true, lives))
		})
	}
}

// signer is the root that signs in a mesh, and trusted are the roots of its Secret.
func (m *storyMesh) hasRoots() (signer string, trusted []string) {
	m.t.Helper()
	m.refresh()
	read, err := pki.ReadCACerts(m.cacerts.Data)
	require.NoError(m.t, err)
	return rootPrint(read.Authority), read.Roots.Fingerprints()
}

// frozenInARotation: a cluster that cannot be read keeps both roots trusted everywhere, and the former one signing. The same
// for one whose agent does not answer. When it is back, the rotation goes on.
func frozenInARotation(s *story) {
	s.join("vm", s.meshes...)
	s.until("both have joined", func() bool { return s.established("vm") })
	first := s.trust("vm").Root.Fingerprint
	for _, held := range []*bool{&s.meshes[1].stale, &s.meshes[1].away} {
		*held = true
		s.rotate("vm")
		s.until("the other one trusts both", func() bool {
			_, trusted := s.meshes[0].hasRoots()
			return s.trust("vm").Root != nil && s.trust("vm").Root.Fingerprint != first && len(trusted) == 2
		})
		s.ahead.Add(int64(time.Hour / 4)) // nothing goes, however long it takes
		for range 5 {
			s.round()
		}
		require.Equal(s.t, networkingv1.TrustDistributing, s.trust("vm").Stage)
		for _, m := range s.meshes {
			signs, _ := m.hasRoots()
			require.Equal(s.t, first, signs)
		}
		require.Len(s.t, s.rootSecrets(), 2)
		*held = false
		s.until("the rotation is complete", func() bool { return s.established("vm") && s.trust("vm").Root.Fingerprint != first })
		first = s.trust("vm").Root.Fingerprint
		for _, m := range s.meshes {
			m.assertHas(first)
		}
		s.ahead.Store(0)
	}
}

// rootTakenAway: without its key, a user's root is trusted on, and all certificates stay. Another root in its place is
// exchanged for it.
func rootTakenAway(s *story) {
	secrets := sandboxtest.Clientset(s.t, s.management).CoreV1().Secrets(s.namespace)
	put := func(root *pki.Authority) string {
		data, err := root.RootSecret()
		require.NoError(s.t, err)
		_, err = secrets.Create(s.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine"}, Data: data}, metav1.CreateOptions{})
		require.NoError(s.t, err)
		return rootPrint(root)
	}
	first := put(longRoot(s.t, "first"))
	s.join("vm", s.meshes...)
	s.edit("vm", func(vm *networkingv1.VirtualMesh) {
		vm.Spec.MtlsConfig.Shared.RootCertificateAuthority = &networkingv1.RootCertificateAuthority{Secret: &commonv1.ObjectRef{Namespace: s.namespace, Name: "mine"}}
	})
	s.until("both have joined", func() bool { return s.established("vm") && s.trust("vm").Root.Fingerprint == first })

	require.NoError(s.t, secrets.Delete(s.t.Context(), "mine", metav1.DeleteOptions{}))
	s.until("it is said", func() bool {
		return s.trust("vm").Stage == networkingv1.TrustWaiting && strings.Contains(s.trust("vm").Message, "mine does not exist")
	})
	for _, m := range s.meshes {
		m.assertHas(first)
	}
	require.True(s.t, s.federated(s.meshes[0], s.meshes[1]), "what could call each other still can")
	second := put(longRoot(s.t, "second"))
	s.until("both have the other one", func() bool { return s.established("vm") && s.trust("vm").Root.Fingerprint == second })
	for _, m := range s.meshes {
		m.assertHas(second)
	}
}

// comesBack: a mesh that left joins again as if it had never been a member, and so does one that is half out.
func comesBack(s *story) {
	s.join("vm", s.meshes...)
	s.until("both have joined", func() bool { return s.established("vm") })
	root := s.trust("vm").Root.Fingerprint
	s.join("vm", s.meshes[0])
	s.until("one has left", s.meshes[1].left)
	s.join("vm", s.meshes...)
	s.until("it is back", func() bool { return s.established("vm") })
	s.meshes[1].assertHas(root)
	s.join("vm", s.meshes[0])
	s.serve.step()
	require.NoError(s.t, s.meshes[1].agent.pass(s.t.Context())) // its former root is trusted again by then
	_, trusted := s.meshes[1].hasRoots()
	require.Contains(s.t, trusted, rootPrint(s.meshes[1].self))
	s.join("vm", s.meshes...)
	s.until("it is back again", func() bool { return s.established("vm") })
	for _, m := range s.meshes {
		m.assertHas(root)
	}
}

// twoVirtualMeshes have a root each. A mesh in both stays with the first.
func twoVirtualMeshes(s *story) {
	s.join("a", s.meshes[0])
	s.join("b", s.meshes[1])
	s.until("both have joined", func() bool { return s.established("a") && s.established("b") })
	a, b := s.trust("a").Root.Fingerprint, s.trust("b").Root.Fingerprint
	require.NotEqual(s.t, a, b)
	check := func() {
		s.t.Helper()
		s.meshes[0].assertHas(a)
		s.meshes[1].assertHas(b)
		require.False(s.t, s.federated(s.meshes[0], s.meshes[1]))
	}
	check()
	s.join("b", s.meshes...)
	s.until("it is refused", func() bool {
		for _, vm := range s.virtualMeshes() {
			if vm.Name == "b" {
				return vm.Status.State == commonv1.ApprovalStateInvalid
			}
		}
		return false
	})
	check()
}

// clocksDiffer: an hour between serve and a cluster, or an agent and its API server, keeps nobody from joining.
func clocksDiffer(s *story, agent time.Duration) {
	s.meshes[0].ahead = agent
	s.meshes[0].begin()
	s.join("vm", s.meshes...)
	s.until("both have joined", func() bool { return s.established("vm") })
	for _, m := range s.meshes {
		m.assertHas(s.trust("vm").Root.Fingerprint)
	}
	assert.InDelta(s.t, agent.Seconds(), s.meshes[0].certificate().Status.Trust.ClockSkewSeconds, 60, "it is reported")
}

// longRoot lives long enough to sign intermediates of a year.
func longRoot(t testing.TB, name string) *pki.Authority {
	t.Helper()
	key, err := ecKey(0)
	require.NoError(t, err)
	root, err := pki.NewRoot(crand.Reader, time.Now(), key, pki.Subject{Organization: "test", CommonName: name}, pki.Life{Lasts: 10 * 365 * 24 * time.Hour, Backdate: time.Hour})
	require.NoError(t, err)
	return root
}

// TestDownPastExpiry: an agent that was down until its certificate had expired gets another, of the same root or of the one
// that has followed it meanwhile. Nobody is cut off by that who is not yet.
func TestDownPastExpiry(t *testing.T) {
	t.Parallel()
	for _, rotated := range []bool{false, true} {
		w := newWorld(t, 1)
		w.selfSign()
		w.start(2)
		a, b := w.root("a"), w.root("b")
		w.ask(a, a)
		w.settle()
		w.assertEstablished(a, a)
		first := w.certificate.Status.Trust.Issuer.DeepCopy()
		w.now = first.NotAfter.Add(24 * time.Hour)
		next, bundle := a, []*pki.Authority{a}
		if rotated {
			next, bundle = b, []*pki.Authority{a, b}
		}
		w.ask(next, bundle...)
		for range 5 { // not settle: nobody accepts the expired ones, which is what it would complain about
			for w.step() {
			}
			w.issue()
			for w.step() {
			}
			w.restartIstiod()
			for _, p := range w.workloads {
				w.renew(p)
			}
		}
		w.settle()
		w.assertEstablished(next, bundle...)
		assert.NotEqual(t, first.Fingerprint, w.certificate.Status.Trust.Issuer.Fingerprint)
		assert.Equal(t, certificatesv1.IssuedCertificateFinished, w.certificate.Status.State)
	}
}
