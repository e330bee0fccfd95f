package engine_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/meshctl/meshctl/engine"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// trustWorld are clusters with a VirtualMesh that gives them a common trust, their agents,
// and the store of roots, each of which does one thing at a time.
type trustWorld struct {
	t      *testing.T
	random *rand.Rand
	// translator is another one after each restart of the management plane.
	translator *engine.Translator
	in         *snapshot.Input
	roots      *snapshot.VirtualMeshRoots
	made       int
	// vault signs with the newest root, if it is set.
	vault *certificatesv1.VaultCA
	// patience: agents report every so many times that they could.
	patience int
	agents   []*simulatedAgent
	state    *snapshot.State
}

// simulatedAgent is a cluster with what its workloads hold in truth.
type simulatedAgent struct {
	cluster int
	// read is what the agent has read; asked is what is stored, with its generation.
	asked      *certificatesv1.IssuedCertificateSpec
	generation int64
	status     certificatesv1.IssuedCertificateStatus
	// bundle and signer are in the Secret, handedOut and signs in the control plane.
	bundle, handedOut []string
	signer, signs     string
	workloads         []simulatedWorkload
	away              bool
}

type simulatedWorkload struct {
	trusts   []string
	presents string
}

func newTrustWorld(t *testing.T, clusters int, random *rand.Rand) *trustWorld {
	t.Helper()
	w := &trustWorld{t: t, random: random, in: enginetest.World(enginetest.Size{Services: 1, Clusters: clusters, FederateEvery: 1})}
	w.in.Management.VirtualMeshes[0].Spec.MtlsConfig = &networkingv1.MTLSConfig{Shared: &networkingv1.SharedTrust{}}
	w.roots = &snapshot.VirtualMeshRoots{VirtualMesh: snapshot.RefOf(snapshot.VirtualMesh, w.in.Management.VirtualMeshes[0])}
	for i := range clusters {
		own := fingerprintOf(someRoots()[i])
		a := &simulatedAgent{cluster: i, bundle: []string{own}, handedOut: []string{own}, signer: own, signs: own}
		for range 3 {
			a.workloads = append(a.workloads, simulatedWorkload{trusts: []string{own}, presents: own})
		}
		w.agents = append(w.agents, a)
	}
	w.rotate()
	w.restart()
	return w
}

// fingerprintOf is the fingerprint of a certificate.
func fingerprintOf(text string) string {
	block, _ := pem.Decode([]byte(text))
	sum := sha256.Sum256(block.Bytes)
	return hex.EncodeToString(sum[:])
}

// rootsByFingerprint are the texts of certificates.
var rootsByFingerprint = sync.OnceValue(func() map[string]string {
	out := map[string]string{}
	for _, text := range someRoots() {
		out[fingerprintOf(text)] = text
	}
	return out
})

// bundleOf is the text of roots, and rootsIn are the roots in a text.
func bundleOf(roots []string) string {
	var out strings.Builder
	for _, root := range roots {
		out.WriteString(rootsByFingerprint()[root])
	}
	return out.String()
}

func rootsIn(bundle string) []string {
	var out []string
	for root, text := range rootsByFingerprint() {
		if strings.Contains(bundle, text) {
			out = append(out, root)
		}
	}
	return out
}

// signedBy has a Vault sign from now on, or meshctl serve if it is nil.
func (w *trustWorld) signedBy(vault *certificatesv1.VaultCA) {
	w.vault = vault
	vm := *w.in.Management.VirtualMeshes[0]
	shared := &networkingv1.SharedTrust{}
	if vault != nil {
		shared.IntermediateCertificateAuthority = &networkingv1.IntermediateCertificateAuthority{Vault: vault}
	}
	vm.Spec.MtlsConfig = &networkingv1.MTLSConfig{Shared: shared}
	management := *w.in.Management
	management.VirtualMeshes = []*networkingv1.VirtualMesh{&vm}
	w.in.Management = &management
}

// rotate makes a new root that is to sign. That of a Vault has no Secret.
func (w *trustWorld) rotate() {
	text := someRoots()[len(w.agents)+w.made]
	w.made++
	root := &snapshot.Root{Fingerprint: fingerprintOf(text), PEM: text}
	if w.vault == nil {
		root.Secret = snapshot.Ref{Kind: snapshot.Secret, Namespace: snapshot.DefaultNamespace, Name: fmt.Sprint("root-", w.made)}
	}
	next := *w.roots
	next.Roots = append(slices.Clone(next.Roots), root)
	slices.SortFunc(next.Roots, func(a, b *snapshot.Root) int { return strings.Compare(a.Fingerprint, b.Fingerprint) })
	next.Signs = root.Fingerprint
	w.roots = &next
}

