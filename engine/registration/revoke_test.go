package registration_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/registration"
)

// mints requests a token of an account with a credential.
func mints(t *testing.T, config *rest.Config, account string, spec authenticationv1.TokenRequestSpec) (*rest.Config, error) {
	t.Helper()
	request, err := sandboxtest.Clientset(t, config).CoreV1().ServiceAccounts("gloo-mesh").CreateToken(
		t.Context(), account, &authenticationv1.TokenRequest{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	minted := rest.AnonymousClientConfig(config)
	minted.BearerToken = request.Status.Token
	return minted, nil
}

// accountOf is the ServiceAccount of a credential.
func accountOf(t *testing.T, config *rest.Config) string {
	t.Helper()
	name, ok := strings.CutPrefix(sandboxtest.UserInfo(t, config).Username, "system:serviceaccount:gloo-mesh:")
	require.True(t, ok)
	return name
}

// ends waits until an API server refuses a credential. API servers keep for seconds that they accepted a token.
func ends(t *testing.T, what string, config *rest.Config) {
	t.Helper()
	clientset := sandboxtest.Clientset(t, config)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		_, err := clientset.AuthenticationV1().SelfSubjectReviews().Create(context.Background(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		assert.True(c, apierrors.IsUnauthorized(err), "%s: %v", what, err)
	}, waittest.Limit(), 100*time.Millisecond)
}

// TestAStolenTokenEnds when it says so: it mints no token with a longer life, and none that outlives the registration.
func TestAStolenTokenEnds(t *testing.T) {
	t.Parallel()
	management, remote := translatedPair(t)
	id := planeID(t, management, "gloo-mesh")
	options := registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, Agent: anAgent("registry.example/meshctl:v1")}
	_, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	stolen := storedConfig(t, sandboxtest.Secret(t, management, "gloo-mesh", "cluster-2"))
	account := accountOf(t, stolen)

	day := int64(registration.DefaultTokenTTL / time.Second)
	renewed, err := mints(t, stolen, account, authenticationv1.TokenRequestSpec{ExpirationSeconds: &day})
	require.NoError(t, err, "serve renews it so")
	for what, spec := range map[string]authenticationv1.TokenRequestSpec{
		"ten years":                     {ExpirationSeconds: ptr.To[int64](10 * 365 * 24 * 3600)},
		"a second longer":               {ExpirationSeconds: ptr.To(day + 1)},
		"for somebody else, for longer": {ExpirationSeconds: ptr.To(day + 1), Audiences: []string{"vault"}},
	} {
		_, err := mints(t, stolen, account, spec)
		assert.ErrorContains(t, err, "gets tokens for at most 24h0m0s", what)
	}
	agent := sandboxtest.As(t, remote, "gloo-mesh", registration.AgentName(id))
	sandboxtest.UserInfo(t, agent)
	for _, other := range []string{account, registration.AgentName(id), "default"} {
		_, err := mints(t, agent, other, authenticationv1.TokenRequestSpec{})
		assert.True(t, apierrors.IsForbidden(err), "the agent, of %s: %v", other, err)
		if other != account {
			_, err = mints(t, stolen, other, authenticationv1.TokenRequestSpec{})
			assert.True(t, apierrors.IsForbidden(err), "serve, of %s: %v", other, err)
		}
	}

	_, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	ends(t, "the stolen token", stolen)
	ends(t, "what it minted", renewed)
	ends(t, "that of the agent", agent)
	again := storedConfig(t, sandboxtest.Secret(t, management, "gloo-mesh", "cluster-2"))
	next := accountOf(t, again)
	assert.NotEqual(t, account, next)
	minted, err := mints(t, again, next, authenticationv1.TokenRequestSpec{ExpirationSeconds: &day})
	require.NoError(t, err)

	_, err = registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management})
	require.NoError(t, err)
	ends(t, "the token of a registration that is gone", again)
	ends(t, "what it minted", minted)
}

