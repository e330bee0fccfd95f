package envoy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Condition is a permission or a principal of an RBAC policy.
type Condition struct {
	text string
	tree map[string]any
}

// UnmarshalJSON formats the condition as text, with sorted lists:
// and(or(path=/a, path=/b), port=9080).
func (c *Condition) UnmarshalJSON(data []byte) error {
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return err
	}
	c.text, c.tree = condition(tree), tree
	return nil
}

// String returns the condition as text.
func (c Condition) String() string { return c.text }

func condition(tree map[string]any) string {
	// One key is the kind of the condition; the others are its settings.
	for _, kind := range slices.Sorted(keys(tree)) {
		value := tree[kind]
		switch kind {
		case "andRules", "andIds":
			return joined("and", value)
		case "orRules", "orIds":
			return joined("or", value)
		case "notRule", "notId":
			return "not(" + condition(object(value)) + ")"
		case "any":
			return "any"
		case "destinationPort":
			return fmt.Sprintf("port=%v", value)
		case "urlPath":
			return "path" + matcher(object(object(value)["path"]))
		case "header":
			header := object(value)
			return fmt.Sprint(header["name"]) + matcher(object(header["stringMatch"]))
		case "uriTemplate":
			template := object(object(value)["typedConfig"])
			return fmt.Sprintf("path template %v", template["pathTemplate"])
		case "authenticated":
			return "principal" + matcher(object(object(value)["principalName"]))
		case "filterState":
			state := object(value)
			return fmt.Sprint(state["key"]) + matcher(object(state["stringMatch"]))
		}
	}
	text, _ := json.Marshal(tree) // it came from JSON
	return string(text)
}

// joined formats a list; a list of one is its only element.
func joined(operator string, value any) string {
	set := object(value)
	list, _ := set["rules"].([]any)
	if list == nil {
		list, _ = set["ids"].([]any)
	}
	parts := make([]string, 0, len(list))
	for _, one := range list {
		parts = append(parts, condition(object(one)))
	}
	if len(parts) == 1 {
		return parts[0]
	}
	slices.Sort(parts)
	return operator + "(" + strings.Join(parts, ", ") + ")"
}

// matcher formats a StringMatcher.
func matcher(match map[string]any) string {
	for _, kind := range slices.Sorted(keys(match)) {
		switch kind {
		case "exact":
			return fmt.Sprintf("=%v", match[kind])
		case "prefix":
			return fmt.Sprintf("=%v*", match[kind])
		case "suffix":
			return fmt.Sprintf("=*%v", match[kind])
		case "contains":
			return fmt.Sprintf("=*%v*", match[kind])
		case "safeRegex":
			return fmt.Sprintf("~%v", object(match[kind])["regex"])
		}
	}
	return "?"
}

func object(value any) map[string]any {
	m, _ := value.(map[string]any)
	return m
}

func keys(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}
