package webhook_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/webhook"
)

const home = "gloo-mesh"

// bookinfo is the translation of a case, with Roles.
func bookinfo(t testing.TB, objects ...snapshot.APIObject) *snapshot.State {
	t.Helper()
	input, _, err := offline.Load(offline.Dir("../../testdata/translate/bookinfo/in"))
	require.NoError(t, err)
	for _, o := range objects {
		input, err = input.With("", o)
		require.NoError(t, err)
	}
	return engine.Translate(input)
}

// hook is a webhook with enough time for a slow machine.
func hook(state *snapshot.State, mode webhook.Mode) *webhook.Webhook {
	return webhook.New(webhook.Options{Namespace: home, State: func() *snapshot.State { return state }, Mode: mode, Budget: time.Minute})
}

func raw(t testing.TB, manifest string) runtime.RawExtension {
	t.Helper()
	if manifest == "" {
		return runtime.RawExtension{}
	}
	data, err := yaml.YAMLToJSON([]byte(manifest))
	require.NoError(t, err)
	return runtime.RawExtension{Raw: data}
}

// asked is a review of a manifest, by its kind.
func asked(t testing.TB, operation admissionv1.Operation, user, object, before string) *admissionv1.AdmissionRequest {
	t.Helper()
	var head metav1.PartialObjectMetadata
	text := object
	if text == "" {
		text = before
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &head))
	gvk := head.GroupVersionKind()
	return &admissionv1.AdmissionRequest{
		UID: "1", Kind: metav1.GroupVersionKind{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}, Name: head.Name, Namespace: head.Namespace,
		Operation: operation, UserInfo: authenticationv1.UserInfo{Username: user}, Object: raw(t, object), OldObject: raw(t, before),
	}
}

func post(t testing.TB, w *webhook.Webhook, path string, body []byte) *httptest.ResponseRecorder {
	t.Helper()
	out := httptest.NewRecorder()
	w.Handler().ServeHTTP(out, httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body)))
	return out
}

func ask(t testing.TB, w *webhook.Webhook, path string, q *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	t.Helper()
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: q})
	require.NoError(t, err)
	out := post(t, w, path, body)
	require.Equal(t, http.StatusOK, out.Code, out.Body.String())
	var review admissionv1.AdmissionReview
	require.NoError(t, json.Unmarshal(out.Body.Bytes(), &review))
	require.Equal(t, q.UID, review.Response.UID)
	require.LessOrEqual(t, len(review.Response.Warnings), 5)
	for _, text := range review.Response.Warnings {
		require.LessOrEqual(t, utf8.RuneCountInString(text), 240)
	}
	return review.Response
}

const policy = "apiVersion: networking.mesh.gloo.solo.io/v1\nkind: "

const closing = policy + `AccessPolicy
metadata: {name: ratings-calls, namespace: gloo-mesh}
spec:
  sourceSelector: [{kubeServiceAccountRefs: {serviceAccounts: [{name: bookinfo-reviews, namespace: bookinfo, clusterName: cluster-1}]}}]
  destinationSelector: [{kubeServiceRefs: {services: [{name: details, namespace: bookinfo, clusterName: cluster-1}]}}]
`

func TestWarnings(t *testing.T) {
	t.Parallel()
	w := hook(bookinfo(t), webhook.Off)
	for name, c := range map[string]struct {
		manifest string
		want     []string
	}{
		"no effect to warn of": {policy + `TrafficPolicy
metadata: {name: fine, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceRefs: {services: [{name: details, namespace: bookinfo, clusterName: cluster-1}]}}]
  policy: {requestTimeout: 3s}
`, nil},
		"a misspelt service": {policy + `TrafficPolicy
metadata: {name: wrong, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceRefs: {services: [{name: raitings, namespace: bookinfo, clusterName: cluster-1}]}}]
  policy: {requestTimeout: 3s}
`, []string{"did you mean ratings?"}},
		"what it closes": {policy + `AccessPolicy
metadata: {name: none, namespace: gloo-mesh}
spec:
  action: DENY
  destinationSelector: [{kubeServiceRefs: {services: [{name: ratings, namespace: bookinfo, clusterName: cluster-1}]}}]
`, []string{"reviews-v1 in cluster-1 and 4 other workloads may no longer call ratings"}},
		"a conflict with an older policy": {policy + `TrafficPolicy
metadata: {name: impatient, namespace: gloo-mesh}
spec:
  sourceSelector: [{kubeWorkloadMatcher: {namespaces: [bookinfo]}}]
  destinationSelector: [{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-1}]}}]
  policy: {requestTimeout: 1s}
`, []string{"the older TrafficPolicy reviews-shift.gloo-mesh sets policy.requestTimeout differently"}},
		"a name to be generated": {policy + `TrafficPolicy
metadata: {generateName: wrong-, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceRefs: {services: [{name: raitings, namespace: bookinfo, clusterName: cluster-1}]}}]
  policy: {requestTimeout: 3s}
`, []string{"did you mean ratings?"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response := ask(t, w, webhook.WarningsPath, asked(t, admissionv1.Create, "ada", c.manifest, ""))
			assert.True(t, response.Allowed, "an effect is no reason for a rejection")
			if c.want == nil {
				assert.Empty(t, response.Warnings)
			}
			for i, want := range c.want {
				require.Greater(t, len(response.Warnings), i, "%q", response.Warnings)
				assert.Contains(t, response.Warnings[i], want, "%q", response.Warnings)
			}
		})
	}
}

