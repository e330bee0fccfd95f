package envoy

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Decision is what an RBAC filter does with a request.
type Decision struct {
	// Answer: it lets the request in.
	Answer Answer
	// Policy is the one that decided; empty if none of Policies matches.
	Policy string
	// Policies are the names of all, ascending.
	Policies []string
	// Doubt is what is not known; empty if nothing that decides.
	Doubt string
}

// Decide reports whether an RBAC filter lets a request in; nil rules let all in (Envoy: config.rbac.v3.RBAC).
func (a *RBAC) Decide(r Request) Decision {
	if a == nil || a.Action == "LOG" {
		return Decision{Answer: Yes}
	}
	out := Decision{Policies: slices.Sorted(maps.Keys(a.Policies))}
	matched := No
	for _, name := range out.Policies {
		policy := a.Policies[name]
		permitted, doubt := anyOf(policy.Permissions, r)
		whose, doubtful := anyOf(policy.Principals, r)
		holds := min(permitted, whose)
		if len(policy.unknown) > 0 {
			holds, doubt = min(holds, Unknown), strings.Join(policy.unknown, ", ")
		}
		if holds == Unknown && out.Doubt == "" {
			out.Doubt = name + ": " + strings.Join(slices.DeleteFunc([]string{doubt, doubtful}, func(s string) bool { return s == "" }), ", ")
		}
		if holds > matched {
			matched, out.Policy = holds, name
		}
		if matched == Yes {
			out.Doubt = ""
			break
		}
	}
	out.Answer = matched
	switch a.Action {
	case "", "ALLOW":
	case "DENY":
		out.Answer = matched.not()
	default:
		out.Answer, out.Doubt = Unknown, "action "+a.Action
	}
	return out
}

// anyOf reports whether one of some conditions holds, with one that is not known if that decides.
func anyOf(conditions []Condition, r Request) (Answer, string) {
	out, doubt := No, ""
	for _, c := range conditions {
		holds := c.holds(r)
		if holds == Unknown && doubt == "" {
			doubt = c.text
		}
		out = max(out, holds)
	}
	if out != Unknown {
		doubt = ""
	}
	return out, doubt
}

func (c *Condition) holds(r Request) Answer { return holds(c.tree, r) }

// holds is Unknown for a condition of a kind that it does not know.
func holds(tree map[string]any, r Request) Answer {
	for _, kind := range slices.Sorted(keys(tree)) {
		value := tree[kind]
		switch kind {
		case "andRules", "andIds":
			out := Yes
			for _, one := range listed(value) {
				out = min(out, holds(one, r))
			}
			return out
		case "orRules", "orIds":
			out := No
			for _, one := range listed(value) {
				out = max(out, holds(one, r))
			}
			return out
		case "notRule", "notId":
			return holds(object(value), r).not()
		case "any":
			return answer(value == true)
		case "destinationPort":
			return answer(fmt.Sprint(value) == fmt.Sprint(r.Port))
		case "destinationPortRange":
			start, _ := object(value)["start"].(float64)
			end, _ := object(value)["end"].(float64)
			return answer(float64(r.Port) >= start && float64(r.Port) < end)
		case "requestedServerName":
			if r.SNI == "" {
				return Unknown
			}
			return matches(object(value), r.SNI)
		case "urlPath":
			return matches(object(object(value)["path"]), r.path())
		case "header":
			return headerHolds(object(value), r)
		case "uriTemplate":
			return templateMatches(fmt.Sprint(object(object(value)["typedConfig"])["pathTemplate"]), r.path())
		case "authenticated":
			name := object(object(value)["principalName"])
			if r.Principal == "" || len(name) == 0 {
				return answer(r.Principal != "")
			}
			return matches(name, r.Principal)
		case "filterState":
			// Of Istio's proxies, it is the caller's principal (pilot/pkg/security/authz/model/principal.go).
			state := object(value)
			switch {
			case state["key"] != "io.istio.peer_principal":
				return Unknown
			case r.Principal == "":
				return No
			}
			return matches(object(state["stringMatch"]), r.Principal)
		}
	}
	return Unknown
}

// headerHolds is for a HeaderMatcher in a condition.
func headerHolds(header map[string]any, r Request) Answer {
	value, found := r.header(fmt.Sprint(header["name"]))
	inverted := func(a Answer) Answer {
		if header["invertMatch"] == true {
			return a.not()
		}
		return a
	}
	match, isString := header["stringMatch"].(map[string]any)
	switch {
	case header["presentMatch"] != nil:
		if header["presentMatch"] == false {
			found = found.not()
		}
		return inverted(found)
	case !isString:
		return Unknown
	case found == Unknown:
		return Unknown
	case found == No && header["treatMissingHeaderAsEmpty"] != true:
		return No
	}
	return inverted(matches(match, value))
}

func listed(value any) (out []map[string]any) {
	set := object(value)
	list, _ := set["rules"].([]any)
	if list == nil {
		list, _ = set["ids"].([]any)
	}
	for _, one := range list {
		out = append(out, object(one))
	}
	return out
}

// matches is for a StringMatcher in a condition.
func matches(match map[string]any, text string) Answer {
	if match["ignoreCase"] == true {
		lowered := map[string]any{}
		for kind, value := range match {
			if wanted, isText := value.(string); isText {
				lowered[kind] = strings.ToLower(wanted)
			}
		}
		if len(lowered) == 0 {
			return Unknown
		}
		match, text = lowered, strings.ToLower(text)
	}
	for _, kind := range slices.Sorted(keys(match)) {
		wanted := fmt.Sprint(match[kind])
		switch kind {
		case "exact":
			return answer(text == wanted)
		case "prefix":
			return answer(strings.HasPrefix(text, wanted))
		case "suffix":
			return answer(strings.HasSuffix(text, wanted))
		case "contains":
			return answer(strings.Contains(text, wanted))
		case "safeRegex":
			return whole(fmt.Sprint(object(match[kind])["regex"]), text)
		}
	}
	return Unknown
}

// templateMatches: * is a part between slashes, and ** any number of them (Envoy:
// extensions.path.match.uri_template.v3).
func templateMatches(template, path string) Answer {
	expression := regexp.QuoteMeta(template)
	expression = strings.ReplaceAll(expression, `\*\*`, `.*`)
	expression = strings.ReplaceAll(expression, `\*`, `[^/]+`)
	return whole(expression, path)
}
