package registration

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file keeps the names below the suffixes of VirtualMeshes to the management planes. Of several ServiceEntries for a host,
// Istio takes the oldest, in whichever namespace it is (pilot/pkg/model, PushContext.initServiceRegistry), and a VirtualService
// of any namespace is for all callers unless its exportTo says otherwise. So whoever may write in one namespace could lead the
// requests of all others to a service in another cluster wherever it likes.

// hostsResource is no resource that an API server serves: a permission on it is the permission to write names of federated
// services, and which accounts have it is decided where all permissions are.
const hostsResource = "federatedhosts"

// hostsRule is that permission.
func hostsRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{networkingv1.GroupVersion.Group}, Resources: []string{hostsResource}, Verbs: []string{"use"}}
}

var virtualMeshes = kindResource(snapshot.VirtualMesh)

// suffixes are those of VirtualMeshes, and the default, ascending.
func suffixes(m *snapshot.Management) []string {
	out := []string{networkingv1.DefaultHostnameSuffix}
	for _, vm := range m.VirtualMeshes {
		if f := vm.Spec.Federation; f != nil && len(validation.IsDNS1123Subdomain(f.HostnameSuffix)) == 0 {
			out = append(out, f.HostnameSuffix)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// rulesOfHosts match the objects that name hosts, one rule for each group.
func rulesOfHosts() []admissionv1.NamedRuleWithOperations {
	resources := map[string][]string{}
	for _, k := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
		if info := k.Info(); info.Effect&snapshot.Hosts != 0 {
			resources[info.Group] = append(resources[info.Group], info.Resource)
		}
	}
	var out []admissionv1.NamedRuleWithOperations
	for _, group := range slices.Sorted(maps.Keys(resources)) {
		slices.Sort(resources[group])
		out = append(out, admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources[group]},
		}})
	}
	return out
}

// hostsPolicy refuses hosts below suffixes to who has no permission for them. An object that had one before may be deleted, and
// changed where its spec stays.
func hostsPolicy(suffixes []string) admissionv1.ValidatingAdmissionPolicySpec {
	var ends []string
	for _, suffix := range suffixes {
		ends = append(ends, "."+suffix, "."+suffix+".") // a name may end with the root
	}
	list, err := json.Marshal(ends)
	if err != nil {
		panic(err) // strings can be encoded
	}
	return admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy:    ptr.To(admissionv1.Fail),
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: rulesOfHosts()},
		Variables: []admissionv1.Variable{
			{Name: "hosts", Expression: "!has(object.spec) ? [] : has(object.spec.hosts) ? object.spec.hosts : has(object.spec.host) ? [object.spec.host] : []"},
			{Name: "reserved", Expression: fmt.Sprintf("variables.hosts.filter(h, %s.exists(end, ('.' + h.lowerAscii()).endsWith(end)))", list)},
		},
		Validations: []admissionv1.Validation{{
			Expression: "variables.reserved.size() == 0 || has(object.metadata.deletionTimestamp) || " +
				"request.operation == 'UPDATE' && has(oldObject.spec) && oldObject.spec == object.spec || " +
				fmt.Sprintf("authorizer.group(%q).resource(%q).check('use').allowed()", networkingv1.GroupVersion.Group, hostsResource),
			MessageExpression: "variables.reserved.join(', ') + " + fmt.Sprintf("%q", " cannot be written: names below "+strings.Join(suffixes, ", ")+
				" are those of services that meshctl federates. Choose another name, or have the administrator of the cluster write it, who may use "+
				hostsResource+"."+networkingv1.GroupVersion.Group),
			Message: "names below " + strings.Join(suffixes, ", ") + " are those of services that meshctl federates",
		}},
	}
}

// HostsPolicyName is the ValidatingAdmissionPolicy, and its binding, by which a management plane keeps names to itself.
func HostsPolicyName(planeID string) string { return RoleName(planeID) + "-" + hostsResource }

// reserves reports whether the registration of a cluster keeps all suffixes.
func reserves(annotations map[string]string, suffixes []string) bool {
	kept := strings.Split(annotations[cluster.SuffixesAnnotation], ",")
	return !slices.ContainsFunc(suffixes, func(suffix string) bool { return !slices.Contains(kept, suffix) })
}
