package registration

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// accountSuffix is how many random characters the account of a later registration has in its name.
const accountSuffix = 5

// accounts are the ServiceAccounts that a management plane's registrations of a cluster made for serve.
func (s *server) accounts(ctx context.Context, namespace, name string, plane snapshot.Plane, managementUID string) ([]unstructured.Unstructured, error) {
	list, err := s.client(serviceAccounts, namespace).List(ctx, metav1.ListOptions{LabelSelector: cluster.ManagedByLabel + "=" + cluster.ManagedBy})
	if err != nil {
		return nil, fmt.Errorf("%s: listing ServiceAccounts in namespace %s: %w", s.label, namespace, err)
	}
	return slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool {
		return o.GetName() != name && o.GetLabels()[snapshot.ClusterLabel] != name ||
			o.GetAnnotations()[ManagementUIDAnnotation] == "" || !isOf(&o, plane, managementUID)
	}), nil
}

// inspectAccounts finds the accounts that registrations before made, and names that of this one. It is another one
// each time: an account of the same name would be taken for the former one by an API server that still remembers
// that a token of that was good.
func (r *registration) inspectAccounts(ctx context.Context) error {
	found, err := r.remote.accounts(ctx, r.RemoteNamespace, r.Name, r.plane, string(r.management.uid))
	if err := unlessForbidden(err); err != nil {
		return err
	}
	if r.via.relayed() {
		r.account = AgentName(r.plane.ID) // it does not change: its rights end with the certificate
		for i := range found {
			r.via.directAccounts = append(r.via.directAccounts, found[i].GetName())
		}
		return nil
	}
	r.account, r.before = r.Name, map[string]string{}
	for i := range found {
		r.before[found[i].GetName()] = string(found[i].GetUID())
	}
	if len(found) > 0 {
		r.account += "-" + rand.String(accountSuffix)
	}
	return nil
}

// keepAccount keeps the stored credential, with its account, if that is wanted and it is good.
func (r *registration) keepAccount(ctx context.Context) error {
	if !r.KeepCredential {
		return nil
	}
	for name, uid := range r.before {
		if r.keepStored(ctx, cluster.ServiceAccountUser(r.RemoteNamespace, name), uid) {
			r.account, r.kept = name, true
			delete(r.before, name)
			return nil
		}
	}
	return nil
}

// accountNames are those that have the rights of the registration: its own, and until they are revoked those before.
func (r *registration) accountNames() []string {
	return append([]string{r.account}, slices.Sorted(maps.Keys(r.before))...)
}

// removeAgentAccount ends what the agent's credential may do. The account is made again, and a Deployment gets other
// pods. Its name stays: it cannot mint tokens of its own.
func (r *registration) removeAgentAccount(ctx context.Context) error {
	if r.Agent == nil || r.kept {
		return nil
	}
	changes, err := r.remote.delete(ctx, serviceAccounts, r.RemoteNamespace, AgentName(r.plane.ID))
	r.report.add(changes...)
	return err
}

