package webhook

import (
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionv1ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"github.com/meshctl/meshctl/engine/rbac"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// Service is the name of the Service by which API servers reach the webhooks, and of the EndpointSlice that leads to
	// the instance of meshctl serve that works: others know no translation.
	Service = "meshctl-webhook"
	// Secret has the certificate of the webhooks: tls.crt, tls.key and ca.crt.
	Secret = "meshctl-webhook"
	// Port is that on which they are served.
	Port = 9443
	// PortName is the name of the port of the Service.
	PortName = "https"
)

// The names of the webhooks, which rejections show.
const (
	warningsName = "warnings.meshctl.io"
	rolesName    = "roles.meshctl.io"
)

// How long API servers wait. Warnings come within Budget or not at all.
const (
	warningsTimeout = 1
	rolesTimeout    = 3
)

// WarningsConfiguration and RolesConfiguration are the names of the ValidatingWebhookConfigurations of a management plane in
// a namespace: several may be in one cluster.
func WarningsConfiguration(namespace string) string { return "meshctl-warnings-" + namespace }

// RolesConfiguration is the other one; see WarningsConfiguration.
func RolesConfiguration(namespace string) string { return "meshctl-roles-" + namespace }

// Configuration is how API servers are to ask.
type Configuration struct {
	// Namespace is that of the management plane.
	Namespace string
	// URL is where the webhooks are served, without a path; the Service if empty.
	URL  string
	Mode Mode
	// FailurePolicy is what becomes of a write where Roles are enforced and cannot be asked; DefaultFailurePolicy if empty. For
	// warnings it is Ignore, always.
	FailurePolicy string
}

// FailurePolicies are those that a Configuration may have.
func FailurePolicies() []string {
	return []string{string(admissionv1.Fail), string(admissionv1.Ignore)}
}

// DefaultFailurePolicy is Fail where Roles are enforced: what protects must not depend on a process that can be made to
// stop. While Roles only warn, it is Ignore.
func DefaultFailurePolicy(mode Mode) string {
	if mode == Enforce {
		return string(admissionv1.Fail)
	}
	return string(admissionv1.Ignore)
}

// Check says what is wrong with the configuration; nil if nothing is.
func (c *Configuration) Check() error {
	if !slices.Contains(Modes(), string(c.Mode)) {
		return fmt.Errorf("roles %q: want one of %q", c.Mode, Modes())
	}
	if c.FailurePolicy != "" && !slices.Contains(FailurePolicies(), c.FailurePolicy) {
		return fmt.Errorf("failure policy of the webhook %q: want one of %q", c.FailurePolicy, FailurePolicies())
	}
	if c.FailurePolicy != "" && c.Mode != Enforce {
		return fmt.Errorf("failure policy of the webhook: it is for Roles that are enforced; enforce them, or leave it out")
	}
	return nil
}

// Objects are the ValidatingWebhookConfigurations without the CA that is to be trusted, which meshctl serve sets; see Run.
func (c *Configuration) Objects() []*admissionv1ac.ValidatingWebhookConfigurationApplyConfiguration {
	warnings := c.webhook(warningsName, WarningsPath, warningsTimeout, Kinds()).WithFailurePolicy(admissionv1.Ignore)
	out := []*admissionv1ac.ValidatingWebhookConfigurationApplyConfiguration{configuration(WarningsConfiguration(c.Namespace), warnings)}
	if c.Mode == Off {
		return out
	}
	policy := c.FailurePolicy
	if policy == "" {
		policy = DefaultFailurePolicy(c.Mode)
	}
	roles := c.webhook(rolesName, RolesPath, rolesTimeout, rbac.Kinds()).WithFailurePolicy(admissionv1.FailurePolicyType(policy)).
		WithMatchConditions(c.asked()...)
	return append(out, configuration(RolesConfiguration(c.Namespace), roles))
}

// asked leave out who is exempt from Roles, as rbac.Exempt says: they can write while nobody answers.
func (c *Configuration) asked() []*admissionv1ac.MatchConditionApplyConfiguration {
	inNone := func(group string) string {
		return fmt.Sprintf("!has(request.userInfo.groups) || !(%q in request.userInfo.groups)", group)
	}
	var out []*admissionv1ac.MatchConditionApplyConfiguration
	for _, condition := range [][2]string{
		{"not-a-member-of-system-masters", inNone(rbac.Masters)},
		{"not-a-controller-of-kubernetes", inNone(rbac.SystemAccounts)},
		{"not-meshctl-serve", fmt.Sprintf("request.userInfo.username != %q", rbac.Account(c.Namespace, Account))},
	} {
		out = append(out, admissionv1ac.MatchCondition().WithName(condition[0]).WithExpression(condition[1]))
	}
	return out
}

func configuration(name string, hook *admissionv1ac.ValidatingWebhookApplyConfiguration) *admissionv1ac.ValidatingWebhookConfigurationApplyConfiguration {
	return admissionv1ac.ValidatingWebhookConfiguration(name).WithLabels(map[string]string{snapshot.ManagedByLabel: snapshot.ManagedBy}).WithWebhooks(hook)
}

// webhook asks about objects of some kinds, dry runs included: an answer has no side effects.
func (c *Configuration) webhook(name, path string, seconds int32, kinds []snapshot.Kind) *admissionv1ac.ValidatingWebhookApplyConfiguration {
	client := admissionv1ac.WebhookClientConfig()
	if c.URL != "" {
		client.WithURL(c.URL + path)
	} else {
		client.WithService(admissionv1ac.ServiceReference().WithNamespace(c.Namespace).WithName(Service).WithPath(path).WithPort(443))
	}
	return admissionv1ac.ValidatingWebhook().WithName(name).WithClientConfig(client).WithRules(rules(kinds)...).
		WithSideEffects(admissionv1.SideEffectClassNone).WithAdmissionReviewVersions("v1").WithTimeoutSeconds(seconds).
		WithMatchPolicy(admissionv1.Equivalent)
}

// rules are one for each API group, in the order of the kinds.
func rules(kinds []snapshot.Kind) (out []*admissionv1ac.RuleWithOperationsApplyConfiguration) {
	at := map[string]*admissionv1ac.RuleWithOperationsApplyConfiguration{}
	for _, k := range kinds {
		info := k.Info()
		key := info.Group + "/" + info.Version
		if at[key] == nil {
			at[key] = admissionv1ac.RuleWithOperations().WithOperations(admissionv1.Create, admissionv1.Update, admissionv1.Delete).
				WithAPIGroups(info.Group).WithAPIVersions(info.Version).WithScope(admissionv1.NamespacedScope)
			out = append(out, at[key])
		}
		at[key].WithResources(info.Resource)
	}
	return out
}
