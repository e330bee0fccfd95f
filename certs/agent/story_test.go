package agent

import (
	crand "crypto/rand"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/certs/roots"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// story is a management plane with clusters, on real API servers, in namespaces of its own. Its parts are processes that go
// one step after the other, and may die at any write (plan).
type story struct {
	t          testing.TB
	namespace  string
	management *rest.Config
	vms        *kube.Client
	meshes     []*storyMesh
	serve      *storyServe
	nth        int
	plan       plan
	// ahead is by how much the clock of the management plane is ahead.
	ahead atomic.Int64
	// died are the writes at which processes died, wrote counts those that were made by processes that died, and checks how
	// often it was looked who trusts whom.
	died          []string
	wrote, checks int
}

// storyServers starts the API servers of stories. The first one is that of the management plane, too.
func storyServers(t *testing.T) []*rest.Config {
	t.Helper()
	waittest.SkipIfShort(t, "starts API servers")
	var out []*rest.Config
	for _, server := range registrationtest.APIServers(t, 2) {
		config, err := server.Config()
		require.NoError(t, err)
		config = kube.Unlimited(config)
		out = append(out, config)
	}
	return out
}

// newStory has a mesh in each cluster, whose istiod has ISTIO_MULTIROOT_MESH or not.
func newStory(t testing.TB, servers []*rest.Config, name string, multi bool, p plan) *story {
	t.Helper()
	s := &story{t: t, namespace: name, management: servers[0], plan: p}
	s.vms = storyClient(t, s.management)
	sandboxtest.MakeNamespace(t, s.management, s.namespace)
	for i, server := range servers {
		s.meshes = append(s.meshes, newStoryMesh(s, i, server, multi))
	}
	s.begin()
	t.Cleanup(func() { s.serve.stop() })
	return s
}

func storyRoot(t testing.TB, name string) *pki.Authority {
	t.Helper()
	key, err := ecKey(0)
	require.NoError(t, err)
	root, err := pki.NewRoot(crand.Reader, time.Now(), key, pki.Subject{Organization: "test", CommonName: name}, pki.Life{Lasts: 24 * time.Hour, Backdate: time.Hour})
	require.NoError(t, err)
	return root
}

// begin starts the next process of the management plane.
func (s *story) begin() {
	s.serve = newStoryServe(s, s.nth)
	s.nth++
}

func (s *story) mesh(cluster string) *storyMesh {
	return s.meshes[slices.IndexFunc(s.meshes, func(m *storyMesh) bool { return m.name == cluster })]
}

// join creates or changes a VirtualMesh so that it has these members.
func (s *story) join(name string, members ...*storyMesh) {
	s.t.Helper()
	s.edit(name, func(vm *networkingv1.VirtualMesh) {
		small := certificatesv1.CommonCertOptions{RsaKeySizeBytes: 2048}
		vm.Spec.Meshes = nil
		for _, m := range members {
			vm.Spec.Meshes = append(vm.Spec.Meshes, commonv1.ObjectRef{Namespace: s.namespace, Name: m.mesh})
		}
		vm.Spec.Federation = &networkingv1.Federation{Selectors: []networkingv1.FederationSelector{{}}}
		if vm.Spec.MtlsConfig == nil {
			vm.Spec.MtlsConfig = &networkingv1.MTLSConfig{AutoRestartPods: true, Shared: &networkingv1.SharedTrust{
				RootCertificateAuthority: &networkingv1.RootCertificateAuthority{Generated: &small}, IntermediateCertOptions: &small,
			}}
		}
	})
}

// rotate asks for another generated root.
func (s *story) rotate(name string) {
	s.t.Helper()
	s.edit(name, func(vm *networkingv1.VirtualMesh) {
		vm.Annotations = map[string]string{snapshot.TrustRotateAnnotation: time.Now().Add(time.Minute).UTC().Format(time.RFC3339)}
	})
}

// edit is what a user does to a VirtualMesh.
func (s *story) edit(name string, change func(*networkingv1.VirtualMesh)) {
	s.t.Helper()
	vms := s.virtualMeshes()
	request, vm := s.vms.Post().AbsPath(kube.Path(snapshot.VirtualMesh, s.namespace, "", "")...), &networkingv1.VirtualMesh{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name},
	}
	if i := slices.IndexFunc(vms, func(vm networkingv1.VirtualMesh) bool { return vm.Name == name }); i >= 0 {
		request, vm = s.vms.Put().AbsPath(kube.Path(snapshot.VirtualMesh, s.namespace, name, "")...), &vms[i]
	}
	vm.APIVersion, vm.Kind = snapshot.VirtualMesh.Info().GroupVersion().String(), snapshot.VirtualMesh.String()
	change(vm)
	require.NoError(s.t, request.Body(vm).Do(s.t.Context()).Error())
}

func (s *story) virtualMeshes() []networkingv1.VirtualMesh {
	s.t.Helper()
	var list networkingv1.VirtualMeshList
	require.NoError(s.t, s.vms.Get().AbsPath(kube.Path(snapshot.VirtualMesh, s.namespace, "", "")...).Do(s.t.Context()).Into(&list))
	return list.Items
}

// trust is the plan of a VirtualMesh.
func (s *story) trust(name string) *snapshot.TrustPlan {
	if state := s.serve.latest(); state != nil {
		for _, vm := range state.Plan.VirtualMeshes {
			if vm.Ref.Name == name && vm.Trust != nil {
				return vm.Trust
			}
		}
	}
	return &snapshot.TrustPlan{}
}

