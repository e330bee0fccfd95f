package registration_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/webhook"
)

// TestInstallWebhook: what was set stays, and what is switched off is removed, so that no write fails because nobody answers.
func TestInstallWebhook(t *testing.T) {
	t.Parallel()
	config := single(t)
	configurations := sandboxtest.Clientset(t, config).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	install := func(w registration.InstallWebhook) registration.Report {
		t.Helper()
		report, err := registration.Install(t.Context(), registration.InstallOptions{Config: config, Namespace: "mesh", Image: "meshctl:1", Webhook: w})
		require.NoError(t, err)
		return report
	}
	policyOf := func(name string) string {
		t.Helper()
		c, err := configurations.Get(t.Context(), name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return ""
		}
		require.NoError(t, err)
		require.Len(t, c.Webhooks, 1)
		return string(*c.Webhooks[0].FailurePolicy)
	}
	install(registration.InstallWebhook{Enabled: ptr.To(true), Roles: webhook.Enforce, FailurePolicy: "Ignore"})
	assert.Equal(t, "Ignore", policyOf(webhook.WarningsConfiguration("mesh")))
	assert.Equal(t, "Ignore", policyOf(webhook.RolesConfiguration("mesh")))
	container := deploymentOf(t, config, "mesh").Spec.Template.Spec.Containers[0]
	assert.Subset(t, container.Args, []string{"--webhook-bind", ":9443", "--webhook-address", "$(POD_IP)", "--roles", "enforce"})

	again := install(registration.InstallWebhook{})
	assert.True(t, again.Unchanged(), "%v", again.Changes)

	install(registration.InstallWebhook{FailurePolicy: "Fail"})
	assert.Equal(t, "Fail", policyOf(webhook.RolesConfiguration("mesh")))
	assert.Equal(t, "Ignore", policyOf(webhook.WarningsConfiguration("mesh")), "nothing fails because of warnings")

	install(registration.InstallWebhook{Roles: webhook.Off})
	assert.Empty(t, policyOf(webhook.RolesConfiguration("mesh")))
	assert.Equal(t, "Ignore", policyOf(webhook.WarningsConfiguration("mesh")))

	install(registration.InstallWebhook{Enabled: ptr.To(false)})
	assert.Empty(t, policyOf(webhook.WarningsConfiguration("mesh")))
	assert.NotContains(t, deploymentOf(t, config, "mesh").Spec.Template.Spec.Containers[0].Args, "--webhook-bind")
}

func TestInstallWebhookRejects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		webhook registration.InstallWebhook
		want    string
	}{
		"Roles without it":               {registration.InstallWebhook{Roles: webhook.Enforce}, "enable it with --webhook"},
		"another mode":                   {registration.InstallWebhook{Enabled: ptr.To(true), Roles: "maybe"}, `roles "maybe": want one of`},
		"another policy":                 {registration.InstallWebhook{Enabled: ptr.To(true), Roles: webhook.Enforce, FailurePolicy: "Perhaps"}, `failure policy of the webhook "Perhaps": want one of`},
		"a policy for what is not there": {registration.InstallWebhook{Enabled: ptr.To(true), FailurePolicy: "Fail"}, "for Roles that are enforced"},
	} {
		_, err := registration.InstallManifests(registration.InstallOptions{Image: "meshctl:1", Webhook: c.webhook})
		assert.ErrorContains(t, err, c.want, name)
	}
}
