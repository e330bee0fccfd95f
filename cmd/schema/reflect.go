package main

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"time"

	"github.com/invopop/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// schema describes all forms of what a command prints.
func (s *sources) schema(command string, forms []cmdutil.Form) *jsonschema.Schema {
	definitions := jsonschema.Definitions{}
	var all []*jsonschema.Schema
	for _, form := range forms {
		one := s.reflector().Reflect(form.Value)
		for name, definition := range one.Definitions {
			definitions[name] = definition
		}
		one.Version, one.Definitions = "", nil
		if form.When != "" {
			one.Title = form.When
		}
		all = append(all, one)
	}
	out := all[0]
	if issue, found := definitions[nameOf(reflect.TypeFor[snapshot.Issue]())]; found { // it has a MarshalJSON
		issue.Properties.Set("help", &jsonschema.Schema{Type: "string", Description: "Help is the command that explains the code."})
		issue.Required = append(issue.Required, "help")
	}
	if len(all) > 1 {
		out = &jsonschema.Schema{AnyOf: all}
	} else if out.Title != "" {
		out.Description = strings.TrimSpace(strings.ToUpper(out.Title[:1]) + out.Title[1:] + ". " + out.Description)
	}
	out.Version, out.Title, out.Definitions = jsonschema.Version, "What `"+command+"` prints with -o json and -o yaml", definitions
	return out
}

func (s *sources) reflector() *jsonschema.Reflector {
	return &jsonschema.Reflector{Anonymous: true, Mapper: s.special, Namer: nameOf, CommentMap: s.comments}
}

// brackets are the parts of the name of a generic type that a reference cannot have.
var brackets = regexp.MustCompile(`[^A-Za-z0-9]+`)

// nameOf names a type so that those of two packages differ: explain.Gateway is no snapshot.Gateway.
func nameOf(t reflect.Type) string {
	if t.Name() == "" {
		return ""
	}
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	return pkg + "." + strings.Trim(brackets.ReplaceAllString(t.Name(), "_"), "_")
}

// special describes the types that do not look in JSON as they do in Go.
func (s *sources) special(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[time.Time](), reflect.TypeFor[metav1.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[time.Duration]():
		return &jsonschema.Schema{Type: "integer", Description: "nanoseconds"}
	case reflect.TypeFor[snapshot.Severity]():
		return enum(snapshot.Info.String(), snapshot.Warning.String(), snapshot.Error.String())
	case reflect.TypeFor[snapshot.Sync]():
		return enum(snapshot.Unsynced.String(), snapshot.Stale.String(), snapshot.Synced.String())
	case reflect.TypeFor[snapshot.Kind]():
		return &jsonschema.Schema{Type: "string"}
	case reflect.TypeFor[cmdutil.Manifest](), reflect.TypeFor[json.RawMessage]():
		return manifest()
	}
	// Values of the API are those of stored objects, which another version may have written.
	if values := s.values[t.PkgPath()+"."+t.Name()]; t.Kind() == reflect.String && len(values) > 0 && !strings.Contains(t.PkgPath(), "/engine/api/") {
		out := enum(values...)
		out.Description = s.comments[t.PkgPath()+"."+t.Name()]
		return out
	}
	return nil
}

func enum(values ...string) *jsonschema.Schema {
	out := &jsonschema.Schema{Type: "string"}
	for _, value := range values {
		out.Enum = append(out.Enum, value)
	}
	return out
}

// manifest is an object of any kind.
func manifest() *jsonschema.Schema {
	properties := jsonschema.NewProperties()
	for _, name := range []string{"apiVersion", "kind"} {
		properties.Set(name, &jsonschema.Schema{Type: "string"})
	}
	properties.Set("metadata", &jsonschema.Schema{Type: "object"})
	return &jsonschema.Schema{
		Type: "object", Properties: properties, Required: []string{"apiVersion", "kind", "metadata"},
		Description: "An object of Kubernetes. Its fields are those of its kind, which `kubectl explain KIND` describes.",
	}
}
