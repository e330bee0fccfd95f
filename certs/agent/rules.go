package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/certs/restart"
	"github.com/meshctl/meshctl/certs/verify"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// OwnRules are the rules of the Role in the agent's own namespace. That namespace may be the management plane's, which has the
// keys of roots and the credentials of clusters as Secrets; so the agent may read only Secrets that have the names of its
// meshes.
//
// Kubernetes cannot restrict create by name; Limits does.
func OwnRules(meshes ...string) []rbacv1.PolicyRule {
	group := snapshot.IssuedCertificate.Info().Group
	certificates, requests := snapshot.IssuedCertificate.Info().Resource, snapshot.CertificateRequest.Info().Resource
	directives := snapshot.PodBounceDirective.Info().Resource
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{certificates, directives}, Verbs: []string{"get", "list", "watch"}},
		// A status is applied, which is a patch.
		{APIGroups: []string{group}, Resources: []string{certificates + "/status", directives + "/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{group}, Resources: []string{requests}, Verbs: []string{"create", "delete", "get", "list", "update", "watch"}},
		// The status of a request is the issuer's or, if a Vault signs, the agent's.
		{APIGroups: []string{group}, Resources: []string{requests + "/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{LeaseName}, Verbs: []string{"get", "update"}},
	}
	if len(meshes) == 0 { // without names the rule would be about all Secrets
		return rules
	}
	return append(rules, secretRules([]string{"delete", "get", "list", "update", "watch"}, keyNames(meshes)...)...)
}

// keyNames are those of the Secrets with the keys of meshes, and of their gateways, ascending.
func keyNames(meshes []string) []string {
	names := slices.Clone(meshes)
	for _, mesh := range meshes {
		names = append(names, snapshot.GatewayCertificateName(mesh))
	}
	return sorted(names)
}

// VaultTokenRules are further rules in the agent's own namespace: to read the Secrets with tokens of Vault that VirtualMeshes
// name (tokenSecretRef), and no others.
func VaultTokenRules(secrets ...string) []rbacv1.PolicyRule {
	return namedRules("secrets", "get", secrets)
}

// VaultAccountRules are further rules in the agent's own namespace: to make tokens of the service accounts that VirtualMeshes
// name for Vault (kubernetesAuth.serviceAccountRef), and of no others.
func VaultAccountRules(accounts ...string) []rbacv1.PolicyRule {
	return namedRules("serviceaccounts/token", "create", accounts)
}

// namedRules allow one verb on objects with names; without names nothing, because such a rule would be about all.
func namedRules(resource, verb string, names []string) []rbacv1.PolicyRule {
	if len(names) == 0 {
		return nil
	}
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: sorted(names), Verbs: []string{verb}}}
}

// MeshRules are the rules of the Role in a namespace with a control plane. Istiod's own root is only read. What of pods may be
// changed is for Limits to say.
func MeshRules() []rbacv1.PolicyRule {
	return append(secretRules([]string{"delete", "get", "list", "update", "watch"}, CACertsName, BackupName, snapshot.GatewaySecret),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"patch"}},
		rbacv1.PolicyRule{
			APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{SelfSignedName}, Verbs: []string{"get", "list", "watch"},
		})
}

// secretRules allow to create Secrets, and verbs on those with names. List and watch are of one name, by field selector.
func secretRules(verbs []string, names ...string) []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: names, Verbs: slices.Clone(verbs)},
	}
}

// ClusterRules are the rules of the ClusterRole: to see which workloads the meshes have and which roots they are given, and to
// restart them. What restarts may change is for Limits to say.
func ClusterRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{verify.RootConfigMap}, Verbs: []string{"list"}},
		{APIGroups: []string{"apps"}, Resources: []string{"daemonsets", "deployments", "statefulsets"}, Verbs: []string{"get", "patch"}},
		{APIGroups: []string{"apps"}, Resources: []string{"replicasets"}, Verbs: []string{"get"}},
	}
}

// Limits are what rules cannot express, for a ValidatingAdmissionPolicy about the agent's account: it writes a Secret only where
// it belongs, and only of the type that it has there. Without them, who has its credential could run anything as any account
// (patch a Deployment's image, or have the API server put a token of another ServiceAccount into a Secret that the agent may
// read), and make a Secret that somebody else takes for a root, or for a registered cluster. The tokens that it makes of other
// accounts are short, and for Vault only. Own is the namespace of the agent, meshNamespaces are those of control planes, and
// audience is that of Vault.
func Limits(own string, meshNamespaces []string, audience string, meshes ...string) admissionv1.ValidatingAdmissionPolicySpec {
	return limits(nil, own, meshNamespaces, audience, meshes)
}

// RelayLimits are Limits for an agent that also speaks for its cluster, and keeps its certificate for that in a Secret.
func RelayLimits(own string, meshNamespaces []string, audience string, meshes ...string) admissionv1.ValidatingAdmissionPolicySpec {
	return limits([]string{snapshot.RelayClientSecret}, own, meshNamespaces, audience, meshes)
}

