package roots

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/certs/pki"
	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// generatedAt is a generated root in a Secret.
func generatedAt(t testing.TB, name string, key int, at time.Time, life time.Duration) *stored {
	t.Helper()
	root := newRoot(t, key, at, certificatesv1.DefaultOrgName, life)
	return &stored{
		ref: snapshot.Ref{Kind: snapshot.Secret, Namespace: "ns", Name: name}, uid: types.UID(name), created: at, ours: true,
		root: root.Chain().Root(), authority: root,
	}
}

func options(change func(*networkingv1.SharedTrust)) func(*networkingv1.VirtualMesh) {
	return func(vm *networkingv1.VirtualMesh) { change(vm.Spec.MtlsConfig.Shared) }
}

// TestWhenARootIsMade lists what makes another root due, and what does not.
func TestWhenARootIsMade(t *testing.T) {
	t.Parallel()
	year := func(key int, age time.Duration) *stored { return generatedAt(t, "vm.ns", key, now.Add(-age), 365*day) }
	stamp := func(d time.Duration) func(*networkingv1.VirtualMesh) {
		return annotated(snapshot.TrustRotateAnnotation, now.Add(d).Format(time.RFC3339))
	}
	pinned := annotated(snapshot.TrustRootAnnotation, pki.Fingerprint(year(0, 0).root))
	shortOwn := options(func(s *networkingv1.SharedTrust) {
		s.IntermediateCertOptions = &certificatesv1.CommonCertOptions{TtlDays: 10}
	})
	for name, c := range map[string]struct {
		have    []*stored
		change  []func(*networkingv1.VirtualMesh)
		cause   string // empty: nothing is made
		problem string
	}{
		"nothing is there":        {cause: "has no root"},
		"nothing changed":         {have: []*stored{year(0, 10*day)}},
		"asked for":               {have: []*stored{year(0, 10*day)}, change: []func(*networkingv1.VirtualMesh){stamp(-time.Hour)}, cause: "annotation"},
		"asked for before":        {have: []*stored{year(0, 10*day)}, change: []func(*networkingv1.VirtualMesh){stamp(-11 * day)}},
		"asked for and done":      {have: []*stored{rotated(year(0, 10*day), now.Add(-time.Hour))}, change: []func(*networkingv1.VirtualMesh){stamp(-time.Hour)}},
		"asked for while paused":  {have: []*stored{year(0, 10*day)}, change: []func(*networkingv1.VirtualMesh){stamp(-time.Hour), annotated(snapshot.TrustPauseAnnotation, "true")}},
		"asked for while pinned":  {have: []*stored{year(0, 0)}, change: []func(*networkingv1.VirtualMesh){stamp(time.Minute), pinned}, problem: "?"},
		"asked for in the future": {have: []*stored{year(0, 10*day)}, change: []func(*networkingv1.VirtualMesh){stamp(time.Hour)}, problem: "is in the future"},
		"asked for wrongly":       {have: []*stored{year(0, 10*day)}, change: []func(*networkingv1.VirtualMesh){annotated(snapshot.TrustRotateAnnotation, "now")}, problem: "is not a time as in RFC 3339"},
		"a year, and 80 days left": {
			have: []*stored{year(0, 285*day)},
		},
		"a year, and 60 days left: intermediates of a year are cut": {have: []*stored{year(0, 305*day)}, cause: "expires at"},
		"the same, with intermediates of ten days":                  {have: []*stored{year(0, 305*day)}, change: []func(*networkingv1.VirtualMesh){shortOwn}},
		"30 days left, with intermediates of ten days":              {have: []*stored{year(0, 335*day)}, change: []func(*networkingv1.VirtualMesh){shortOwn}, cause: "expires at"},
		"a large ratio": {have: []*stored{year(0, 0)}, change: []func(*networkingv1.VirtualMesh){options(func(s *networkingv1.SharedTrust) {
			s.RootCertificateAuthority.Generated.SecretRotationGracePeriodRatio = 0.999
		})}},
		"another organisation": {have: []*stored{year(0, day)}, change: []func(*networkingv1.VirtualMesh){options(func(s *networkingv1.SharedTrust) {
			s.RootCertificateAuthority.Generated.OrgName = "acme"
		})}, cause: "orgName"},
		"another size": {have: []*stored{year(0, day)}, change: []func(*networkingv1.VirtualMesh){options(func(s *networkingv1.SharedTrust) {
			s.RootCertificateAuthority.Generated.RsaKeySizeBytes = 3072
		})}, cause: "rsaKeySizeBytes"},
		"another life": {have: []*stored{year(0, day)}, change: []func(*networkingv1.VirtualMesh){options(func(s *networkingv1.SharedTrust) {
			s.RootCertificateAuthority.Generated.TtlDays = 730
		})}, cause: "ttlDays"},
		"another ratio": {have: []*stored{year(0, day)}, change: []func(*networkingv1.VirtualMesh){options(func(s *networkingv1.SharedTrust) {
			s.RootCertificateAuthority.Generated.SecretRotationGracePeriodRatio = 0.2
		})}},
		"another organisation of somebody else's": {have: []*stored{foreign(year(0, day))}, change: []func(*networkingv1.VirtualMesh){options(func(s *networkingv1.SharedTrust) {
			s.RootCertificateAuthority.Generated.OrgName = "acme"
		})}},
		"expired":                {have: []*stored{year(0, 400*day)}, problem: "expired at"},
		"expired, and asked for": {have: []*stored{year(0, 400*day)}, change: []func(*networkingv1.VirtualMesh){stamp(-time.Hour)}, cause: "annotation", problem: "expired at"},
		"one of two expired":     {have: []*stored{year(0, 400*day), generatedAt(t, "vm.ns.2", 1, now.Add(-day), 365*day)}},
		"an unusable one":        {have: []*stored{{problem: "Secret ns/vm.ns: broken"}}, problem: "broken"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			vm := virtualMesh("ns", "vm", c.change...)
			got := decide(facts{vm: vm, ref: snapshot.RefOf(snapshot.VirtualMesh, vm), have: c.have, record: recorded(c.have...), now: now})
			if c.cause == "" {
				assert.Nil(t, got.make)
			} else if assert.NotNil(t, got.make) {
				assert.Contains(t, got.make.cause, c.cause)
			}
			switch {
			case c.problem != "":
				assert.Contains(t, got.roots.Problem, strings.TrimSuffix(c.problem, "?"))
			case len(c.have) > 0:
				assert.Empty(t, got.roots.Problem)
				assert.Equal(t, pki.Fingerprint(c.have[len(c.have)-1].root), got.roots.Signs)
			}
		})
	}
}

