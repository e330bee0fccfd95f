package status

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/rbac"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Issues lists all issues of a translation, ordered by Issue.Compare. Dialects are
// those of all kinds of mesh.
func Issues(in *snapshot.Input, discovered []*snapshot.Discovered, plan *snapshot.Plan, logs []*snapshot.AccessLogPlan, dialects []*snapshot.Dialect) []snapshot.Issue {
	var out []snapshot.Issue
	for _, c := range in.Clusters {
		if o := c.Outage(); o != nil {
			out = append(out, o.Issue(snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: in.Management.Namespace, Name: c.Name}))
		}
	}
	for _, d := range discovered {
		out = append(out, d.Issues...)
	}
	out = append(out, plan.Warnings...)
	for _, vm := range plan.VirtualMeshes {
		out = append(out, vm.Issues...)
	}
	for _, v := range plan.VirtualDestinations {
		out = append(out, v.AllIssues()...)
	}
	for _, p := range plan.Policies {
		out = append(out, p.Issues...)
		if p.IssueCount == 0 {
			continue
		}
		for i := range p.Verdicts {
			out = append(out, p.Verdicts[i].Issues...)
		}
	}
	for _, p := range plan.Dependencies {
		out = append(out, p.Issues...)
		for i := range p.Verdicts {
			if p.IssueCount == 0 {
				break
			}
			out = append(out, p.Verdicts[i].Issues...)
		}
	}
	for _, f := range in.Failures {
		out = append(out, FailureIssue(f))
	}
	for _, p := range logs {
		out = append(out, p.Issues...)
	}
	out = append(out, ineffective(in.Management, inUse(dialects, plan.Meshes))...)
	slices.SortFunc(out, snapshot.Issue.Compare)
	return out
}

// FailureIssue is the issue about what could not be read, written or deleted.
func FailureIssue(f snapshot.Failure) snapshot.Issue {
	hint, severity := "fix what the API server reports; the write is retried", snapshot.Error
	switch f.Code {
	case snapshot.ForeignObject:
		hint = "rename or delete it, or exclude the service from the policies"
	case snapshot.ClusterAwaited:
		hint = "make the cluster answer: `meshctl cluster list` says why it does not, and what to do; or change the policy so that it needs nothing new there"
	case snapshot.WithdrawalHeld:
		hint = "look for what is missing: a control plane, Services, or objects of the management plane"
	case snapshot.AnotherPlane:
		hint, severity = "`kubectl get virtualservices,serviceentries,authorizationpolicies -A -L "+snapshot.PlaneLabel+"` shows whose objects are there", snapshot.Warning
	case snapshot.ObjectsWait:
		hint, severity = "`meshctl cluster list` says which, and what to do", snapshot.Warning
	case snapshot.VersionSkew:
		hint, severity = "`meshctl cluster list` shows the version of each agent", snapshot.Warning
	case snapshot.ClusterLeaving:
		hint, severity = "`meshctl cluster deregister "+f.Ref.Name+"` waits for it, and goes on where it was interrupted", snapshot.Warning
	case snapshot.SecretRefused:
		hint = "restore the Secret; `meshctl cluster list` shows where it leads"
	case snapshot.CredentialNotRenewed:
		hint = "make the cluster issue tokens to its ServiceAccount again, or run `meshctl cluster register --renew`"
	case snapshot.ObjectUnreadable:
		hint = "report this defect of meshctl with the log of `meshctl serve`, or undo the last edit of the object"
	}
	return snapshot.Issue{Code: f.Code, Severity: severity, Ref: f.Ref, Message: f.Reason.String(), Hint: hint}
}

// noEffect is the message for kinds that are stored but not translated.
const noEffect = "this version does not support the kind: the object has no effect"

// ineffective reports stored objects that have no effect.
func ineffective(m *snapshot.Management, dialects []*snapshot.Dialect) []snapshot.Issue {
	var out []snapshot.Issue
	add := func(kind snapshot.Kind, o metav1.Object) {
		out = append(out, snapshot.Issue{
			Code: snapshot.KindUnsupported, Severity: snapshot.Warning, Ref: snapshot.RefOf(kind, o),
			Message: noEffect, Hint: "remove it",
		})
	}
	for _, o := range m.Settings {
		out = append(out, settingsIssues(m, o, dialects)...)
	}
	for _, o := range m.WasmDeployments {
		add(snapshot.WasmDeployment, o)
	}
	return append(out, ineffectiveRoles(m)...)
}

// ineffectiveRoles reports Roles and RoleBindings that have no effect. Whether those that have one are enforced is for the webhook to
// say.
func ineffectiveRoles(m *snapshot.Management) (out []snapshot.Issue) {
	rules := rbac.New(m.Namespace, m.Roles, m.RoleBindings)
	add := func(kind snapshot.Kind, o snapshot.APIObject) {
		if issue := rules.Ineffective(o); issue != nil {
			out = append(out, issue.On(snapshot.RefOf(kind, o), snapshot.Ref{}))
		}
	}
	for _, o := range m.Roles {
		add(snapshot.Role, o)
	}
	for _, o := range m.RoleBindings {
		add(snapshot.RoleBinding, o)
	}
	return out
}
