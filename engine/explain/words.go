package explain

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// shortName names an object of the management plane without its kind.
func shortName(ref snapshot.Ref) string {
	if ref.Cluster != "" && ref.Kind.Info().Access&snapshot.InClusters != 0 {
		return ref.Identity() // the management cluster may have another one of that name
	}
	return ref.Namespace + "/" + ref.Name
}

// kindAndName names an object of the management plane with its kind; the zero Ref
// is empty.
func kindAndName(ref snapshot.Ref) string {
	if ref == (snapshot.Ref{}) {
		return ""
	}
	return ref.Kind.String() + " " + shortName(ref)
}

// labels is a selector as text: "app=reviews,version=v1".
func labels(m map[string]string) string {
	parts := make([]string, 0, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, k+"="+m[k])
	}
	return strings.Join(parts, ",")
}

func numbers(list []uint32) string {
	parts := make([]string, len(list))
	for i, n := range list {
		parts[i] = strconv.FormatUint(uint64(n), 10)
	}
	return strings.Join(parts, ", ")
}

// orAny is a list as text, where an empty one means any.
func orAny(text string) string {
	if text == "" {
		return "any"
	}
	return text
}

// matchText says which requests a Match takes.
func matchText(m snapshot.Match) string {
	var parts []string
	if m.Request != nil {
		parts = append(parts, requestText(m.Request)...)
	}
	if m.SourceNamespace != "" {
		parts = append(parts, "from namespace "+m.SourceNamespace)
	}
	if len(m.SourceLabels) > 0 {
		parts = append(parts, "from pods with "+labels(m.SourceLabels))
	}
	if len(parts) == 0 {
		return anyRequest
	}
	return strings.Join(parts, "; ")
}

// anyRequest is the text of a Match that takes all requests.
const anyRequest = "any"

func requestText(m *networkingv1.HttpMatcher) []string {
	var parts []string
	if m.Method != "" {
		parts = append(parts, m.Method)
	}
	if m.Uri != nil {
		parts = append(parts, "path "+stringText(*m.Uri))
	}
	for _, h := range m.Headers {
		text := "header " + valueText(h.Name, h.Value, h.Regex)
		if h.InvertMatch {
			text = "not " + text
		}
		parts = append(parts, text)
	}
	for _, q := range m.QueryParameters {
		parts = append(parts, "query "+valueText(q.Name, q.Value, q.Regex))
	}
	return parts
}

func valueText(name, value string, regex bool) string {
	switch {
	case value == "":
		return name + " present"
	case regex:
		return name + " ~ " + value
	}
	return name + " = " + value
}

func stringText(m commonv1.StringMatch) string {
	var text string
	switch {
	case m.Exact != "":
		text = "= " + m.Exact
	case m.Prefix != "":
		text = "begins " + m.Prefix
	case m.Suffix != "":
		text = "ends " + m.Suffix
	case m.Regex != "":
		text = "~ " + m.Regex
	default:
		return "any"
	}
	if m.IgnoreCase {
		text += " (any case)"
	}
	return text
}