// limits are Limits with further Secrets for TLS in the agent's own namespace.
func limits(forTLS []string, own string, meshNamespaces []string, audience string, meshes []string) admissionv1.ValidatingAdmissionPolicySpec {
	secrets := func(namespaces, names []string, types ...corev1.SecretType) string {
		return fmt.Sprintf("(object.metadata.namespace in %s && object.metadata.name in %s && object.type in %s)",
			celList(sorted(namespaces)), celList(names), celList(types))
	}
	pairs := strings.Join([]string{
		secrets([]string{own}, keyNames(meshes), KeyType),
		// A user's Secret keeps its type when it is replaced, and comes back when the mesh leaves.
		secrets(meshNamespaces, []string{CACertsName, BackupName}, IssuedType, corev1.SecretTypeOpaque, istioRootType),
		secrets(meshNamespaces, []string{snapshot.GatewaySecret}, corev1.SecretTypeTLS),
	}, " || ")
	if len(forTLS) > 0 {
		pairs += " || " + secrets([]string{own}, forTLS, corev1.SecretTypeTLS)
	}
	writes := func(group string, resources ...string) admissionv1.NamedRuleWithOperations {
		return admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
			Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: resources},
		}}
	}
	const secret, token, pod = "request.resource.resource == 'secrets'", "request.resource.resource == 'serviceaccounts'", "request.resource.resource == 'pods'"
	forVault := fmt.Sprintf("has(object.spec.expirationSeconds) && object.spec.expirationSeconds <= %d && object.spec.audiences == %s && "+
		"(!has(object.spec.boundObjectRef) || object.spec.boundObjectRef == null)", tokenSeconds, celList([]string{audience}))
	validation := func(expression, message string) admissionv1.Validation {
		return admissionv1.Validation{Expression: expression, Message: message}
	}
	return admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionv1.Fail),
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{
			writes("", "secrets", "pods"), writes("apps", "daemonsets", "deployments", "statefulsets"), writes("", "serviceaccounts/token"),
		}},
		Validations: []admissionv1.Validation{
			validation("!("+secret+") || "+pairs, "an agent of meshctl writes only the Secrets of its meshes"),
			validation("!("+token+") || "+forVault, fmt.Sprintf("an agent of meshctl makes tokens for Vault only: with the audience %q, and for %d seconds; register the cluster again with --vault-audience for another", audience, tokenSeconds)),
			validation("!("+pod+") || "+isRefresh(), "an agent of meshctl changes nothing of pods but the annotation "+RefreshAnnotation),
			validation(secret+" || "+token+" || "+pod+" || "+isRestart(), "an agent of meshctl only restarts workloads: it changes nothing but the annotations that say so"),
		},
	}
}

// celList is a CEL list of strings.
func celList[T ~string](of []T) string {
	if len(of) == 0 {
		return "[]"
	}
	text, err := json.Marshal(of)
	if err != nil {
		panic(err) // strings can be encoded
	}
	return string(text)
}

// isRestart is the CEL expression of a change that only restarts.
func isRestart() string {
	return sameBut(appsv1.DeprecatedTemplateGeneration, // which the API server counts
		sameField(".spec", "template"), sameField(".spec.template", "metadata"), sameField(".spec.template.metadata", "annotations"),
		sameField(".spec.template.metadata.annotations", restart.RestartedAt, restart.CauseAnnotation))
}

// isRefresh is the CEL expression of a change of a pod that only has its kubelet look at it.
func isRefresh() string { return sameBut(RefreshAnnotation, sameField(".spec")) }

// sameBut is the CEL expression of a change that keeps metadata, but an annotation, and all that further expressions say.
func sameBut(annotation string, further ...string) string {
	return strings.Join(append([]string{
		"request.operation == 'UPDATE'", sameField(".metadata.labels"), sameField(".metadata.annotations", annotation),
		sameField(".metadata.ownerReferences"), sameField(".metadata.finalizers"),
	}, further...), " && ")
}

// sameField is the CEL expression that a field is what it was, but for some of its keys.
func sameField(path string, but ...string) string {
	now, was := "object"+path, "oldObject"+path
	if len(but) == 0 {
		return fmt.Sprintf("(has(%[1]s) == has(%[2]s) && (!has(%[1]s) || %[1]s == %[2]s))", now, was)
	}
	// Each key but those is in both, with the same value.
	covers := func(a, b string) string {
		return fmt.Sprintf("(!has(%[1]s) || %[1]s.all(k, k in %[3]s || has(%[2]s) && k in %[2]s && %[1]s[k] == %[2]s[k]))", a, b, celList(but))
	}
	return covers(now, was) + " && " + covers(was, now)
}