// rollBack makes any root that there still is the one that is to sign.
func (w *trustWorld) rollBack() {
	next := *w.roots
	next.Signs = next.Roots[w.random.IntN(len(next.Roots))].Fingerprint
	w.roots = &next
}

// drop removes what is unused, as the store does.
func (w *trustWorld) drop() {
	next := *w.roots
	next.Roots = slices.DeleteFunc(slices.Clone(next.Roots), func(r *snapshot.Root) bool {
		return r.Fingerprint != next.Signs && slices.Contains(w.trust().Unused, r.Fingerprint)
	})
	w.roots = &next
}

func (w *trustWorld) pause(paused bool) {
	vm := *w.in.Management.VirtualMeshes[0]
	vm.Annotations = map[string]string{snapshot.TrustPauseAnnotation: fmt.Sprint(paused)}
	management := *w.in.Management
	management.VirtualMeshes = []*networkingv1.VirtualMesh{&vm}
	w.in.Management = &management
}

func (w *trustWorld) restart() { w.translator = engine.New(engine.Options{}) }

func (w *trustWorld) trust() *snapshot.TrustPlan { return w.state.Plan.VirtualMeshes[0].Trust }

// translate translates what there is, and writes what follows where that is possible.
func (w *trustWorld) translate() {
	in := *w.in
	in.Roots = []*snapshot.VirtualMeshRoots{w.roots}
	in.Clusters = nil
	for i, c := range w.in.Clusters {
		now := *withRoots(c, bundleOf(w.agents[i].handedOut))
		now.Sync = snapshot.Synced
		if w.agents[i].away {
			now.Sync = snapshot.Stale
		}
		now.IssuedCertificates = w.agents[i].certificates()
		in.Clusters = append(in.Clusters, &now)
	}
	w.state = w.translator.Translate(&in)
	for s := range w.state.Output.Statuses.All() {
		if s.Ref.Kind == snapshot.VirtualMesh { // it is in the next Input
			vm := *in.Management.VirtualMeshes[0]
			vm.Status.Trust = s.Value.(*networkingv1.VirtualMeshStatus).Trust
			management := *in.Management
			management.VirtualMeshes = []*networkingv1.VirtualMesh{&vm}
			w.in.Management = &management
		}
	}
	for o := range w.state.Output.Objects {
		for i, a := range w.agents {
			if o.Ref.Kind == snapshot.IssuedCertificate && o.Ref.Cluster == enginetest.Cluster(i) && !a.away {
				w.checkSigner(o.Content.Spec.(*certificatesv1.IssuedCertificateSpec))
				a.write(o.Content.Spec.(*certificatesv1.IssuedCertificateSpec))
			}
		}
	}
}

// atRest translates, and again: as long as no agent has acted on what it was asked, nothing
// else is asked. If that depended on whether it was taken up already, it would go back and
// forth.
func (w *trustWorld) atRest() {
	w.t.Helper()
	asked := func() (all []int64) {
		w.translate()
		for _, a := range w.agents {
			all = append(all, a.generation)
		}
		return all
	}
	first := asked()
	require.Equal(w.t, first, asked(), "what is asked goes back and forth")
}

// checkSigner: who signs is who has the key of the root, if anybody has.
func (w *trustWorld) checkSigner(spec *certificatesv1.IssuedCertificateSpec) {
	w.t.Helper()
	root := w.roots.Find(spec.Trust.Root)
	switch {
	case root == nil: // the store has lost it: what was asked for stays
	case root.Secret.Name != "":
		require.Nil(w.t, spec.AgentCa)
		require.Equal(w.t, root.Secret.Name, spec.GlooMeshCa.SigningCertificateSecret.Name)
	case w.vault != nil:
		require.Equal(w.t, w.vault, spec.AgentCa.Vault)
		require.Nil(w.t, spec.GlooMeshCa)
		require.Nil(w.t, spec.SigningCertificateSecret)
	default:
		require.True(w.t, spec.AgentCa == nil && spec.GlooMeshCa == nil)
	}
}

