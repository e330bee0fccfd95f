package wizards

import (
	"fmt"
	"slices"
	"strings"
)

// A target of a shift that is not a service is written KIND=NAMESPACE/NAME.
const (
	virtualTarget = "virtual"
	staticTarget  = "static"
)

// targetSyntax is how a target is written.
const targetSyntax = "NAME.NAMESPACE.CLUSTER, virtual=NAMESPACE/NAME or static=NAMESPACE/NAME, then [,weight=N][,port=N][,subset.LABEL=VALUE]"

// parseTarget reads SERVICE[,weight=N][,port=N][,subset.LABEL=VALUE], where
// SERVICE may be a VirtualDestination or an external service.
func parseTarget(s string) (any, error) {
	parts, err := splitCommas(s)
	if err != nil || len(parts) == 0 {
		return nil, fmt.Errorf("%q: must be %s", s, targetSyntax)
	}
	field, ref, err := parseReference(parts[0])
	if err != nil {
		return nil, err
	}
	target := map[string]any{field: ref}
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		label, isSubset := strings.CutPrefix(key, "subset.")
		switch {
		case isSubset && field != "staticDestination":
			subset, ok := ref["subset"].(map[string]any)
			if !ok {
				subset = map[string]any{}
				ref["subset"] = subset
			}
			subset[label] = value
		case key == "weight":
			target["weight"], _ = parseNumber(value)
		case key == "port" && field == "kubeService":
			ref["port"], _ = parseNumber(value)
		default:
			return nil, fmt.Errorf("%q: %q is not one of %s", s, part, strings.Join(targetParts(field), ", "))
		}
	}
	return target, nil
}

// targetParts are the settings that a target may have, by its field.
func targetParts(field string) []string {
	return map[string][]string{
		"kubeService":        {"weight=N", "port=N", "subset.LABEL=VALUE"},
		"virtualDestination": {"weight=N", "subset.LABEL=VALUE"},
		"staticDestination":  {"weight=N"},
	}[field]
}

// parseReference reads the first part of a target.
func parseReference(s string) (field string, ref map[string]any, err error) {
	var value any
	kind, name, other := strings.Cut(s, "=")
	switch {
	case other && kind == virtualTarget:
		field = "virtualDestination"
		value, err = parseObject(name)
	case other && kind == staticTarget:
		field = "staticDestination"
		value, err = parseObject(name)
	case other:
		return "", nil, fmt.Errorf("%q: must be %s", s, targetSyntax)
	default:
		field = "kubeService"
		value, err = parseService(s)
	}
	ref, _ = value.(map[string]any)
	return field, ref, err
}

// formatTarget may be incomplete: AnswersFor compares what comes back.
func formatTarget(v any) (string, bool) {
	target, _ := v.(map[string]any)
	var where string
	var ref map[string]any
	ok := false
	for _, field := range []string{"kubeService", "virtualDestination", "staticDestination"} {
		var given bool
		if ref, given = target[field].(map[string]any); !given {
			continue
		}
		if field == "kubeService" {
			where, ok = formatService(only(ref, "name", "namespace", "clusterName"))
			break
		}
		where, ok = formatObject(only(ref, "name", "namespace"))
		where = map[string]string{"virtualDestination": virtualTarget, "staticDestination": staticTarget}[field] + "=" + where
		break
	}
	if ref == nil {
		return "", false
	}
	parts := []string{where}
	add := func(key string, value any, given bool) {
		if given {
			text, isNumber := formatNumber(value)
			ok = ok && isNumber
			parts = append(parts, key+"="+text)
		}
	}
	weight, hasWeight := target["weight"]
	add("weight", weight, hasWeight)
	port, hasPort := ref["port"]
	add("port", port, hasPort)
	subset, _ := ref["subset"].(map[string]any)
	for _, label := range sortedKeys(subset) {
		value, isText := subset[label].(string)
		ok = ok && isText && !strings.Contains(label, "=")
		parts = append(parts, "subset."+label+"="+value)
	}
	return joinCommas(parts), ok
}

// limitUnits are the units of time of a rate limit.
func limitUnits() []string { return []string{"second", "minute", "hour", "day"} }

// parseLimit reads 100/second.
func parseLimit(s string) (any, error) {
	text, unit, ok := strings.Cut(s, "/")
	n, err := parseNumber(text)
	if !ok || err != nil || !slices.Contains(limitUnits(), unit) {
		return nil, fmt.Errorf("%q: must be NUMBER/UNIT with one of %s, such as 100/second", s, strings.Join(limitUnits(), ", "))
	}
	return map[string]any{"requestsPerUnit": n, "unit": strings.ToUpper(unit)}, nil
}

func formatLimit(v any) (string, bool) {
	m, _ := v.(map[string]any)
	unit, ok := m["unit"].(string)
	number, isNumber := formatNumber(m["requestsPerUnit"])
	return number + "/" + strings.ToLower(unit), ok && isNumber
}
