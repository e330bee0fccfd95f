package kube

import (
	"bytes"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// expiredMark begins what ExplainExpired puts into an answer.
const expiredMark = "expired-credential: "

// ExplainExpired makes the requests of a configuration say of a credential that the server rejects
// whether and since when it has expired; hint is the next step. The answer stays a 401, on which
// client-go gets a new token from a file or a plugin.
func ExplainExpired(config *rest.Config, hint string) {
	tls := config.TLSClientConfig
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		return &expiries{base: base, tls: tls, hint: hint, now: time.Now}
	})
}

type expiries struct {
	base http.RoundTripper
	tls  rest.TLSClientConfig
	hint string
	now  func() time.Time
}

// RoundTrip implements http.RoundTripper.
func (e *expiries) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := e.base.RoundTrip(request)
	if err != nil {
		// Proxies in front of an API server verify the certificate in the handshake.
		if expired := e.expired(""); expired != "" && strings.Contains(err.Error(), "tls: expired certificate") {
			return nil, &expiredError{server: request.URL.Scheme + "://" + request.URL.Host, reason: expired}
		}
		return nil, err // a RoundTripper returns the error of the transport
	}
	if response.StatusCode != http.StatusUnauthorized {
		return response, nil
	}
	token, _ := strings.CutPrefix(request.Header.Get("Authorization"), "Bearer ")
	expired := e.expired(token)
	if expired == "" {
		return response, nil
	}
	_ = response.Body.Close()
	// client-go keeps the text of an answer that is no object as a cause of its error.
	text := expiredMark + expired
	response.Header = http.Header{"Content-Type": {"text/plain"}}
	response.Body, response.ContentLength = io.NopCloser(strings.NewReader(text)), int64(len(text))
	return response, nil
}

// expired says that a token or, without one, the client certificate has expired; empty if neither has.
func (e *expiries) expired(token string) string {
	what, at := "token", tokenExpiry(token)
	if token == "" {
		what, at = "client certificate", e.certificateExpiry()
	}
	if at.IsZero() || e.now().Before(at) {
		return ""
	}
	text := fmt.Sprintf("the %s expired at %s", what, at.UTC().Format(time.RFC3339))
	if e.hint != "" {
		text += "; " + e.hint
	}
	return text
}

// certificateExpiry is the end of the client certificate; zero if there is none.
func (e *expiries) certificateExpiry() time.Time {
	data := e.tls.CertData
	if len(data) == 0 && e.tls.CertFile != "" {
		data, _ = os.ReadFile(e.tls.CertFile) // it was read before, or there would be no request
	}
	for len(bytes.TrimSpace(data)) > 0 {
		block, rest := pem.Decode(data)
		if block == nil {
			break
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			return certificate.NotAfter
		}
		data = rest
	}
	return time.Time{}
}

// tokenExpiry is the end of a token that is a JWT and has one; zero otherwise.
func tokenExpiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Exp float64 `json:"exp"`
	}
	if json.Unmarshal(payload, &claims) != nil || claims.Exp <= 0 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Exp), 0)
}

// WrappedRoundTripper lets client-go find the transport, to close idle connections.
func (e *expiries) WrappedRoundTripper() http.RoundTripper { return e.base }

// expiredError is a TLS handshake that failed because the client certificate has expired.
type expiredError struct{ server, reason string }

func (e *expiredError) Error() string { return rejects(e.server, e.reason) }

// NotUsed marks the text as a sentence; see Reason.
func (e *expiredError) NotUsed() {}

// IsExpired reports that a server rejects a credential that has expired. The Reason has the next step.
func IsExpired(err error) bool {
	var handshake *expiredError
	return errors.As(err, &handshake) || expiry(err) != ""
}

// expiry is what ExplainExpired says in an answer.
func expiry(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return ""
	}
	for _, cause := range status.Status().Details.Causes {
		if text, found := strings.CutPrefix(cause.Message, expiredMark); found && cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return text
		}
	}
	return ""
}

func rejects(server, reason string) string { return server + " rejects the credential: " + reason }
