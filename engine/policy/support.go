package policy

import (
	"cmp"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// dialect is that of the mesh of a Destination; nil if it is in no mesh.
func (env *environment) dialect(self int) *snapshot.Dialect {
	return dialectOf(env.topology, env.inv.Destinations[self])
}

func dialectOf(t *virtualmesh.Topology, d *discoveryv1.Destination) *snapshot.Dialect {
	if mesh := t.MeshOf(d); mesh != nil {
		return mesh.Dialect
	}
	return nil
}

// unsupportedFields reports what the mesh of a Destination cannot express, as its
// renderer declares. A spec that does not apply there has no issues.
func (env *environment) unsupportedFields(self int, viewers []*snapshot.MeshPlan, spec *networkingv1.TrafficPolicySpec) []snapshot.Issue {
	dialect := env.dialect(self)
	if dialect == nil || !slices.ContainsFunc(viewers, func(v *snapshot.MeshPlan) bool { return len(matches(spec, v.Cluster)) > 0 }) {
		return nil
	}
	key := specKey{spec, dialect}
	issues, ok := env.specIssues[key]
	if !ok {
		issues = fieldIssues(dialect, snapshot.TrafficPolicy, snapshot.FieldsIn(spec))
		if env.specIssues == nil {
			env.specIssues = map[specKey][]snapshot.Issue{}
		}
		env.specIssues[key] = issues
	}
	return append(slices.Clip(issues), env.caseIssues(dialect, self, spec)...)
}

// specKey is a spec in one kind of mesh: its issues are the same on every
// Destination.
type specKey struct {
	spec    *networkingv1.TrafficPolicySpec
	dialect *snapshot.Dialect
}

// fieldIssues checks fields against a dialect's declarations, each declaration once.
func fieldIssues(dialect *snapshot.Dialect, kind snapshot.Kind, paths []string) []snapshot.Issue {
	var issues []snapshot.Issue
	for _, path := range paths {
		support, _ := dialect.Of(kind, path, "")
		if issue, ok := supportIssue(dialect, support, "", cmp.Or(support.Path, kind.String())); ok && !slices.Contains(issues, issue) {
			issues = append(issues, issue)
		}
	}
	return issues
}

// unsupportedFields reports what of an AccessPolicy a kind of mesh cannot express.
func (b *accessBinding) unsupportedFields(dialect *snapshot.Dialect) []snapshot.Issue {
	issues, ok := b.fields[dialect]
	if !ok {
		issues = fieldIssues(dialect, snapshot.AccessPolicy, snapshot.FieldsIn(&b.policy.Spec))
		if support, ok := dialect.Of(snapshot.AccessPolicy, "action", snapshot.Denying); ok && b.policy.Spec.Denies() {
			if issue, ok := supportIssue(dialect, support, snapshot.Denying, "action "+snapshot.Denying); ok {
				issues = append(issues, issue)
			}
		}
		if b.fields == nil {
			b.fields = map[*snapshot.Dialect][]snapshot.Issue{}
		}
		b.fields[dialect] = issues
	}
	return issues
}

// caseIssues checks values that decide whether a field can be expressed.
func (env *environment) caseIssues(dialect *snapshot.Dialect, self int, spec *networkingv1.TrafficPolicySpec) []snapshot.Issue {
	p := spec.Policy
	var issues []snapshot.Issue
	check := func(path, of, field, value string) {
		support, ok := dialect.Of(snapshot.TrafficPolicy, path, of)
		if !ok || support.Level != snapshot.NotExpressible {
			return // the feature itself reports approximations
		}
		issue, _ := supportIssue(dialect, support, of, strings.TrimSpace(field+" "+value))
		issues = append(issues, issue.At(field))
	}
	if p.Mtls != nil && p.Mtls.Istio != nil && tlsModeOf(p) != networkingv1.TLSModeIstioMutual {
		const path = "policy.mtls.istio.tlsMode"
		check(path, snapshot.NotMutual, path, string(tlsModeOf(p)))
		if len(issues) == 0 && isNarrow(spec) {
			check(path, snapshot.NotMutualBeside, path, string(tlsModeOf(p))+" "+snapshot.BesideCondition)
		}
	}
	if p.TrafficShift == nil {
		return issues
	}
	own := env.inv.Destinations[self].Spec.KubeService
	const path = "policy.trafficShift.destinations.kubeService."
	for i := range p.TrafficShift.Destinations {
		target := p.TrafficShift.Destinations[i].KubeService
		if target == nil {
			continue
		}
		field := shiftField(i) + ".kubeService."
		if at, found := env.inv.IndexOfService(commonv1.ClusterObjectRef{Name: target.Name, Namespace: target.Namespace, ClusterName: target.ClusterName}); found && env.inv.Destinations[at].Spec.KubeService.Headless {
			check(path+"name", snapshot.Headless, field+"name", target.Name)
		}
		if target.ClusterName != own.Ref.ClusterName {
			check(path+"clusterName", snapshot.OtherCluster, field+"clusterName", target.ClusterName)
		}
		if target.Namespace != own.Ref.Namespace {
			check(path+"namespace", snapshot.OtherNamespace, field+"namespace", target.Namespace)
		}
		if target.Port != 0 && (len(own.Ports) != 1 || own.Ports[0].Port != target.Port) {
			check(path+"port", snapshot.OtherPort, field+"port", "")
		}
	}
	return issues
}

// supportIssue is the issue for a policy that sets a field; false if there is none.
func supportIssue(dialect *snapshot.Dialect, s snapshot.Support, of, field string) (snapshot.Issue, bool) {
	switch s.Level {
	case snapshot.NotExpressible:
		return snapshot.Errorf(snapshot.FieldUnsupported, hintFor(of, s),
			"%s cannot be expressed on %s: %s", field, dialect.Name, s.Note).At(s.Path), true
	case snapshot.Approximated:
		return snapshot.Warnf(snapshot.FieldUnsupported, hintFor(of, s),
			"%s is approximated on %s: %s", field, dialect.Name, s.Note).At(s.Path), true
	default:
		return snapshot.Issue{}, false
	}
}

func hintFor(of string, s snapshot.Support) string {
	switch {
	case of == snapshot.PathTemplate:
		return "use * at one end"
	case of == snapshot.UnusualMethod:
		return "remove it, or allow all methods"
	case of == snapshot.Denying:
		return "allow only those who are meant, in a policy without it; or exclude such services from the policy"
	case s.Kind == snapshot.AccessPolicy && of == snapshot.OtherCluster:
		return "they can only reach the services of their own cluster"
	case s.Kind == snapshot.AccessPolicy:
		return "name service accounts in kubeServiceAccountRefs instead"
	case of == snapshot.Headless:
		return "give it an address, or name a second Service for the same pods that has one"
	case of == snapshot.OtherPort:
		return "remove it; or give the services the same ports"
	case of == snapshot.OtherCluster || of == snapshot.OtherNamespace:
		return "use a service in the same namespace and cluster, or exclude the called service from the policy"
	case of == snapshot.NotMutualBeside:
		return widenHint
	case strings.HasPrefix(s.Path, "sourceSelector"):
		return "select sources by clusters only, or exclude such services from the policy"
	default:
		return "remove it, or exclude such services from the policy"
	}
}