// TestAnAPIServerThatLimitsNothing: it is said, and registering again revokes what was made without limits.
func TestAnAPIServerThatLimitsNothing(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	lax := rest.CopyConfig(remote)
	lax.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if strings.Contains(r.URL.Path, "/validatingadmissionpolicybindings/") && r.Method == http.MethodPatch {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return nil, err
				}
				body = bytes.ReplaceAll(body, []byte(`"Deny"`), []byte(`"Audit"`))
				r = r.Clone(r.Context())
				r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
			}
			return next.RoundTrip(r)
		})
	})
	options := registration.Options{Name: "cluster-2", RemoteConfig: lax, MgmtConfig: management}
	report, err := registration.Register(t.Context(), options)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(report.Notes, "\n"), "does not enforce ValidatingAdmissionPolicy")
	assert.Contains(t, strings.Join(report.Notes, "\n"), "They end when the cluster is registered again")
	stolen := storedConfig(t, sandboxtest.Secret(t, management, "gloo-mesh", "cluster-2"))
	forYears, err := mints(t, stolen, accountOf(t, stolen), authenticationv1.TokenRequestSpec{ExpirationSeconds: ptr.To[int64](10 * 365 * 24 * 3600)})
	require.NoError(t, err)
	sandboxtest.UserInfo(t, forYears)

	options.RemoteConfig = remote
	report, err = registration.Register(t.Context(), options)
	require.NoError(t, err)
	assert.Empty(t, report.Notes)
	assert.True(t, report.Revoked)
	ends(t, "the stolen token", stolen)
	ends(t, "that for years", forYears)
}

// TestVaultsOfAnAgent: what an administrator allowed is in force for the agent, and stays until another decision.
func TestVaultsOfAnAgent(t *testing.T) {
	t.Parallel()
	management, remote := pair(t)
	name := registration.AgentName(planeID(t, management, "gloo-mesh"))
	register := func(servers []string, audience string) (*corev1.PodSpec, registration.Report) {
		t.Helper()
		agent := anAgent("registry.example/meshctl:v1")
		agent.VaultServers, agent.VaultAudience = servers, audience
		agent.Limits = func(_ string, _ []string, audience string, _ ...string) admissionv1.ValidatingAdmissionPolicySpec {
			spec := anAgent("").Limits("", nil, "", "none")
			spec.Validations[0].Expression = "object.metadata.name == '" + audience + "'"
			return spec
		}
		report, err := registration.Register(t.Context(), registration.Options{Name: "cluster-2", RemoteConfig: remote, MgmtConfig: management, Agent: agent, KeepCredential: true})
		require.NoError(t, err)
		clientset := sandboxtest.Clientset(t, remote)
		deployment, err := clientset.AppsV1().Deployments("gloo-mesh").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		policy, err := clientset.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(t, err)
		if audience != "" {
			assert.Contains(t, policy.Spec.Validations[0].Expression, "'"+audience+"'")
		}
		return &deployment.Spec.Template.Spec, report
	}
	mounted := func(spec *corev1.PodSpec) (audiences []string) {
		for _, volume := range spec.Volumes {
			audiences = append(audiences, volume.Projected.Sources[0].ServiceAccountToken.Audience)
		}
		return audiences
	}
	spec, _ := register(nil, "")
	assert.NotContains(t, spec.Containers[0].Args, "--vault-server")
	assert.Equal(t, []string{"istio-ca"}, mounted(spec), "no token for Vault where none is allowed")

	const one, other = "https://vault.example.com:8200", "http://old.example.com"
	spec, report := register([]string{one, other}, "")
	assert.Subset(t, spec.Containers[0].Args, []string{"--vault-server", one + "," + other, "--vault-audience", "vault"})
	assert.Equal(t, []string{"istio-ca", "vault"}, mounted(spec))
	assert.Contains(t, strings.Join(report.Notes, "\n"), "the connection to "+other+" is not encrypted")
	assert.NotContains(t, strings.Join(report.Notes, "\n"), one)

	register(nil, "ours")
	spec, report = register(nil, "")
	assert.Subset(t, spec.Containers[0].Args, []string{"--vault-server", one + "," + other, "--vault-audience", "ours"}, "as before")
	assert.True(t, report.Unchanged(), "%+v", report.Changes)
	assert.Equal(t, []string{"istio-ca", "ours"}, mounted(spec))
	assert.NotContains(t, spec.Volumes[1].Name, "istio")

	spec, _ = register([]string{}, "")
	assert.NotContains(t, spec.Containers[0].Args, "--vault-server")
	assert.Equal(t, []string{"istio-ca"}, mounted(spec))
}
