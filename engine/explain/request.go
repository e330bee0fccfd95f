package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/access"
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

// Obstacle is a condition of a policy that a request does not fulfil.
type Obstacle string

// The obstacles, in the order in which they are told.
const (
	WrongCaller Obstacle = "caller"
	WrongMethod Obstacle = "method"
	WrongPath   Obstacle = "path"
	WrongPort   Obstacle = "port"
)

// obstacles are those of the conditions of a rule on requests.
func (r Request) obstacles(rule *snapshot.EffectiveRule, podPort uint32, http bool) (out []Obstacle) {
	// A proxy that sees connections only never finds a method or a path.
	if len(rule.Methods) > 0 && (!http || !slices.ContainsFunc(rule.Methods, func(m string) bool { return access.ParsePattern(m).Matches(r.Method) })) {
		out = append(out, WrongMethod)
	}
	if len(rule.Paths) > 0 && (!http || !slices.ContainsFunc(rule.Paths, func(p string) bool { return access.ParsePattern(p).Matches(r.proxied().PathOnly()) })) {
		out = append(out, WrongPath)
	}
	if len(rule.PodPorts) > 0 && !slices.Contains(rule.PodPorts, podPort) {
		out = append(out, WrongPort)
	}
	return out
}
