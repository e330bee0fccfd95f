package wizards

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/engine/explain"
)

// Change is a part of a spec that differs between two versions of an object.
type Change struct {
	// Path of the field below spec.
	Path string
	// Before and After are its values as flags have them; empty if it is not set.
	Before, After string
}

// String is "policy.requestTimeout: 3s → 5s".
func (c *Change) String() string {
	return fmt.Sprintf("%s: %s → %s", c.Path, cmp.Or(c.Before, "not set"), cmp.Or(c.After, "not set"))
}

// Changes lists what differs between the answers of two versions, in the order of the form.
func (f *Form) Changes(before, after Answers) []Change {
	var out []Change
	add := func(path string, was, is []string) {
		if !slices.Equal(was, is) {
			out = append(out, Change{path, strings.Join(was, " "), strings.Join(is, " ")})
		}
	}
	for i := range f.Fields {
		field := &f.Fields[i]
		add(cmp.Or(field.Path, "all of "+field.Unless), before[field.Flag], after[field.Flag])
	}
	was, is := byPath(before[AnyField]), byPath(after[AnyField])
	all := maps.Clone(was)
	maps.Copy(all, is)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		add(path, was[path], is[path])
	}
	return out
}

// byPath are the values of AnyField by their paths.
func byPath(given []string) map[string][]string {
	out := map[string][]string{}
	for _, one := range given {
		path, value, _ := strings.Cut(one, "=")
		out[path] = []string{value}
	}
	return out
}

// ChangesOf lists what an object says otherwise than the edited one.
func (e *Earlier) ChangesOf(object *unstructured.Unstructured) ([]Change, error) {
	spec, _ := object.Object["spec"].(map[string]any)
	answers, err := e.form.AnswersFor(spec)
	if err != nil {
		return nil, err
	}
	before, _ := e.Object.Object["spec"].(map[string]any)
	was, err := e.form.AnswersFor(before)
	if err != nil {
		return nil, err
	}
	return e.form.Changes(was, answers), nil
}

// sayChanges says what an object says otherwise than the edited one.
func (e *Earlier) sayChanges(s *Session, object *unstructured.Unstructured) error {
	if e == nil {
		return nil
	}
	changes, err := e.ChangesOf(object)
	if err != nil {
		return err
	}
	s.Show(Changed(changes))
	if s.has(trustAgreed) {
		return nil
	}
	said, err := e.TrustChanges(s)
	s.Show(said)
	return err
}

// Changed are lines on changes, one for each.
func Changed(changes []Change) []Line {
	var out lines
	if len(changes) == 0 {
		out.add(explain.OK, "Nothing changes in the object.")
		return out
	}
	out.add(explain.OK, "What changes in the object:")
	for i := range changes {
		out.add(explain.OK, "  %s", changes[i].String())
	}
	return out
}

// SameSpec reports whether two objects have the same spec.
func SameSpec(a, b *unstructured.Unstructured) bool { return same(a.Object["spec"], b.Object["spec"]) }
