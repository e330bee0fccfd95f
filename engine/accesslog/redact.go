package accesslog

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Redacted stands for what is left out of an entry because it may be secret.
const Redacted = "(redacted)"

// Bounds of texts in an entry, in bytes.
const (
	maxPath  = 1 << 10
	maxValue = 512
	maxName  = 64
	// maxParameters is how many parameters of a query are kept.
	maxParameters = 32
)

// secretHeaders are headers that have secrets, and secretParts are what names of such headers contain.
var (
	secretHeaders = []string{"authorization", "proxy-authorization", "cookie", "set-cookie", "x-forwarded-client-cert", "www-authenticate", "authentication-info"}
	secretParts   = []string{"token", "secret", "passw", "apikey", "api-key", "api_key", "session", "credential", "signature", "jwt", "auth"}
)

// Secret reports whether a header may have a secret, by its name. Pseudo headers have none: authority is not auth.
func Secret(header string) bool {
	header = strings.ToLower(header)
	return !strings.HasPrefix(header, ":") && (slices.Contains(secretHeaders, header) ||
		slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(header, part) }))
}

// secretValue are values that are secret wherever they stand: credentials of HTTP, and JSON web tokens.
var secretValue = regexp.MustCompile(`(?i)\b((bearer|basic|digest|negotiate)\s+)+[^\s,;]+|eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]*)*`)

// Redact takes out of a request what may be secret, and cleans and bounds all texts: they are a stranger's. Doing it twice does no more.
func (h *HTTP) Redact() {
	c, q, r := &h.Common, &h.Request, &h.Response
	for _, at := range []*Address{c.DownstreamRemoteAddress, c.DownstreamLocalAddress, c.UpstreamRemoteAddress} {
		if at != nil {
			at.SocketAddress.Address = clip(at.SocketAddress.Address, 64)
		}
	}
	for _, text := range []*string{
		&c.PeerIdentity, &c.Took, &c.UpstreamCluster, &c.RouteName, &c.UpstreamTransportFailureReason, &h.ProtocolVersion,
		&q.RequestMethod, &q.Scheme, &q.UserAgent, &q.ForwardedFor, &q.RequestID, &r.ResponseCodeDetails,
	} {
		*text = plain(*text)
	}
	q.Authority = withoutUser(plain(q.Authority))
	q.Path, q.OriginalPath, q.Referer = redactPath(q.Path), redactPath(q.OriginalPath), redactPath(q.Referer)
	if len(c.Flags) > len(flags) {
		c.Flags = c.Flags[:len(flags)]
	}
	for i, flag := range c.Flags {
		c.Flags[i] = clip(flag, 8)
	}
	q.Headers, r.Headers, r.Trailers = redactHeaders(q.Headers), redactHeaders(r.Headers), redactHeaders(r.Trailers)
}

func redactHeaders(headers map[string]string) map[string]string {
	if len(headers) == 0 {
		return nil
	}
	out := make(map[string]string, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := headers[name]
		name = clip(strings.ToLower(name), 2*maxName)
		if _, twice := out[name]; twice || len(out) >= maxHeaders {
			continue
		}
		switch {
		case Secret(name):
			out[name] = Redacted
		case slices.Contains(pathHeaders, name):
			out[name] = redactPath(value)
		default:
			out[name] = plain(value)
		}
	}
	return out
}

// pathHeaders are headers whose value is a path or a URL.
var pathHeaders = []string{":path", "referer", "location", "content-location", "x-envoy-original-path", "origin"}

// plain is a text without credentials.
func plain(text string) string {
	return clip(secretValue.ReplaceAllString(clean(text), Redacted), maxValue)
}

// redactPath redacts all values in the query of a path or URL, whatever their names: each may be a token. A parameter without a name is one.
// Passwords in URLs and fragments are left out.
func redactPath(path string) string {
	path, _, _ = strings.Cut(clean(path), "#")
	path, query, has := strings.Cut(path, "?")
	path = clip(secretValue.ReplaceAllString(withoutUser(path), Redacted), maxPath)
	if !has {
		return path
	}
	parts := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	parts = parts[:min(len(parts), maxParameters)]
	for i, part := range parts {
		name, _, named := strings.Cut(part, "=")
		parts[i] = Redacted
		if named && name != "" {
			parts[i] = clip(secretValue.ReplaceAllString(name, Redacted), maxName) + "=" + Redacted
		}
	}
	return path + "?" + strings.Join(parts, "&")
}

// withoutUser leaves out USER:PASSWORD@ before a host.
func withoutUser(text string) string {
	scheme, rest, has := strings.Cut(text, "://")
	switch {
	case has:
		scheme += "://"
	case strings.HasPrefix(text, "/"):
		return text
	default:
		scheme, rest = "", text
	}
	host, _, _ := strings.Cut(rest, "/")
	return scheme + rest[strings.LastIndexByte(host, '@')+1:]
}

// clean makes a text one that does not act on a terminal.
func clean(text string) string { return snapshot.Clean(strings.ToValidUTF8(text, "\uFFFD")) }

// clip cleans a text of what acts on a terminal, and bounds it.
func clip(text string, most int) string {
	text = clean(text)
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
