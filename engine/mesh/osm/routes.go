package osm

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	specsv1alpha4 "github.com/servicemeshinterface/smi-sdk-go/pkg/apis/specs/v1alpha4"

	"github.com/meshctl/meshctl/engine/snapshot"
)

const anything = "*"

// route is one path and one method that a rule allows; "*" is any.
type route struct{ path, method string }

// routesOf are the routes of a rule, each once: as single routes, those of two
// policies are either the same or not.
func routesOf(rule *snapshot.AccessRule) []route {
	paths, methods := rule.Paths, rule.Methods
	if len(paths) == 0 || slices.Contains(paths, anything) {
		paths = []string{anything}
	}
	if len(methods) == 0 || slices.Contains(methods, anything) {
		methods = []string{anything}
	}
	var out []route
	for _, path := range paths {
		for _, method := range methods {
			if r := (route{path, method}); !slices.Contains(out, r) {
				out = append(out, r)
			}
		}
	}
	return out
}

// matches is a rule's routes as those of an HTTPRouteGroup.
func matches(rule *snapshot.AccessRule) []specsv1alpha4.HTTPMatch {
	routes := routesOf(rule)
	name := rule.Origin.Ref.Name + "." + rule.Origin.Ref.Namespace
	out := make([]specsv1alpha4.HTTPMatch, 0, len(routes))
	for i, r := range routes {
		m := specsv1alpha4.HTTPMatch{Name: name, Methods: []string{r.method}, PathRegex: pathRegex(r.path)}
		if len(routes) > 1 {
			m.Name += "." + strconv.Itoa(i)
		}
		out = append(out, m)
	}
	return out
}

// pathRegex is an allowed path, which may have a * at one end, as a regular expression
// (RE2) for the whole path.
func pathRegex(path string) string {
	switch {
	case path == anything:
		return ".*"
	case strings.HasSuffix(path, anything):
		return "^" + regexp.QuoteMeta(strings.TrimSuffix(path, anything)) + ".*$"
	case strings.HasPrefix(path, anything):
		return "^.*" + regexp.QuoteMeta(strings.TrimPrefix(path, anything)) + "$"
	default:
		return "^" + regexp.QuoteMeta(path) + "$"
	}
}

// knownMethods are those that OSM's CRD for HTTPRouteGroups accepts.
var knownMethods = []string{anything, "GET", "HEAD", "PUT", "POST", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"}

// inexpressible lists the paths and methods of a grant that SMI cannot express.
func inexpressible(g *snapshot.Grant) []snapshot.CaseValue {
	var out []snapshot.CaseValue
	for _, path := range g.Rule.Paths {
		if strings.ContainsAny(path, "{}") {
			out = append(out, snapshot.CaseValue{Path: "allowedPaths", Case: snapshot.PathTemplate, Value: path})
		}
	}
	for _, method := range g.Rule.Methods {
		if !slices.Contains(knownMethods, method) {
			out = append(out, snapshot.CaseValue{Path: "allowedMethods", Case: snapshot.UnusualMethod, Value: method})
		}
	}
	return out
}

// beside describes the effect of two grants for the same account. OSM checks the port
// of a connection against the ports of all grants to its caller, and then a request
// against the first route that matches, whichever caller it is for; the order is
// undefined.
func beside(a, b *snapshot.Grant) string {
	ra, rb := routesOf(a.Rule), routesOf(b.Rule)
	alike := sameSet(ra, rb)
	if !alike && !slices.Equal(a.Ports, b.Ports) && slices.ContainsFunc(a.From, func(x snapshot.Account) bool { return slices.Contains(b.From, x) }) {
		return "callers whom both name could use the routes of one on the ports of the other"
	}
	if slices.Equal(a.From, b.From) {
		return ""
	}
	for _, x := range ra {
		for _, y := range rb {
			if x != y && overlap(x, y) {
				return "a request that matches " + x.String() + " as well as " + y.String() + " is checked against only one of the two"
			}
		}
	}
	return ""
}

// String is a route as text for messages.
func (r route) String() string {
	method, path := r.method, r.path
	if method == anything {
		method = "any method"
	}
	if path == anything {
		path = "any path"
	}
	return method + " " + path
}

func sameSet(a, b []route) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(r route) bool { return !slices.Contains(b, r) })
}

// overlap reports whether some request matches both routes.
func overlap(a, b route) bool {
	return (a.method == b.method || a.method == anything || b.method == anything) && overlapPaths(a.path, b.path)
}

func overlapPaths(a, b string) bool {
	pa, pb := strings.HasSuffix(a, anything), strings.HasSuffix(b, anything)
	sa, sb := strings.HasPrefix(a, anything), strings.HasPrefix(b, anything)
	ta, tb := strings.Trim(a, anything), strings.Trim(b, anything)
	switch {
	case a == anything || b == anything:
		return true
	case pa && pb:
		return strings.HasPrefix(ta, tb) || strings.HasPrefix(tb, ta)
	case sa && sb:
		return strings.HasSuffix(ta, tb) || strings.HasSuffix(tb, ta)
	case (pa && sb) || (sa && pb):
		return true
	case pa:
		return strings.HasPrefix(b, ta)
	case pb:
		return strings.HasPrefix(a, tb)
	case sa:
		return strings.HasSuffix(b, ta)
	case sb:
		return strings.HasSuffix(a, tb)
	default:
		return a == b
	}
}
