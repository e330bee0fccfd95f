package wizards

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine/admission"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Session is one run of a wizard. It does not ask for what is in Answers.
type Session struct {
	Prompter
	Form    *Form
	Catalog *Catalog
	Checker *admission.Checker
	// Namespace of the object.
	Namespace string
	// Name of the object; asked for if empty.
	Name string
	// Answers so far. They remain if Ask fails.
	Answers Answers
	// Leave: esc at the first question ends Ask with ErrBack.
	Leave bool
	// Edits is the object to edit; nil to make a new one.
	Edits *Earlier
	// File to propose to save to; NAME.yaml if empty.
	File string
	// Within is the step of the wizard that this one is a part of; nil if it stands alone.
	Within *Step
}

// Ask asks for what is missing, and then what follows; nil if nothing does. With esc,
// the user goes back.
func (s *Session) Ask(then func() error) error {
	asks := s.Prompter
	history := NewHistory(asks, s.keep)
	history.Leave, history.heading = s.Leave, &heading{title: s.Title()}
	s.Prompter = history
	defer func() { s.Prompter = asks }()
	if keeps := s.Edits.Keeps(); keeps != "" {
		s.Say(clean(fmt.Sprintf("Stays as it is, because no question is about it: %s.\n", keeps)))
	}
	sections := sectionsOf(s, then)
	names := namesOf(sections)
	return history.Run(func() error {
		for _, one := range sections {
			history.step = stepOf(names, one.name, s.Within)
			if err := one.ask(s); err != nil {
				return err
			}
		}
		return nil
	})
}

// keep returns what restores all that was answered.
func (s *Session) keep() func() {
	answers, name, namespace, whole := maps.Clone(s.Answers), s.Name, s.Namespace, s.Edits != nil && s.Edits.whole
	return func() {
		s.Answers, s.Name, s.Namespace = maps.Clone(answers), name, namespace
		if s.Edits != nil {
			s.Edits.whole = whole
		}
	}
}

// Check reports what the CRD of the object rejects.
func (s *Session) Check(object *unstructured.Unstructured) error {
	violations, err := s.Checker.Check(object)
	if err != nil {
		return err
	}
	return admission.Error(violations)
}

// CheckFlags is Check of an object that was made of flags, for who typed these: it names the flag instead of the field.
func (s *Session) CheckFlags(object *unstructured.Unstructured) error {
	complaints, err := s.Checker.Check(object)
	if err != nil {
		return err
	}
	for i := range complaints {
		c := &complaints[i]
		if flag := s.Form.flagOf(c.Field, s.Answers); flag != "" {
			c.Field = "--" + flag
		}
	}
	return admission.Error(slices.Compact(complaints))
}

// Object makes the object that the answers ask for.
func (s *Session) Object() (*unstructured.Unstructured, error) {
	object, err := s.Form.Object(s.Namespace, s.Name, s.Edits.complete(s.Answers))
	if err == nil && s.Edits != nil {
		s.Edits.label(object)
	}
	return object, err
}

// validate rejects an answer with which the API server would reject the object, but not for what is wrong without it,
// too: the questions that follow are about that.
func (s *Session) validate(flag string, values []string) error {
	answers := maps.Clone(s.Answers)
	delete(answers, flag)
	name := cmp.Or(s.Name, unnamed)
	before, err := s.Form.Object(s.Namespace, name, answers)
	if err != nil {
		return err
	}
	answers[flag] = values
	object, err := s.Form.Object(s.Namespace, name, answers)
	if err != nil {
		return err
	}
	return checkChange(s, before, object)
}

// unnamed is the name of an object until it has one.
const unnamed = "unnamed"

// checkChange is Check without what is wrong with the object of before, too.
func checkChange(s *Session, before, object *unstructured.Unstructured) error {
	known, err := s.Checker.Check(before)
	if err != nil {
		return err
	}
	found, err := s.Checker.Check(object)
	if err != nil {
		return err
	}
	return admission.Error(slices.DeleteFunc(found, func(c admission.Complaint) bool { return slices.Contains(known, c) }))
}

func (s *Session) has(flag string) bool { _, ok := s.Answers[flag]; return ok }

// question is the one about a flag.
func (s *Session) question(flag, text, help string) Question {
	q := Question{Text: text, Help: help}
	if f := s.Form.Field(flag); f != nil {
		path := f.Path
		if f.Unless != "" {
			path = f.Unless
		}
		q.Field = "spec." + path
	}
	return q
}

