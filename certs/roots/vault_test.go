package roots

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/certs/vault/vaulttest"
	"github.com/meshctl/meshctl/demo/waittest"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// fromVault has a Vault sign.
func fromVault(ca *certificatesv1.VaultCA) func(*networkingv1.VirtualMesh) {
	return func(vm *networkingv1.VirtualMesh) {
		vm.Spec.MtlsConfig.Shared = &networkingv1.SharedTrust{IntermediateCertificateAuthority: &networkingv1.IntermediateCertificateAuthority{Vault: ca}}
	}
}

// chainOf is an authority's chain at a Vault, and keptRoot its root as it is kept.
func atVault(a *pki.Authority) *vaultRoot { return &vaultRoot{name: "Vault v", chain: a.Chain()} }

func keptRoot(a *pki.Authority, name string) *stored {
	return &stored{ref: snapshot.Ref{Kind: snapshot.Secret, Namespace: "ns", Name: name}, created: now, ours: true, root: a.Chain().Root()}
}

// TestTheRootOfAVault lists which root signs, what is kept, and what is said. Nothing is ever generated.
func TestTheRootOfAVault(t *testing.T) {
	t.Parallel()
	a, b := newRoot(t, 0, now, "a", 3650*day), newRoot(t, 1, now, "b", 3650*day)
	old, soon := newRoot(t, 2, now.Add(-100*day), "old", 10*day), newRoot(t, 2, now.Add(-340*day), "soon", 365*day)
	down := &vaultRoot{name: "Vault v", problem: "Vault v is down"}
	generated := generatedAt(t, "vm.ns", 1, now, 365*day)
	known := func(signs *pki.Authority, roots ...*pki.Authority) *snapshot.VirtualMeshRoots {
		out := &snapshot.VirtualMeshRoots{Signs: fingerprint(signs)}
		for _, root := range roots {
			out.Roots = append(out.Roots, &snapshot.Root{Fingerprint: fingerprint(root), PEM: string(root.Chain().PEM())})
		}
		return out
	}
	for name, c := range map[string]struct {
		vault   *vaultRoot
		have    []*stored
		before  *snapshot.VirtualMeshRoots
		change  []func(*networkingv1.VirtualMesh)
		nothing bool // is told
		signs   *pki.Authority
		roots   int
		keep    *pki.Authority
		problem string
	}{
		"not read yet":                   {vault: &vaultRoot{pending: true}, nothing: true},
		"first":                          {vault: atVault(a), nothing: true, keep: a},
		"kept":                           {vault: atVault(a), have: []*stored{keptRoot(a, "a")}, signs: a, roots: 1},
		"another one":                    {vault: atVault(b), have: []*stored{keptRoot(a, "a")}, before: known(a, a), signs: a, roots: 1, keep: b},
		"another one, kept":              {vault: atVault(b), have: []*stored{keptRoot(a, "a"), keptRoot(b, "b")}, before: known(a, a), signs: b, roots: 2},
		"its record was deleted":         {vault: atVault(a), before: known(a, a), signs: a, roots: 1, keep: a},
		"down from the start":            {vault: down, roots: 0, problem: "is down"},
		"down":                           {vault: down, have: []*stored{keptRoot(a, "a"), keptRoot(b, "b")}, before: known(a, a, b), signs: a, roots: 2, problem: "is down"},
		"down after a restart":           {vault: down, have: []*stored{keptRoot(a, "a")}, signs: a, roots: 1, problem: "is down"},
		"down, restarted in a rotation":  {vault: down, have: []*stored{keptRoot(a, "a"), keptRoot(b, "b")}, roots: 2, problem: "is down"},
		"down after a generated root":    {vault: down, have: []*stored{generated}, before: known(generated.authority, generated.authority), signs: generated.authority, roots: 1, problem: "is down"},
		"after a generated root":         {vault: atVault(a), have: []*stored{generated, keptRoot(a, "a")}, before: known(generated.authority, generated.authority), signs: a, roots: 2},
		"expired":                        {vault: atVault(old), have: []*stored{keptRoot(a, "a")}, before: known(a, a), signs: a, roots: 1, problem: "the CA of Vault v cannot sign"},
		"expires soon":                   {vault: atVault(soon), have: []*stored{keptRoot(soon, "s")}, signs: soon, roots: 1, problem: "expires at"},
		"asked to rotate":                {vault: atVault(a), have: []*stored{keptRoot(a, "a")}, change: []func(*networkingv1.VirtualMesh){annotated(snapshot.TrustRotateAnnotation, now.Format(time.RFC3339))}, signs: a, roots: 1, problem: "has no effect, because a Vault signs"},
		"another root is named":          {vault: atVault(b), have: []*stored{keptRoot(a, "a"), keptRoot(b, "b")}, change: []func(*networkingv1.VirtualMesh){annotated(snapshot.TrustRootAnnotation, fingerprint(a))}, signs: b, roots: 2, problem: "change its issuer back in Vault"},
		"the root that signs is named":   {vault: atVault(b), have: []*stored{keptRoot(b, "b")}, change: []func(*networkingv1.VirtualMesh){annotated(snapshot.TrustRootAnnotation, fingerprint(b))}, signs: b, roots: 1},
		"its key is on this cluster too": {vault: atVault(generated.authority), have: []*stored{generated}, signs: generated.authority, roots: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vm := virtualMesh("ns", "vm", append(c.change, fromVault(&certificatesv1.VaultCA{}))...)
			got := decide(facts{vm: vm, ref: snapshot.RefOf(snapshot.VirtualMesh, vm), have: c.have, record: recorded(c.have...), vault: c.vault, before: c.before, now: now})
			assert.Nil(t, got.make)
			if c.keep == nil {
				assert.Empty(t, got.keep)
			} else {
				require.Len(t, got.keep, 1)
				assert.Equal(t, fingerprint(c.keep), pki.Fingerprint(got.keep[0]))
			}
			if c.nothing {
				assert.Nil(t, got.roots)
				return
			}
			require.NotNil(t, got.roots)
			assert.Len(t, got.roots.Roots, c.roots)
			assert.Contains(t, got.roots.Problem, c.problem)
			assert.Equal(t, c.problem == "", got.roots.Problem == "", got.roots.Problem)
			if c.signs == nil {
				assert.Empty(t, got.roots.Signs)
				return
			}
			assert.Equal(t, fingerprint(c.signs), got.roots.Signs)
			if c.vault.chain != nil && c.keep == nil {
				assert.Equal(t, snapshot.Ref{}, got.roots.Find(got.roots.Signs).Secret, "Vault has its key")
			}
		})
	}
}