// TestWarningsOfEachVerb: an update and a deletion are compared with what is stored, and what is unchanged has none.
func TestWarningsOfEachVerb(t *testing.T) {
	t.Parallel()
	state := bookinfo(t)
	w := hook(state, webhook.Off)
	stored := func(kind snapshot.Kind, name string) string {
		object := state.Input.Find(snapshot.Ref{Kind: kind, Namespace: home, Name: name})
		require.NotNil(t, object)
		object = object.DeepCopyObject().(snapshot.APIObject)
		object.GetObjectKind().SetGroupVersionKind(kind.Info().GroupVersionKind)
		data, err := yaml.Marshal(object)
		require.NoError(t, err)
		return string(data)
	}
	access := stored(snapshot.AccessPolicy, "reviews-calls")
	assert.Empty(t, ask(t, w, webhook.WarningsPath, asked(t, admissionv1.Update, "ada", access, access)).Warnings)
	gone := ask(t, w, webhook.WarningsPath, asked(t, admissionv1.Delete, "ada", "", access))
	require.NotEmpty(t, gone.Warnings)
	assert.Contains(t, gone.Warnings[0], "may no longer call ratings")
	assert.True(t, gone.Allowed)
}

func TestNoWarnings(t *testing.T) {
	t.Parallel()
	state := bookinfo(t)
	late := webhook.New(webhook.Options{Namespace: home, State: func() *snapshot.State { return state }, Budget: time.Nanosecond})
	assert.Empty(t, ask(t, late, webhook.WarningsPath, asked(t, admissionv1.Create, "ada", closing, "")).Warnings, "who is late says nothing")
	starting := hook(nil, webhook.Off)
	assert.True(t, ask(t, starting, webhook.WarningsPath, asked(t, admissionv1.Create, "ada", closing, "")).Allowed)
}

func role() *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "details-owner", Namespace: home}, Spec: rbacv1.RoleSpec{
		AccessPolicyScopes: []rbacv1.AccessPolicyScope{{
			IdentitySelectors:    []commonv1.IdentitySelector{{KubeServiceAccountRefs: &commonv1.KubeServiceAccountRefs{ServiceAccounts: []commonv1.ClusterObjectRef{{Name: "*", Namespace: "bookinfo", ClusterName: "*"}}}}},
			DestinationSelectors: []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{{Name: "details", Namespace: "bookinfo", ClusterName: "*"}}}}},
		}},
	}}
}

