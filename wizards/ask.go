package wizards

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/explain"
)

// askDestinations asks for the destinations of a policy.
func (s *Session) askDestinations() error {
	part := s.Form.selectorPart("destinationSelector")
	if !s.has("?destinations") && s.Form.isSet(part, s.Answers) {
		return s.sayDestinations()
	}
	all := len(s.Catalog.services())
	choice, err := s.askChoice("destinations", "spec."+part, "Requests to which services?", []Option{
		{"names", "some services, by name"},
		{"matcher", "services by namespace, cluster or label"},
		{"all", fmt.Sprintf("all of them (%d now, and future ones)", all)},
	})
	if err != nil {
		return err
	}
	switch choice {
	case "names":
		if all == 0 {
			return errors.New("no service was discovered; register clusters with `meshctl init`, or choose services by namespace, cluster or label")
		}
		err = s.pick("destination", "Which services?", s.Catalog.serviceOptions(), 1)
	case "matcher":
		err = s.askMatcher("destination", "services", false)
	default:
		s.record("all-destinations", "true")
	}
	if err != nil {
		return err
	}
	return s.sayDestinations()
}

// askMatcher asks for namespaces, clusters and labels, at least one of them.
func (s *Session) askMatcher(prefix, what string, ofWorkloads bool) error {
	namespaces, clusters, labels := s.Catalog.matcherValues(ofWorkloads)
	type list struct {
		flag, text string
		options    []Option
	}
	lists := []list{
		{prefix + "-namespaces", "In which namespaces? Empty means any.", namespaces.options(strings.TrimSuffix(what, "s"))},
		{prefix + "-clusters", "In which clusters? Empty means any.", clusters.options(strings.TrimSuffix(what, "s"))},
		{prefix + "-labels", "With which labels? All of them are required; empty means any.", labels.options(strings.TrimSuffix(what, "s"))},
	}
	if len(namespaces)+len(clusters) == 0 {
		return fmt.Errorf("no %s were discovered; register clusters with `meshctl init`, or set --%s-namespaces", what, prefix)
	}
	for {
		given := false
		for _, l := range lists {
			if s.Form.Field(l.flag) == nil {
				continue
			}
			if err := s.pick(l.flag, l.text, l.options, 0); err != nil {
				return err
			}
			given = given || len(s.Answers[l.flag]) > 0
		}
		if given {
			return nil
		}
		s.Say("Choose at least one namespace, cluster or label.\n")
		var lines []string
		for _, l := range lists {
			delete(s.Answers, l.flag)
			lines = append(lines, s.question(l.flag, l.text, "").Line())
		}
		forget(s, lines...)
	}
}

// askAllowed asks which calls an AccessPolicy allows, or denies.
func askAllowed(s *Session) error {
	if err := s.input("allowed-methods", "Only with which HTTP methods? Such as GET,POST; empty means any.", "", true); err != nil {
		return err
	}
	if err := s.input("allowed-paths", "Only on which paths? Such as /api/*; empty means any.", "", true); err != nil {
		return err
	}
	ports := valueCounts{}
	for _, k := range s.Catalog.services() {
		for _, p := range k.Ports {
			ports[fmt.Sprint(p.Port)]++
		}
	}
	return s.pick("allowed-ports", "Only on which ports of the services? Empty means any.", ports.options("service"), 0)
}

// askAction asks whether an AccessPolicy allows or denies. What is allowed needs no field.
func (s *Session) askAction() error {
	if s.has(actionFlag) {
		return nil
	}
	choice, err := s.askChoice(actionFlag, "spec.action", "What should it do?", []Option{
		{allow, "allow calls; what no policy allows is then rejected"},
		{deny, "deny calls, whatever other policies allow; all others stay as they are"},
	})
	if err == nil && (choice == deny || len(s.Edits.values(actionFlag)) > 0) {
		s.record(actionFlag, choice)
	}
	return err
}

