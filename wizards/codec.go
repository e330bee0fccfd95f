package wizards

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// codec turns the values of a flag into the JSON value of a field, and back.
// Values of a wrong type stay as they are: the CRD rejects them with a better
// message.
type codec struct {
	// value names the values in help texts.
	value string
	// many: the flag may be given several times.
	many bool
	// commas: one value may have several elements.
	commas bool
	parse  func(values []string) (any, error)
	// format is the inverse of parse; false if the flag cannot express the value.
	format func(value any) ([]string, bool)
}

func one(value string, parse func(string) (any, error), format func(any) (string, bool)) codec {
	return codec{
		value: value,
		parse: func(values []string) (any, error) { return parse(values[len(values)-1]) },
		format: func(v any) ([]string, bool) {
			text, ok := format(v)
			return []string{text}, ok && printable(text)
		},
	}
}

// each is a list with a flag for each element.
func each(value string, parse func(string) (any, error), format func(any) (string, bool)) codec {
	return codec{
		value: value, many: true,
		parse: func(values []string) (any, error) {
			list := make([]any, 0, len(values))
			for _, text := range values {
				v, err := parse(text)
				if err != nil {
					return nil, err
				}
				list = append(list, v)
			}
			return list, nil
		},
		format: func(v any) ([]string, bool) {
			list, ok := v.([]any)
			texts := make([]string, 0, len(list))
			for _, element := range list {
				text, expressible := format(element)
				ok = ok && expressible && printable(text)
				texts = append(texts, text)
			}
			return texts, ok && len(texts) > 0
		},
	}
}

// printable reports whether a printed command can contain s unchanged.
func printable(s string) bool { return strings.IndexFunc(s, snapshot.Unprintable) < 0 }

func parseText(s string) (any, error) { return s, nil }

func formatText(v any) (string, bool) {
	text, ok := v.(string)
	return text, ok
}

func parseNumber(s string) (any, error) {
	if n, err := strconv.ParseInt(s, 10, 64); err == nil {
		return n, nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		if _, err := json.Marshal(f); err == nil {
			return f, nil
		}
	}
	return s, nil
}

func formatNumber(v any) (string, bool) {
	switch v.(type) {
	case int64, float64:
		text, err := json.Marshal(v)
		return string(text), err == nil
	}
	return "", false
}

func text(value string) codec  { return one(value, parseText, formatText) }
func number() codec            { return one("number", parseNumber, formatNumber) }
func duration() codec          { return one("duration", parseText, formatText) }
func words(value string) codec { return commaSeparated(each(value, parseText, formatText)) }
func numbers() codec           { return commaSeparated(each("number", parseNumber, formatNumber)) }

// httpMethods are the usual methods of HTTP (RFC 9110, RFC 5789).
var httpMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}

// methods are those of HTTP. Others than the known ones can be meant, but for those that look like a mistake; the CRD complains of
// lower case.
func methods() codec {
	return commaSeparated(each("method", func(s string) (any, error) {
		if meant := snapshot.Nearest(s, httpMethods); meant != "" && !slices.Contains(httpMethods, strings.ToUpper(s)) {
			return nil, fmt.Errorf("%q is no HTTP method; did you mean %s?", s, meant)
		}
		return s, nil
	}, formatText))
}

// boolean is a flag without a value.
func boolean() codec {
	return one("", func(s string) (any, error) {
		b, err := strconv.ParseBool(s)
		return b, err
	}, func(v any) (string, bool) {
		b, ok := v.(bool)
		return strconv.FormatBool(b), ok
	})
}

// commaSeparated lets one value have several elements.
func commaSeparated(c codec) codec {
	parse, format := c.parse, c.format
	c.commas = true
	c.parse = func(values []string) (any, error) {
		var all []string
		for _, v := range values {
			parts, err := splitCommas(v)
			if err != nil {
				return nil, err
			}
			all = append(all, parts...)
		}
		return parse(all)
	}
	c.format = func(v any) ([]string, bool) {
		texts, ok := format(v)
		if !ok {
			return nil, false
		}
		return []string{joinCommas(texts)}, true
	}
	return c
}

func splitCommas(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	parts, err := csv.NewReader(strings.NewReader(s)).Read()
	if err != nil {
		return nil, fmt.Errorf("%q: put values with a comma in double quotes: %w", s, err)
	}
	return parts, nil
}

func joinCommas(parts []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	// Writing to a strings.Builder does not fail.
	_ = w.Write(parts)
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// pairs is a map, written key=value.
func pairs(value string) codec {
	split := func(values []string) (any, error) {
		out := map[string]any{}
		for _, v := range values {
			parts, err := splitCommas(v)
			if err != nil {
				return nil, err
			}
			for _, part := range parts {
				key, val, ok := strings.Cut(part, "=")
				if !ok {
					return nil, fmt.Errorf("%q: must be key=value", part)
				}
				out[key] = val
			}
		}
		return out, nil
	}
	return codec{value: value, many: true, commas: true, parse: split, format: func(v any) ([]string, bool) {
		m, ok := v.(map[string]any)
		if !ok || len(m) == 0 {
			return nil, false
		}
		parts := make([]string, 0, len(m))
		for _, key := range sortedKeys(m) {
			val, isText := m[key].(string)
			ok = ok && isText && !strings.Contains(key, "=") && printable(key+val)
			parts = append(parts, key+"="+val)
		}
		return []string{joinCommas(parts)}, ok
	}}
}
