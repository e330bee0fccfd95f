package wizards

import (
	"fmt"
	"slices"
	"strings"
)

// A target of a shift that is no service is written KIND=NAMESPACE/NAME.
const (
	virtualTarget = "virtual"
	staticTarget  = "static"
)

// targetWords say what a target looks like.
const targetWords = "NAME.NAMESPACE.CLUSTER, virtual=NAMESPACE/NAME or static=NAMESPACE/NAME, then [,weight=N][,port=N][,subset.LABEL=VALUE]"

// parseTarget reads SERVICE[,weight=N][,port=N][,subset.LABEL=VALUE], where
// SERVICE may be a VirtualDestination or a service outside all clusters.
func parseTarget(s string) (any, error) {
	parts, err := splitCommas(s)
	if err != nil || len(parts) == 0 {
		return nil, fmt.Errorf("%q: must be %s", s, targetWords)
	}
	field, there, err := parseWhere(parts[0])
	if err != nil {
		return nil, err
	}
	target := map[string]any{field: there}
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		label, isSubset := strings.CutPrefix(key, "subset.")
		switch {
		case isSubset && field != "staticDestination":
			subset, ok := there["subset"].(map[string]any)
			if !ok {
				subset = map[string]any{}
				there["subset"] = subset
			}
			subset[label] = value
		case key == "weight":
			target["weight"], _ = parseNumber(value)
		case key == "port" && field == "kubeService":
			there["port"], _ = parseNumber(value)
		default:
			return nil, fmt.Errorf("%q: %q is not one of %s", s, part, strings.Join(targetParts(field), ", "))
		}
	}
	return target, nil
}

// targetParts are what may follow a target of a kind.
func targetParts(field string) []string {
	return map[string][]string{
		"kubeService":        {"weight=N", "port=N", "subset.LABEL=VALUE"},
		"virtualDestination": {"weight=N", "subset.LABEL=VALUE"},
		"staticDestination":  {"weight=N"},
	}[field]
}

// parseWhere reads what stands first in a target.
func parseWhere(s string) (field string, there map[string]any, err error) {
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
		return "", nil, fmt.Errorf("%q: must be %s", s, targetWords)
	default:
		field = "kubeService"
		value, err = parseService(s)
	}
	there, _ = value.(map[string]any)
	return field, there, err
}

// formatTarget need not say everything: a Form compares what comes back.
func formatTarget(v any) (string, bool) {
	target, _ := v.(map[string]any)
	var where string
	var there map[string]any
	ok := false
	for _, field := range []string{"kubeService", "virtualDestination", "staticDestination"} {
		var given bool
		if there, given = target[field].(map[string]any); !given {
			continue
		}
		if field == "kubeService" {
			where, ok = formatService(only(there, "name", "namespace", "clusterName"))
			break
		}
		where, ok = formatObject(only(there, "name", "namespace"))
		where = map[string]string{"virtualDestination": virtualTarget, "staticDestination": staticTarget}[field] + "=" + where
		break
	}
	if there == nil {
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
	port, hasPort := there["port"]
	add("port", port, hasPort)
	subset, _ := there["subset"].(map[string]any)
	for _, label := range sortedKeys(subset) {
		value, isText := subset[label].(string)
		ok = ok && isText && !strings.Contains(label, "=")
		parts = append(parts, "subset."+label+"="+value)
	}
	return joinCommas(parts), ok
}

// limitUnits are the units of time that a rate limit can have.
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
