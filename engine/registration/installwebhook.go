package registration

import (
	"context"
	"errors"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	networkingk8sv1ac "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/webhook"
)

// InstallWebhook is how API servers ask an installation about what users write. What is not set is as it was installed before.
type InstallWebhook struct {
	// Enabled serves the admission webhook; not at first.
	Enabled *bool
	// Roles say what Roles do; webhook.Off at first.
	Roles webhook.Mode
	// FailurePolicy is what becomes of a write while Roles are enforced and serve does not answer; see webhook.Configuration.
	FailurePolicy string
}

const (
	webhookBindFlag = "--webhook-bind"
	rolesFlag       = "--roles"
	webhookPortName = "webhook"
	// failurePolicyNote is on the Deployment: who upgrades keeps it.
	failurePolicyNote = "meshctl.io/webhook-failure-policy"
)

var (
	webhookConfigurations = admissionResource("validatingwebhookconfigurations", "ValidatingWebhookConfiguration")
	endpointSlices        = resource{discoveryv1.SchemeGroupVersion.WithResource("endpointslices"), "EndpointSlice"}
)

func (w *InstallWebhook) enabled() bool { return w.Enabled != nil && *w.Enabled }

// complete sets defaults and rejects invalid values.
func (w *InstallWebhook) complete(namespace string) error {
	if !w.enabled() {
		if w.Roles != "" && w.Roles != webhook.Off || w.FailurePolicy != "" {
			return errors.New("webhook: Roles and a failure policy are of no use without it; enable it with --webhook")
		}
		w.Roles = webhook.Off
		return nil
	}
	if w.Roles == "" {
		w.Roles = webhook.Off
	}
	return w.configuration(namespace).Check()
}

func (w *InstallWebhook) configuration(namespace string) *webhook.Configuration {
	return &webhook.Configuration{Namespace: namespace, Mode: w.Roles, FailurePolicy: w.FailurePolicy}
}

// inherit takes what is not set from what is installed.
func (w *InstallWebhook) inherit(d *appsv1.Deployment) {
	var args []string
	for n := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[n]; c.Name == serveContainer {
			args = c.Args
		}
	}
	was := slices.Contains(args, webhookBindFlag)
	if w.Enabled == nil {
		w.Enabled = &was
	}
	if !was || !*w.Enabled {
		return
	}
	if at := slices.Index(args, rolesFlag); w.Roles == "" && at >= 0 && at+1 < len(args) {
		w.Roles = webhook.Mode(args[at+1])
	}
	if w.FailurePolicy == "" && w.Roles == webhook.Enforce {
		w.FailurePolicy = d.Annotations[failurePolicyNote]
	}
}

// extendContainer has serve answer API servers.
func (w *InstallWebhook) extendContainer(c *corev1ac.ContainerApplyConfiguration) {
	if !w.enabled() {
		return
	}
	c.WithArgs(webhookBindFlag, ":"+strconv.Itoa(webhook.Port), "--webhook-address", "$("+podIP+")", rolesFlag, string(w.Roles)).
		WithPorts(corev1ac.ContainerPort().WithName(webhookPortName).WithContainerPort(webhook.Port).WithProtocol(corev1.ProtocolTCP))
	if !slices.ContainsFunc(c.Env, func(e corev1ac.EnvVarApplyConfiguration) bool { return *e.Name == podIP }) {
		c.WithEnv(podIPVariable())
	}
}

// ingress lets API servers in, of which nobody knows the addresses.
func (w *InstallWebhook) ingress() []*networkingk8sv1ac.NetworkPolicyIngressRuleApplyConfiguration {
	if !w.enabled() {
		return nil
	}
	return []*networkingk8sv1ac.NetworkPolicyIngressRuleApplyConfiguration{ingressTo(webhookPortName)}
}

// annotations of the Deployment.
func (w *InstallWebhook) annotations() map[string]string {
	if w.FailurePolicy == "" {
		return nil
	}
	return map[string]string{failurePolicyNote: w.FailurePolicy}
}

// objects are the Service that API servers ask, which leads to the instance that works, and the configurations.
func (w *InstallWebhook) objects(namespace string) []*object {
	if !w.enabled() {
		return nil
	}
	out := []*object{{
		resource: services, namespace: namespace, name: webhook.Service, foreignHint: installHint,
		want: corev1ac.Service(webhook.Service, namespace).WithLabels(serveLabels()).WithSpec(corev1ac.ServiceSpec().
			WithPorts(corev1ac.ServicePort().WithName(webhook.PortName).WithPort(443).
				WithTargetPort(intstr.FromInt32(webhook.Port)).WithProtocol(corev1.ProtocolTCP).WithAppProtocol("https"))),
	}}
	for _, c := range w.configuration(namespace).Objects() {
		out = append(out, &object{resource: webhookConfigurations, name: *c.Name, foreignHint: installHint, want: c.WithLabels(serveLabels())})
	}
	return out
}

// clusterRules are what serve needs beside serveClusterRules: to have API servers trust its certificate.
func (w *InstallWebhook) clusterRules(namespace string) []rbacv1.PolicyRule {
	if !w.enabled() {
		return nil
	}
	r := rule(webhookConfigurations.Group, []string{webhookConfigurations.Resource}, "get", "patch")
	return []rbacv1.PolicyRule{named(r, webhook.WarningsConfiguration(namespace), webhook.RolesConfiguration(namespace))}
}

// rules are what serve needs beside serveRules: to have the Service lead to itself.
func (w *InstallWebhook) rules() []rbacv1.PolicyRule {
	if !w.enabled() {
		return nil
	}
	return []rbacv1.PolicyRule{
		rule(endpointSlices.Group, []string{endpointSlices.Resource}, "create"),
		named(rule(endpointSlices.Group, []string{endpointSlices.Resource}, "patch"), webhook.Service),
	}
}

// removeWebhooks removes the configurations that are not wanted: while nobody answers, they would have writes fail.
func removeWebhooks(ctx context.Context, s *server, namespace string, keep []*object) (changes []Change, err error) {
	for _, name := range []string{webhook.RolesConfiguration(namespace), webhook.WarningsConfiguration(namespace)} {
		wanted := slices.ContainsFunc(keep, func(o *object) bool { return o.resource == webhookConfigurations && o.name == name })
		if wanted {
			continue
		}
		found, err := s.get(ctx, webhookConfigurations, "", name)
		if unlessForbidden(err) != nil {
			return changes, err
		}
		if found == nil || found.GetLabels()[cluster.ManagedByLabel] != cluster.ManagedBy {
			continue
		}
		removed, err := s.delete(ctx, webhookConfigurations, "", name)
		changes = append(changes, removed...)
		if err != nil {
			return changes, err
		}
	}
	return changes, nil
}