// denies reports whether the AccessPolicy denies what it selects.
func denies(a Answers) bool { return slices.Equal(a[actionFlag], []string{deny}) }

// askCallers asks for the callers that an AccessPolicy allows, or denies.
func (s *Session) askCallers() error {
	if !s.has("?sources") && s.Form.isSet("sourceSelector", s.Answers) {
		return s.sayCallers()
	}
	who := "Who may call?"
	if denies(s.Answers) {
		who = "Who may not call?"
	}
	choice, err := s.askChoice("sources", "spec.sourceSelector", who, []Option{
		{"accounts", "workloads that run as certain service accounts"},
		{"matcher", "all workloads of certain namespaces or clusters"},
		{"all", "anyone"},
	})
	if err != nil {
		return err
	}
	switch choice {
	case "accounts":
		err = s.pick("source-account", "Which service accounts?", s.Catalog.accountOptions(), 1)
	case "matcher":
		err = s.askMatcher("source", "workloads", true)
	default:
		s.record("all-sources", "true")
	}
	if err != nil {
		return err
	}
	return s.sayCallers()
}

// askMeshes asks for the members of a VirtualMesh.
func askMeshes(s *Session) error {
	if s.Form.isSet("meshes", s.Answers) {
		return nil
	}
	if len(s.Catalog.Plan.Meshes) == 0 {
		return errors.New("no mesh was discovered; register clusters with `meshctl init`")
	}
	unjoined, _ := s.Catalog.UnjoinedMeshes()
	if s.Edits != nil {
		unjoined = nil
	}
	return s.pick("mesh", "Which meshes do you want to join?", s.Catalog.meshOptions(), 1, unjoined...)
}

// askTrust asks how the members of a VirtualMesh trust each other, and of an edit, whether to change it.
func askTrust(s *Session) error {
	if !s.Form.isSet("mtlsConfig", s.Answers) {
		err := s.choose("trust", "How do they trust each other?", []Option{
			{"", "as they do now: certificates are not changed"},
			{"shared", "one root for all of them (shared)"},
			{"limited", "only their gateways trust each other (limited)"},
		}, "")
		if err != nil {
			return err
		}
	}
	return s.Edits.agreeOnTrust(s)
}

// askGlobalAccess asks whether the workloads of a VirtualMesh may call each other.
func askGlobalAccess(s *Session) error {
	if s.Form.isSet("globalAccessPolicy", s.Answers) {
		return nil
	}
	return s.choose("global-access", "May all workloads call each other?", []Option{
		{"", "as each mesh is configured now"},
		{"DISABLED", "yes, unless an AccessPolicy restricts it (DISABLED)"},
		{"ENABLED", "no, only what an AccessPolicy allows (ENABLED)"},
		{"AUDIT", "yes, but say what would be rejected if not (AUDIT)"},
	}, "")
}

// askFederation asks what of a VirtualMesh other meshes can reach.
func (s *Session) askFederation() error {
	if !s.has("?federation") && s.Form.isSet(s.Edits.within("federation", "federation.selectors"), s.Answers) {
		return nil
	}
	options := []Option{
		{"all", "all of them"},
		{"matcher", "services by namespace, cluster or label"},
		{"none", "none for now"},
	}
	if s.Edits != nil {
		options = slices.Insert(options, 1, Option{"names", "some services, by name"})
	}
	choice, err := s.askChoice("federation", "spec.federation.selectors", "Which services should be reachable from other meshes?", options)
	if err != nil {
		return err
	}
	switch choice {
	case "all":
		s.record("federate", "all")
	case "names":
		if err := s.pick("federate-destination", "Which services?", s.Catalog.serviceOptions(), 1); err != nil {
			return err
		}
	case "matcher":
		if err := s.askMatcher("federate", "services", false); err != nil {
			return err
		}
	default:
		return nil
	}
	return s.askFederationMode()
}

