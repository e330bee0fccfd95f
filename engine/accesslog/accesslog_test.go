package accesslog

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// recorded is a message of a real Envoy, with a credential in each place that has one (s3cret-...). Of its node, only the ID was kept.
func recorded(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/envoy-1.40.0.bin")
	require.NoError(t, err)
	return text
}

// TestRead reads what Envoy sent of six requests.
func TestRead(t *testing.T) {
	t.Parallel()
	m, err := Read(recorded(t))
	require.NoError(t, err)
	assert.Equal(t, "sidecar~10.0.0.1~web-1.shop~shop.svc.cluster.local", m.Node)
	assert.Equal(t, "http_envoy_accesslog", m.LogName)
	require.Len(t, m.HTTP, 6)
	lines := make([]string, 0, len(m.HTTP))
	for i := range m.HTTP {
		h := &m.HTTP[i]
		lines = append(lines, strings.Join([]string{h.ProtocolVersion, h.Request.RequestMethod, h.Request.Path, h.Common.UpstreamCluster, h.Common.RouteName, strings.Join(h.Common.Flags, ","), h.Response.ResponseCodeDetails}, " "))
		assert.Equal(t, "127.0.0.1:18080", h.Request.Authority)
		assert.Equal(t, "127.0.0.1", h.Common.DownstreamRemoteAddress.SocketAddress.Address)
		assert.Equal(t, uint32(18080), h.Common.DownstreamLocalAddress.SocketAddress.PortValue)
		assert.Equal(t, 2026, h.Common.StartTime.Year())
		assert.Regexp(t, `^0\.\d{6}s$`, h.Common.Took)
		assert.Equal(t, "http", h.Request.Scheme)
	}
	assert.Equal(t, []string{
		"HTTP11 GET /cart outbound|80||cart.shop.svc.cluster.local cart  via_upstream",
		"HTTP11 GET /cart/7?token=s3cret-query&page=2 outbound|80||cart.shop.svc.cluster.local cart  via_upstream",
		"HTTP11 POST /broken inbound|80||   via_upstream",
		"HTTP11 GET /nowhere   NC cluster_not_found",
		"HTTP11 GET /refused outbound|81||dead.shop.svc.cluster.local  UF upstream_reset_before_response_started{remote_connection_failure|delayed_connect_error:_Connection_refused}",
		"HTTP11 GET /none   NR route_not_found",
	}, lines)
	second := &m.HTTP[1]
	assert.Equal(t, map[string]string{"authorization": "Bearer s3cret-bearer", "cookie": "sid=s3cret-cookie", "x-user": "ada"}, second.Request.Headers)
	assert.Equal(t, "hello", second.Response.Headers["server-note"])
	assert.Equal(t, uint32(200), second.Response.ResponseCode)
	assert.Equal(t, "127.0.0.1:18081", second.Common.UpstreamRemoteAddress.String())
	assert.Equal(t, uint64(3), m.HTTP[2].Request.BodyBytes)
	assert.Equal(t, uint32(503), m.HTTP[2].Response.ResponseCode)
}

// TestNothingSecretIsKept: whatever a record asks for, no credential is left, and what is not secret is.
func TestNothingSecretIsKept(t *testing.T) {
	t.Parallel()
	m, err := Read(recorded(t))
	require.NoError(t, err)
	all := &Record{Name: "all.gloo-mesh", Spec: &observabilityv1.AccessLogRecordSpec{ // Check rejects it
		IncludedRequestHeaders: []string{"Authorization", "cookie", "X-User"}, IncludedResponseHeaders: []string{"set-cookie", "server-note"},
	}}
	for i := range m.HTTP {
		names, wanted := Select([]*Record{all}, &m.HTTP[i])
		require.True(t, wanted)
		assert.Equal(t, []string{"all.gloo-mesh"}, names)
	}
	text, err := json.Marshal(m)
	require.NoError(t, err)
	assert.NotContains(t, string(text), "s3cret")
	second := &m.HTTP[1]
	assert.Equal(t, map[string]string{"authorization": Redacted, "cookie": Redacted, "x-user": "ada"}, second.Request.Headers)
	assert.Equal(t, map[string]string{"set-cookie": Redacted, "server-note": "hello"}, second.Response.Headers)
	assert.Equal(t, "/cart/7?token=(redacted)&page=(redacted)", second.Request.Path)
}