func binding() *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "details-owners", Namespace: home}, Spec: rbacv1.RoleBindingSpec{
		RoleRef: commonv1.ObjectRef{Name: "details-owner", Namespace: home}, Subjects: []commonv1.TypedObjectRef{{Kind: "User", Name: "ada"}},
	}}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	state := bookinfo(t, role(), binding())
	const wider = policy + "AccessPolicy\nmetadata: {name: all, namespace: gloo-mesh}\nspec: {}\n"
	const dependency = "apiVersion: networking.enterprise.mesh.gloo.solo.io/v1beta1\nkind: ServiceDependency\nmetadata: {name: d, namespace: gloo-mesh}\nspec: {}\n"
	for name, c := range map[string]struct {
		mode           webhook.Mode
		user           string
		groups         []string
		operation      admissionv1.Operation
		object, before string
		denied         string
		warned         string
	}{
		"within the Role":       {mode: webhook.Enforce, user: "ada", operation: admissionv1.Create, object: closing},
		"beyond it":             {mode: webhook.Enforce, user: "ada", operation: admissionv1.Create, object: wider, denied: "User ada may not create AccessPolicy all: accessPolicyScopes[0] of Role details-owner: identitySelectors does not cover any namespace"},
		"widened":               {mode: webhook.Enforce, user: "ada", operation: admissionv1.Update, object: wider, before: closing, denied: "may not update"},
		"taken over":            {mode: webhook.Enforce, user: "ada", operation: admissionv1.Update, object: closing, before: wider, denied: "for the object as it is stored"},
		"deleted":               {mode: webhook.Enforce, user: "ada", operation: admissionv1.Delete, before: closing},
		"deleted by another":    {mode: webhook.Enforce, user: "bob", operation: admissionv1.Delete, before: closing, denied: "no RoleBinding in namespace gloo-mesh names User bob"},
		"an administrator":      {mode: webhook.Enforce, user: "root", groups: []string{"system:masters"}, operation: admissionv1.Create, object: wider},
		"serve itself":          {mode: webhook.Enforce, user: "system:serviceaccount:gloo-mesh:meshctl", operation: admissionv1.Create, object: wider},
		"a kind without scopes": {mode: webhook.Enforce, user: "bob", operation: admissionv1.Create, object: dependency},
		"a trial":               {mode: webhook.Warn, user: "bob", operation: admissionv1.Create, object: wider, warned: "Roles will not allow this: no RoleBinding"},
		"no opt-in":             {mode: webhook.Off, user: "bob", operation: admissionv1.Create, object: wider},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := asked(t, c.operation, c.user, c.object, c.before)
			q.UserInfo.Groups = c.groups
			response := ask(t, hook(state, c.mode), webhook.RolesPath, q)
			require.Equal(t, c.denied == "", response.Allowed)
			if c.denied != "" {
				assert.Contains(t, response.Result.Message, c.denied)
				assert.EqualValues(t, http.StatusForbidden, response.Result.Code)
			}
			if c.warned == "" {
				assert.Empty(t, response.Warnings)
				return
			}
			require.Len(t, response.Warnings, 1)
			assert.Contains(t, response.Warnings[0], c.warned)
		})
	}
}

// TestUnanswerable: what is no answer is an error, so that the failure policy decides.
func TestUnanswerable(t *testing.T) {
	t.Parallel()
	body, err := json.Marshal(admissionv1.AdmissionReview{Request: asked(t, admissionv1.Create, "ada", closing, "")})
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, post(t, hook(nil, webhook.Enforce), webhook.RolesPath, body).Code, "the Roles are not known yet")
	w := hook(bookinfo(t), webhook.Enforce)
	for name, body := range map[string]string{
		"no JSON": "{", "no request": "{}",
		"another kind":  `{"request": {"kind": {"group": "", "version": "v1", "kind": "Secret"}}}`,
		"no such field": `{"request": {"kind": {"group": "networking.mesh.gloo.solo.io", "version": "v1", "kind": "AccessPolicy"}, "object": {"spec": 3}}}`,
	} {
		for _, path := range []string{webhook.RolesPath, webhook.WarningsPath} {
			assert.Equal(t, http.StatusBadRequest, post(t, w, path, []byte(body)).Code, name)
		}
	}
	// A deletion or an unknown operation without what it is about is not allowed.
	q := asked(t, admissionv1.Delete, "ada", closing, "")
	q.OldObject, q.Object = runtime.RawExtension{}, runtime.RawExtension{}
	assert.False(t, ask(t, hook(bookinfo(t, role(), binding()), webhook.Enforce), webhook.RolesPath, q).Allowed)
}

// TestRolesWithoutEffect: who writes a Role that does not count is told.
func TestRolesWithoutEffect(t *testing.T) {
	t.Parallel()
	w := hook(bookinfo(t, role()), webhook.Enforce)
	const head = "apiVersion: rbac.enterprise.mesh.gloo.solo.io/v1\nkind: "
	for manifest, want := range map[string]string{
		head + "Role\nmetadata: {name: mine, namespace: bookinfo}\n":  "has no effect in namespace bookinfo",
		head + "Role\nmetadata: {name: mine, namespace: gloo-mesh}\n": "",
		head + "RoleBinding\nmetadata: {name: mine, namespace: gloo-mesh}\nspec: {roleRef: {name: gone, namespace: gloo-mesh}, subjects: [{kind: User, name: a}]}\n":          "until there is a Role gone",
		head + "RoleBinding\nmetadata: {name: mine, namespace: gloo-mesh}\nspec: {roleRef: {name: details-owner, namespace: gloo-mesh}, subjects: [{kind: User, name: a}]}\n": "",
	} {
		response := ask(t, w, webhook.WarningsPath, asked(t, admissionv1.Create, "ada", manifest, ""))
		if want == "" {
			assert.Empty(t, response.Warnings)
			continue
		}
		require.Len(t, response.Warnings, 1, manifest)
		assert.Contains(t, response.Warnings[0], want)
	}
}
