package explain

import "github.com/meshctl/meshctl/engine/access"

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