func rotated(o *stored, at time.Time) *stored {
	o.created, o.rotate = now.Add(-2*time.Hour), at.Format(time.RFC3339)
	return o
}

func foreign(o *stored) *stored { o.ours = false; return o }

// TestRotationsEnd: however often a root is due, there is a bound to how many there are.
func TestRotationsEnd(t *testing.T) {
	t.Parallel()
	vm := virtualMesh("ns", "vm", annotated(snapshot.TrustRotateAnnotation, now.Format(time.RFC3339)))
	f := facts{vm: vm, ref: snapshot.RefOf(snapshot.VirtualMesh, vm), now: now}
	for i := range maxRoots {
		f.have = append(f.have, generatedAt(t, string(rune('a'+i)), 0, now.Add(-day), 365*day))
	}
	f.record = recorded(f.have...)
	got := decide(f)
	assert.Nil(t, got.make)
	assert.Contains(t, got.roots.Problem, "no new root is generated")
	assert.NotEmpty(t, got.roots.Signs)
}

// TestTrustModelsShareNoRoot: who had a CA of the shared root must not speak for gateways, and a root of
// gateways signs no CA.
func TestTrustModelsShareNoRoot(t *testing.T) {
	t.Parallel()
	limited := func(vm *networkingv1.VirtualMesh) {
		vm.Spec.MtlsConfig = &networkingv1.MTLSConfig{Limited: &networkingv1.LimitedTrust{}}
	}
	decided := func(have []*stored, change ...func(*networkingv1.VirtualMesh)) decision {
		vm := virtualMesh("ns", "vm", change...)
		return decide(facts{vm: vm, ref: snapshot.RefOf(snapshot.VirtualMesh, vm), have: have, record: recorded(have...), now: now})
	}
	shared := generatedAt(t, "vm.ns", 0, now.Add(-2*day), 365*day)
	root := newRoot(t, 1, now.Add(-day), gatewayOrg, 365*day)
	gateways := &stored{ref: snapshot.Ref{Kind: snapshot.Secret, Namespace: "ns", Name: "vm.ns.2"}, created: now.Add(-day), ours: true, root: root.Chain().Root(), authority: root}

	for name, have := range map[string]*stored{"ours": shared, "of Gloo Mesh": foreign(generatedAt(t, "vm.ns", 0, now.Add(-2*day), 365*day))} {
		got := decided([]*stored{have}, limited)
		assert.Empty(t, got.roots.Signs, name)
		if assert.NotNil(t, got.make, name) {
			assert.Equal(t, gatewayOrg, got.make.options.OrgName)
		}
		held := decided([]*stored{have}, limited, annotated(snapshot.TrustPauseAnnotation, "true"))
		assert.Nil(t, held.make)
		assert.Empty(t, held.roots.Signs)
		assert.Contains(t, held.roots.Problem, "remove it")
	}

	both := []*stored{shared, gateways}
	got := decided(both, limited) // a test's keys are smaller than those that are made, so that another follows
	assert.Equal(t, pki.Fingerprint(gateways.root), got.roots.Signs)
	assert.True(t, got.roots.Find(got.roots.Signs).Gateways)
	assert.False(t, got.roots.Find(pki.Fingerprint(shared.root)).Gateways)
	pinned := decided(both, limited, annotated(snapshot.TrustRootAnnotation, pki.Fingerprint(shared.root)))
	assert.NotEqual(t, pki.Fingerprint(shared.root), pinned.roots.Signs)
	assert.Contains(t, pinned.roots.Problem, "made for another trust model")

	back := decided(both)
	assert.Empty(t, back.roots.Signs)
	if assert.NotNil(t, back.make) {
		assert.Equal(t, certificatesv1.DefaultOrgName, back.make.options.OrgName)
	}
}

