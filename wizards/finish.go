package wizards

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"al.essio.dev/pkg/shellescape"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// Decision is what to do with a manifest.
type Decision string

// The decisions.
const (
	Apply  Decision = "apply"
	Save   Decision = "save"
	Cancel Decision = "cancel"
)

// Outcome is the end of a wizard.
type Outcome struct {
	Object   *unstructured.Unstructured
	Preview  *Preview
	Decision Decision
	// File to save to.
	File string
}

// Finish shows the manifest and what it would change, and asks what to do with it.
// Without canApply there is no cluster to apply it to.
func (s *Session) Finish(canApply bool) (*Outcome, error) {
	object, err := s.Object()
	if err != nil {
		return nil, err
	}
	out := &Outcome{Object: object}
	var edits []func()
	for {
		data, err := YAML(out.Object)
		if err != nil {
			return nil, err
		}
		if out.Preview, err = s.Catalog.Preview(out.Object); err != nil {
			return nil, err
		}
		s.Say("\n" + string(data) + "\n")
		if err := s.Edits.sayChanges(s, out.Object); err != nil {
			return nil, err
		}
		s.Show(append(out.Preview.Summary(), Line{}))
		before, undo := out.Object, s.keep()
		again, err := s.decide(out, string(data), canApply, len(edits) > 0)
		switch {
		case errors.Is(err, ErrBack) && len(edits) > 0:
			edits[len(edits)-1]()
			edits = edits[:len(edits)-1]
		case err != nil || !again:
			return out, err
		case out.Object != before:
			edits = append(edits, func() { undo(); out.Object = before })
		}
	}
}

// decide asks until something is decided; again is true after an edit. Edited says that there was one before.
func (s *Session) decide(out *Outcome, manifest string, canApply, edited bool) (again bool, err error) {
	options := []Option{
		{"save", "save it to a file"}, {"full", "show every change in the clusters"},
		{"edit", "edit it"}, {"cancel", "cancel"},
	}
	history, _ := s.Prompter.(*History)
	if history != nil && history.changeable() {
		text := "change an answer"
		if edited {
			text += " (what you edited in the manifest is lost)"
		}
		options = slices.Insert(options, 2, Option{"change", text})
	}
	if canApply {
		options = append([]Option{{"apply", "apply it to the management cluster"}}, options...)
	}
	preset := options[0].Value
	if out.Preview.HasErrors() || s.Edits.same(out.Object) {
		preset = "cancel"
	}
	for {
		choice, err := s.Select(Question{Text: "What next?"}, options, preset)
		if err != nil {
			return false, err
		}
		switch choice {
		case "apply":
			out.Decision = Apply
		case "cancel":
			out.Decision = Cancel
		case "save":
			out.File, err = s.Input(Question{Text: "To which file?"}, cmp.Or(s.File, s.Name+".yaml"), func(name string) error {
				if name == "" {
					return fmt.Errorf("a file name is required")
				}
				return nil
			})
			if errors.Is(err, ErrBack) {
				preset = choice
				continue
			}
			out.Decision = Save
			return false, err
		case "full":
			s.Say(clean(out.Preview.Full()) + "\n")
			preset = choice
			continue
		case "change":
			if err = history.Change(); errors.Is(err, ErrBack) {
				preset = choice
				continue
			}
			return false, err
		case "edit":
			return s.editManifest(out, manifest)
		}
		return false, nil
	}
}

// editManifest lets the user edit the manifest until it is valid, or until they
// discard the changes.
func (s *Session) editManifest(out *Outcome, manifest string) (changed bool, err error) {
	text := manifest
	for {
		edited, err := s.Edit(text)
		if err == nil {
			text = edited
			var object *unstructured.Unstructured
			if object, err = s.useManifest(text); err == nil {
				out.Object = object
				return true, nil
			}
		}
		s.Say(clean(err.Error()) + "\n")
		choice, err := s.Select(Question{Text: "The manifest is not valid. What next?"},
			[]Option{{"again", "edit it again"}, {"drop", "discard the changes"}}, "again")
		if errors.Is(err, ErrBack) {
			choice, err = "drop", nil
		}
		if err != nil || choice == "drop" {
			return err == nil, err
		}
	}
}

// useManifest replaces the answers by those of an edited manifest.
func (s *Session) useManifest(text string) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict([]byte(text), &object.Object); err != nil {
		return nil, fmt.Errorf("invalid YAML: %w", err)
	}
	info := s.Form.Kind.Info()
	if object.GetKind() != info.Kind || object.GetAPIVersion() != info.GroupVersion().String() {
		return nil, fmt.Errorf("apiVersion and kind must remain %s and %s", info.GroupVersion(), info.Kind)
	}
	if err := s.Check(object); err != nil {
		return nil, err
	}
	if renamed := object.GetName() != s.Name || object.GetNamespace() != s.Namespace; s.Edits != nil && renamed {
		return nil, fmt.Errorf("%s %s: its name and namespace must remain; for another object: meshctl create %s", s.Form.Kind, s.Name, strings.ToLower(s.Form.Kind.String()))
	}
	if s.Edits == nil && s.Catalog.Exists(s.Form.Kind, object.GetNamespace(), object.GetName()) {
		return nil, fmt.Errorf("%s %s already exists in namespace %s; choose another name", s.Form.Kind, object.GetName(), object.GetNamespace())
	}
	spec, _ := object.Object["spec"].(map[string]any)
	answers, err := s.Form.AnswersFor(spec)
	if err != nil {
		return nil, err
	}
	s.Answers, s.Name, s.Namespace = answers, object.GetName(), object.GetNamespace()
	if s.Edits != nil {
		// Of what an editor took away, nothing comes back.
		s.Edits.whole = true
	}
	return s.Object()
}

// Arguments are the answers as arguments of a command, in the order of the form.
func (f *Form) Arguments(answers Answers) []string {
	var out []string
	for i := range f.Fields {
		field := &f.Fields[i]
		for _, value := range answers[field.Flag] {
			switch {
			case field.codec.value == "" && value == "true":
				out = append(out, "--"+field.Flag)
			case field.codec.value == "" || strings.HasPrefix(value, "-"):
				out = append(out, "--"+field.Flag+"="+value)
			default:
				out = append(out, "--"+field.Flag, value)
			}
		}
	}
	for _, value := range answers[AnyField] {
		out = append(out, "--"+AnyField, value)
	}
	return out
}

// Quote quotes a command for a shell.
func Quote(words []string) string { return shellescape.QuoteCommand(words) }
