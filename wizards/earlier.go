package wizards

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Earlier is an object that a Session edits. Each question has as its default what the object says;
// what no question is about stays as it is.
type Earlier struct {
	// Object as it is stored.
	Object *unstructured.Unstructured
	// Answers that make its spec.
	Answers Answers
	// Defaults are the answers to propose; those of Answers if nil.
	Defaults Answers

	form *Form
	// whole: the answers are those of a whole manifest, to which nothing is added.
	whole bool
}

// NewEarlier finds the answers that make the spec of an object.
func NewEarlier(form *Form, object *unstructured.Unstructured) (*Earlier, error) {
	spec, _ := object.Object["spec"].(map[string]any)
	answers, err := form.AnswersFor(spec)
	if err != nil {
		return nil, fmt.Errorf("%s %s/%s: %w", form.Kind, object.GetNamespace(), object.GetName(), err)
	}
	e := &Earlier{Object: object, Answers: answers, form: form}
	for _, c := range choices {
		c.part = form.selectorPart(c.part)
		if len(c.chosen(answers)) == 1 || !form.isSet(c.part, answers) {
			continue
		}
		// The questions are about exactly one of these, and would lose the others.
		for _, part := range parts(spec) {
			if part != c.part {
				continue
			}
			value, _ := get(spec, part)
			if err := form.keepPart(answers, part, value); err != nil {
				return nil, err
			}
		}
	}
	return e, nil
}

// choice is a question of which each answer has flags of its own.
type choice struct {
	name, part string
	// options in the order of their flags; one without flags is chosen if no other one is.
	options [][]string
}

// choices are those of all forms.
var choices = []choice{
	{"destinations", "destinationSelector", [][]string{{"names", "destination"}, {"matcher", "destination-namespaces", "destination-clusters", "destination-labels"}, {"all"}}},
	{"sources", "sourceSelector", [][]string{{"accounts", "source-account"}, {"matcher", "source-namespaces", "source-clusters", "source-labels"}, {"all"}}},
	{"workloads", "workloadSelectors", [][]string{{"matcher", "workload-namespaces", "workload-clusters", "workload-labels"}, {"all"}}},
	{"visible", "meshList", [][]string{{"joined", "virtual-mesh"}, {"meshes", "mesh"}}},
	{"behind", "localized", [][]string{{"ordered", "service"}, {"nearest", "nearest"}, {"matcher", "nearest-namespaces", "nearest-clusters", "nearest-labels"}}},
	{"requests", "httpRequestMatchers", [][]string{{"some", "match"}, {"all"}}},
	{"federation", "federation.selectors", [][]string{{"all", "federate"}, {"names", "federate-destination"}, {"matcher", "federate-namespaces", "federate-clusters", "federate-labels"}, {"none"}}},
	{"fault", "policy.faultInjection", [][]string{{"delay", "delay"}, {"abort", "abort"}}},
	{"csrf", "policy.csrf", [][]string{{"csrf", "csrf"}, {"csrf-shadow", "csrf-shadow"}}},
	{actionFlag, actionFlag, [][]string{{deny, actionFlag}, {allow}}},
}

// chosen are the options of which a flag is given.
func (c *choice) chosen(answers Answers) []string {
	var out []string
	for _, option := range c.options {
		if slices.ContainsFunc(option[1:], func(flag string) bool { return len(answers[flag]) > 0 }) {
			out = append(out, option[0])
		}
	}
	return out
}

// defaults are the answers to propose; none if nothing is edited.
func (e *Earlier) defaults() Answers {
	switch {
	case e == nil:
		return nil
	case e.Defaults != nil:
		return e.Defaults
	}
	return e.Answers
}

// kept are the answers that no question asks for: parts of the spec that flags cannot express.
func (e *Earlier) kept() []string { return e.defaults()[AnyField] }

// values are the elements of the default of a flag.
func (e *Earlier) values(flag string) []string {
	values := e.defaults()[flag]
	field := e.fieldOf(flag)
	if field == nil || !field.codec.commas {
		return values
	}
	var out []string
	for _, v := range values {
		elements, err := splitCommas(v)
		if err != nil {
			return values
		}
		for _, element := range elements {
			out = append(out, joinCommas([]string{element}))
		}
	}
	return out
}

func (e *Earlier) fieldOf(flag string) *Field {
	if e == nil {
		return nil
	}
	return e.form.Field(flag)
}