// TestNamesDoNotCollide: names have dots, and may be as long as objects' names may be.
func TestNamesDoNotCollide(t *testing.T) {
	t.Parallel()
	vm := func(namespace, name string) snapshot.Ref {
		return snapshot.Ref{Kind: snapshot.VirtualMesh, Namespace: namespace, Name: name}
	}
	long := strings.Repeat("a", maxName)
	names := map[string]string{}
	for what, name := range map[string]string{
		"a.b in c": firstName(vm("c", "a.b")), "a in b.c": firstName(vm("c", "b")), "long": firstName(vm("c", long)), "long in d": firstName(vm("d", long)),
		"after": laterName(vm("c", "a.b"), "after", "1"), "after another": laterName(vm("c", "a.b"), "after", "2"),
		"certificate": laterName(vm("c", "a.b"), "certificate", "1"), "after long": laterName(vm("c", long), "after", "1"),
	} {
		assert.Empty(t, names[name], what)
		assert.LessOrEqual(t, len(name), maxName)
		names[name] = what
	}
	last := laterName(vm("c", "a.b"), "after", "1")
	assert.Greater(t, len(last[strings.LastIndexByte(last, '.')+1:]), 63, "longer than any namespace")
}

// TestALostSecretKeepsItsCertificate: members may still present certificates of the root.
func TestALostSecretKeepsItsCertificate(t *testing.T) {
	t.Parallel()
	vm := virtualMesh("ns", "vm")
	f := facts{vm: vm, ref: snapshot.RefOf(snapshot.VirtualMesh, vm), now: now, have: []*stored{generatedAt(t, "vm.ns", 0, now.Add(-day), 365*day)}}
	f.record = recorded(f.have...)
	first := decide(f)
	f.before, f.have = first.roots, nil
	lost := decide(f)
	require.Len(t, lost.keep, 1)
	assert.Equal(t, first.roots.Signs, pki.Fingerprint(lost.keep[0]))
	assert.NotNil(t, lost.make, "and another one is made")
	assert.Empty(t, lost.roots.Signs)
	assert.Len(t, lost.roots.Roots, 1)
	f.dropped = map[string]bool{first.roots.Signs: true}
	assert.Empty(t, decide(f).keep, "what was dropped is not lost")
}
