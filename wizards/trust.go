package wizards

import (
	"maps"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// within is whole if a new object is made, and part if one is edited.
func (e *Earlier) within(whole, part string) string {
	if e == nil {
		return whole
	}
	return part
}

// isTrust reports whether a field of a VirtualMesh decides who trusts whom.
func isTrust(path string) bool {
	part := partOf(path)
	return part == "meshes" || part == "mtlsConfig"
}

// trustAgreed is the answer to whether to change who trusts whom.
const trustAgreed = "?trust-changes"

// withTrustOf are answers with what others say on who trusts whom.
func (f *Form) withTrustOf(answers, others Answers) Answers {
	out := maps.Clone(answers)
	for i := range f.Fields {
		if field := &f.Fields[i]; isTrust(field.Path) {
			out[field.Flag] = slices.Clone(others[field.Flag])
		}
	}
	out[AnyField] = slices.DeleteFunc(slices.Clone(out[AnyField]), isTrustField)
	for _, given := range others[AnyField] {
		if isTrustField(given) {
			out[AnyField] = append(out[AnyField], given)
		}
	}
	return out
}

// isTrustField is isTrust of a value of AnyField.
func isTrustField(given string) bool {
	path, _, _ := strings.Cut(given, "=")
	return isTrust(path)
}

// TrustChanges are lines on what an edit of a VirtualMesh changes in who trusts whom; none if it changes nothing.
func (e *Earlier) TrustChanges(s *Session) ([]Line, error) {
	if e == nil || e.form.Kind != snapshot.VirtualMesh {
		return nil, nil
	}
	var out lines
	answers := e.form.withTrustOf(e.Answers, e.complete(s.Answers))
	for _, mesh := range answers["mesh"] {
		if !slices.Contains(e.Answers["mesh"], mesh) {
			out.add(explain.Warning, "  + %s joins", mesh)
		}
	}
	for _, mesh := range e.Answers["mesh"] {
		if !slices.Contains(answers["mesh"], mesh) {
			out.add(explain.Warning, "  - %s leaves", mesh)
		}
	}
	for _, change := range e.form.Changes(e.Answers, answers) {
		if change.Path != "meshes" || len(out) == 0 {
			out.add(explain.Warning, "  ~ %s", change.String())
		}
	}
	if len(out) == 0 {
		return nil, nil
	}
	return slices.Insert(out, 0, Line{explain.Warning, "This changes which meshes trust each other:"}), nil
}

// trustEffects are what the changes of TrustChanges do to certificates and traffic.
func (e *Earlier) trustEffects(s *Session) ([]Line, error) {
	var out lines
	answers := e.form.withTrustOf(e.Answers, e.complete(s.Answers))
	object, err := s.Form.Object(s.Namespace, s.Name, answers)
	if err != nil {
		return nil, err
	}
	preview, err := s.Catalog.Preview(object)
	if err != nil {
		return nil, err
	}
	preview.addEffects(&out)
	return append(out, preview.Warnings()...), nil
}

// agreeOnTrust says what an edit changes in who trusts whom, and asks whether it shall; if not, all
// that decides it becomes as before.
func (e *Earlier) agreeOnTrust(s *Session) error {
	if e == nil || s.has(trustAgreed) {
		return nil
	}
	said, err := e.TrustChanges(s)
	if err != nil || len(said) == 0 {
		return err
	}
	effects, err := e.trustEffects(s)
	if err != nil {
		return err
	}
	s.Show(append(said, effects...))
	answer, err := s.Select(Question{Text: "Change who trusts whom?", Field: "spec.mtlsConfig", Anew: true}, []Option{
		{"no", "no, keep members and trust as they are"}, {"yes", "yes"},
	}, "no")
	if err != nil {
		return err
	}
	s.Answers[trustAgreed] = []string{answer}
	if answer == "no" {
		s.Answers = e.form.withTrustOf(s.Answers, e.Answers)
	}
	return nil
}
