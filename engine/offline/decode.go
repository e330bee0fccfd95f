package offline

import (
	"errors"
	"regexp"
	"strings"

	kjson "sigs.k8s.io/json"
)

// decode reads a document into target. Strict decoding refuses fields that the
// target does not have: for our own kinds, where a field that does nothing is
// a mistake; the kinds of Kubernetes gain fields with each version.
func decode(doc document, target any, strict bool) error {
	if !strict {
		return typeError(doc, kjson.UnmarshalCaseSensitivePreserveInts(doc.json, target))
	}
	mistakes, err := kjson.UnmarshalStrict(doc.json, target)
	if err != nil {
		return typeError(doc, err)
	}
	var errs []error
	for _, mistake := range mistakes {
		var field kjson.FieldError
		if !errors.As(mistake, &field) {
			errs = append(errs, doc.at.errorf(nil, "%w", mistake))
			continue
		}
		path := steps(field.FieldPath())
		errs = append(errs, doc.at.errorf(path, "%s has no field %s; correct the spelling or the indentation", doc.gvk.Kind, field.FieldPath()))
	}
	return errors.Join(errs...)
}

// cannot matches the error of a JSON decoder for a value of the wrong type.
var cannot = regexp.MustCompile(`cannot unmarshal (\w+)(?: [^ ]+)? into Go (?:struct field [A-Za-z0-9_]+\.(\S+)|value) of type (\S+)`)

// typeError reports a value of the wrong type in terms of YAML; nil stays nil.
func typeError(doc document, err error) error {
	if err == nil {
		return nil
	}
	m := cannot.FindStringSubmatch(err.Error())
	if m == nil {
		return doc.at.errorf(nil, "%s: %w", doc.gvk.Kind, err)
	}
	field := m[2]
	must := plain(m[3])
	if must == "a string" && (m[1] == "bool" || m[1] == "number") {
		must += "; put it in quotes"
	}
	if field == "" {
		return doc.at.errorf(nil, "%s: a value is a %s, but must be %s", doc.gvk.Kind, m[1], must)
	}
	return doc.at.errorf(steps(field), "%s: field %s is a %s, but must be %s", doc.gvk.Kind, field, m[1], must)
}

// plain names a Go type as YAML users would.
func plain(goType string) string {
	switch {
	case strings.HasPrefix(goType, "[]"):
		return "a list"
	case strings.HasPrefix(goType, "map["):
		return "a mapping"
	case strings.HasPrefix(goType, "int"), strings.HasPrefix(goType, "uint"):
		return "a whole number"
	case strings.HasPrefix(goType, "float"):
		return "a number"
	case goType == "bool":
		return "true or false"
	case goType == "string":
		return "a string"
	}
	return "a mapping (" + goType[strings.LastIndex(goType, ".")+1:] + ")"
}

// steps cuts a path such as spec.routes[0].uri into its parts.
func steps(path string) []string {
	path = strings.NewReplacer("[", ".", "]", "").Replace(path)
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
}
