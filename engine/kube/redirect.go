package kube

import (
	"fmt"
	"net/http"
)

// RefuseRedirects returns a transport that fails where a server redirects to another one.
// API servers do not redirect; what does is in between, and would get the credentials:
// client-go sends them with every request, also with those that follow a redirect.
func RefuseRedirects(base http.RoundTripper) http.RoundTripper { return &redirects{base} }

type redirects struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (r *redirects) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.base.RoundTrip(request)
	if err != nil || response.StatusCode < 300 || response.StatusCode > 399 {
		return response, err // a RoundTripper returns the error of the transport
	}
	to, err := response.Location()
	if err != nil || to.Scheme == request.URL.Scheme && to.Host == request.URL.Host {
		return response, nil //nolint:nilerr // without a location, nobody follows
	}
	_ = response.Body.Close()
	return nil, fmt.Errorf("%s redirects to %s, which gets no credentials: an API server does not redirect; check the address, and what is between here and there", request.URL.Host, to.Redacted())
}

// WrappedRoundTripper lets client-go find the transport, to close idle connections.
func (r *redirects) WrappedRoundTripper() http.RoundTripper { return r.base }