// TestAVaultAndItsRotation: its root signs; another one follows, and the former goes when nobody needs it; while Vault is
// down, also over a restart, what is known stays. Nothing but the reads that everybody may do is ever asked.
func TestAVaultAndItsRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	year := func(name string) *vaulttest.CA {
		return vaulttest.NewRoot(t, name, time.Now().Add(-time.Hour), 365*day)
	}
	first, second := year("first"), year("second").NewCA(t, "below", time.Now().Add(-time.Hour), 300*day)
	server := vaulttest.New(t, first)
	server.Instead(vaulttest.Sealed)
	vm := func(change ...func(*networkingv1.VirtualMesh)) *networkingv1.VirtualMesh {
		return virtualMesh(w.namespace, "vm", append(change, fromVault(server.VaultCA()))...)
	}
	// A changed VirtualMesh has Vault read at once; else it would take a minute.
	again := func(generation int64) func(*networkingv1.VirtualMesh) {
		return func(vm *networkingv1.VirtualMesh) { vm.Generation = generation }
	}
	w.start(w.config)
	w.have(vm())
	said := w.until("that it is sealed", "vm", func(r *snapshot.VirtualMeshRoots) bool { return strings.Contains(r.Problem, "Vault is sealed") })
	assert.Empty(t, said.Signs)
	assert.Empty(t, said.Roots)
	t.Log(said.Problem)

	server.Instead(nil)
	w.have(vm(again(1)))
	said = w.signs("vm")
	assert.Equal(t, first.Fingerprint(), said.Signs)
	assert.Empty(t, said.Problem)
	assert.Equal(t, strings.TrimSpace(first.PEM()), strings.TrimSpace(said.Roots[0].PEM))
	assert.Nil(t, w.store.Authority(said.VirtualMesh, said.Signs), "its key is in Vault")
	require.Len(t, w.secrets(), 1)
	for _, secret := range w.secrets() {
		assert.Equal(t, SecretType, secret.Type)
		assert.Len(t, secret.Data, 1, "the certificate")
	}

	server.Instead(func(rw http.ResponseWriter, r *http.Request) bool { return vaulttest.Sealed(rw, r) })
	w.have(vm(again(2)))
	said = w.until("that it is sealed", "vm", func(r *snapshot.VirtualMeshRoots) bool { return r.Problem != "" })
	assert.Equal(t, first.Fingerprint(), said.Signs, "what is known stays")
	w.end()
	w.set(nil)
	w.start(w.config)
	w.touch()
	said = w.until("the same after a restart", "vm", func(r *snapshot.VirtualMeshRoots) bool { return r.Problem != "" })
	assert.Equal(t, first.Fingerprint(), said.Signs)
	assert.Len(t, said.Roots, 1)

	server.SetCA(second)
	server.Instead(nil)
	w.have(vm(again(3)))
	said = w.signs("vm", first.Fingerprint())
	assert.Equal(t, second.Fingerprint(), said.Signs)
	assert.Len(t, said.Roots, 2, "members still present the former")
	w.mu.Lock()
	w.unused = []string{first.Fingerprint(), second.Fingerprint()}
	w.mu.Unlock()
	w.looked()
	assert.Len(t, w.secrets(), 2, "the way back stays open for a while")
	w.ahead.Store(int64(unusedFor + time.Second))
	w.touch()
	waittest.Until(t, "the former root goes", func() bool { return len(w.secrets()) == 1 })
	w.until("it is not listed", "vm", func(r *snapshot.VirtualMeshRoots) bool { return len(r.Roots) == 1 && r.Signs == second.Fingerprint() })

	// Members present the root that signs: it must not be due when the next one does.
	w.mu.Lock()
	w.unused = nil
	w.mu.Unlock()
	w.looked()
	w.have(virtualMesh(w.namespace, "vm"))
	said = w.signs("vm", second.Fingerprint())
	assert.Len(t, said.Roots, 2, "a generated root is like any other")
	for _, request := range server.Requests() {
		assert.Contains(t, []string{"GET /v1/pki/cert/ca", "GET /v1/pki/cert/ca_chain"}, request)
	}
	w.assertSilent(w.log.String())
}

// TestVaultIsReadNowAndThen: not all the time, whatever it says.
func TestVaultIsReadNowAndThen(t *testing.T) {
	t.Parallel()
	server := vaulttest.New(t, vaulttest.NewRoot(t, "a", time.Now().Add(-time.Hour), 365*day))
	r := &vaultReader{ca: server.VaultCA(), poked: make(chan struct{}, 1), last: vaultRoot{name: "Vault v", pending: true}}
	assert.True(t, r.look(t.Context()), "it is read")
	assert.False(t, r.look(t.Context()), "nothing is new")
	assert.Len(t, r.said().chain, 1)
	server.Instead(vaulttest.Sealed)
	assert.True(t, r.look(t.Context()))
	assert.False(t, r.look(t.Context()), "it says the same each time")
	assert.Contains(t, r.said().problem, "sealed")
	server.Instead(nil)
	assert.True(t, r.look(t.Context()))
	assert.Empty(t, r.said().problem)
}
