package wizards

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

const shiftField = "spec.policy.trafficShift.destinations"

// shiftStep is the prefix of answers about single targets, which are stored until
// all targets are known.
const shiftStep = "?shift "

// singleTarget says what a weight does not do.
const singleTarget = "A single target takes all requests, whatever its weight; for only a part of them, add a target for the others."

// wholeShare is the weight of a target that seems to take all requests.
const wholeShare = "100"

// step asks a question about a target unless it was answered before.
func (s *Session) step(target int, what string, ask func() (string, error)) (string, error) {
	key := fmt.Sprintf("%s%d %s", shiftStep, target, what)
	if was, ok := s.Answers[key]; ok && len(was) > 0 {
		return was[0], nil
	}
	answer, err := ask()
	if err == nil {
		s.Answers[key] = []string{answer}
	}
	return answer, err
}

// askShift asks for one target after the other.
func (s *Session) askShift() error {
	if s.has("shift") {
		return nil
	}
	var targets []string
	for n, more := 1, "yes"; more == "yes"; n++ {
		target, err := s.askTarget(n)
		if err != nil {
			return err
		}
		weight, err := s.step(n, "weight", func() (string, error) { return s.askWeight(n, targets, target) })
		if err != nil {
			return err
		}
		targets = append(targets, joinCommas(append(target, "weight="+weight)))
		if n == 1 && weight != wholeShare {
			s.Say(singleTarget + "\n")
		}
		more, err = s.step(n, "more", func() (string, error) {
			return s.Select(Question{Text: "Add another target?", Field: shiftField}, []Option{{"no", "no"}, {"yes", "yes"}}, "no")
		})
		if err != nil {
			return err
		}
	}
	s.record("shift", targets...)
	s.endSteps()
	return nil
}

// endSteps forgets the answers of steps.
func (s *Session) endSteps() {
	maps.DeleteFunc(s.Answers, func(key string, _ []string) bool { return strings.HasPrefix(key, shiftStep) })
}

// askTarget asks for a target, its subset and its port.
func (s *Session) askTarget(n int) ([]string, error) {
	name, err := s.step(n, "service", func() (string, error) {
		return s.Select(Question{Text: fmt.Sprintf("Target %d: which service?", n), Field: shiftField}, s.Catalog.targetOptions(), firstOf(s.Answers["destination"]))
	})
	if err != nil {
		return nil, err
	}
	target := []string{name}
	services := s.Catalog.servicesBehind(name)
	if subsets := subsetOptions(services...); len(subsets) > 1 {
		subset, err := s.step(n, "subset", func() (string, error) {
			return s.Select(Question{Text: fmt.Sprintf("Target %d: which of its pods?", n), Field: shiftField + ".kubeService.subset"}, subsets, "")
		})
		if err != nil {
			return nil, err
		}
		if subset != "" {
			target = append(target, "subset."+subset)
		}
	}
	if k := s.Catalog.service(name); k != nil && len(k.Ports) > 1 {
		port, err := s.step(n, "port", func() (string, error) {
			return s.Select(Question{Text: fmt.Sprintf("Target %d: which of its ports?", n), Field: shiftField + ".kubeService.port"}, portOptions(k), "")
		})
		if err != nil {
			return nil, err
		}
		target = append(target, "port="+port)
	}
	return target, nil
}

func (s *Session) askWeight(n int, before, target []string) (string, error) {
	q := Question{Text: fmt.Sprintf("Target %d: which share of the requests, such as 75?", n), Field: shiftField + ".weight"}
	return s.Input(q, wholeShare, func(v string) error {
		if !isWhole(v) {
			return errors.New("an integer is required")
		}
		return s.validate("shift", append(slices.Clone(before), joinCommas(append(slices.Clone(target), "weight="+v))))
	})
}

// targetOptions are services, VirtualDestinations, and external services.
func (c *Catalog) targetOptions() []Option {
	out := c.serviceOptions()
	for _, v := range c.Input.Management.VirtualDestinations {
		out = append(out, Option{
			Value: virtualTarget + "=" + v.Namespace + "/" + v.Name,
			Text:  fmt.Sprintf("%s (VirtualDestination %s/%s)", v.Spec.Hostname, v.Namespace, v.Name),
		})
	}
	for _, d := range c.Input.Management.Destinations {
		if e := d.Spec.ExternalService; e != nil {
			out = append(out, Option{
				Value: staticTarget + "=" + d.Namespace + "/" + d.Name,
				Text:  fmt.Sprintf("%s (external service %s/%s)", strings.Join(e.Hosts, ", "), d.Namespace, d.Name),
			})
		}
	}
	return out
}

// servicesBehind are the services of a target.
func (c *Catalog) servicesBehind(target string) []*discoveryv1.KubeService {
	if k := c.service(target); k != nil {
		return []*discoveryv1.KubeService{k}
	}
	var out []*discoveryv1.KubeService
	for _, v := range c.Plan.VirtualDestinations {
		if target != virtualTarget+"="+v.Ref.Namespace+"/"+v.Ref.Name {
			continue
		}
		for _, b := range v.Backing {
			out = append(out, b.Destination.Spec.KubeService)
		}
	}
	return out
}

func firstOf(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}
