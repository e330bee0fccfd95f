package wizards

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

const shiftField = "spec.policy.trafficShift.destinations"

// shiftStep is the prefix of answers about single targets, which are stored until
// all targets are known.
const shiftStep = "?shift "

// singleTarget says what a weight does not do.
const singleTarget = "A single target takes all requests, whatever its weight; for only a part of them, add a target for the others."

// wholeShare is the sum of weights that are percentages.
const wholeShare = 100

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

// askShift asks for the targets, and then for all of their weights.
func (s *Session) askShift() error {
	if s.has("shift") {
		return nil
	}
	before := s.Edits.defaults()["shift"]
	targets, err := askTargets(s, before)
	if err != nil {
		return err
	}
	if len(targets) > 1 {
		if targets, err = askWeights(s, targets); err != nil {
			return err
		}
	}
	s.record("shift", targets...)
	endSteps(s)
	return nil
}

// askTargets asks for one target after the other.
func askTargets(s *Session, before []string) ([]string, error) {
	if len(before) > 0 {
		var list []string
		for _, target := range before {
			list = append(list, strings.Join(withoutWeight(target), ","))
		}
		choice, err := s.step(0, "targets", func() (string, error) {
			return s.Select(Question{Text: "Send them to which targets?", Field: shiftField}, []Option{
				{"same", "the same: " + joinFirst(list)}, {"other", "other ones"},
			}, "same")
		})
		if err != nil || choice == "same" {
			return before, err
		}
	}
	var targets []string
	for n, more := 1, "yes"; more == "yes"; n++ {
		target, err := s.askTarget(n)
		if err != nil {
			return nil, err
		}
		if err := s.validate("shift", []string{joinCommas(target)}); err != nil {
			return nil, err
		}
		targets = append(targets, joinCommas(target))
		more, err = s.step(n, "more", func() (string, error) {
			return s.Select(Question{Text: "Add another target?", Field: shiftField}, []Option{{"no", "no: this one takes the rest"}, {"yes", "yes"}}, map[bool]string{true: "yes", false: "no"}[n == 1 && strings.Contains(targets[0], "subset.")])
		})
		if err != nil {
			return nil, err
		}
	}
	return targets, nil
}

// askWeights asks for the weights of all targets in one line, below a list of them.
func askWeights(s *Session, targets []string) ([]string, error) {
	list := "The targets:\n"
	var weights []string
	for i, target := range targets {
		list += fmt.Sprintf("  %d. %s\n", i+1, strings.Join(withoutWeight(target), " "))
		if weight := weightOf(target); weight != "" {
			weights = append(weights, weight)
		}
	}
	if len(weights) != len(targets) {
		weights = evenShares(len(targets))
	}
	preset := strings.Join(weights, " ")
	if sum(weights) != wholeShare {
		preset = strings.Join(weights, ":")
	}
	s.Say(clean(list))
	weighted := func(text string) ([]string, error) {
		weights, err := parseWeights(text, len(targets))
		if err != nil {
			return nil, err
		}
		var out []string
		for i, target := range targets {
			if weights[i] == weightOf(target) {
				out = append(out, target)
				continue
			}
			out = append(out, joinCommas(append(withoutWeight(target), "weight="+weights[i])))
		}
		return out, nil
	}
	q := Question{Text: fmt.Sprintf("Which percentage for each of the %d, such as %s? Or parts, such as 3:1", len(targets), strings.Join(evenShares(len(targets)), " ")), Field: shiftField + ".weight"}
	answer, err := s.Input(q, preset, func(text string) error {
		out, err := weighted(text)
		if err != nil {
			return err
		}
		return s.validate("shift", out)
	})
	if err != nil {
		return nil, err
	}
	return weighted(answer)
}

// withoutWeight are the parts of a target as a flag has it, but for its weight.
func withoutWeight(target string) []string {
	parts, err := splitCommas(target)
	if err != nil {
		return []string{target}
	}
	return slices.DeleteFunc(parts, func(part string) bool { return strings.HasPrefix(part, "weight=") })
}

// weightOf is the weight of a target; empty if it has none.
func weightOf(target string) string {
	parts, _ := splitCommas(target)
	for _, part := range parts {
		if weight, ok := strings.CutPrefix(part, "weight="); ok {
			return weight
		}
	}
	return ""
}

// evenShares are percentages that differ by at most one.
func evenShares(n int) []string {
	var out []string
	for i := range n {
		share := wholeShare / n
		if i < wholeShare%n {
			share++
		}
		out = append(out, fmt.Sprint(share))
	}
	return out
}

// sum adds up whole numbers.
func sum(weights []string) (total uint64) {
	for _, w := range weights {
		n, _ := strconv.ParseUint(w, 10, 32)
		total += n
	}
	return total
}

// parseWeights reads percentages, 75 25, or parts, 3:1.
func parseWeights(text string, n int) ([]string, error) {
	weights := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,:%", r) })
	for _, w := range weights {
		if !isWhole(w) {
			return nil, fmt.Errorf("%q: an integer is required", w)
		}
	}
	total := sum(weights)
	switch parts := strings.Contains(text, ":"); {
	case len(weights) != n:
		return nil, fmt.Errorf("%d of %d weights, with a total of %d; write one for each target", len(weights), n, total)
	case total == 0:
		return nil, errors.New("the total is 0, so no target gets requests; give one of them more")
	case !parts && total < wholeShare:
		return nil, fmt.Errorf("the total is %d: %d are left to give; or write parts of the total, such as %s", total, wholeShare-total, strings.Join(weights, ":"))
	case !parts && total > wholeShare:
		return nil, fmt.Errorf("the total is %d: %d too many; or write parts of the total, such as %s", total, total-wholeShare, strings.Join(weights, ":"))
	}
	return weights, nil
}

// endSteps forgets the answers of steps.
func endSteps(s *Session) {
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
