package explain

import (
	"fmt"
	"slices"
	"strings"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Page implements Description.
func (t *Trust) Page() Page { return t.page(t.Short()) }

// WidePage is Page with whole fingerprints.
func (t *Trust) WidePage() Page { return t.page(told) }

func (t *Trust) page(short func(string) string) Page {
	return Page{Title: "VirtualMesh " + shortName(t.VirtualMesh) + ": " + t.summary(short), Sections: t.sections(short), Issues: t.Issues}
}

// Summary says in a sentence where the trust stands.
func (t *Trust) Summary() string { return t.summary(t.Short()) }

func (t *Trust) summary(short func(string) string) string {
	switch {
	case !t.Shared:
		return t.apart(short)
	case t.Stage == "" && t.Model != "":
		return "no stage is known (" + t.Model + ")"
	}
	text := string(t.Stage)
	if t.Paused {
		text += " (paused)"
	}
	if t.Root == nil {
		return text + ": there is no root to sign with"
	}
	n, what := len(t.Members), "trust"
	if t.Stage != networkingv1.TrustEstablished && t.Stage != networkingv1.TrustRetiring {
		n, what = 0, "have certificates of"
		for _, m := range t.Members {
			if m.Certificate != nil && m.Certificate.Root == t.Root.Fingerprint {
				n++
			}
		}
	}
	text += fmt.Sprintf(": %d of %s %s root %s", n, snapshot.Count(len(t.Members), "mesh"), what, short(t.Root.Fingerprint))
	if !t.Root.NotAfter.IsZero() {
		text += "; it expires at " + timeText(t.Root.NotAfter)
	}
	return text
}

// apart says whether members with certificates of their own trust a common root.
func (t *Trust) apart(short func(string) string) string {
	const own = "no shared trust: "
	var unknown int
	var common []string
	for i, m := range t.Members {
		if len(m.Roots) == 0 {
			unknown++
		}
		if i == 0 {
			common = slices.Clone(m.Roots)
		}
		common = slices.DeleteFunc(common, func(root string) bool { return !slices.Contains(m.Roots, root) })
	}
	switch n := len(t.Members); {
	case n == 0:
		return own + "it has no member"
	case unknown > 0:
		return own + fmt.Sprintf("the roots of %d of %s are not known", unknown, snapshot.Count(n, "mesh"))
	case len(common) > 0:
		return own + fmt.Sprintf("%d of %s trust root %s", n, snapshot.Count(n, "mesh"), short(common[0]))
	}
	return own + "the meshes trust no common root"
}

// sections are the tables of the trust.
func (t *Trust) sections(short func(string) string) []Section {
	about := facts("", [2]string{"Trust", t.Model}, [2]string{"Waits for", t.Message})
	if t.Shared && t.Stage == "" {
		about.Rows = append(about.Rows, []string{"Stage", "no server has written one; check that it runs: meshctl serve"})
	}
	out := []Section{about}
	if len(t.Roots) > 0 {
		roots := Section{Title: "Roots", Header: []string{"ROOT", "USE", "EXPIRES", "SECRET"}}
		for _, r := range t.Roots {
			secret := ""
			if r.Secret != nil {
				secret = shortName(*r.Secret)
			}
			roots.Rows = append(roots.Rows, []string{short(r.Fingerprint), string(r.Use), timeText(r.NotAfter), secret})
		}
		out = append(out, roots)
	}
	if len(t.Members) > 0 {
		out = append(out, t.memberSection(short))
	}
	counts := Section{Title: "What agents count", Header: []string{"MESH", "CONTROL PLANE", "NAMESPACES", "TRUSTING", "PRESENTING", "AS OF"}}
	for _, m := range t.Members {
		if r := m.Report; r != nil && !t.limited { // what gateways hold cannot be counted
			counts.Rows = append(counts.Rows, []string{
				shortName(m.Mesh), countText(r.ControlPlane), countText(r.Namespaces), countText(r.Trusting), countText(r.Presenting), timeText(r.VerifiedAt),
			})
			counts.Refs = append(counts.Refs, m.Mesh)
		}
	}
	if len(counts.Rows) > 0 {
		out = append(out, counts)
	}
	return out
}

// inDescription are the sections in the description of the VirtualMesh.
func (t *Trust) inDescription() []Section {
	out := t.sections(t.Short())
	out[0] = facts("Trust", [2]string{"Stage", t.Summary()}, [2]string{"Waits for", t.Message})
	return out
}

// memberSection has a row for each member: what it trusts and, if certificates are issued to
// it, what it has.
func (t *Trust) memberSection(short func(string) string) Section {
	s := Section{Title: "Trust of the members", Header: []string{"MESH", "CLUSTER", "TRUSTS"}}
	if t.Shared {
		s.Header = append(s.Header, "STATE", "CERTIFICATE OF", "EXPIRES", "PRESENTS", "WAITS FOR")
	}
	for _, m := range t.Members {
		trusts := m.Roots
		if m.Report != nil {
			trusts = m.Report.Trusted
		}
		row := []string{shortName(m.Mesh), m.Cluster, named(trusts, short)}
		if t.Shared {
			certificate, presents := TrustCertificate{}, []string(nil)
			if m.Certificate != nil {
				certificate = *m.Certificate
			}
			if m.Report != nil {
				presents = m.Report.Presented
			}
			row = append(row, m.State, short(certificate.Root), timeText(certificate.NotAfter), named(presents, short), m.Message)
		}
		s.Rows, s.Refs = append(s.Rows, row), append(s.Refs, m.Mesh)
	}
	return s
}

// facts are the trust of a member in the description of its mesh.
func (m *TrustMember) facts(t *Trust) Section {
	short := t.Short()
	out := facts("Trust in VirtualMesh "+shortName(t.VirtualMesh), [2]string{"Stage", t.summary(short)}, [2]string{"State", m.State})
	add := func(name, value string) {
		if value != "" {
			out.Rows = append(out.Rows, []string{name, value})
		}
	}
	if c := m.Certificate; c != nil {
		add("Certificate of root", short(c.Root))
		add("Serial number", c.Serial)
		add("Expires", timeText(c.NotAfter))
	}
	if r := m.Report; r != nil {
		add("Trusts", named(r.Trusted, short))
		add("Presents", named(r.Presented, short))
		add("Control plane", countText(r.ControlPlane))
		add("Namespaces", countText(r.Namespaces))
		add("Workloads that trust", countText(r.Trusting))
		add("Workloads that present", countText(r.Presenting))
		add("As of", timeText(r.VerifiedAt))
	}
	add("Waits for", m.Message)
	return out
}

// maxNamedRoots bounds the roots in a cell.
const maxNamedRoots = 4

func named(roots []string, short func(string) string) string {
	var out []string
	for i, root := range roots {
		if i == maxNamedRoots {
			out = append(out, snapshot.Count(len(roots)-i, "more root"))
			break
		}
		out = append(out, short(root))
	}
	return strings.Join(out, ", ")
}

func countText(p *certificatesv1.TrustProgress) string {
	if p == nil {
		return ""
	}
	text := fmt.Sprintf("%d of %d", p.Done, p.Total)
	if p.Unseen > 0 {
		text += fmt.Sprintf(" (derived: %d)", p.Unseen)
	}
	if len(p.Waiting) > 0 {
		text += ", not " + p.Waiting[0]
	}
	return text
}