// revoke removes the accounts of registrations before: API servers refuse all tokens of an account that is gone, also
// those that were made with its tokens. It comes after serve has got the new credential.
func (r *registration) revoke(ctx context.Context) error {
	before := r.before
	if len(before) == 0 {
		return nil
	}
	r.before = nil
	for _, o := range wantedBy(r).accessObjects() {
		if o.resource != clusterRoleBindings && o.resource != roleBindings {
			continue
		}
		if _, err := r.remote.apply(ctx, o); err != nil {
			return r.notRevoked(err)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		changes, err := r.remote.delete(ctx, serviceAccounts, r.RemoteNamespace, name)
		r.report.add(changes...)
		if err != nil {
			return r.notRevoked(err)
		}
	}
	r.report.Revoked = true
	return nil
}

func (r *registration) notRevoked(err error) error {
	return fmt.Errorf("cluster %s: it is registered, but the credential of before is still accepted: %w; run the command again", r.Name, err)
}

// tokenPolicy limits the life of the tokens that the account makes of itself. Rules cannot express that.
func (r wantedObjects) tokenPolicy() admissionv1.ValidatingAdmissionPolicySpec {
	return admissionv1.ValidatingAdmissionPolicySpec{
		FailurePolicy: ptr.To(admissionv1.Fail),
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"*"}, Resources: []string{"serviceaccounts/token"}},
			},
		}}},
		Validations: []admissionv1.Validation{
			{
				Expression: fmt.Sprintf("has(object.spec.expirationSeconds) && object.spec.expirationSeconds <= %d", int64(r.ttl()/time.Second)),
				Message:    fmt.Sprintf("the account of a registration gets tokens for at most %s; register the cluster again with --token-ttl for a longer life", r.ttl()),
			},
			{
				// A token that is bound to a pod may be extended to a year.
				Expression: "!has(object.spec.boundObjectRef) || object.spec.boundObjectRef == null",
				Message:    "the account of a registration gets no tokens that are bound to objects",
			},
			{
				// An account of the same name may have been made since.
				Expression: "!has(object.metadata.uid) || object.metadata.uid == request.userInfo.uid",
				Message:    "this token is one of an account that was removed; nothing renews it",
			},
		},
	}
}

// accountPolicy are a ValidatingAdmissionPolicy about one account, and its binding.
func (r wantedObjects) accountPolicy(name, account string, spec admissionv1.ValidatingAdmissionPolicySpec) []*object {
	spec.MatchConditions = []admissionv1.MatchCondition{{
		Name: "account", Expression: fmt.Sprintf("request.userInfo.username == '%s'", cluster.ServiceAccountUser(r.RemoteNamespace, account)),
	}}
	return policyObjects(name, r.labels(), spec)
}

// policyObjects are a ValidatingAdmissionPolicy, and its binding.
func policyObjects(name string, labels map[string]string, spec admissionv1.ValidatingAdmissionPolicySpec) []*object {
	return []*object{
		{resource: policies, name: name, foreignHint: nameHint, want: &admissionv1.ValidatingAdmissionPolicy{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: policies.kind},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       spec,
		}},
		{resource: policyBindings, name: name, foreignHint: nameHint, want: &admissionv1.ValidatingAdmissionPolicyBinding{
			TypeMeta:   metav1.TypeMeta{APIVersion: admissionv1.SchemeGroupVersion.String(), Kind: policyBindings.kind},
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
		}},
	}
}

// verifyLimit waits until the credential cannot make a token that lasts longer than its registration allows, and makes
// sure that it can be renewed. An API server that does not enforce the policy is noted: what was made with the
// credential ends with its account.
func (r *registration) verifyLimit(ctx context.Context, c *cluster.Credential) error {
	client, clientset, err := cluster.Connect(r.Name, c, "")
	if err != nil {
		return err
	}
	defer client.Close()
	ask := func(ctx context.Context, seconds int64) error {
		_, err := clientset.CoreV1().ServiceAccounts(r.RemoteNamespace).CreateToken(ctx, r.account, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	seconds := int64(r.ttl() / time.Second)
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, grantTimeout, true, func(ctx context.Context) (bool, error) {
		err := ask(ctx, seconds+1)
		if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			return true, nil
		}
		return false, err
	})
	if err == nil {
		if err := ask(ctx, seconds); err != nil {
			return fmt.Errorf("credential of cluster %s: it cannot be renewed: %w", r.Name, err)
		}
		return nil
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !wait.Interrupted(err):
		return fmt.Errorf("credential of cluster %s: asking for a token that lasts too long: %w", r.Name, err)
	}
	r.report.note(fmt.Sprintf("%s does not enforce ValidatingAdmissionPolicy %s, nor those that limit what its agent may do: who steals the credential can make tokens that last for years. "+
		"They end when the cluster is registered again or deregistered. Enable the admission plugin ValidatingAdmissionPolicy there, or set --service-account-max-token-expiration",
		r.remote.label, TokenPolicyName(r.Name, r.plane.ID)))
	return nil
}