func (a *simulatedAgent) certificates() []*certificatesv1.IssuedCertificate {
	if a.asked == nil {
		return nil
	}
	o := &certificatesv1.IssuedCertificate{Spec: *a.asked, Status: a.status}
	o.Name, o.Namespace, o.Generation = "istiod-istio-system-"+enginetest.Cluster(a.cluster), snapshot.DefaultNamespace, a.generation
	if o.Spec.Trust.Usage == certificatesv1.TrustUsageGateway {
		o.Name = snapshot.GatewayCertificateName(o.Name)
	}
	return []*certificatesv1.IssuedCertificate{o}
}

func (a *simulatedAgent) write(spec *certificatesv1.IssuedCertificateSpec) {
	if !equality.Semantic.DeepEqual(a.asked, spec) {
		a.asked, a.generation = spec, a.generation+1
	}
}

// fill writes the Secret: the roots that are asked for and those that the mesh itself still
// presents, and a signer that all of the mesh trusts.
func (a *simulatedAgent) fill() {
	if a.asked == nil {
		return
	}
	a.bundle = union(rootsIn(a.asked.Trust.Bundle), a.presented())
	if slices.Contains(a.trusted(), a.asked.Trust.Root) {
		a.signer = a.asked.Trust.Root
	}
}

// forget loses what was asked of it: somebody has deleted it, or the agent is in another namespace now.
func (a *simulatedAgent) forget() {
	a.asked, a.generation, a.status = nil, 0, certificatesv1.IssuedCertificateStatus{}
}

func (a *simulatedAgent) takeUp() { a.handedOut, a.signs = a.bundle, a.signer }

func (a *simulatedAgent) renew(workload int) {
	a.workloads[workload] = simulatedWorkload{trusts: a.handedOut, presents: a.signs}
}

// report says what the mesh holds. An agent whose Secret is not as it was asked has failed to write it, and then says of no root that
// it is trusted which the Secret does not have: it goes with the next take-up.
func (a *simulatedAgent) report() {
	if a.asked == nil {
		return
	}
	trusted := a.trusted()
	if !slices.Equal(union(a.bundle), union(rootsIn(a.asked.Trust.Bundle), a.presented())) {
		trusted = slices.DeleteFunc(trusted, func(root string) bool { return !slices.Contains(a.bundle, root) })
	}
	a.status = certificatesv1.IssuedCertificateStatus{ObservedGeneration: a.generation, Trust: &certificatesv1.TrustReport{
		Issuer: &certificatesv1.CertificateInfo{Root: a.signer}, Trusted: trusted, Presented: a.presented(),
	}}
}

func (a *simulatedAgent) trusted() []string {
	out := union(a.handedOut)
	for _, w := range a.workloads {
		out = slices.DeleteFunc(out, func(root string) bool { return !slices.Contains(w.trusts, root) })
	}
	return out
}

func (a *simulatedAgent) presented() []string {
	out := []string{a.signer, a.signs}
	for _, w := range a.workloads {
		out = append(out, w.presents)
	}
	return union(out)
}

func union(lists ...[]string) []string {
	out := slices.Concat(lists...)
	slices.Sort(out)
	return slices.Compact(out)
}

// check fails if a request fails that should pass: within a mesh, and between meshes of
// which one sees services of the other.
func (w *trustWorld) check() {
	w.t.Helper()
	federated := map[[2]int]bool{}
	for d := range w.state.Plan.Destinations.All() {
		for i := range w.agents {
			for j := range w.agents {
				if d.Federation != nil && d.Mesh.Cluster == enginetest.Cluster(i) &&
					slices.ContainsFunc(d.Federation.To, func(m *snapshot.MeshPlan) bool { return m.Cluster == enginetest.Cluster(j) }) {
					federated[[2]int{i, j}] = true
				}
			}
		}
	}
	for i, a := range w.agents {
		for j, b := range w.agents {
			if i != j && !federated[[2]int{i, j}] {
				continue
			}
			for _, x := range a.workloads {
				for _, y := range b.workloads {
					require.Contains(w.t, y.trusts, x.presents, "a workload of cluster %d is not trusted in cluster %d", i, j)
					require.Contains(w.t, x.trusts, y.presents, "a workload of cluster %d is not trusted in cluster %d", j, i)
				}
			}
		}
	}
}

