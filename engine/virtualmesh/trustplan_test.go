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