// round lets each part do one step. It reports whether anything was written.
func (s *story) round() bool {
	s.t.Helper()
	before := s.writes()
	if s.serve.step() {
		s.died = append(s.died, s.serve.process.dead())
		s.wrote += s.serve.process.written()
		s.serve.stop()
		s.begin()
	}
	s.check("serve")
	for _, m := range s.meshes {
		m.step()
		m.live()
	}
	for _, vm := range s.virtualMeshes() {
		if len(s.trust(vm.Name).Unused) > 0 { // roots go when they have not been used for some minutes
			s.ahead.Add(int64(2 * time.Minute))
		}
	}
	return s.writes() > before
}

// writes counts all writes so far.
func (s *story) writes() int {
	n := s.wrote + len(s.died) + s.serve.process.written()
	for _, m := range s.meshes {
		n += m.process.written()
	}
	return n
}

// mostRounds bounds a wait. The longest, in which everybody dies at each write, takes far fewer; a round waits for answers
// alone, so that some pass while a key is made.
const mostRounds = 250

// until lets everybody go on until something holds and nobody writes any more.
func (s *story) until(what string, holds func() bool) {
	s.t.Helper()
	for range mostRounds {
		if wrote := s.round(); !wrote && holds() {
			return
		}
	}
	require.FailNow(s.t, "it was waited in vain until "+what, "%s", s.describe())
}

// describe says where everything stands.
func (s *story) describe() string {
	var out strings.Builder
	for _, vm := range s.virtualMeshes() {
		trust := s.trust(vm.Name)
		fmt.Fprintf(&out, "%s: %s %s unused=%v\n", vm.Name, trust.Stage, trust.Message, trust.Unused)
	}
	for _, m := range s.meshes {
		if c := m.certificate(); c != nil {
			fmt.Fprintf(&out, "%s: %s %s %+v\n", m.mesh, c.Status.State, c.Status.Error, c.Status.Trust)
		}
		for _, remembered := range m.agent.meshes {
			fmt.Fprintf(&out, "%s: the agent said %q, presents %v, has cacerts: %t\n", m.mesh, remembered.said, m.presents(), m.cacerts != nil)
		}
	}
	fmt.Fprintf(&out, "died: %s\n", strings.Join(s.died, "\n"))
	return out.String()
}

// established: all members have the root that signs, and there is no other.
func (s *story) established(name string) bool {
	trust := s.trust(name)
	if trust.Stage != networkingv1.TrustEstablished || len(trust.Roots) != 1 || len(trust.Members) == 0 {
		return false
	}
	for _, member := range trust.Members {
		if member.State != certificatesv1.IssuedCertificateFinished || !member.Current {
			return false
		}
	}
	return true
}

// check fails if somebody may be presented a certificate that he does not trust: within a mesh, and between two of which one
// sees services of the other.
func (s *story) check(after string) {
	s.t.Helper()
	s.checks++
	for _, m := range s.meshes {
		m.safe(after)
	}
	for _, a := range s.meshes {
		for _, b := range s.meshes {
			if a == b || !s.federated(a, b) && !s.federated(b, a) {
				continue
			}
			for _, root := range a.presents() {
				require.True(s.t, b.trusts(root), "after %s: %s presents root %s, and not all of %s trusts it\n%s", after, a.name, root, b.name, s.describe())
			}
		}
	}
}

// federated: services of a are seen in b.
func (s *story) federated(a, b *storyMesh) bool {
	if s.serve == nil || s.serve.latest() == nil {
		return false
	}
	for d := range s.serve.latest().Plan.Destinations.All() {
		if d.Federation != nil && d.Mesh.Cluster == a.name && slices.ContainsFunc(d.Federation.To, func(m *snapshot.MeshPlan) bool { return m.Cluster == b.name }) {
			return true
		}
	}
	return false
}

// rootSecrets are the Secrets with roots in the management cluster.
func (s *story) rootSecrets() []corev1.Secret {
	s.t.Helper()
	list, err := sandboxtest.Clientset(s.t, s.management).CoreV1().Secrets(s.namespace).List(s.t.Context(), metav1.ListOptions{FieldSelector: "type=" + string(roots.SecretType)})
	require.NoError(s.t, err)
	return list.Items
}

// assertHas checks that a mesh is as it is to be below the root of a VirtualMesh, and nothing is left of what was before.
func (m *storyMesh) assertHas(root string) {
	m.t.Helper()
	m.refresh()
	read, err := pki.ReadCACerts(m.cacerts.Data)
	require.NoError(m.t, err)
	require.Equal(m.t, root, rootPrint(read.Authority))
	require.Equal(m.t, []string{root}, read.Roots.Fingerprints())
	require.Equal(m.t, []string{root}, m.presents())
	require.True(m.t, m.trusts(root))
	key, err := m.reader.secret(m.t.Context(), m.own, m.mesh)
	require.NoError(m.t, err)
	private, err := pki.ReadKey(key.Data[privateKey])
	require.NoError(m.t, err)
	require.NoError(m.t, private.Check(read.Authority.Chain()[0]))
	require.Equal(m.t, certificatesv1.IssuedCertificateFinished, m.certificate().Status.State)
}

// left: nothing is left of a VirtualMesh.
func (m *storyMesh) left() bool {
	m.t.Helper()
	requests, err := m.reader.requests(m.t.Context())
	require.NoError(m.t, err)
	for _, ref := range [][2]string{{m.own, m.mesh}, {m.istio, CACertsName}, {m.istio, BackupName}} {
		secret, err := m.reader.secret(m.t.Context(), ref[0], ref[1])
		require.NoError(m.t, err)
		if secret != nil {
			return false
		}
	}
	return len(requests) == 0 && m.certificate() == nil && slices.Equal(m.presents(), []string{rootPrint(m.self)})
}
