package registration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Agent is what the agent of a cluster needs there. It gives the meshes of the cluster their
// certificates, with an account of its own: serve may not read Secrets.
type Agent struct {
	// Image of meshctl for the agent's Deployment. If it is empty, a Deployment that is there
	// stays as it is, and none is made: the agent can run elsewhere with the account.
	Image string
	// OwnRules are those in the namespace of the account, for meshes of these names, MeshRules
	// those in each namespace with a control plane, and ClusterRules those in all namespaces.
	OwnRules                func(meshes ...string) []rbacv1.PolicyRule
	MeshRules, ClusterRules []rbacv1.PolicyRule
	// RelayRules are those in the namespace of the account for an agent that speaks for its cluster.
	RelayRules []rbacv1.PolicyRule
	// MoreRules are further ones in the namespace of the account, for what an administrator names. Those of a registration
	// before stay if there are none.
	MoreRules []rbacv1.PolicyRule
	// OwnerAnnotation is on the Secrets that the agent writes for control planes: the namespace and name of the
	// IssuedCertificate that they are of, with a slash between them.
	OwnerAnnotation string
	// FieldManager is that with which the agent applies statuses.
	FieldManager string
	// VaultServers are the URLs of the HashiCorp Vaults that it may log in to, each in one way of writing it, and
	// VaultAudience is that of the tokens with which it does. Those of a registration before stay if they are nil and empty;
	// a first one has none, and snapshot.VaultAudience.
	VaultServers  []string
	VaultAudience string
	// Limits restrict further what the account may write: in its own namespace, in those of
	// control planes, and for meshes of these names; and which tokens it may make, with the audience of Vault.
	Limits func(own string, meshNamespaces []string, audience string, meshes ...string) admissionv1.ValidatingAdmissionPolicySpec
}

// vaultAccess is what an administrator allowed the agent of a cluster, as it is recorded there: in an annotation of what limits
// the agent, which neither the agent nor serve may write.
type vaultAccess struct {
	Servers  []string `json:"servers,omitempty"`
	Audience string   `json:"audience"`
}

// vaultOf is what an earlier registration allowed.
func vaultOf(policy *unstructured.Unstructured) vaultAccess {
	var out vaultAccess
	if policy != nil && policy.GetLabels()[cluster.ManagedByLabel] == cluster.ManagedBy {
		_ = json.Unmarshal([]byte(policy.GetAnnotations()[VaultAnnotation]), &out) // what cannot be read allows nothing
	}
	return out
}

var (
	policies       = admissionResource("validatingadmissionpolicies", "ValidatingAdmissionPolicy")
	policyBindings = admissionResource("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding")
	meshes         = kindResource(snapshot.Mesh)
)

// agentNamespaces are those in which the agent has a Role, with its rules.
func (r wantedObjects) agentNamespaces() map[string][]rbacv1.PolicyRule {
	out := map[string][]rbacv1.PolicyRule{r.RemoteNamespace: r.Agent.OwnRules(r.meshNames...)}
	for _, namespace := range r.meshNamespaces {
		out[namespace] = append(out[namespace], r.Agent.MeshRules...)
	}
	return out
}

// agentObjects are what the agent has on its cluster, in the order in which they are written:
// the limits come before the rights.
func (r wantedObjects) agentObjects() []*object {
	if r.Agent == nil {
		return nil
	}
	name, labels := AgentName(r.plane.ID), r.labels()
	out := []*object{{
		resource: serviceAccounts, namespace: r.RemoteNamespace, name: name, foreignHint: nameHint,
		want: corev1ac.ServiceAccount(name, r.RemoteNamespace).WithLabels(labels).WithAutomountServiceAccountToken(false),
	}}
	limits := r.accountPolicy(name, name, r.Agent.Limits(r.RemoteNamespace, r.meshNamespaces, r.vault.Audience, r.meshNames...))
	if policy, ok := limits[0].want.(*admissionv1.ValidatingAdmissionPolicy); ok {
		record, err := json.Marshal(r.vault)
		if err != nil { // strings only
			panic(err)
		}
		policy.Annotations = map[string]string{VaultAnnotation: string(record)}
	}
	out = append(out, limits...)
	out = append(out, r.clusterRoleObjects(name, name, labels, labels, r.Agent.ClusterRules, name)...)
	namespaces := r.agentNamespaces()
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		out = append(out, r.roleObjects(namespace, name, namespaces[namespace], name)...)
	}
	if len(r.Agent.MoreRules) > 0 {
		out = append(out, r.roleObjects(r.RemoteNamespace, moreName(r.plane.ID), r.Agent.MoreRules, name)...)
	}
	if image := cmp.Or(r.Agent.Image, r.agentImage); image != "" {
		out = append(out, r.agentDeployment(name, image))
	}
	return out
}

// agentGrants are what the caller needs to hand out the agent's rights.
func (r *registration) agentGrants(ctx context.Context) ([]access, error) {
	if r.Agent == nil {
		return nil, nil
	}
	name := AgentName(r.plane.ID)
	grants, err := r.remote.grantAccess(ctx, clusterRoles.access("", name), ruleAccesses(r.Agent.ClusterRules))
	if err != nil {
		return nil, err
	}
	namespaces := wantedBy(r).agentNamespaces()
	namespaces[r.RemoteNamespace] = slices.Concat(namespaces[r.RemoteNamespace], r.Agent.MoreRules)
	for namespace, rules := range namespaces {
		wanted := ruleAccesses(rules)
		for i := range wanted {
			wanted[i].namespace = namespace
		}
		more, err := r.remote.grantAccess(ctx, roles.access(namespace, name), wanted)
		if err != nil {
			return nil, err
		}
		grants = append(grants, more...)
	}
	return grants, nil
}

// noteVault says what an administrator should know of the Vaults that are allowed now.
func (r *registration) noteVault() {
	for _, server := range r.Agent.VaultServers {
		if strings.HasPrefix(server, "http://") {
			r.report.note("the connection to " + server + " is not encrypted: who can read it gets the tokens of the agent; use https")
		}
	}
	if len(r.Agent.VaultServers) > 0 && cmp.Or(r.Agent.Image, r.agentImage) == "" {
		r.report.note(fmt.Sprintf("no Deployment of the agent is made here; start the agent with --vault-server %s --vault-audience %s",
			strings.Join(r.Agent.VaultServers, ","), r.vault.Audience))
	}
}

// inspectAgent finds the image of the agent that runs, and the names of the meshes that the
// management plane knows already: discovery changes names that clash.
func (r *registration) inspectAgent(ctx context.Context) error {
	if r.Agent == nil {
		return nil
	}
	for _, namespace := range []string{r.former.namespace, r.RemoteNamespace} {
		if namespace == "" {
			continue
		}
		found, err := r.remote.get(ctx, deployments, namespace, AgentName(r.plane.ID))
		if unlessForbidden(err) != nil {
			return err
		}
		if found != nil {
			r.agentImage = imageOf(found)
		}
	}
	limits, err := r.remote.get(ctx, policies, "", AgentName(r.plane.ID))
	if unlessForbidden(err) != nil {
		return err
	}
	r.vault = vaultOf(limits)
	if r.Agent.VaultServers != nil {
		r.vault.Servers = r.Agent.VaultServers
	}
	r.vault.Audience = cmp.Or(r.Agent.VaultAudience, r.vault.Audience, snapshot.VaultAudience)
	r.noteVault()
	return r.via.addKnownMeshes(ctx)
}
