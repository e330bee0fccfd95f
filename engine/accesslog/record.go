package accesslog

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// MaxRecords bounds the AccessLogRecords of which the agent of a cluster knows, and maxIncluded the headers of one kind that a record includes.
const (
	MaxRecords  = 100
	maxIncluded = maxHeaders / 2
	maxPattern  = 1 << 10
	maxSpec     = 16 << 10
)

// Check says what is wrong with the spec of a record. Errors reject it.
func Check(spec *observabilityv1.AccessLogRecordSpec) (out []snapshot.Issue) {
	reject := func(field, hint, format string, args ...any) {
		out = append(out, snapshot.Errorf(snapshot.FieldInvalid, hint, format, args...).At(field))
	}
	for i := range spec.Filters {
		f, at := &spec.Filters[i], fmt.Sprintf("filters[%d]", i)
		switch {
		case (f.StatusCodeMatcher == nil) == (f.HeaderMatcher == nil):
			reject(at, "set one of statusCodeMatcher and headerMatcher; for either, write two filters", "a filter has exactly one matcher")
		case f.HeaderMatcher != nil && f.HeaderMatcher.Name == "":
			reject(at+".headerMatcher.name", "name the request header to look at", "it names no header")
		case f.HeaderMatcher != nil && Secret(f.HeaderMatcher.Name):
			out = append(out, secret(at+".headerMatcher.name", "filters by", f.HeaderMatcher.Name))
		case f.HeaderMatcher != nil && f.HeaderMatcher.Regex:
			if _, err := pattern(f.HeaderMatcher.Value); err != nil {
				reject(at+".headerMatcher.value", "correct the regular expression (RE2)", "%s", err)
			}
		}
	}
	for field, names := range map[string][]string{
		"includedRequestHeaders": spec.IncludedRequestHeaders, "includedResponseHeaders": spec.IncludedResponseHeaders, "includedResponseTrailers": spec.IncludedResponseTrailers,
	} {
		if len(names) > maxIncluded {
			reject(field, "name those that you need", "it names %d headers, and at most %d are logged", len(names), maxIncluded)
		}
		for i, name := range names {
			if Secret(name) {
				out = append(out, secret(fmt.Sprintf("%s[%d]", field, i), "includes", name))
			}
		}
	}
	if len(spec.IncludedFilterStateObjects) > 0 {
		out = append(out, snapshot.Warnf(snapshot.FieldUnsupported, "remove it", "state of filters is not logged").At("includedFilterStateObjects"))
	}
	if text, err := json.Marshal(spec); err != nil || len(text) > maxSpec {
		out = append(out, snapshot.Errorf(snapshot.BudgetExceeded, "split it, or select more with fewer words", "it has more than %d KiB, which is more than agents are told", maxSpec>>10))
	}
	slices.SortStableFunc(out, func(a, b snapshot.Issue) int { return strings.Compare(a.Field, b.Field) })
	return out
}

func secret(field, verb, name string) snapshot.Issue {
	return snapshot.Errorf(snapshot.HeaderSecret, "name another header; headers that may have secrets are never logged, nor compared",
		"it %s the header %s, which may have a secret", verb, snapshot.Clean(name)).At(field)
}

// pattern is a regular expression for a whole value.
func pattern(text string) (*regexp.Regexp, error) {
	if len(text) > maxPattern {
		return nil, fmt.Errorf("a regular expression of %d bytes; at most %d are compared", len(text), maxPattern)
	}
	out, err := regexp.Compile("^(?:" + text + ")$")
	if err != nil {
		return nil, fmt.Errorf("it is no regular expression: %w", err)
	}
	return out, nil
}

// Record is an AccessLogRecord that was checked.
type Record struct {
	// Name is NAME.NAMESPACE, and NAME.NAMESPACE.CLUSTER for one of a registered cluster.
	Name string
	Spec *observabilityv1.AccessLogRecordSpec
	// patterns are those of the filters with a regular expression, by index.
	patterns map[int]*regexp.Regexp
}

