package kube

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestGetFromAddress: who is at the address answers, and nobody else; what is too much is not read.
func TestGetFromAddress(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("somebody else was asked") }))
	defer other.Close()
	t.Setenv("HTTP_PROXY", other.URL)
	t.Setenv("http_proxy", other.URL)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.RequestURI() {
		case "/stats?a=b":
			_, _ = w.Write([]byte("page"))
		case "/large":
			_, _ = w.Write([]byte(strings.Repeat("a", 101)))
		default:
			http.Redirect(w, r, other.URL, http.StatusFound)
		}
	}))
	defer server.Close()
	address := netip.MustParseAddrPort(server.Listener.Addr().String())
	data, err := GetFromAddress(t.Context(), address, nil, "stats?a=b", 100)
	require.NoError(t, err)
	assert.Equal(t, "page", string(data))
	_, err = GetFromAddress(t.Context(), address, nil, "large", 100)
	var large *TooBigError
	assert.ErrorAs(t, err, &large)
	_, err = GetFromAddress(t.Context(), address, nil, "elsewhere", 100)
	assert.ErrorContains(t, err, "it answers 302 Found")
}
