package policy

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// The checks here are for values that fit the schema, but that no mesh takes: a
// mesh would refuse the whole object, and with it what other policies ask for.

// checkMatchers says which conditions on requests cannot be expressed.
func checkMatchers(spec *networkingv1.TrafficPolicySpec) []snapshot.Issue {
	var issues []snapshot.Issue
	for i := range spec.HttpRequestMatchers {
		m := &spec.HttpRequestMatchers[i]
		field := "httpRequestMatchers[" + strconv.Itoa(i) + "]"
		if m.Uri != nil {
			issues = append(issues, checkPattern(field+".uri.regex", m.Uri.Regex)...)
		}
		seen := map[string]bool{}
		for _, h := range m.Headers {
			if h.Regex {
				issues = append(issues, checkPattern(field+".headers["+h.Name+"].value", h.Value)...)
			}
			issues = append(issues, checkOnce(field+".headers", strings.ToLower(h.Name)+strconv.FormatBool(h.InvertMatch), h.Name, seen)...)
		}
		seen = map[string]bool{}
		for _, q := range m.QueryParameters {
			if q.Regex {
				issues = append(issues, checkPattern(field+".queryParameters["+q.Name+"].value", q.Value)...)
			}
			issues = append(issues, checkOnce(field+".queryParameters", q.Name, q.Name, seen)...)
		}
	}
	return issues
}

// checkOnce: of two conditions on one header a mesh can only be given one, and
// would take more requests than were meant.
func checkOnce(field, key, name string, seen map[string]bool) []snapshot.Issue {
	if seen[key] {
		return []snapshot.Issue{failure(snapshot.FieldUnsupported, "write them as one regular expression",
			"%s has two conditions on %s, and only one can be given to the mesh", field, name)}
	}
	seen[key] = true
	return nil
}

// checkPattern: meshes take regular expressions in the syntax of RE2, which is
// also that of Go.
func checkPattern(field, pattern string) []snapshot.Issue {
	if _, err := regexp.Compile(pattern); err != nil {
		return []snapshot.Issue{failure(snapshot.FieldInvalid, "write it in the syntax of RE2 (github.com/google/re2/wiki/Syntax)",
			"%s is not a regular expression that proxies can read: %s", field, strings.TrimPrefix(err.Error(), "error parsing regexp: "))}
	}
	return nil
}

// checkMatch is checkPattern for a match of a whole string.
func checkMatch(field string, m commonv1.StringMatch) []snapshot.Issue {
	if m.Exact+m.Prefix+m.Suffix+m.Regex == "" {
		return []snapshot.Issue{failure(snapshot.FieldInvalid, "set its exact, prefix, suffix or regex", "%s matches nothing", field)}
	}
	return checkPattern(field+".regex", m.Regex)
}

// checkStep says if a duration is not a whole number of steps, finer than which
// proxies do not count. Absent and zero durations are fine.
func checkStep(field string, d *metav1.Duration, step time.Duration) []snapshot.Issue {
	if duration(d)%step == 0 {
		return nil
	}
	return []snapshot.Issue{failure(snapshot.FieldInvalid, "round it to a multiple of "+step.String(),
		"%s: %s is finer than proxies can count", field, duration(d))}
}
