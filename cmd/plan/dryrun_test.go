package plan

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/offline"
)

// server is an API server that has one object, or none. It keeps what it is asked to write, and refuses it with a status.
type server struct {
	stored map[string]any
	// refusals are for the writes in order; zero takes one.
	refusals []metav1.Status
	// allowed: whoever asks may do everything.
	allowed bool

	method, contentType, query string
	body                       map[string]any
	writes                     int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(code int, body any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(body)
	}
	switch {
	case r.URL.Path == "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
		answer(http.StatusCreated, map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "status": map[string]any{"allowed": s.allowed}})
	case r.Method == http.MethodGet && s.stored == nil:
		answer(http.StatusNotFound, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
	case r.Method == http.MethodGet:
		answer(http.StatusOK, s.stored)
	default:
		data, _ := io.ReadAll(r.Body)
		s.body = nil
		_ = json.Unmarshal(data, &s.body)
		s.method, s.contentType, s.query = r.Method, r.Header.Get("Content-Type"), r.URL.RawQuery
		if s.writes++; s.writes <= len(s.refusals) && s.refusals[s.writes-1].Code != 0 {
			status := s.refusals[s.writes-1]
			status.TypeMeta, status.Status = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, metav1.StatusFailure
			answer(int(status.Code), status)
			return
		}
		answer(http.StatusOK, object("5s", nil))
	}
}

// object is a TrafficPolicy as an API server has it.
func object(timeout string, annotations map[string]any) map[string]any {
	return map[string]any{
		"apiVersion": "networking.mesh.gloo.solo.io/v1", "kind": "TrafficPolicy",
		"metadata": map[string]any{"name": "p", "namespace": "gloo-mesh", "annotations": annotations},
		"spec":     map[string]any{"policy": map[string]any{"requestTimeout": timeout}},
	}
}

const policy = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: p, namespace: gloo-mesh}
spec: {policy: {retries: {attempts: 2}}}
`

// TestDryRun: each object is applied as kubectl apply, or the manager that is named, would apply it.
func TestDryRun(t *testing.T) {
	t.Parallel()
	applied := map[string]any{corev1.LastAppliedConfigAnnotation: `{"apiVersion":"networking.mesh.gloo.solo.io/v1","kind":"TrafficPolicy","metadata":{"annotations":{},"name":"p","namespace":"gloo-mesh"},"spec":{"policy":{"requestTimeout":"3s"}}}`}
	conflict := metav1.Status{Code: http.StatusConflict, Reason: metav1.StatusReasonConflict, Message: "Apply failed with 1 conflict"}
	denied := metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "no"}
	for name, tt := range map[string]struct {
		server                     server
		manager                    string
		method, contentType, query string
		spec                       any
		refused, denied            string
		notes                      int
	}{
		"a new object": {method: http.MethodPost, contentType: "application/json", query: "dryRun=All&fieldManager=kubectl&fieldValidation=Strict",
			spec: map[string]any{"policy": map[string]any{"retries": map[string]any{"attempts": 2.0}}}},
		"one of kubectl apply": {server: server{stored: object("3s", applied)}, method: http.MethodPatch, contentType: "application/merge-patch+json",
			query: "dryRun=All&fieldManager=kubectl-client-side-apply&fieldValidation=Strict",
			spec:  map[string]any{"policy": map[string]any{"requestTimeout": nil, "retries": map[string]any{"attempts": 2.0}}}},
		"one of somebody else": {server: server{stored: object("3s", nil)}, method: http.MethodPatch, contentType: "application/apply-patch+yaml",
			query: "dryRun=All&fieldManager=kubectl&fieldValidation=Strict", spec: map[string]any{"policy": map[string]any{"retries": map[string]any{"attempts": 2.0}}}},
		"a manager": {server: server{stored: object("3s", applied)}, manager: "flux", method: http.MethodPatch, contentType: "application/apply-patch+yaml",
			query: "dryRun=All&fieldManager=flux&fieldValidation=Strict", spec: map[string]any{"policy": map[string]any{"retries": map[string]any{"attempts": 2.0}}}},
		"a conflict is forced": {server: server{stored: object("3s", nil), refusals: []metav1.Status{conflict}}, method: http.MethodPatch, contentType: "application/apply-patch+yaml",
			query: "dryRun=All&fieldManager=kubectl&fieldValidation=Strict&force=true", spec: map[string]any{"policy": map[string]any{"retries": map[string]any{"attempts": 2.0}}}, notes: 1},
		"admission refuses": {server: server{refusals: []metav1.Status{{Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid, Message: "spec is bad"}}}, refused: "spec is bad"},
		"admission forbids": {server: server{refusals: []metav1.Status{denied}, allowed: true}, refused: "no"},
		"no right":          {server: server{refusals: []metav1.Status{denied}}, denied: "you may not create trafficpolicies in namespace gloo-mesh"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := tt.server
			http := httptest.NewServer(&api)
			defer http.Close()
			run, err := newDryRun(&rest.Config{Host: http.URL}, tt.manager)
			require.NoError(t, err)
			manifests, _, err := offline.Manifests("p.yaml", []byte(policy))
			require.NoError(t, err)
			edits, refused, err := run.edits(t.Context(), manifests)
			if tt.denied != "" {
				require.EqualError(t, err, tt.denied)
				return
			}
			require.NoError(t, err)
			if tt.refused != "" {
				require.Len(t, refused, 1)
				assert.Contains(t, refused[0].Reason, tt.refused)
				assert.Empty(t, edits)
				return
			}
			assert.Equal(t, []string{tt.method, tt.contentType, tt.query}, []string{api.method, api.contentType, api.query})
			assert.Equal(t, tt.spec, api.body["spec"])
			assert.Len(t, run.notes, tt.notes)
			require.Len(t, edits, 1)
			future, ok := edits[0].Object.(*networkingv1.TrafficPolicy)
			require.True(t, ok)
			assert.Equal(t, "5s", future.Spec.Policy.RequestTimeout.Duration.String(), "what the server answers")
		})
	}
}

// TestDryRunWithoutAServer: a server that does not answer is no refusal.
func TestDryRunWithoutAServer(t *testing.T) {
	t.Parallel()
	run, err := newDryRun(&rest.Config{Host: "http://127.0.0.1:1"}, "")
	require.NoError(t, err)
	manifests, _, err := offline.Manifests("p.yaml", []byte(policy))
	require.NoError(t, err)
	_, refused, err := run.edits(t.Context(), manifests)
	require.ErrorContains(t, err, "set --replace")
	assert.Empty(t, refused)
}