// settle lets everybody act until nothing changes any more.
func (w *trustWorld) settle() {
	w.t.Helper()
	for _, a := range w.agents {
		a.away = false
	}
	w.pause(false)
	for range 20 {
		w.translate()
		for _, a := range w.agents {
			a.fill()
			a.takeUp()
			for i := range a.workloads {
				a.renew(i)
				w.check()
			}
			a.report()
		}
		w.translate()
		w.drop()
		w.check()
	}
	w.translate()
}

var aVault = &certificatesv1.VaultCA{Server: "https://vault.example.com", CaPath: "pki/root/sign-intermediate"}

// TestTrustIsNeverBroken: whatever happens in whatever order, no request within a mesh or
// between meshes that share services fails, and in the end all members have one root.
func TestTrustIsNeverBroken(t *testing.T) {
	t.Parallel()
	for seed := range seeds(t, 24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := newTrustWorld(t, 2+int(seed%3), rand.New(rand.NewPCG(uint64(seed), 0)))
			if seed%8 > 3 {
				w.signedBy(aVault)
			}
			w.patience = 1 + int(seed%4)*2
			w.translate()
			if seed%2 == 0 {
				w.settle() // else they join meanwhile
			}
			for range 800 {
				w.step()
				w.check()
			}
			w.settle()
			assert.Equal(t, networkingv1.TrustEstablished, w.trust().Stage, w.trust().Message)
			assert.Len(t, w.trust().Roots, 1)
			assert.Len(t, w.roots.Roots, 1)
			for _, a := range w.agents {
				assert.Equal(t, []string{w.roots.Signs}, a.trusted())
				assert.Equal(t, []string{w.roots.Signs}, a.presented())
			}
			assert.Len(t, w.trust().Established, len(w.agents))
			for d := range w.state.Plan.Destinations.All() {
				if d.Federation != nil {
					assert.Len(t, d.Federation.To, len(w.agents)-1)
				}
			}
		})
	}
}

// TestARetiredRootStaysAway: a root that nobody uses leaves the bundles once. That the agents have not answered to that yet
// brings it back to none, whoever translates; else it comes and goes, and control planes that take up roots only when they
// start restart each time.
func TestARetiredRootStaysAway(t *testing.T) {
	t.Parallel()
	w := newTrustWorld(t, 2, rand.New(rand.NewPCG(1, 0)))
	w.translate()
	w.settle()
	former := w.roots.Signs
	w.rotate()
	asks := func(a *simulatedAgent) bool { return slices.Contains(rootsIn(a.asked.Trust.Bundle), former) }
	for range 20 {
		w.translate()
		if !asks(w.agents[0]) {
			break
		}
		for _, a := range w.agents {
			a.fill()
			a.takeUp()
			for i := range a.workloads {
				a.renew(i)
			}
			a.report()
		}
	}
	require.False(t, asks(w.agents[0]), "nobody uses it")
	for range 3 {
		w.restart()
		w.translate()
		for _, a := range w.agents {
			assert.False(t, asks(a), "cluster %d is asked to trust the former root again", a.cluster)
		}
	}
}

// step does one thing. What an operator does is rare, or nothing would ever get far.
func (w *trustWorld) step() {
	a := w.agents[w.random.IntN(len(w.agents))]
	if w.random.IntN(40) == 0 {
		switch w.random.IntN(11) {
		case 0, 1:
			if len(w.roots.Roots) < 5 && w.made < 30 {
				if w.random.IntN(3) == 0 { // the root comes from elsewhere
					w.signedBy([]*certificatesv1.VaultCA{nil, aVault}[w.random.IntN(2)])
				}
				w.rotate()
			}
		case 2, 8, 9:
			w.rollBack()
		case 3, 4:
			a.away = !a.away
		case 5:
			w.pause(w.random.IntN(3) == 0)
		case 6:
			w.restart()
		case 7:
			w.drop()
		case 10:
			if !a.away { // else nobody hears of it
				a.forget()
			}
		}
		return
	}
	switch w.random.IntN(8) {
	case 0:
		a.fill()
	case 1:
		a.takeUp()
	case 2, 3, 4:
		a.renew(w.random.IntN(len(a.workloads)))
	case 5:
		if !a.away && w.random.IntN(w.patience) == 0 {
			a.report()
		}
	default:
		w.atRest()
	}
}