// leavesOut reports whether the object has the part of the spec that a flag belongs to, without what the flag sets.
func (e *Earlier) leavesOut(flag string) bool {
	field := e.fieldOf(flag)
	if field == nil || len(e.defaults()[flag]) > 0 || !e.form.isSet(partOf(field.Path), e.defaults()) {
		return false
	}
	for _, c := range choices {
		for _, option := range c.options {
			if slices.Contains(option[1:], flag) {
				return false // it may be chosen instead of what there is
			}
		}
	}
	return true
}

// recall makes the next question of this line propose values, unless another answer was given before.
func (e *Earlier) recall(p Prompter, q Question, values ...string) {
	h, ok := p.(*History)
	if e == nil || !ok || len(values) == 0 {
		return
	}
	if _, answered := h.before[q.Line()]; !answered {
		h.before[q.Line()] = values
	}
}

// recallChoice is recall for a question of choices.
func (e *Earlier) recallChoice(p Prompter, q Question, name string) {
	if e == nil {
		return
	}
	for i := range choices {
		c := &choices[i]
		if c.name != name {
			continue
		}
		chosen := c.chosen(e.defaults())
		if name == actionFlag && !denies(e.defaults()) {
			chosen = []string{allow}
		}
		e.recall(p, q, append(chosen, c.options[len(c.options)-1][0])[0])
	}
}

// withValues adds options for values that were not discovered.
func withValues(options []Option, values []string) []Option {
	for _, v := range values {
		if !slices.ContainsFunc(options, func(o Option) bool { return o.Value == v }) {
			options = append(slices.Clip(options), Option{Value: v, Text: v + " (not discovered)"})
		}
	}
	return options
}

// unasked are flags that no question is about, with the part that they belong to.
func (f *Form) unasked() map[string]string {
	return map[snapshot.Kind]map[string]string{
		snapshot.TrafficPolicy: {
			"retry-on": "policy.retries", "cors-headers": "policy.corsPolicy", "cors-expose-headers": "policy.corsPolicy",
			"cors-credentials": "policy.corsPolicy", "csrf-percent": "policy.csrf",
		},
		snapshot.VirtualMesh:     {"root-secret": "mtlsConfig", "auto-restart-pods": "mtlsConfig", "federate-to": "federation.selectors", "federation-mode": "", "flat-network": "", "hostname-suffix": ""},
		snapshot.AccessPolicy:    {"enforcement": ""},
		snapshot.AccessLogRecord: {"response-trailer": ""},
		snapshot.VirtualDestination: {
			"target-port": "", "protocol": "", "outlier-errors": "localized", "outlier-interval": "localized", "outlier-ejection-time": "localized",
		},
	}[f.Kind]
}

// complete adds the flags of the edited object that no question is about, where what they belong to stays.
func (e *Earlier) complete(answers Answers) Answers {
	if e == nil || e.whole {
		return answers
	}
	out := maps.Clone(answers)
	for flag, part := range e.form.unasked() {
		values := e.defaults()[flag]
		if _, answered := answers[flag]; answered || len(values) == 0 {
			continue
		}
		if part == "" || part != "mtlsConfig" && (e.form.isSet(part, answers) || slices.Contains(answers[chosenActions], part)) ||
			part == "mtlsConfig" && len(answers["trust"]) > 0 && slices.Equal(answers["trust"], e.defaults()["trust"]) {
			out[flag] = values
		}
	}
	return out
}

// Keeps names what stays as it is because no question is about it: "csrf, mirror"; empty if all can be asked for.
func (e *Earlier) Keeps() string {
	if e == nil {
		return ""
	}
	var out []string
	for _, given := range e.kept() {
		path, _, _ := strings.Cut(given, "=")
		out = append(out, strings.TrimPrefix(path, "policy."))
	}
	for flag := range e.form.unasked() {
		if len(e.defaults()[flag]) > 0 {
			out = append(out, strings.TrimPrefix(e.form.Field(flag).Path, "policy."))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

// lastApplied is what kubectl keeps about an object; it is about an older spec.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// label gives an object the labels and annotations of the edited one.
func (e *Earlier) label(object *unstructured.Unstructured) {
	object.SetLabels(e.Object.GetLabels())
	annotations := maps.Clone(e.Object.GetAnnotations())
	delete(annotations, lastApplied)
	if len(annotations) == 0 {
		annotations = nil
	}
	object.SetAnnotations(annotations)
}

// same reports whether an object has the spec of the edited one.
func (e *Earlier) same(object *unstructured.Unstructured) bool {
	return e != nil && same(e.Object.Object["spec"], object.Object["spec"])
}