// TestRedact has one place for each kind of secret.
func TestRedact(t *testing.T) {
	t.Parallel()
	const jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
	for in, want := range map[string]string{
		"/a": "/a", "/a?": "/a?", "/a?b": "/a?(redacted)", "/a?=b": "/a?(redacted)", "/a?b=": "/a?b=(redacted)", "/a?b=c;d=e&f": "/a?b=(redacted)&d=(redacted)&(redacted)",
		"/reset/" + jwt + "/x": "/reset/(redacted)/x", "/a?" + jwt + "=1": "/a?(redacted)=(redacted)", "/a#token": "/a", "http://u:p@h/x@y?z=1": "http://h/x@y?z=(redacted)",
		"/\x1b[2J?a=1": "/?[2J?a=(redacted)", "/a/\xff": "/a/�",
	} {
		assert.Equal(t, want, redactPath(in), in)
	}
	for in, want := range map[string]string{
		"Bearer abc": Redacted, "x bearer  abc, y": "x (redacted), y", "Basic Bearer abc": Redacted, "curl/8.0": "curl/8.0", jwt: Redacted, "a\nb\x00": "a b?",
		strings.Repeat("é", maxValue): strings.Repeat("é", maxValue/2) + "…",
	} {
		assert.Equal(t, want, plain(in), in)
	}
	for name, want := range map[string]bool{
		"Authorization": true, "cookie": true, "Set-Cookie": true, "x-forwarded-client-cert": true, "X-Api-Key": true, "x-csrf-token": true, "x-user-session": true, "proxy-authorization": true,
		":authority": false, "x-user": false, "content-type": false, "x-request-id": false, "grpc-status": false,
	} {
		assert.Equal(t, want, Secret(name), name)
	}
}

func status(value uint32, c observabilityv1.Comparator) observabilityv1.AccessLogFilter {
	return observabilityv1.AccessLogFilter{StatusCodeMatcher: &observabilityv1.StatusCodeMatcher{Value: value, Comparator: c}}
}

func header(name, value string, regex, invert bool) observabilityv1.AccessLogFilter {
	return observabilityv1.AccessLogFilter{HeaderMatcher: &networkingv1.HeaderMatcher{Name: name, Value: value, Regex: regex, InvertMatch: invert}}
}

// TestFilters: a record wants the requests that pass any of its filters.
func TestFilters(t *testing.T) {
	t.Parallel()
	const all = "/cart /cart/7 /broken /nowhere /refused /none"
	for name, tt := range map[string]struct {
		filters []observabilityv1.AccessLogFilter
		want    string
	}{
		"none":                       {nil, all},
		"a status":                   {[]observabilityv1.AccessLogFilter{status(404, observabilityv1.ComparatorEQ)}, "/none"},
		"a status by default":        {[]observabilityv1.AccessLogFilter{status(404, "")}, "/none"},
		"at least":                   {[]observabilityv1.AccessLogFilter{status(500, observabilityv1.ComparatorGE)}, "/broken /nowhere /refused"},
		"at most":                    {[]observabilityv1.AccessLogFilter{status(404, observabilityv1.ComparatorLE)}, "/cart /cart/7 /none"},
		"unknown comparator":         {[]observabilityv1.AccessLogFilter{status(404, "NE")}, ""},
		"either":                     {[]observabilityv1.AccessLogFilter{status(404, ""), header(":method", "POST", false, false)}, "/broken /none"},
		"a header":                   {[]observabilityv1.AccessLogFilter{header("X-User", "ada", false, false)}, "/cart/7"},
		"another value":              {[]observabilityv1.AccessLogFilter{header("x-user", "bob", false, false)}, ""},
		"presence":                   {[]observabilityv1.AccessLogFilter{header("x-user", "", false, false)}, "/cart/7"},
		"absence":                    {[]observabilityv1.AccessLogFilter{header("x-user", "", false, true)}, "/cart /broken /nowhere /refused /none"},
		"a regular expression":       {[]observabilityv1.AccessLogFilter{header(":path", "/n.*", true, false)}, "/nowhere /none"},
		"of the whole value":         {[]observabilityv1.AccessLogFilter{header(":path", "/n", true, false)}, ""},
		"not a regular expression":   {[]observabilityv1.AccessLogFilter{header(":path", "/n.*", false, false)}, ""},
		"a token in a query is none": {[]observabilityv1.AccessLogFilter{header(":path", ".*s3cret.*", true, false)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := Read(recorded(t))
			require.NoError(t, err)
			r, err := NewRecord("r.gloo-mesh", &observabilityv1.AccessLogRecordSpec{Filters: tt.filters})
			require.NoError(t, err)
			var got []string
			for i := range m.HTTP {
				if _, wanted := Select([]*Record{r}, &m.HTTP[i]); wanted {
					path, _, _ := strings.Cut(m.HTTP[i].Request.Path, "?")
					got = append(got, path)
					assert.Empty(t, m.HTTP[i].Request.Headers, "headers that no record includes are left out")
				}
			}
			assert.Equal(t, tt.want, strings.Join(got, " "))
		})
	}
}