// askFederationMode proposes to import only what is declared where proxies would hold a lot otherwise.
func (s *Session) askFederationMode() error {
	most := s.Catalog.mostOfOthers(s.Answers["mesh"])
	if most <= explain.ManyEntries || s.Form.isSet("federation.mode", s.Answers) {
		return nil
	}
	return s.choose("federation-mode", fmt.Sprintf("Each proxy would hold up to %d services of other meshes. Which of them should a mesh import?", most), []Option{
		{string(networkingv1.FederationModeDeclared), "those that ServiceDependencies and policies of the mesh name (DECLARED)"},
		{string(networkingv1.FederationModeAll), "all of them (ALL)"},
	}, string(networkingv1.FederationModeDeclared))
}

// askSources asks for the callers whose requests a TrafficPolicy changes.
func (s *Session) askSources() error {
	part := s.Form.selectorPart("sourceSelector")
	if !s.has("?sources") && s.Form.isSet(part, s.Answers) {
		return s.sayCallers()
	}
	choice, err := s.askChoice("sources", "spec."+part, "Requests from which workloads?", []Option{
		{"all", "all of them"},
		{"matcher", "workloads by namespace, cluster or pod label"},
	})
	if err == nil && choice == "all" && s.Form.Field("all-sources") != nil {
		s.record("all-sources", "true")
	}
	if err != nil || choice == "all" {
		return err
	}
	if err := s.askMatcher("source", "workloads", true); err != nil {
		return err
	}
	return s.sayCallers()
}

// askRequests asks which requests a TrafficPolicy changes.
func (s *Session) askRequests() error {
	if !s.has("?requests") && s.Form.isSet("httpRequestMatchers", s.Answers) {
		return nil
	}
	choice, err := s.askChoice("requests", "spec.httpRequestMatchers", "Which requests?", []Option{
		{"all", "all of them"},
		{"some", "those with a certain path, method or header"},
	})
	if err != nil || choice == "all" {
		return err
	}
	return s.input("match", "Which? Such as prefix=/api,method=GET,header.version=2", "prefix=/", false)
}

// action is something that can be done with requests.
type action struct {
	part, text string
	ask        func(*Session) error
}

// inputs asks for several flags, one after the other; each is flag, text, preset.
func inputs(list ...[3]string) func(*Session) error {
	return func(s *Session) error {
		for _, one := range list {
			if err := s.input(one[0], one[1], one[2], one[2] == ""); err != nil {
				return err
			}
		}
		return nil
	}
}

func actions() []action {
	return []action{
		{"policy.trafficShift", "send them to other services or to some of the pods (shift)", (*Session).askShift},
		{"policy.requestTimeout", "limit how long they take (timeout)", inputs([3]string{"timeout", "How long may a request take, retries included?", "5s"})},
		{"policy.retries", "retry them when they fail (retries)", inputs(
			[3]string{"retries", "How many retries?", "2"}, [3]string{"per-try-timeout", "How long may one attempt take? Empty means no limit per attempt.", ""})},
		{"policy.faultInjection", "delay or fail some of them as a test (fault)", (*Session).askFault},
		{"policy.mirror", "copy them to another service (mirror)", (*Session).askMirror},
		{"policy.headerManipulation", "add or remove headers", inputs(
			[3]string{"add-request-header", "Headers to add to requests? Such as x-team=books; empty means none.", ""},
			[3]string{"remove-request-header", "Headers to remove from requests? Empty means none.", ""},
			[3]string{"add-response-header", "Headers to add to responses? Empty means none.", ""},
			[3]string{"remove-response-header", "Headers to remove from responses? Empty means none.", ""})},
		{"policy.corsPolicy", "allow browsers to call from other sites (CORS)", inputs(
			[3]string{"cors-origin", "From which origin? Such as https://shop.example.com, or suffix=.example.com", "https://example.com"},
			[3]string{"cors-methods", "With which methods?", "GET"},
			[3]string{"cors-max-age", "How long may browsers cache this? Empty means their default.", ""})},
		{"policy.outlierDetection", "stop using endpoints that keep failing (outlier detection)", inputs(
			[3]string{"outlier-errors", "After how many consecutive errors?", "5"},
			[3]string{"outlier-interval", "How often are the endpoints checked?", "10s"},
			[3]string{"outlier-ejection-time", "How long is an endpoint not used?", "30s"},
			[3]string{"outlier-max-percent", "What percentage of the endpoints may be excluded?", "100"})},
		{"policy.rateLimit", "limit the rate of each calling pod (rate limit)", inputs([3]string{"rate-limit", "How many requests, in which time?", "100/second"})},
		{"policy.csrf", "reject those that other sites make browsers send (CSRF)", (*Session).askCsrf},
		{"policy.mtls", "set how callers encrypt (TLS mode)", func(s *Session) error {
			return s.choose("tls-mode", "How do callers encrypt?", []Option{
				{"ISTIO_MUTUAL", "with certificates on both sides (ISTIO_MUTUAL)"}, {"SIMPLE", "with the server's certificate only (SIMPLE)"},
				{"DISABLE", "not at all (DISABLE)"},
			}, "ISTIO_MUTUAL")
		}},
	}
}

