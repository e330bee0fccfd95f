package policy

import (
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// callers are the accounts of one mesh that an AccessPolicy allows.
type callers struct {
	accounts []snapshot.Account
	issues   []snapshot.Issue
	rule     *snapshot.AccessRule
}

// callersIn expands a policy's sources to the accounts of a mesh: those that it
// names, and for patterns those under which workloads run. The result is never more
// than what is written.
func (a *accounts) callersIn(b *accessBinding, dialect *snapshot.Dialect, mesh *snapshot.MeshPlan) *callers {
	if c := b.callers[mesh.Ref]; c != nil {
		return c
	}
	c := &callers{}
	spec := &b.policy.Spec
	note := func(path, of string) {
		support, ok := dialect.Of(snapshot.AccessPolicy, path, of)
		if !ok {
			return
		}
		field := support.Path
		if of != "" {
			field += ", " + of + ","
		}
		if issue, ok := supportIssue(dialect, support, of, field); ok && !slices.Contains(c.issues, issue) {
			c.issues = append(c.issues, issue)
		}
	}
	if len(spec.SourceSelector) == 0 {
		note("sourceSelector", snapshot.Omitted)
	}
	for i := range spec.SourceSelector {
		noteSources(&spec.SourceSelector[i], mesh, note, func(a snapshot.Account) { c.accounts = append(c.accounts, a) })
	}
	for _, x := range a.of[commonv1.ObjectRef{Name: mesh.Ref.Name, Namespace: mesh.Ref.Namespace}] {
		workload := a.inv.Workloads[x]
		account := accountOf(workload)
		identity := &discoveryv1.KubernetesWorkload{Controller: workload.Spec.Kubernetes.Controller, ServiceAccountName: account.Name}
		if inventory.SelectsIdentity(spec.SourceSelector, identity) {
			c.accounts = append(c.accounts, account)
		}
	}
	slices.SortFunc(c.accounts, snapshot.Account.Compare)
	c.accounts = slices.Compact(c.accounts)
	c.rule = ruleFor(b.policy, mesh, c.accounts)
	if b.callers == nil {
		b.callers = map[snapshot.Ref]*callers{}
	}
	b.callers[mesh.Ref] = c
	return c
}

// noteSources calls note for the parts of a selector that are patterns or name
// another cluster, and add for the accounts that it names in full.
func noteSources(s *commonv1.IdentitySelector, mesh *snapshot.MeshPlan, note func(path, of string), add func(snapshot.Account)) {
	const accounts = "sourceSelector.kubeServiceAccountRefs.serviceAccounts."
	switch {
	case inventory.NamesAnyone(s):
		note("sourceSelector", snapshot.Omitted)
	case s.KubeIdentityMatcher != nil && len(s.KubeIdentityMatcher.Namespaces) > 0:
		note("sourceSelector.kubeIdentityMatcher.namespaces", "")
	case s.KubeIdentityMatcher != nil:
		note("sourceSelector.kubeIdentityMatcher.clusters", "")
	}
	if s.KubeServiceAccountRefs == nil {
		return
	}
	for _, ref := range s.KubeServiceAccountRefs.ServiceAccounts {
		switch {
		case ref.ClusterName != "" && ref.ClusterName != mesh.Cluster:
			note(accounts+"clusterName", snapshot.OtherCluster)
		case ref.Name == "":
			note(accounts+"name", snapshot.Omitted)
		case ref.Namespace == "":
			note(accounts+"namespace", snapshot.Omitted)
		case inventory.NeedsBoth(s) && !slices.Contains(s.KubeIdentityMatcher.Namespaces, ref.Namespace):
		default:
			add(snapshot.Account{Namespace: ref.Namespace, Name: ref.Name})
		}
	}
}

// ruleFor is a policy's rule in a mesh that identifies callers by account only.
func ruleFor(p *networkingv1.AccessPolicy, mesh *snapshot.MeshPlan, from []snapshot.Account) *snapshot.AccessRule {
	rule := &snapshot.AccessRule{
		Origin: snapshot.Origin{Ref: snapshot.RefOf(snapshot.AccessPolicy, p), Field: "sourceSelector"},
		Policy: p,
		Paths:  p.Spec.AllowedPaths, Methods: p.Spec.AllowedMethods, Ports: p.Spec.AllowedPorts,
	}
	source := snapshot.Source{}
	for _, a := range from {
		source.Identities = append(source.Identities, snapshot.Identity{
			Cluster: mesh.Cluster, TrustDomain: mesh.TrustDomain, Namespace: a.Namespace, ServiceAccount: a.Name,
		})
	}
	if len(from) > 0 {
		rule.Sources = []snapshot.Source{source}
	}
	return rule
}
