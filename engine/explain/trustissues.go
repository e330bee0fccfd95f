package explain

import (
	"cmp"
	"slices"
	"strings"
	"time"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// expiresSoon is how long before the end of a root people are warned.
	expiresSoon = 60 * 24 * time.Hour
	// silentAfter is how old the last report of an agent may be. It writes one every five
	// minutes, and may not reach its API server for a while.
	silentAfter = 30 * time.Minute
)

// trustCodes are of issues about trust.
var trustCodes = []snapshot.Code{
	snapshot.RootsDiffer, snapshot.RootsUnknown, snapshot.RootMissing, snapshot.TrustPending, snapshot.TrustLeftOut, snapshot.TrustDomainForeign,
	snapshot.RootProblem, snapshot.CertificateFailed,
}

// trustIssues are what is wrong with the trust of a VirtualMesh, worst first. Those that
// follow from the time are not among the issues of the VirtualMesh itself.
func (x describer) trustIssues(v *snapshot.VirtualMeshPlan, t *Trust, now time.Time) []snapshot.Issue {
	issues := slices.DeleteFunc(x.issues.of(v.Ref), func(i snapshot.Issue) bool { return !slices.Contains(trustCodes, i.Code) })
	issues = append(issues, t.dated(v, now)...)
	for i := range t.Members {
		if m := &t.Members[i]; t.Stage != "" && m.Frozen != "" {
			issues = append(issues, snapshot.Warnf(snapshot.AgentSilent, "check that the API server of cluster "+m.Cluster+" runs; `meshctl cluster list` shows its state",
				"cluster %s cannot be read, so the agent of mesh %s is not heard: %s", m.Cluster, m.Mesh.Name, m.Frozen).On(v.Ref, m.Mesh))
		}
	}
	slices.SortFunc(issues, snapshot.Issue.Compare)
	return slices.Compact(issues)
}

// dated are the issues that follow from the time. That the agents of a cluster are silent that cannot be read is none: the cluster is
// the issue.
func (t *Trust) dated(v *snapshot.VirtualMeshPlan, now time.Time) (issues []snapshot.Issue) {
	for i := range t.Roots {
		if issue, found := t.expiry(&t.Roots[i], now); found {
			issues = append(issues, issue)
		}
	}
	for i := range t.Members {
		m := &t.Members[i]
		if issue, found := overdue(v, m, now); found {
			issues = append(issues, issue.On(v.Ref, m.Mesh))
		}
		if issue, found := t.silence(m, now); found {
			issues = append(issues, issue.On(v.Ref, m.Mesh))
		}
	}
	return issues
}

// expiry is the issue with a root that members need and that expires soon.
func (t *Trust) expiry(root *TrustRoot, now time.Time) (snapshot.Issue, bool) {
	if root.NotAfter.IsZero() || root.NotAfter.Sub(now) > expiresSoon || root.Use == RootLeaving {
		return snapshot.Issue{}, false
	}
	name, next := t.Short()(root.Fingerprint), t.exchange(root)
	issue := snapshot.Warnf(snapshot.RootExpires, next, "root %s expires at %s", name, timeText(root.NotAfter))
	if !now.Before(root.NotAfter) {
		issue = snapshot.Errorf(snapshot.RootExpires, next, "root %s expired at %s", name, timeText(root.NotAfter))
	}
	return issue.On(t.VirtualMesh, snapshot.Ref{}), true
}

// exchange says how a root is exchanged for another.
func (t *Trust) exchange(root *TrustRoot) string {
	switch {
	case root.Use == RootInUse:
		return "members move to the root that signs; help those that wait for something"
	case t.Paused:
		return "`meshctl trust resume " + t.VirtualMesh.Name + "`: no other root is made while the trust is paused"
	case t.generated:
		return "`meshctl serve` makes another one in time; to do so now: `meshctl trust rotate " + t.VirtualMesh.Name + "`"
	case root.Secret != nil:
		return "put another root into Secret " + root.Secret.Namespace + "/" + root.Secret.Name + ", or another Secret into the VirtualMesh; members trust it before they use it"
	}
	return "exchange it where it is kept"
}

// overdue is the issue with a certificate that should have been renewed: half of the time in
// which that is done has passed.
func overdue(v *snapshot.VirtualMeshPlan, m *TrustMember, now time.Time) (snapshot.Issue, bool) {
	c := m.Certificate
	if v.Trust == nil || c == nil || c.NotAfter.IsZero() || m.Report != nil && m.Report.UserSecret {
		return snapshot.Issue{}, false
	}
	options := certificatesv1.CommonCertOptions{}
	if o := v.VirtualMesh.Spec.MtlsConfig.Issued().IntermediateCertOptions; o != nil {
		options = *o
	}
	life := time.Duration(cmp.Or(options.TtlDays, certificatesv1.DefaultTtlDays)) * 24 * time.Hour
	if !c.NotBefore.IsZero() {
		life = c.NotAfter.Sub(c.NotBefore)
	}
	ratio := min(cmp.Or(options.SecretRotationGracePeriodRatio, certificatesv1.DefaultSecretRotationGracePeriodRatio), 1)
	if left := c.NotAfter.Sub(now); left > expiresSoon || left > time.Duration(ratio/2*float64(life)) {
		return snapshot.Issue{}, false
	}
	hint := "see the log of `meshctl agent` in cluster " + m.Cluster
	if !now.Before(c.NotAfter) {
		return snapshot.Errorf(snapshot.CertificateOverdue, hint, "the certificate of mesh %s expired at %s, and was not renewed", m.Mesh.Name, timeText(c.NotAfter)), true
	}
	return snapshot.Warnf(snapshot.CertificateOverdue, hint, "the certificate of mesh %s expires at %s, and should have been renewed by now", m.Mesh.Name, timeText(c.NotAfter)), true
}

// silence is the issue with an agent that does not answer.
func (t *Trust) silence(m *TrustMember, now time.Time) (snapshot.Issue, bool) {
	const hint = "check that `meshctl agent` runs in cluster "
	switch {
	case t.Stage == "", m.Frozen != "":
		return snapshot.Issue{}, false // nobody was asked, or nobody knows
	case m.asked && m.State == "" && m.Report == nil && m.Certificate == nil:
		return snapshot.Warnf(snapshot.AgentSilent, hint+m.Cluster, "the agent of mesh %s has not answered", m.Mesh.Name), true
	case m.Report != nil && !m.Report.VerifiedAt.IsZero() && now.Sub(m.Report.VerifiedAt) > silentAfter:
		return snapshot.Warnf(snapshot.AgentSilent, hint+m.Cluster, "the agent of mesh %s has not looked since %s", m.Mesh.Name, timeText(m.Report.VerifiedAt)), true
	}
	return snapshot.Issue{}, false
}

// shortDigits is how many digits of a fingerprint tables have at least.
const shortDigits = 16

// Short returns a function that shortens fingerprints for a table.
func (t *Trust) Short() func(string) string {
	var all []string
	for _, r := range t.Roots {
		all = append(all, r.Fingerprint)
	}
	for _, m := range t.Members {
		all = append(all, m.Roots...)
	}
	all = slices.DeleteFunc(all, func(f string) bool { return !isFingerprint(f) })
	short := snapshot.ShortFingerprintsFrom(shortDigits, all)
	return func(f string) string {
		if !isFingerprint(f) {
			return strings.ToValidUTF8(told(f), "?")
		}
		return short(f)
	}
}