// NewRecord prepares a record; an error says why it is rejected.
func NewRecord(name string, spec *observabilityv1.AccessLogRecordSpec) (*Record, error) {
	for _, issue := range Check(spec) {
		if issue.Rejects() {
			return nil, fmt.Errorf("AccessLogRecord %s: %s: %s; %s", name, issue.Field, issue.Message, issue.Hint)
		}
	}
	r := &Record{Name: name, Spec: spec, patterns: map[int]*regexp.Regexp{}}
	for i := range spec.Filters {
		if m := spec.Filters[i].HeaderMatcher; m != nil && m.Regex {
			r.patterns[i], _ = pattern(m.Value) // it was checked
		}
	}
	return r, nil
}

// Wants reports whether a request passes any filter of the record; without filters, each does. Requests are compared as they are shown: a
// filter does not find what is redacted. A header that the proxy does not log is absent.
func (r *Record) Wants(h *HTTP) bool {
	if len(r.Spec.Filters) == 0 {
		return true
	}
	for i := range r.Spec.Filters {
		f := &r.Spec.Filters[i]
		if m := f.StatusCodeMatcher; m != nil && statusMatches(m, h.Response.ResponseCode) {
			return true
		}
		if m := f.HeaderMatcher; m != nil && r.headerMatches(i, m, &h.Request) {
			return true
		}
	}
	return false
}

func statusMatches(m *observabilityv1.StatusCodeMatcher, code uint32) bool {
	switch m.Comparator {
	case observabilityv1.ComparatorGE:
		return code >= m.Value
	case observabilityv1.ComparatorLE:
		return code <= m.Value
	case observabilityv1.ComparatorEQ, "":
		return code == m.Value
	}
	return false
}

func (r *Record) headerMatches(i int, m *networkingv1.HeaderMatcher, q *Request) bool {
	value, has := q.header(m.Name)
	matches := has
	switch re := r.patterns[i]; {
	case !has:
	case m.Regex:
		matches = re != nil && re.MatchString(value)
	case m.Value != "":
		matches = value == m.Value
	}
	return matches != m.InvertMatch
}

// header is a request header by its name; those of Envoy's own fields are always there.
func (q *Request) header(name string) (value string, has bool) {
	name = strings.ToLower(name)
	switch name {
	case ":method":
		value = q.RequestMethod
	case ":scheme":
		value = q.Scheme
	case ":authority", "host":
		value = q.Authority
	case ":path":
		value = q.Path
	case "user-agent":
		value = q.UserAgent
	case "referer":
		value = q.Referer
	case "x-forwarded-for":
		value = q.ForwardedFor
	case "x-request-id":
		value = q.RequestID
	case "x-envoy-original-path":
		value = q.OriginalPath
	}
	if value != "" {
		return value, true
	}
	value, has = q.Headers[name]
	return value, has
}

// Select is what is kept of a request, with the names of the records of those that want it; false if none does. Headers that none of these
// includes are left out. It redacts the request.
func Select(records []*Record, h *HTTP) (names []string, wanted bool) {
	h.Redact()
	var request, response, trailers []string
	for _, r := range records {
		if !r.Wants(h) {
			continue
		}
		names = append(names, r.Name)
		request = append(request, r.Spec.IncludedRequestHeaders...)
		response = append(response, r.Spec.IncludedResponseHeaders...)
		trailers = append(trailers, r.Spec.IncludedResponseTrailers...)
	}
	h.Request.Headers, h.Response.Headers, h.Response.Trailers = only(h.Request.Headers, request), only(h.Response.Headers, response), only(h.Response.Trailers, trailers)
	slices.Sort(names)
	return names, len(names) > 0
}

func only(headers map[string]string, names []string) map[string]string {
	var out map[string]string
	for _, name := range names {
		name = strings.ToLower(name)
		if value, has := headers[name]; has {
			if out == nil {
				out = map[string]string{}
			}
			out[name] = value
		}
	}
	return out
}