// input asks for the value of a flag; an empty line leaves out an optional one.
func (s *Session) input(flag, text, preset string, optional bool) error {
	if s.has(flag) {
		return nil
	}
	if values := s.Edits.values(flag); len(values) > 1 && !s.Form.Field(flag).codec.commas {
		// One line is one value.
		s.Say(clean(fmt.Sprintf("Stays as it is: %s, with %s; to change it, edit the manifest at the end.\n", s.question(flag, "", "").Field, snapshot.Count(len(values), "value"))))
		s.record(flag, slices.Clone(values)...)
		return nil
	}
	q := s.question(flag, text, "")
	if s.Edits.leavesOut(flag) {
		preset, optional = "", true
	}
	s.Edits.recall(s.Prompter, q, s.Edits.defaults()[flag]...)
	answer, err := s.Input(q, preset, func(answer string) error {
		switch {
		case answer == "" && optional:
			return nil
		case answer == "":
			return errors.New("a value is required")
		}
		return s.validate(flag, []string{answer})
	})
	if err != nil {
		return err
	}
	s.record(flag, answer)
	return nil
}

// record stores an answer, also an empty one, so that it is not asked for again.
func (s *Session) record(flag string, values ...string) {
	s.Answers[flag] = slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// choose asks for one value of a flag; "" leaves it out.
func (s *Session) choose(flag, text string, options []Option, preset string) error {
	if s.has(flag) {
		return nil
	}
	q, before := s.question(flag, text, ""), s.Edits.values(flag)
	if s.Edits != nil {
		options = withValues(options, before)
		if s.Edits.leavesOut(flag) && !slices.ContainsFunc(options, func(o Option) bool { return o.Value == "" }) {
			options = slices.Insert(slices.Clip(options), 0, Option{"", "not set, as now"})
		}
		s.Edits.recall(s.Prompter, q, append(slices.Clone(before), "")[0])
	}
	answer, err := s.Select(q, options, preset)
	if err != nil {
		return err
	}
	s.record(flag, answer)
	return nil
}

// pick asks for any number of values of a flag; those of preset are selected at
// first.
func (s *Session) pick(flag, text string, options []Option, least int, preset ...string) error {
	if s.has(flag) {
		return nil
	}
	q, before := s.question(flag, text, ""), s.Edits.values(flag)
	options = withValues(options, before)
	s.Edits.recall(s.Prompter, q, before...)
	if s.Edits != nil {
		preset = before
	}
	if len(options) == 0 && least > 0 {
		return fmt.Errorf("%s Nothing was discovered to choose from. Register clusters with `meshctl init`, or set --%s", text, flag)
	}
	for {
		selected, err := s.MultiSelect(q, options, preset)
		if err != nil {
			return err
		}
		if len(selected) < least {
			s.Say("Choose at least one.\n")
			continue
		}
		values := inOrder(selected, before)
		if f := s.Form.Field(flag); f != nil && len(selected) > 0 {
			if err := s.validate(flag, values); err != nil {
				s.Say(clean(err.Error()) + "\n")
				continue
			}
		}
		s.record(flag, values...)
		return nil
	}
}

// inOrder has the values that were there before first, in their order.
func inOrder(values, before []string) []string {
	var out []string
	for _, list := range [][]string{before, values} {
		for _, v := range list {
			if slices.Contains(values, v) && !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// askChoice asks how to continue; the answer is not a flag.
func (s *Session) askChoice(name, field, text string, options []Option) (string, error) {
	if was := s.Answers["?"+name]; len(was) > 0 {
		return was[0], nil
	}
	q := Question{Text: text, Field: field}
	s.Edits.recallChoice(s.Prompter, q, name)
	answer, err := s.Select(q, options, options[0].Value)
	if err == nil {
		s.Answers["?"+name] = []string{answer}
	}
	return answer, err
}

func (s *Session) askName() error {
	if s.Edits != nil {
		return nil
	}
	if s.Name != "" {
		taken := s.nameTaken(s.Name)
		if taken == nil {
			return nil
		}
		s.Say(clean(taken.Error()) + "\n")
	}
	name, err := s.Input(Question{Text: "Name of the object?", Field: "metadata.name"}, s.suggestion(), func(name string) error {
		if err := s.nameTaken(name); err != nil {
			return err
		}
		object, err := s.Form.Object(s.Namespace, name, s.Answers)
		if err != nil {
			return err
		}
		if s.Form.Missing(s.Answers) == "" {
			return s.Check(object)
		}
		before := object.DeepCopy()
		before.SetName(unnamed)
		return checkChange(s, before, object)
	})
	if err == nil {
		s.Name = name
	}
	return err
}

// nameTaken is the error for a name that an object already has.
func (s *Session) nameTaken(name string) error {
	if s.Catalog.Exists(s.Form.Kind, s.Namespace, name) {
		return fmt.Errorf("%s %s already exists in namespace %s; choose another name, or change it with: meshctl edit %s %s -n %s",
			s.Form.Kind, name, s.Namespace, strings.ToLower(s.Form.Kind.String()), name, s.Namespace)
	}
	return nil
}

// suggestion is a name that no object has.
func (s *Session) suggestion() string {
	stem := strings.ToLower(s.Form.Kind.String())
	if values, of := s.Answers["destination"], s.Form.Kind; len(values) > 0 && (of == snapshot.TrafficPolicy || of == snapshot.AccessPolicy) {
		stem = strings.Split(values[0], ".")[0] + "-" + map[snapshot.Kind]string{snapshot.TrafficPolicy: "traffic", snapshot.AccessPolicy: "access"}[s.Form.Kind]
	}
	switch s.Form.Kind {
	case snapshot.VirtualMesh:
		stem = "virtual-mesh"
	case snapshot.VirtualDestination:
		stem, _, _ = strings.Cut(firstOf(s.Answers["hostname"]), ".")
	case snapshot.ServiceDependency:
		stem = "dependency"
	case snapshot.AccessLogRecord:
		stem = "access-log"
	case snapshot.RoleBinding:
		_, stem, _ = strings.Cut(firstOf(s.Answers["role"]), "/")
	}
	name := stem
	for i := 2; s.Catalog.Exists(s.Form.Kind, s.Namespace, name); i++ {
		name = stem + "-" + strconv.Itoa(i)
	}
	return name
}

// decodeSpec decodes the spec as far as it is known.
func (s *Session) decodeSpec(into any) error {
	spec, err := s.Form.Spec(s.Answers)
	if err != nil {
		return err
	}
	for part := range selectorParts { // other kinds have other names for them
		if name := s.Form.selectorPart(part); name != part {
			if value, ok := spec[name]; ok {
				spec[part] = value
			}
		}
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(spec, into)
}

// sayDestinations says which destinations the answers select.
func (s *Session) sayDestinations() error {
	var spec networkingv1.AccessPolicySpec // the selectors are the same in all kinds
	if err := s.decodeSpec(&spec); err != nil {
		return err
	}
	var names []string
	for d := range s.Catalog.Plan.Destinations.All() {
		if inventory.SelectsDestination(spec.DestinationSelector, d.Destination) {
			ref := d.Destination.Spec.KubeService.Ref
			names = append(names, ref.Name+"."+ref.Namespace+"."+ref.ClusterName)
		}
	}
	s.sayMatches(names, s.Catalog.Plan.Destinations.Len(), "destination")
	return nil
}

// sayCallers says which workloads the answers select as callers.
func (s *Session) sayCallers() error {
	var traffic networkingv1.TrafficPolicySpec
	var access networkingv1.AccessPolicySpec
	var err error
	if s.Form.Kind != snapshot.AccessPolicy {
		err = s.decodeSpec(&traffic)
	} else {
		err = s.decodeSpec(&access)
	}
	if err != nil {
		return err
	}
	var names []string
	for _, w := range s.Catalog.Plan.Workloads {
		k := w.Spec.Kubernetes
		if k != nil && inventory.SelectsWorkload(traffic.SourceSelector, k) && inventory.SelectsIdentity(access.SourceSelector, k) {
			names = append(names, k.Controller.Name+"."+k.Controller.Namespace+"."+k.Controller.ClusterName)
		}
	}
	s.sayMatches(names, len(s.Catalog.Plan.Workloads), "workload")
	return nil
}

// maxNames bounds the names listed in one line.
const maxNames = 5

func (s *Session) sayMatches(names []string, all int, what string) {
	line := fmt.Sprintf("This selects %d of %s", len(names), snapshot.Count(all, what))
	if len(names) > 0 {
		line += ": " + strings.Join(names[:min(len(names), maxNames)], ", ")
	}
	if len(names) > maxNames {
		line += ", …"
	}
	s.Say(clean(line) + "\n")
}
