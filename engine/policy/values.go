package policy

import (
	"errors"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// These checks are for values that the schema accepts and meshes reject: a mesh would
// reject the whole object, including what other policies set.

// checkMatchers reports matchers that meshes cannot express.
func checkMatchers(spec *networkingv1.TrafficPolicySpec) []snapshot.Issue {
	var issues []snapshot.Issue
	for i := range spec.HttpRequestMatchers {
		m := &spec.HttpRequestMatchers[i]
		field := "httpRequestMatchers[" + strconv.Itoa(i) + "]"
		if m.Uri != nil && *m.Uri != (commonv1.StringMatch{IgnoreCase: m.Uri.IgnoreCase}) {
			issues = append(issues, checkMatch(field+".uri", *m.Uri)...)
		}
		seen := map[string]bool{}
		for _, h := range m.Headers {
			issues = append(issues, checkMatchable(field+".headers", h.Name)...)
			if h.Regex {
				issues = append(issues, checkPattern(field+".headers["+h.Name+"].value", h.Value)...)
				issues = append(issues, missingHeader(field, h)...)
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

// missingHeader warns of an inverted condition that does not match a request without
// the header: Istio treats a missing header as an empty one there
// (HTTPMatchRequest.without_headers).
func missingHeader(field string, h networkingv1.HeaderMatcher) []snapshot.Issue {
	re, err := regexp.Compile("^(?:" + h.Value + ")$")
	if !h.InvertMatch || h.Value == "" || err != nil || !re.MatchString("") {
		return nil
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.FieldUnsupported, "remove value and regex to match requests without the header",
		"%s.headers[%s] does not match requests without the header: a missing header counts as an empty one, which %q matches", field, h.Name, h.Value).At(field + ".headers")}
}

// checkOnce rejects a second condition on one header: meshes take only one, and would
// match more requests than meant.
func checkOnce(field, key, name string, seen map[string]bool) []snapshot.Issue {
	if seen[key] {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldUnsupported, "write them as one regular expression",
			"%s has two conditions on %s, and the mesh supports only one", field, name).At(field)}
	}
	seen[key] = true
	return nil
}

// checkPattern checks a regular expression. Meshes use the RE2 syntax, as Go does.
func checkPattern(field, pattern string) []snapshot.Issue {
	if len(pattern) > maxPattern {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "shorten it, or split it",
			"%s has %d characters, and proxies accept at most %d in a regular expression", field, len(pattern), maxPattern).At(field)}
	}
	var wrong *syntax.Error
	if _, err := regexp.Compile(pattern); errors.As(err, &wrong) {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "write it in the syntax of RE2 (github.com/google/re2/wiki/Syntax)",
			"%s is not a valid regular expression: %s: `%s`", field, wrong.Code, wrong.Expr).At(field)}
	}
	return nil
}

// maxPattern is the longest regular expression that Istio accepts.
const maxPattern = 1024

// checkMatch checks a match of a whole string.
func checkMatch(field string, m commonv1.StringMatch) []snapshot.Issue {
	ways := 0
	for _, way := range []string{m.Exact, m.Prefix, m.Suffix, m.Regex} {
		if way != "" {
			ways++
		}
	}
	switch {
	case ways == 0:
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "set its exact, prefix, suffix or regex", "%s matches nothing", field).At(field)}
	case ways > 1:
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "keep only one of exact, prefix, suffix and regex",
			"%s has several of exact, prefix, suffix and regex", field).At(field)}
	case m.Regex != "" && m.IgnoreCase:
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "remove ignoreCase and begin the regex with (?i)",
			"%s: ignoreCase has no effect on regex", field).At(field)}
	case m.Regex != "":
		return checkPattern(field+".regex", m.Regex)
	case m.Suffix != "" || m.IgnoreCase:
		// It becomes a regular expression, in which special characters are escaped.
		return checkPattern(field, "(?i).*"+regexp.QuoteMeta(m.Exact+m.Prefix+m.Suffix))
	}
	return nil
}

// checkSources reports source selectors that a mesh would reject.
func checkSources(spec *networkingv1.TrafficPolicySpec) []snapshot.Issue {
	var issues []snapshot.Issue
	for i := range spec.SourceSelector {
		m := spec.SourceSelector[i].KubeWorkloadMatcher
		if m == nil {
			continue
		}
		field := "sourceSelector[" + strconv.Itoa(i) + "].kubeWorkloadMatcher"
		for _, namespace := range m.Namespaces {
			if len(validation.IsDNS1123Label(namespace)) > 0 {
				issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "correct the name; omit namespaces for callers in all namespaces",
					"%s.namespaces: %q is not a valid namespace", field, namespace).At(field+".namespaces"))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.Labels)) {
			if len(validation.IsQualifiedName(name))+len(validation.IsValidLabelValue(m.Labels[name])) > 0 {
				issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "correct the label", "%s.labels: %s=%s is not a valid label",
					field, name, m.Labels[name]).At(field+".labels"))
			}
		}
	}
	return issues
}

// checkDuration is checkStep for durations that must be positive.
func checkDuration(field string, d *metav1.Duration, step time.Duration) []snapshot.Issue {
	if duration(d) <= 0 {
		return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "set at least "+step.String(), "%s is %s", field, duration(d)).At(field)}
	}
	return checkStep(field, d, step)
}

// checkStep rejects a duration that is not a multiple of step, the resolution of
// proxies. Nil and zero are fine.
func checkStep(field string, d *metav1.Duration, step time.Duration) []snapshot.Issue {
	if duration(d)%step == 0 {
		return nil
	}
	return []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid, "round it to a multiple of "+step.String(),
		"%s: %s is finer than the resolution of proxies", field, duration(d)).At(field)}
}
