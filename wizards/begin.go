package wizards

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Begin returns the answers with which an edit begins, from those that were given: all of them
// together with what the object says otherwise; or, where questions follow, only those of parts of the
// spec for which something was given, and what no question is about. It is an error to give a flag for
// a part that flags cannot express.
func (e *Earlier) Begin(given Answers, asks bool) (Answers, error) {
	touched := map[string]bool{}
	all := maps.Clone(e.defaults())
	for i := range choices {
		c := &choices[i]
		chosen := c.chosen(given)
		if len(chosen) == 0 {
			continue
		}
		for _, option := range c.options {
			if !slices.Contains(chosen, option[0]) {
				remove(all, option[1:])
			}
		}
	}
	kept := byPath(all[AnyField])
	for i := range e.form.Fields {
		field := &e.form.Fields[i]
		values, ok := given[field.Flag]
		if !ok {
			continue
		}
		part := partOf(field.Path)
		if field.Unless != "" {
			part = field.Unless
		}
		if _, whole := kept[part]; whole && len(values) > 0 {
			return nil, fmt.Errorf("--%s: spec.%s has settings that flags cannot express; replace all of it with --%s %s and flags, or change it with kubectl edit",
				field.Flag, part, UnsetFlag, part)
		}
		touched[part] = true
		e.form.replace(all, field, part, values)
	}
	all[AnyField] = joinFields(all[AnyField], given[AnyField])
	if !asks {
		return all, nil
	}
	out := Answers{}
	if len(all[AnyField]) > 0 {
		out[AnyField] = all[AnyField]
	}
	for i := range e.form.Fields {
		field := &e.form.Fields[i]
		if values, ok := all[field.Flag]; ok && (touched[partOf(field.Path)] || touched[field.Unless]) {
			out[field.Flag] = values
		}
	}
	for name, values := range given {
		if strings.HasPrefix(name, "?") {
			out[name] = values
		}
	}
	return out, nil
}

// replace sets the values of a field in answers. A flag that says that a part is left out takes away all of it.
func (f *Form) replace(answers Answers, field *Field, part string, values []string) {
	for i := range f.Fields {
		other := &f.Fields[i]
		if other.Unless == part || field.Unless == part && partOf(other.Path) == part {
			delete(answers, other.Flag)
		}
	}
	answers[field.Flag] = values
}

func remove(answers Answers, flags []string) {
	for _, flag := range flags {
		delete(answers, flag)
	}
}

// joinFields are values of AnyField, of which the later ones replace those of the same path.
func joinFields(before, later []string) []string {
	replaced := byPath(later)
	var out []string
	for _, given := range before {
		path, _, _ := strings.Cut(given, "=")
		if _, again := replaced[path]; !again {
			out = append(out, given)
		}
	}
	return append(out, later...)
}

// UnsetFlag takes fields away.
const UnsetFlag = "unset"

// Unset proposes the spec without fields, given by their paths below spec.
func (e *Earlier) Unset(paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	object := e.Object.DeepCopy()
	spec, _ := object.Object["spec"].(map[string]any)
	for _, path := range paths {
		if !unset(spec, strings.TrimPrefix(path, "spec.")) {
			return fmt.Errorf("--%s %s: it is not set; what is set: %s", UnsetFlag, path, strings.Join(parts(spec), ", "))
		}
	}
	without, err := NewEarlier(e.form, object)
	if err != nil {
		return err
	}
	e.Defaults = without.Answers
	return nil
}

// unset removes a value from a tree; false if it is not there.
func unset(tree map[string]any, path string) bool {
	head, rest, more := strings.Cut(path, ".")
	if inner, ok := tree[head].(map[string]any); ok && more {
		return unset(inner, rest)
	}
	_, ok := tree[head]
	if ok = ok && !more; ok {
		delete(tree, head)
	}
	return ok
}

// Arguments are the flags that make a spec from that of the edited object.
func (e *Earlier) Arguments(spec map[string]any) ([]string, error) {
	before, _ := e.Object.Object["spec"].(map[string]any)
	was, err := e.form.AnswersFor(before)
	if err != nil {
		return nil, err
	}
	is, err := e.form.AnswersFor(spec)
	if err != nil {
		return nil, err
	}
	var words []string
	flags := Answers{}
	inSpec := parts(spec)
	for _, part := range append(parts(before), slices.DeleteFunc(slices.Clone(inSpec), func(p string) bool { return slices.Contains(parts(before), p) })...) {
		old, _ := get(before, part)
		now, stays := get(spec, part)
		if same(old, now) {
			continue
		}
		changed, lost := e.form.differ(part, was, is)
		if _, there := get(before, part); there && (lost || !stays) {
			words = append(words, "--"+UnsetFlag, part)
			changed = e.form.only(part, is)
		}
		maps.Copy(flags, changed)
		for _, given := range is[AnyField] {
			if strings.HasPrefix(given, part+"=") {
				flags[AnyField] = append(flags[AnyField], given)
			}
		}
	}
	return append(words, e.form.Arguments(flags)...), nil
}

// differ are the flags of a part that changed; lost is true if one went away.
func (f *Form) differ(part string, was, is Answers) (changed Answers, lost bool) {
	changed = Answers{}
	for flag, values := range f.only(part, is) {
		if !slices.Equal(values, was[flag]) {
			changed[flag] = values
		}
	}
	for flag := range f.only(part, was) {
		lost = lost || len(is[flag]) == 0
	}
	_, whole := byPath(was[AnyField])[part]
	_, stays := byPath(is[AnyField])[part]
	return changed, lost || whole && !stays
}

// only are the answers that set a part.
func (f *Form) only(part string, answers Answers) Answers {
	out := Answers{}
	for i := range f.Fields {
		field := &f.Fields[i]
		if field.Unless == "" && partOf(field.Path) == part && len(answers[field.Flag]) > 0 {
			out[field.Flag] = answers[field.Flag]
		}
	}
	return out
}

// Merge proposes what somebody else made of the object meanwhile, with what the answers changed of it
// before. It returns the fields that both changed.
func (e *Earlier) Merge(theirs *Earlier, mine Answers) (both []string) {
	merged := maps.Clone(theirs.Answers)
	mine = maps.Clone(mine)
	maps.DeleteFunc(mine, func(name string, _ []string) bool { return strings.HasPrefix(name, "?") })
	for i := range e.form.Fields {
		field := &e.form.Fields[i]
		if slices.Equal(mine[field.Flag], e.Answers[field.Flag]) {
			continue
		}
		if !slices.Equal(theirs.Answers[field.Flag], e.Answers[field.Flag]) && !slices.Equal(theirs.Answers[field.Flag], mine[field.Flag]) {
			both = append(both, field.Path)
		}
		merged[field.Flag] = mine[field.Flag]
	}
	was, theirFields := byPath(e.Answers[AnyField]), byPath(theirs.Answers[AnyField])
	for path, value := range byPath(mine[AnyField]) {
		if slices.Equal(value, was[path]) {
			continue
		}
		if there, ok := theirFields[path]; ok && !slices.Equal(there, was[path]) {
			both = append(both, path)
		}
		merged[AnyField] = joinFields(merged[AnyField], []string{path + "=" + value[0]})
	}
	maps.DeleteFunc(merged, func(_ string, values []string) bool { return len(values) == 0 })
	theirs.Defaults = merged
	return both
}
