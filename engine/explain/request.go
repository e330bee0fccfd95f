package explain

import (
	"maps"
	"strings"

	"github.com/meshctl/meshctl/engine/access"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Request is an HTTP or gRPC request.
type Request struct {
	// Method is in upper case; empty means GET.
	Method string `json:"method"`
	// Path may have a query, as in /reviews/1?lang=en; empty means /.
	Path string `json:"path"`
	// Headers are what the caller sends besides, with names in lower case, each once: Envoy before
	// 1.39 compares several values of one as if they were one with commas, and later each by itself.
	Headers map[string]string `json:"headers,omitempty"`
	// Port is one of the service; 0 is its first one for HTTP, or else its first one.
	Port uint32 `json:"port"`
}

// complete sets what is empty.
func (r Request) complete() Request {
	if r.Method == "" {
		r.Method = "GET"
	}
	if r.Path == "" {
		r.Path = "/"
	}
	return r
}

// proxied is the request as proxies compare it.
func (r Request) proxied() access.Request {
	return access.Request{Method: r.Method, Path: r.Path, Headers: r.Headers}
}

// changed is the question about a request as it leaves the proxies of the callers. They change headers for a target first, and
// then for the route, and remove before they add (Envoy, HeaderParser.evaluateHeaders).
func (q *query) changed(target *networkingv1.HeaderManipulation, route *snapshot.WithOrigin[networkingv1.HeaderManipulation]) *query {
	list := []*networkingv1.HeaderManipulation{target}
	if route != nil {
		list = append(list, &route.Value)
	}
	out := *q
	out.request.Headers = maps.Clone(q.request.Headers)
	for _, m := range list {
		if m == nil {
			continue
		}
		if out.request.Headers == nil {
			out.request.Headers = map[string]string{}
		}
		for _, name := range m.RemoveRequestHeaders {
			delete(out.request.Headers, strings.ToLower(name))
		}
		for name, value := range m.AppendRequestHeaders {
			name = strings.ToLower(name)
			if have, found := out.request.Headers[name]; found {
				value = have + "," + value
			}
			out.request.Headers[name] = value
		}
	}
	return &out
}
