package proof

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
)

// notKnown are the kinds of what an answer may leave open, as `meshctl help meshes decides` lists them, each with a part of its reason.
var notKnown = []struct{ kind, reason string }{
	{"VirtualService that rewrites", "it rewrites them"},
	{"VirtualService to another host", "is no service that was discovered"},
	{"ServiceEntry", "the hand-written ServiceEntry "},
	{"headless Service: route", "is headless: the proxies of the callers send to the address"},
	{"headless Service: port", "is headless: callers connect to port "},
	{"headless Service: TLS of single pods", "whether the callers come without is not known"},
	{"routes for a host that callers do not know", "whether they use these is not known"},
	{"exportTo that a route overrides", "the proxies of the callers do not know it: "},
	{"DestinationRule: TLS of the application", "take that is not known"},
	{"DestinationRule beside a generated one", "beside a generated object in the same namespace"},
	{"WorkloadEntry: whether it has a proxy", "whether they run a proxy"},
}

// notEvaluated are the same for configurations of proxies.
var notEvaluated = []struct{ kind, reason string }{
	{"proxies: filter that users add", drawnFilter},
	{"proxies: filter that users add", "istio-translated-wasmplugin"},
	{"proxies: token", "JwtAuthentication"},
	{"proxies: rewrite", "Rewrite"},
	{"proxies: host that they do not know", "the proxy knows nothing of "},
	{"proxies: headless Service: route", "to the address that the caller asked for, which is not evaluated"},
	{"proxies: headless Service: route", "nothing to ask their proxies for"},
	{"proxies: endpoint of a ServiceEntry, or of another service", "was found: it may have ended"},
	{"proxies: connection for a port of requests", "reads connections as requests of HTTP"},
	{"proxies: TLS of the application", "whether the application takes TLS is not known"},
}

// seenOtherwise are the same for what an answer names as not evaluated.
var seenOtherwise = []struct{ kind, reason string }{
	{"listener of a Sidecar", "has their proxies take port"},
	{"protocol that proxies detect", "see requests on port"},
}

func kindOf(kinds []struct{ kind, reason string }, reason string) string {
	for _, k := range kinds {
		if strings.Contains(reason, k.reason) {
			return k.kind
		}
	}
	return ""
}

// judge counts an answer, and says what is wrong with it; empty if nothing is.
func judge(counts map[string]int, why *explain.Why) string {
	proxies := why.Proxies
	counts[string(why.Verdict)]++
	if why.Verdict == explain.Unknown {
		kind := kindOf(notKnown, why.Reason)
		if kind == "" {
			return "what is not known is none of what the help lists"
		}
		counts["UNKNOWN: "+kind]++
	}
	if len(why.NotEvaluated) > 0 {
		counts["names what is not evaluated"]++
	}
	// What proxies see of a port decides about all that it is compared by.
	if kind := kindOf(seenOtherwise, strings.Join(why.NotEvaluated, "; ")); kind != "" && (!proxies.Agrees || proxies.Verdict == explain.Unknown && kindOf(notEvaluated, proxies.Reason) == "") {
		counts["not compared: "+kind]++
		return ""
	}
	if proxies.Verdict != explain.Unknown {
		counts["compared"]++
		if !proxies.Agrees {
			return "it differs"
		}
		return ""
	}
	kind := kindOf(notEvaluated, proxies.Reason)
	counts[kind]++
	sure := why.Verdict != explain.Unknown && why.Verdict != explain.Unreachable
	switch {
	case !proxies.Agrees:
		return "it differs"
	case kind == "":
		return "the configuration of proxies should be evaluated"
	case strings.HasSuffix(kind, "filter that users add") && sure && !slices.ContainsFunc(why.NotEvaluated, func(text string) bool { return strings.Contains(text, "by-hand-") }):
		return "no object is named that adds a filter"
	case strings.HasSuffix(kind, "do not know") && sure:
		return "the proxies of the callers do not know the host"
	case strings.Contains(kind, "headless") && sure:
		return "nobody knows where the request ends"
	case strings.Contains(kind, "ServiceEntry") && sure:
		return "the endpoint is of no pod of the service"
	}
	return ""
}

// describeDifference is an answer that is wrong.
func describeDifference(why *explain.Why, wrong string) string {
	r := &why.Request
	text := fmt.Sprintf("%s: %s to %s:%d %s %s %v\nby objects: %s: %s\nby proxies: %s: %s",
		wrong, why.From.Name, why.To.Name, r.Port, r.Method, r.Path, r.Headers, why.Verdict, why.Reason, why.Proxies.Verdict, why.Proxies.Reason)
	for _, difference := range why.Proxies.Differences {
		text += fmt.Sprintf("\n  %s\n    by objects: %s\n    by proxies: %s", difference.What, difference.Objects, difference.Proxies)
	}
	return text
}

// shares are counts with what they are of all answers.
func shares(counts map[string]int) string {
	all := 0
	for _, verdict := range []explain.Verdict{explain.Allowed, explain.Refused, explain.Partly, explain.Unreachable, explain.Unknown} {
		all += counts[string(verdict)]
	}
	text := fmt.Sprintf("%d answers", all)
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		text += fmt.Sprintf("\n%6d %6.2f %% %s", counts[kind], 100*float64(counts[kind])/float64(max(all, 1)), kind)
	}
	return text
}
