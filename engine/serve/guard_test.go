package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
)

// reviewer plays the API server: it knows the token "good" of user ann, who may get
// /debug/snapshot, and the token "poor" of user bob.
type reviewer struct {
	t     *testing.T
	asked int
	// err, if set, is that of all requests; forbids, if set, a resource that this
	// process may not create.
	err     error
	forbids string
}

// RoundTrip implements http.RoundTripper.
func (s *reviewer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked++
	body, err := io.ReadAll(r.Body)
	assert.NoError(s.t, err)
	answer, code := s.answer(r.URL.Path, body), http.StatusCreated
	switch {
	case s.err != nil:
		return nil, s.err
	case s.forbids != "" && strings.HasSuffix(r.URL.Path, s.forbids):
		answer, code = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"User \"internal-name\" cannot"}`, http.StatusForbidden
	}
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r,
	}, nil
}

func (s *reviewer) answer(path string, body []byte) string {
	var review any
	switch {
	case strings.HasSuffix(path, "/tokenreviews"):
		token := &authenticationv1.TokenReview{}
		assert.NoError(s.t, json.Unmarshal(body, token))
		user, known := map[string]string{"good": "ann", "poor": "bob"}[token.Spec.Token]
		token.Status = authenticationv1.TokenReviewStatus{Authenticated: known, User: authenticationv1.UserInfo{
			Username: user, UID: "7", Groups: []string{"team"}, Extra: map[string]authenticationv1.ExtraValue{"k": {"v"}},
		}}
		review = token
	default:
		access := &authorizationv1.SubjectAccessReview{}
		assert.NoError(s.t, json.Unmarshal(body, access))
		spec := access.Spec
		assert.Equal(s.t, "7", spec.UID)
		assert.Equal(s.t, []string{"team"}, spec.Groups)
		assert.Equal(s.t, map[string]authorizationv1.ExtraValue{"k": {"v"}}, spec.Extra)
		access.Status.Allowed = spec.User == "ann" && *spec.NonResourceAttributes == authorizationv1.NonResourceAttributes{Path: "/debug/snapshot", Verb: "get"}
		review = access
	}
	text, err := json.Marshal(review)
	assert.NoError(s.t, err)
	return string(text)
}

// through sends a request through a guard that asks a reviewer, to a handler that says
// "contents".
func through(t *testing.T, s *reviewer) func(method, path, authorization string) *httptest.ResponseRecorder {
	t.Helper()
	s.t = t
	g, err := newGuard(&rest.Config{Host: "http://api.example", Transport: s, ContentConfig: rest.ContentConfig{ContentType: "application/json"}})
	require.NoError(t, err)
	handler := g.protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "contents") }))
	return func(method, path, authorization string) *httptest.ResponseRecorder {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), method, path, nil)
		if authorization != "" {
			r.Header.Set("Authorization", authorization)
		}
		handler.ServeHTTP(w, r)
		return w
	}
}

func TestGuard(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		api                         reviewer
		method, path, authorization string
		code                        int
		text                        string
		asked                       int
	}{
		"allowed":             {authorization: "Bearer good", code: 200, text: "contents", asked: 2},
		"lower case":          {authorization: "bearer good", code: 200, text: "contents", asked: 2},
		"with a query":        {path: "/debug/snapshot?part=input", authorization: "Bearer good", code: 200, text: "contents", asked: 2},
		"no token":            {code: 401, text: "has no bearer token"},
		"empty token":         {authorization: "Bearer ", code: 401, text: "has no bearer token"},
		"spaces":              {authorization: "Bearer  good", code: 401, text: "has no bearer token"},
		"two tokens":          {authorization: "Bearer good poor", code: 401, text: "has no bearer token"},
		"a password":          {authorization: "Basic good", code: 401, text: "has no bearer token"},
		"unknown token":       {authorization: "Bearer stranger", code: 401, text: "does not accept the bearer token", asked: 1},
		"not allowed":         {authorization: "Bearer poor", code: 403, text: "bob may not get /debug/snapshot; allow it", asked: 2},
		"another path":        {path: "/debug/other", authorization: "Bearer good", code: 403, text: "ann may not get /debug/other", asked: 2},
		"another method":      {method: http.MethodPost, authorization: "Bearer good", code: 403, text: "ann may not post /debug/snapshot", asked: 2},
		"nobody listens":      {api: reviewer{err: syscall.ECONNREFUSED}, authorization: "Bearer good", code: 503, text: "the API server of the management cluster refuses connections; try again later", asked: 1},
		"cannot be reached":   {api: reviewer{err: errors.New("no route")}, authorization: "Bearer good", code: 503, text: "cannot be reached: no route", asked: 1},
		"may not ask who":     {api: reviewer{forbids: "/tokenreviews"}, authorization: "Bearer good", code: 503, text: "ClusterRole system:auth-delegator", asked: 1},
		"may not ask whether": {api: reviewer{forbids: "/subjectaccessreviews"}, authorization: "Bearer good", code: 503, text: "ClusterRole system:auth-delegator", asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			send := through(t, &test.api)
			method, path := http.MethodGet, "/debug/snapshot"
			if test.method != "" {
				method = test.method
			}
			if test.path != "" {
				path = test.path
			}
			w := send(method, path, test.authorization)
			assert.Equal(t, test.code, w.Code)
			assert.Contains(t, w.Body.String(), test.text)
			assert.Equal(t, test.asked, test.api.asked, "questions to the API server")
			if test.code != http.StatusOK {
				assert.NotContains(t, w.Body.String(), "contents")
			}
			for _, hidden := range []string{"good", "internal-name", "api.example"} {
				assert.NotContains(t, w.Body.String(), hidden)
			}
		})
	}
}

func TestGuardRemembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &reviewer{}
		send := through(t, api)
		read := func(token string) int { return send(http.MethodGet, "/debug/snapshot", "Bearer "+token).Code }
		for range 5 {
			assert.Equal(t, http.StatusOK, read("good"))
			assert.Equal(t, http.StatusForbidden, read("poor"))
			assert.Equal(t, http.StatusUnauthorized, read("stranger"))
		}
		assert.Equal(t, 5, api.asked, "questions to the API server")

		time.Sleep(verdictTime + time.Second)
		api.err = syscall.ECONNREFUSED
		assert.Equal(t, http.StatusServiceUnavailable, read("good"), "an answer does not count for longer")
		api.err = nil
		assert.Equal(t, http.StatusOK, read("good"), "that there was no answer is not remembered")
	})
}

// TestGuardAsks asks a real API server.
func TestGuardAsks(t *testing.T) {
	t.Parallel()
	management := sandboxtest.APIServer(t)
	contents := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "contents") })
	reader := sandboxtest.Token(t, management, sandboxtest.MayGet("/debug/*"))

	// identity is a process with the permissions that the rules give.
	identity := func(rules ...rbacv1.PolicyRule) (read func(token string) (int, string), warnings func() string) {
		config := rest.AnonymousClientConfig(management)
		config.BearerToken = sandboxtest.Token(t, management, rules...)
		g, err := newGuard(config)
		require.NoError(t, err)
		read = func(token string) (int, string) {
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/debug/snapshot", nil)
			r.Header.Set("Authorization", "Bearer "+token)
			g.protect(contents).ServeHTTP(w, r)
			return w.Code, w.Body.String()
		}
		warnings = func() string {
			var log bytes.Buffer
			g.report(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
			return log.String()
		}
		return read, warnings
	}

	read, warnings := identity()
	code, text := read(reader)
	assert.Equal(t, http.StatusServiceUnavailable, code, text)
	assert.Contains(t, text, "may not create tokenreviews")
	assert.Contains(t, warnings(), "the debug endpoint refuses all requests: this process may not create")
	assert.Equal(t, 1, strings.Count(warnings(), "\n"), "lines of the log")

	read, warnings = identity(
		rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{authenticationv1.GroupName}, Resources: []string{"tokenreviews"}},
		rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{authorizationv1.GroupName}, Resources: []string{"subjectaccessreviews"}},
	)
	until(t, "it may ask", func() bool { return warnings() == "" })
	until(t, "allowed", func() bool { code, text = read(reader); return code == http.StatusOK })
	assert.Equal(t, "contents\n", text)
	code, text = read(sandboxtest.Token(t, management))
	assert.Equal(t, http.StatusForbidden, code, text)
	assert.Contains(t, text, "system:serviceaccount:default:test-")
	code, text = read("e30.e30.e30")
	assert.Equal(t, http.StatusUnauthorized, code, text)
}
