package virtualmesh

import (
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Fields of a VirtualMesh that say where its root comes from.
const (
	rootField  = "mtlsConfig.shared.rootCertificateAuthority"
	vaultField = "mtlsConfig.shared.intermediateCertificateAuthority"
)

// rootIssues report what is wrong with the root of a VirtualMesh. Without one, nothing is
// signed.
func rootIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	field := rootField
	if vaultCA(plan.VirtualMesh) != nil {
		field = vaultField
	}
	switch trust := plan.Trust; {
	case !trust.RootsRead:
		return nil
	case trust.Root == nil && trust.Message != "":
		return []snapshot.Issue{snapshot.Errorf(snapshot.RootMissing, "correct "+field+" or what it names",
			"there is no root to sign with: %s", trust.Message).At(field).On(plan.Ref, snapshot.Ref{})}
	case trust.Root != nil && trust.Problem != "":
		return []snapshot.Issue{snapshot.Warnf(snapshot.RootProblem, "correct "+field+" or what it names; until then, what is known of the roots stays",
			"%s", trust.Problem).At(field).On(plan.Ref, snapshot.Ref{})}
	}
	return nil
}

// vaultIssues say what of a Vault is done differently from what a user may expect.
func vaultIssues(plan *snapshot.VirtualMeshPlan) []snapshot.Issue {
	ca := vaultCA(plan.VirtualMesh)
	if ca == nil {
		return nil
	}
	const field = vaultField + ".vault"
	var issues []snapshot.Issue
	if ca.CsrPath != "" {
		issue := snapshot.Warnf(snapshot.FieldUnsupported, "remove csrPath; Vault's role needs no permission for it",
			"csrPath has no effect: the agent of each cluster makes the private key, which never leaves the cluster, and Vault only signs")
		issue.Severity = snapshot.Info
		issues = append(issues, issue.At(field+".csrPath").On(plan.Ref, snapshot.Ref{}))
	}
	if strings.HasPrefix(ca.Server, "http://") {
		issues = append(issues, snapshot.Warnf(snapshot.FieldUnsupported, "use https, with caBundle if its CA is your own",
			"the connection to Vault is not encrypted: who can read or change it can choose the root that all members trust, and gets the tokens of agents; "+
				"an agent uses it only if the registration of its cluster names this URL (--vault-server)").
			At(field+".server").On(plan.Ref, snapshot.Ref{}))
	}
	return issues
}
