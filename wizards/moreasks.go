package wizards

import (
	"errors"
	"fmt"
	"slices"
)

// askHost asks for the name and port by which a VirtualDestination is called.
func askHost(s *Session) error {
	if err := s.input("hostname", "By which name is it called?", "", false); err != nil {
		return err
	}
	return s.input("port", "By which port?", "", false)
}

func askWhereVisible(s *Session) error {
	if !s.has("?visible") && (s.Form.isSet("virtualMesh", s.Answers) || s.Form.isSet("meshList", s.Answers)) {
		return nil
	}
	var joined []Option
	for _, vm := range s.Catalog.Input.Management.VirtualMeshes {
		joined = append(joined, Option{Value: vm.Namespace + "/" + vm.Name})
	}
	choice, err := s.askChoice("visible", "spec.virtualMesh", "Who can call it?", []Option{
		{"joined", "workloads of all members of a VirtualMesh"},
		{"meshes", "workloads of certain meshes"},
	})
	switch {
	case err != nil:
		return err
	case choice == "meshes":
		return s.pick("mesh", "Of which meshes?", s.Catalog.meshOptions(), 1)
	case len(joined)+len(s.Edits.values("virtual-mesh")) == 0:
		return errors.New("there is no VirtualMesh; make one with `meshctl create virtualmesh`, or choose meshes")
	}
	return s.choose("virtual-mesh", "Of which VirtualMesh?", joined, "")
}

func askBehind(s *Session) error {
	if !s.has("?behind") && (s.Form.isSet("static", s.Answers) || s.Form.isSet("localized", s.Answers)) {
		return nil
	}
	choice, err := s.askChoice("behind", "spec.static", "Which services stand behind it?", []Option{
		{"ordered", "certain ones, in an order: each takes over from the one before"},
		{"nearest", "certain ones: callers get the nearest"},
		{"matcher", "services by namespace, cluster or label: callers get the nearest"},
	})
	switch {
	case err != nil:
		return err
	case choice == "ordered":
		return askOrdered(s)
	case choice == "nearest":
		return s.pick("nearest", "Which services? At most one in each cluster.", s.Catalog.serviceOptions(), 1)
	}
	return s.askMatcher("nearest", "services", false)
}

// nobody ends a list that is asked for one after the other.
const nobody = "(no more)"

// askOrdered asks for one service after the other, in the order in which they take over.
func askOrdered(s *Session) error {
	if s.has("service") {
		return nil
	}
	before := s.Edits.values("service")
	var services []string
	for n := 1; ; n++ {
		name, err := s.step(n, "backing", func() (string, error) {
			text := "Which service comes first?"
			options := slices.DeleteFunc(withValues(s.Catalog.serviceOptions(), before), func(o Option) bool { return slices.Contains(services, o.Value) })
			if n > 1 {
				text = fmt.Sprintf("Which one takes over from %s?", services[n-2])
				options = slices.Insert(options, 0, Option{nobody, "none: there are no more"})
			}
			q := s.question("service", clean(text), "")
			if n <= len(before) {
				s.Edits.recall(s.Prompter, q, before[n-1])
			}
			return s.Select(q, options, "")
		})
		if err != nil {
			return err
		}
		if name == nobody {
			break
		}
		if services = append(services, name); len(services) == len(withValues(s.Catalog.serviceOptions(), before)) {
			break
		}
	}
	s.record("service", services...)
	endSteps(s)
	return nil
}

// askLogged asks whose requests are logged.
func askLogged(s *Session) error {
	if s.has("?workloads") || !s.Form.isSet("workloadSelectors", s.Answers) {
		choice, err := s.askChoice("workloads", "spec.workloadSelectors", "Requests to and from which workloads?", []Option{
			{"all", "all of them"},
			{"matcher", "workloads by namespace, cluster or pod label"},
		})
		if err != nil {
			return err
		}
		if choice == "all" {
			s.record("all-workloads", "true")
		} else if err := s.askMatcher("workload", "workloads", true); err != nil {
			return err
		}
	}
	return s.sayCallers()
}

// askFilter asks which requests are logged.
func askFilter(s *Session) error {
	if s.Form.isSet("filters", s.Answers) {
		return nil
	}
	return s.input("filter", "Only which requests? Such as status>=500 or header.x-team=books; empty means all.", "", true)
}

// selectorParts are the parts that select, as TrafficPolicies call them, with their names in other kinds.
var selectorParts = map[string][]string{
	"destinationSelector": {"destinationSelectors"},
	"sourceSelector":      {"sourceSelectors", "workloadSelectors"},
}

// selectorPart is what the form calls a part that selects.
func (f *Form) selectorPart(part string) string {
	for i := range f.Fields {
		for _, other := range selectorParts[part] {
			if partOf(f.Fields[i].Path) == other {
				return other
			}
		}
	}
	return part
}