// TestCheck: what a record may not ask for is said with its field.
func TestCheck(t *testing.T) {
	t.Parallel()
	for want, spec := range map[string]observabilityv1.AccessLogRecordSpec{
		"":                                       {IncludedRequestHeaders: []string{"x-user"}, Filters: []observabilityv1.AccessLogFilter{status(500, "GE"), header("x-user", "a.*", true, true)}},
		"HeaderSecret includedRequestHeaders[1]": {IncludedRequestHeaders: []string{"x-user", "Cookie"}},
		"HeaderSecret includedResponseHeaders[0]":     {IncludedResponseHeaders: []string{"set-cookie"}},
		"HeaderSecret includedResponseTrailers[0]":    {IncludedResponseTrailers: []string{"x-token"}},
		"HeaderSecret filters[0].headerMatcher.name":  {Filters: []observabilityv1.AccessLogFilter{header("authorization", "Bearer a.*", true, false)}},
		"FieldInvalid filters[0].headerMatcher.value": {Filters: []observabilityv1.AccessLogFilter{header("a", "(", true, false)}},
		"FieldInvalid filters[0].headerMatcher.name":  {Filters: []observabilityv1.AccessLogFilter{header("", "a", false, false)}},
		"FieldInvalid filters[0]":                     {Filters: []observabilityv1.AccessLogFilter{{}}},
		"FieldInvalid includedRequestHeaders":         {IncludedRequestHeaders: strings.Split(strings.Repeat("a ", maxIncluded), " ")},
		"BudgetExceeded ":                             {WorkloadSelectors: []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{Namespaces: []string{strings.Repeat("a", maxSpec)}}}}},
		"FieldUnsupported includedFilterStateObjects": {IncludedFilterStateObjects: []string{"a"}},
	} {
		var got []string
		for _, issue := range Check(&spec) {
			got = append(got, string(issue.Code)+" "+issue.Field)
			assert.NotEmpty(t, issue.Hint)
		}
		assert.Equal(t, want, strings.Join(got, "; "))
		_, err := NewRecord("a.b", &spec)
		assert.Equal(t, want != "" && !strings.HasPrefix(want, string(snapshot.FieldUnsupported)), err != nil, want)
	}
}

// FuzzRead: whatever a proxy sends is read or is an error; what is kept of it has no control characters, is bounded, and is the same if it is
// redacted again.
func FuzzRead(f *testing.F) {
	f.Add(recorded(f))
	f.Add([]byte("\x12\x02\x0a\x00"))
	f.Add([]byte("\x0a\xff"))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := Read(text)
		if err != nil {
			return
		}
		for i := range m.HTTP {
			h := &m.HTTP[i]
			h.Redact()
			once, err := json.Marshal(h)
			require.NoError(t, err)
			assert.Less(t, len(once), 1<<20)
			var again HTTP
			require.NoError(t, json.Unmarshal(once, &again), "the hub reads what an agent writes")
			again.Redact()
			twice, err := json.Marshal(&again)
			require.NoError(t, err)
			assert.Equal(t, string(once), string(twice))
			for _, s := range []string{h.Request.Path, h.Request.Authority, h.Request.UserAgent, h.Common.RouteName, h.Common.PeerIdentity, h.Request.Referer} {
				assert.Equal(t, -1, strings.IndexFunc(s, snapshot.Unprintable), "%q", s)
			}
		}
	})
}