// chosenActions is the answer to what to do with requests.
const chosenActions = "?actions"

// askActions asks what to do with the requests.
func (s *Session) askActions() error {
	const chosen = chosenActions
	set := s.Form.isSet("policy", s.Answers)
	if !s.has(chosen) && s.Edits == nil && set {
		return nil
	}
	var options []Option
	var before []string
	for _, a := range actions() {
		if s.Form.isSet(a.part, s.Answers) {
			continue // given, or kept as it is
		}
		options = append(options, Option{a.part, a.text})
		if s.Form.isSet(a.part, s.Edits.defaults()) {
			before = append(before, a.part)
		}
	}
	for !s.has(chosen) {
		q := Question{Text: "What should happen to these requests?", Field: "spec.policy"}
		s.Edits.recall(s.Prompter, q, before...)
		selected, err := s.MultiSelect(q, options, nil)
		if err != nil {
			return err
		}
		if len(selected) > 0 || set || s.Edits != nil && len(before) == 0 {
			s.Answers[chosen] = selected
			break
		}
		s.Say("Choose at least one: a policy without an action has no effect.\n")
	}
	for _, a := range actions() {
		if slices.Contains(s.Answers[chosen], a.part) {
			if err := a.ask(s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Session) askFault() error {
	choice, err := s.askChoice("fault", "spec.policy.faultInjection", "Delay them or fail them?", []Option{{"delay", "delay"}, {"abort", "fail with an HTTP status"}})
	if err != nil {
		return err
	}
	if choice == "delay" {
		err = s.input("delay", "For how long?", "2s", false)
	} else {
		err = s.input("abort", "With which status?", "503", false)
	}
	if err != nil {
		return err
	}
	return s.input("fault-percent", "What percentage of them?", "10", false)
}

func (s *Session) askMirror() error {
	if err := s.choose("mirror", "Copy them to which service?", s.Catalog.serviceOptions(), ""); err != nil {
		return err
	}
	if values := s.Answers["mirror"]; len(values) > 0 {
		if k := s.Catalog.service(values[0]); k != nil && len(k.Ports) > 1 {
			if err := s.choose("mirror-port", "To which of its ports?", portOptions(k), ""); err != nil {
				return err
			}
		}
	}
	return s.input("mirror-percent", "What percentage of them?", "100", false)
}

func (s *Session) askCsrf() error {
	choice, err := s.askChoice("csrf", "spec.policy.csrf", "What happens to requests from other origins?", []Option{
		{"csrf", "they are rejected"}, {"csrf-shadow", "they are only counted, to see what would be rejected"},
	})
	if err != nil {
		return err
	}
	s.record(choice, "true")
	return s.input("csrf-origin", "Which other origin is allowed? Such as shop.example.com, or suffix=.example.com; empty means none.", "", true)
}
