package wizards

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/rbac"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// chosenScopes is the answer to what a Role lets write.
const chosenScopes = "?scopes"

// askScopes asks what a Role lets write.
func askScopes(s *Session) error {
	set := slices.ContainsFunc(scopesOfRole(), func(k scopeOf) bool { return s.Form.isSet(k.part, s.Answers) })
	if !s.has(chosenScopes) && s.Edits == nil && set {
		return nil
	}
	var options []Option
	var before []string
	for _, k := range scopesOfRole() {
		if s.Form.isSet(k.part, s.Answers) {
			continue // given, or kept as it is
		}
		options = append(options, Option{k.part, k.text})
		if s.Form.isSet(k.part, s.Edits.defaults()) {
			before = append(before, k.part)
		}
	}
	for !s.has(chosenScopes) {
		q := Question{Text: "What may be written?", Field: "spec"}
		s.Edits.recall(s.Prompter, q, before...)
		selected, err := s.MultiSelect(q, options, nil)
		if err != nil {
			return err
		}
		if len(selected) > 0 || set || s.Edits != nil && len(before) == 0 {
			s.Answers[chosenScopes] = selected
			break
		}
		s.Say("Choose at least one: a Role without a scope allows nothing.\n")
	}
	return nil
}

// askReach asks for each kind that a Role lets write, how far.
func askReach(s *Session) error {
	for _, k := range scopesOfRole() {
		if !slices.Contains(s.Answers[chosenScopes], k.part) {
			continue
		}
		for _, flag := range k.flags {
			least := 1
			if k.part == "virtualDestinationScopes" || s.Edits.leavesOut(flag) {
				least = 0
			}
			if err := s.pick(flag, questionsOfScopes[flag], s.Catalog.scopeOptions(flag), least); err != nil {
				return err
			}
		}
	}
	return nil
}

// questionsOfScopes are those for the flags of scopes.
var questionsOfScopes = map[string]string{
	"tp-actions":      "Which fields of TrafficPolicies?",
	"tp-services":     "TrafficPolicies for which services?",
	"tp-callers":      "For requests of which callers?",
	"ap-services":     "AccessPolicies for which services?",
	"ap-callers":      "Which callers may they name?",
	"vm-actions":      "Which fields of VirtualMeshes?",
	"vm-mesh":         "Which meshes may be members?",
	"vd-virtual-mesh": "In which VirtualMeshes may VirtualDestinations be visible?",
	"vd-mesh":         "In which single meshes? Empty means none.",
	"vd-services":     "Which services may be selected to stand behind them?",
	"vd-listed":       "Which services may be listed to stand behind them?",
	"alr-workloads":   "The requests of which workloads may be logged?",
	"wasm-workloads":  "On which workloads may WasmDeployments be?",
}

// scopeOptions are the values to offer for a flag of a scope.
func (c *Catalog) scopeOptions(flag string) []Option {
	var out []Option
	switch flag {
	case "tp-actions":
		return plain(TrafficPolicyActions())
	case "vm-actions":
		return plain(VirtualMeshActions())
	case "vm-mesh", "vd-mesh":
		return append([]Option{{"*/*", "any mesh"}}, c.meshOptions()...)
	case "vd-virtual-mesh":
		out = append(out, Option{"*/*", "any VirtualMesh"})
		for _, vm := range c.Input.Management.VirtualMeshes {
			out = append(out, Option{Value: vm.Namespace + "/" + vm.Name})
		}
		return out
	}
	places := valueCounts{}
	add := func(namespace, cluster string) {
		places[namespace+"."+cluster]++
		places[namespace+"."+anything]++
	}
	for _, k := range c.workloads() {
		add(k.Controller.Namespace, k.Controller.ClusterName)
	}
	for _, k := range c.services() {
		add(k.Ref.Namespace, k.Ref.ClusterName)
	}
	out = append(out, Option{anywhere, "all of them (" + anywhere + ")"})
	for _, o := range places.options("object") {
		out = append(out, Option{Value: o.Value})
	}
	return out
}

func plain(values []string) []Option {
	out := make([]Option, 0, len(values))
	for _, v := range values {
		out = append(out, Option{Value: v})
	}
	return out
}

// askWhichRole asks which Role is given.
func askWhichRole(s *Session) error {
	if s.has("role") {
		return nil
	}
	var options []Option
	for _, r := range s.Catalog.Input.Management.Roles {
		if r.Namespace == s.Catalog.Input.Management.Namespace {
			options = append(options, Option{Value: r.Namespace + "/" + r.Name})
		}
	}
	if len(options)+len(s.Edits.values("role")) == 0 {
		return errors.New("there is no Role to give; make one with `meshctl create role`")
	}
	return s.choose("role", "Which Role?", options, "")
}

// askSubjects asks for one subject after the other.
func askSubjects(s *Session) error {
	if s.has("subject") {
		return nil
	}
	before := s.Edits.values("subject")
	var subjects []string
	for n := 1; ; n++ {
		text := "Who gets it? Such as user=ada, group=operators or serviceaccount=ci/deployer"
		if n > 1 {
			text = fmt.Sprintf("Who else, besides %s? Empty means nobody.", snapshot.Count(len(subjects), "subject"))
		}
		answer, err := s.step(n, "subject", func() (string, error) {
			q := s.question("subject", text, "")
			if n <= len(before) {
				s.Edits.recall(s.Prompter, q, before[n-1])
			}
			return s.Input(q, "", func(answer string) error {
				switch {
				case answer == "" && n > 1:
					return nil
				case answer == "":
					return errors.New("a value is required")
				}
				return s.validate("subject", append(slices.Clone(subjects), answer))
			})
		})
		if err != nil {
			return err
		}
		if answer == "" {
			break
		}
		subjects = append(subjects, answer)
	}
	s.record("subject", subjects...)
	endSteps(s)
	return nil
}

// notesOnRole are sentences about scopes of a Role that do nothing.
func notesOnRole(role *rbacv1.Role) []string {
	var out []string
	for _, s := range rbac.Scopes(role) {
		if !s.Allows() {
			out = append(out, fmt.Sprintf("%s allows nothing: it has no %s", s.Name, strings.Join(s.Empty(), " and no ")))
		}
	}
	return out
}
