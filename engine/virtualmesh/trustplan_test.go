package virtualmesh

import (
	"testing"

	"github.com/stretchr/testify/assert"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestNeeds: a root stays as long as a member presents it, is asked to, or may do so for all
// that is known of it.
func TestNeeds(t *testing.T) {
	t.Parallel()
	root := &snapshot.Root{Fingerprint: "old", PEM: "PEM of old\n"}
	asked := &certificatesv1.IssuedCertificateSpec{Trust: &certificatesv1.TrustRequest{Root: "new", Bundle: "PEM of new\nPEM of old\n"}}
	left := &certificatesv1.IssuedCertificateSpec{Trust: &certificatesv1.TrustRequest{Root: "new", Bundle: "PEM of new\n"}}
	gone := func() *trustee {
		return &trustee{asked: asked, takesPart: true, MemberTrust: &snapshot.MemberTrust{
			Signs: "new", Current: true, Report: &certificatesv1.TrustReport{
				Issuer: &certificatesv1.CertificateInfo{Root: "new"}, Presented: []string{"new"},
			},
		}}
	}
	assert.False(t, gone().needs(root))
	answered := gone()
	answered.asked, answered.Current = left, false
	assert.False(t, answered.needs(root), "it has left, and the agent has not answered to that yet")
	for name, change := range map[string]func(*trustee){
		"it presents it":      func(m *trustee) { m.Report.Presented = []string{"new", root.Fingerprint} },
		"it is in its Secret": func(m *trustee) { m.Report.Issuer.Root = root.Fingerprint },
		"it is to sign":       func(m *trustee) { m.Signs = root.Fingerprint },
		"it was asked for last": func(m *trustee) {
			m.asked = &certificatesv1.IssuedCertificateSpec{Trust: &certificatesv1.TrustRequest{Root: root.Fingerprint}}
		},
		"its report is out of date":                       func(m *trustee) { m.Current = false },
		"its agent does not answer":                       func(m *trustee) { m.Current, m.Report = false, nil },
		"it has left, and the agent never answered":       func(m *trustee) { m.asked, m.Current, m.Report = left, false, nil },
		"it has left, and the last answer presents it":    func(m *trustee) { m.asked, m.Current, m.Report.Presented = left, false, []string{"old"} },
		"it has left, and was in the Secret at that time": func(m *trustee) { m.asked, m.Current, m.Report.Issuer.Root = left, false, "old" },
		"its certificate was deleted":                     func(m *trustee) { m.asked, m.Current, m.Report = nil, false, nil },
	} {
		m := gone()
		change(m)
		assert.True(t, m.needs(root), name)
	}
	assert.False(t, (&trustee{MemberTrust: &snapshot.MemberTrust{}}).needs(root), "a member that was never asked")
}

// TestTrusts: that a member trusted a root is no reason to sign with it, if it is not asked
// to go on.
func TestTrusts(t *testing.T) {
	t.Parallel()
	root := &snapshot.Root{Fingerprint: "new", PEM: "PEM of new\n"}
	member := func() *trustee {
		return &trustee{
			asked:       &certificatesv1.IssuedCertificateSpec{Trust: &certificatesv1.TrustRequest{Bundle: "PEM of old\nPEM of new\n"}},
			MemberTrust: &snapshot.MemberTrust{Current: true, Report: &certificatesv1.TrustReport{Trusted: []string{"new", "old"}}},
		}
	}
	assert.True(t, member().trusts(root))
	for name, change := range map[string]func(*trustee){
		"it does not say so":        func(m *trustee) { m.Report.Trusted = []string{"old"} },
		"its report is out of date": func(m *trustee) { m.Current = false },
		"it is not asked to go on":  func(m *trustee) { m.asked.Trust.Bundle = "PEM of old\n" },
	} {
		m := member()
		change(m)
		assert.False(t, m.trusts(root), name)
	}
}

// TestGate: without a report, what a mesh hands out says whom its workloads trust only if that is one root. Of several, some may not have
// reached all of them: an agent whose request was deleted in the middle of an exchange has said nothing about that yet.
func TestGate(t *testing.T) {
	t.Parallel()
	report := func(trusted, presented []string) *certificatesv1.TrustReport {
		return &certificatesv1.TrustReport{Trusted: trusted, Presented: presented}
	}
	for name, c := range map[string]struct {
		here, there   []string
		ours, theirs  *certificatesv1.TrustReport
		opens, before bool
	}{
		"both hand out one root":                    {here: []string{"a"}, there: []string{"a"}, opens: true},
		"they hand out others":                      {here: []string{"a"}, there: []string{"b"}},
		"one hands out both":                        {here: []string{"a"}, there: []string{"a", "b"}},
		"both hand out both":                        {here: []string{"a", "b"}, there: []string{"a", "b"}},
		"both hand out both, and could call before": {here: []string{"a", "b"}, there: []string{"a", "b"}, before: true, opens: true},
		"one says that it trusts both": {
			here: []string{"a"}, there: []string{"a", "b"}, theirs: report([]string{"a", "b"}, []string{"b"}),
		},
		"both say so": {
			here: []string{"a", "b"}, there: []string{"a", "b"}, opens: true,
			ours: report([]string{"a", "b"}, []string{"a"}), theirs: report([]string{"a", "b"}, []string{"b"}),
		},
		"nothing is known": {opens: true},
	} {
		a, b := &snapshot.MeshPlan{Ref: snapshot.Ref{Name: "a"}, Roots: c.here}, &snapshot.MeshPlan{Ref: snapshot.Ref{Name: "b"}, Roots: c.there}
		trust := &snapshot.TrustPlan{}
		if c.before {
			trust.Established = []snapshot.Ref{a.Ref, b.Ref}
		}
		g := &gate{trust: trust, first: map[snapshot.Ref]*snapshot.MemberTrust{a.Ref: {Mesh: a.Ref, Report: c.ours}, b.Ref: {Mesh: b.Ref, Report: c.theirs}}}
		assert.Equal(t, c.opens, g.opens(a, b), name)
	}
}
