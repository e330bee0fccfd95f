// Package admission says what an API server would say to a custom resource of
// meshctl: it runs the CustomResourceDefinitions of engine/api/crds through the
// API server's own code, so that a mistake gets the same sentence before there
// is a server as from the server itself.
package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	openapi "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	metavalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/meshctl/meshctl/engine/api/crds"
)

// Complaint is one reason why an API server would refuse an object.
type Complaint struct {
	// Field is the path, such as spec.policy.requestTimeout.
	Field string
	// Sentence says what is wrong with it, in the words of the definition.
	Sentence string
}

// String is field and sentence in one line.
func (c Complaint) String() string {
	if c.Field == "" {
		return c.Sentence
	}
	return c.Field + ": " + c.Sentence
}

// Error makes one error of complaints; nil of none.
func Error(complaints []Complaint) error {
	var errs []error
	for _, c := range complaints {
		errs = append(errs, errors.New(c.String()))
	}
	return errors.Join(errs...)
}

// Checker checks objects. It makes itself ready for a kind when the first
// object of it comes, which takes a tenth of a second or so. It may be used
// from several goroutines.
type Checker struct {
	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]*kind
}

// kind is a definition, ready to check objects.
type kind struct {
	structural *structural.Structural
	rules      *cel.Validator
	openapi    openapi.SchemaValidator
}

// NewChecker reads the definitions.
func NewChecker() *Checker { return &Checker{kinds: map[schema.GroupVersionKind]*kind{}} }

// Check lists what an API server would refuse in an object: a name that
// cannot be, fields that the kind does not have, values of a wrong type or out
// of bounds, and broken rules. No complaints mean that it would be taken. The
// error says that the kind is not one of meshctl's.
func (c *Checker) Check(object *unstructured.Unstructured) ([]Complaint, error) {
	k, err := c.kind(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	// Pruning changes what it is given.
	content := object.DeepCopy().Object
	complaints := unknownFields(content, k.structural)
	problems := metavalidation.ValidateObjectMetaAccessor(object, true, metavalidation.NameIsDNSSubdomain, field.NewPath("metadata"))
	shape := openapi.ValidateCustomResource(nil, content, k.openapi)
	problems = append(problems, shape...)
	problems = append(problems, listtype.ValidateListSetsAndMaps(nil, k.structural, content)...)
	// As the API server does: rules are for objects of the right shape.
	if len(shape) == 0 && k.rules != nil {
		broken, _ := k.rules.Validate(context.Background(), nil, k.structural, content, nil, celconfig.RuntimeCELCostBudget)
		problems = append(problems, broken...)
	}
	for _, p := range problems {
		complaints = append(complaints, Complaint{Field: p.Field, Sentence: sentence(p)})
	}
	slices.SortStableFunc(complaints, func(a, b Complaint) int { return strings.Compare(a.Field, b.Field) })
	return slices.Compact(complaints), nil
}

// sentence is an error without its path, in fewer words where the rule has a
// sentence of its own.
func sentence(e *field.Error) string {
	if name, isText := e.BadValue.(string); isText && e.Type == field.ErrorTypeInvalid && e.Field == "metadata.name" {
		return fmt.Sprintf("%.63q is no name: one has lower-case letters, digits, - and . only, begins and ends with a letter or digit, and has at most 253 characters", name)
	}
	switch e.Type {
	case field.ErrorTypeInvalid, field.ErrorTypeTypeInvalid:
		// "in body" is about requests, of which the reader knows nothing.
		return strings.ReplaceAll(strings.TrimPrefix(e.Detail, e.Field+" "), "in body ", "")
	}
	return e.ErrorBody()
}

// unknownFields complains of fields that the kind does not have.
func unknownFields(content map[string]any, s *structural.Structural) []Complaint {
	unknown := pruning.PruneWithOptions(content, s, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	complaints := make([]Complaint, 0, len(unknown))
	for _, path := range unknown {
		complaints = append(complaints, Complaint{Field: path, Sentence: fmt.Sprintf("unknown field %q; correct the spelling or the indentation", path)})
	}
	return complaints
}

func (c *Checker) kind(gvk schema.GroupVersionKind) (*kind, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kinds[gvk]; k != nil {
		return k, nil
	}
	definitions, err := crds.All()
	if err != nil {
		return nil, err
	}
	for _, crd := range definitions {
		for i := range crd.Spec.Versions {
			version := &crd.Spec.Versions[i]
			if crd.Spec.Group != gvk.Group || crd.Spec.Names.Kind != gvk.Kind || version.Name != gvk.Version {
				continue
			}
			k, err := newKind(version)
			if err != nil {
				return nil, fmt.Errorf("%s: its definition cannot be used: %w", gvk, err)
			}
			c.kinds[gvk] = k
			return k, nil
		}
	}
	return nil, fmt.Errorf("%s is not a kind of meshctl; correct apiVersion and kind", gvk)
}

func newKind(version *apiextensionsv1.CustomResourceDefinitionVersion) (*kind, error) {
	var definition apiextensions.CustomResourceValidation
	if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(version.Schema, &definition, nil); err != nil {
		return nil, err
	}
	s, err := structural.NewStructural(definition.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	validator, _, err := openapi.NewSchemaValidator(definition.OpenAPIV3Schema)
	if err != nil {
		return nil, err
	}
	return &kind{structural: s, rules: cel.NewValidator(s, true, celconfig.PerCallLimit), openapi: validator}, nil
}
