package wizards

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func sortedKeys(m map[string]any) []string { return slices.Sorted(maps.Keys(m)) }

// parseService reads name.namespace.cluster.
func parseService(s string) (any, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return nil, fmt.Errorf("%q: must be NAME.NAMESPACE.CLUSTER, such as reviews.bookinfo.cluster-1", s)
	}
	return map[string]any{"name": parts[0], "namespace": parts[1], "clusterName": parts[2]}, nil
}

func formatService(v any) (string, bool) {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 3 {
		return "", false
	}
	var parts []string
	for _, key := range []string{"name", "namespace", "clusterName"} {
		part, isText := m[key].(string)
		ok = ok && isText && part != "" && !strings.Contains(part, ".")
		parts = append(parts, part)
	}
	return strings.Join(parts, "."), ok
}

// parseAccount reads name.namespace.cluster, where * means any.
func parseAccount(s string) (any, error) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 || slices.Contains(parts, "") {
		return nil, fmt.Errorf("%q: must be NAME.NAMESPACE.CLUSTER, with * for any, such as productpage.bookinfo.*", s)
	}
	out := map[string]any{}
	for i, key := range []string{"name", "namespace", "clusterName"} {
		if parts[i] != "*" {
			out[key] = parts[i]
		}
	}
	return out, nil
}

func formatAccount(v any) (string, bool) {
	m, ok := v.(map[string]any)
	var parts []string
	for _, key := range []string{"name", "namespace", "clusterName"} {
		part, given := m[key].(string)
		if !given {
			part = "*"
		}
		ok = ok && part != "" && (!given || part != "*") && !strings.Contains(part, ".")
		parts = append(parts, part)
	}
	return strings.Join(parts, "."), ok
}

// parseObject reads namespace/name.
func parseObject(s string) (any, error) {
	namespace, name, ok := strings.Cut(s, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return nil, fmt.Errorf("%q: must be NAMESPACE/NAME, such as gloo-mesh/istiod-istio-system-cluster-1", s)
	}
	return map[string]any{"name": name, "namespace": namespace}, nil
}

func formatObject(v any) (string, bool) {
	m, ok := v.(map[string]any)
	name, hasName := m["name"].(string)
	namespace, hasNamespace := m["namespace"].(string)
	return namespace + "/" + name, ok && hasName && hasNamespace && len(m) == 2 && name != "" && namespace != "" &&
		!strings.Contains(name+namespace, "/")
}

// only keeps some keys of a map.
func only(m map[string]any, keys ...string) map[string]any {
	out := map[string]any{}
	for _, key := range keys {
		if v, ok := m[key]; ok {
			out[key] = v
		}
	}
	return out
}

// stringMatches are the fields of a StringMatch.
func stringMatches() []string { return []string{"exact", "prefix", "suffix", "regex"} }

// parseMatcher reads conditions on one request, such as
// prefix=/api,method=GET,header.version=2,query.debug=.
func parseMatcher(s string) (any, error) {
	parts, err := splitCommas(s)
	if err != nil {
		return nil, err
	}
	matcher := map[string]any{}
	add := func(list, name, value string) {
		element := map[string]any{"name": name}
		if value != "" {
			element["value"] = value
		}
		old, _ := matcher[list].([]any)
		matcher[list] = append(old, element)
	}
	for _, part := range parts {
		key, value, _ := strings.Cut(part, "=")
		switch {
		case slices.Contains(stringMatches(), key):
			uri, ok := matcher["uri"].(map[string]any)
			if !ok {
				uri = map[string]any{}
				matcher["uri"] = uri
			}
			uri[key] = value
		case key == "method" || key == "name":
			matcher[key] = value
		case strings.HasPrefix(key, "header."):
			add("headers", strings.TrimPrefix(key, "header."), value)
		case strings.HasPrefix(key, "query."):
			add("queryParameters", strings.TrimPrefix(key, "query."), value)
		default:
			return nil, fmt.Errorf("%q is not one of prefix=, exact=, suffix=, regex=, method=, header.NAME=VALUE, query.NAME=VALUE", part)
		}
	}
	return matcher, nil
}

// formatMatcher may be incomplete: AnswersFor compares what comes back.
func formatMatcher(v any) (string, bool) {
	matcher, ok := v.(map[string]any)
	if !ok || len(matcher) == 0 {
		return "", false
	}
	var parts []string
	add := func(key string, value any, given bool) {
		if given {
			text, isText := value.(string)
			ok = ok && isText
			parts = append(parts, key+"="+text)
		}
	}
	name, hasName := matcher["name"]
	add("name", name, hasName)
	uri, _ := matcher["uri"].(map[string]any)
	for _, match := range stringMatches() {
		value, given := uri[match]
		add(match, value, given)
	}
	method, hasMethod := matcher["method"]
	add("method", method, hasMethod)
	for _, list := range [][2]string{{"headers", "header."}, {"queryParameters", "query."}} {
		elements, _ := matcher[list[0]].([]any)
		for _, element := range elements {
			m, _ := element.(map[string]any)
			name, isText := m["name"].(string)
			ok = ok && isText && !strings.Contains(name, "=")
			value, hasValue := m["value"]
			if !hasValue {
				value = ""
			}
			add(list[1]+name, value, true)
		}
	}
	return joinCommas(parts), ok && len(parts) > 0
}

// parseString reads prefix=https://, or an exact string.
func parseString(s string) (any, error) {
	if match, value, ok := strings.Cut(s, "="); ok && slices.Contains(stringMatches(), match) {
		return map[string]any{match: value}, nil
	}
	return map[string]any{"exact": s}, nil
}

func formatString(v any) (string, bool) {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return "", false
	}
	for match, value := range m {
		text, isText := value.(string)
		return match + "=" + text, isText
	}
	return "", false
}

// isWhole reports whether s is a whole number without a sign.
func isWhole(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}
