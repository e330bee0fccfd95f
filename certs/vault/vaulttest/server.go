// Package vaulttest is a server that speaks the parts of HashiCorp Vault's HTTP API that are needed here, for tests: as the
// source of Vault 1.21 does (builtin/logical/pki).
//
//	server.go  the server: login, the reads of a PKI mount, and its failures
//	ca.go      certification authorities, and sign-intermediate
package vaulttest

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// What a Server accepts.
const (
	Role  = "mesh"
	Mount = "pki"
	// ServiceAccount is the token of a service account that may take Role, and has the audience vault; Token may sign.
	ServiceAccount = "eyJhbGciOiJub25lIn0.eyJhdWQiOlsidmF1bHQiXX0.c2lnbmF0dXJl"
	// APIServer is the token that a Pod has for the API server.
	APIServer = "eyJhbGciOiJub25lIn0.eyJhdWQiOlsiaHR0cHM6Ly9rdWJlcm5ldGVzLmRlZmF1bHQuc3ZjIl19.c2lnbmF0dXJl"
	Token     = "hvs.root-token"
	// given is the start of tokens that logins give.
	given = "hvs.given-"
)

// Server is a Vault with one PKI mount.
type Server struct {
	*httptest.Server

	mu sync.Mutex
	// ca signs; issuers are the others by name.
	ca      *CA
	issuers map[string]*CA
	tokens  map[string]bool
	// instead answers in place of Vault, if it returns true.
	instead func(w http.ResponseWriter, r *http.Request) bool
	// change changes what is signed.
	change   func(*Signing)
	requests []string
}

// New starts a Server without TLS.
func New(t testing.TB, ca *CA) *Server {
	t.Helper()
	s := &Server{ca: ca, issuers: map[string]*CA{}, tokens: map[string]bool{Token: true}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

// NewTLS starts a Server with TLS. Its Certificate is that of its own CA.
func NewTLS(t testing.TB, ca *CA) *Server {
	t.Helper()
	s := &Server{ca: ca, issuers: map[string]*CA{}, tokens: map[string]bool{Token: true}}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // clients that do not trust it
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

// VaultCA logs in with Kubernetes, and signs with the default issuer.
func (s *Server) VaultCA() *certificatesv1.VaultCA {
	return &certificatesv1.VaultCA{
		Server: s.URL, CaPath: Mount + "/root/sign-intermediate", KubernetesAuth: &certificatesv1.VaultKubernetesAuth{Role: Role},
	}
}

// SetCA makes another CA the default issuer.
func (s *Server) SetCA(ca *CA) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ca = ca
}

// AddIssuer adds a CA under a name.
func (s *Server) AddIssuer(name string, ca *CA) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issuers[name] = ca
}

// Instead has a function answer, for requests for which it returns true; nil for none.
func (s *Server) Instead(answer func(w http.ResponseWriter, r *http.Request) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead = answer
}

// Change has a function change what is signed; nil for none.
func (s *Server) Change(change func(*Signing)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.change = change
}

// Requests are those that came, as METHOD PATH.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Tokens counts the tokens that logins gave and that were not revoked.
func (s *Server) Tokens() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tokens) - 1
}

// Sealed answers as a Vault that is sealed.
func Sealed(w http.ResponseWriter, _ *http.Request) bool {
	Refuse(w, http.StatusServiceUnavailable, "Vault is sealed")
	return true
}

// Refuse answers with an error, as Vault does.
func Refuse(w http.ResponseWriter, status int, messages ...string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"errors": messages})
}

func answer(w http.ResponseWriter, body map[string]any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	instead := s.instead
	s.mu.Unlock()
	if instead != nil && instead(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch path := strings.TrimPrefix(r.URL.Path, "/v1/"); {
	case path == "auth/kubernetes/login":
		s.login(w, r)
	case path == "auth/token/revoke-self":
		delete(s.tokens, r.Header.Get("X-Vault-Token"))
		w.WriteHeader(http.StatusNoContent)
	case strings.HasPrefix(path, Mount+"/"):
		s.pki(w, r, strings.TrimPrefix(path, Mount+"/"))
	default:
		Refuse(w, http.StatusNotFound, "no handler for route \""+path+"\"")
	}
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	var body struct{ Role, JWT string }
	switch err := json.NewDecoder(r.Body).Decode(&body); {
	case err != nil:
		Refuse(w, http.StatusBadRequest, "failed to parse JSON input")
	case body.Role != Role:
		Refuse(w, http.StatusBadRequest, "invalid role name \""+body.Role+"\"")
	case body.JWT != ServiceAccount:
		Refuse(w, http.StatusForbidden, "permission denied")
	default:
		token := given + strings.Repeat("x", len(s.tokens))
		s.tokens[token] = true
		answer(w, map[string]any{"auth": map[string]any{"client_token": token, "lease_duration": 3600}})
	}
}

// pki serves the paths of the mount.
func (s *Server) pki(w http.ResponseWriter, r *http.Request, path string) {
	ca := s.ca
	if rest, ok := strings.CutPrefix(path, "issuer/"); ok {
		name, what, _ := strings.Cut(rest, "/")
		if ca = s.issuers[name]; ca == nil {
			Refuse(w, http.StatusInternalServerError, "unable to find PKI issuer for reference: "+name)
			return
		}
		if path = "issuer/" + what; what == "sign-intermediate" {
			path = "root/" + what
		}
	}
	switch {
	case r.Method == http.MethodGet && path == "cert/ca":
		answer(w, map[string]any{"data": map[string]any{"certificate": ca.PEM()}})
	case r.Method == http.MethodGet && path == "cert/ca_chain":
		answer(w, map[string]any{"data": map[string]any{"certificate": ca.chainPEM(), "ca_chain": ca.chainPEM()}})
	case r.Method == http.MethodGet && path == "issuer/json":
		answer(w, map[string]any{"data": map[string]any{"certificate": ca.PEM(), "ca_chain": ca.chainPEMs()}})
	case path == "root/sign-intermediate" && !s.tokens[r.Header.Get("X-Vault-Token")]:
		Refuse(w, http.StatusForbidden, "permission denied")
	case path == "root/sign-intermediate":
		s.sign(w, r, ca)
	default:
		Refuse(w, http.StatusNotFound)
	}
}
