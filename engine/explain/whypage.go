package explain

import (
	"slices"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Page implements Description.
func (w *Why) Page() Page {
	answer := facts("",
		[2]string{"Answer", w.answerText()}, [2]string{"Because", w.Reason}, [2]string{"Not evaluated", strings.Join(w.NotEvaluated, "; ")}, [2]string{"Goes to", w.goesTo()}, [2]string{"Seen", w.seenText()}, [2]string{"To allow it", w.change()}, [2]string{"To import it", w.declareText()},
		[2]string{"Request", w.requestText()}, [2]string{"Identity", w.Identity},
	)
	page := Page{Title: w.From.Name + " to " + w.To.Name, Sections: []Section{answer}, Issues: w.Issues, NotRead: w.NotRead}
	if w.Proxies != nil {
		page.Sections = append(page.Sections, w.Proxies.sections()...)
	}
	sections := []Section{w.routeSection()}
	if len(w.Outcomes) > 0 {
		sections = append(sections, w.outcomeSection(), w.hopSection())
	}
	for _, s := range sections {
		if len(s.Rows) > 0 {
			page.Sections = append(page.Sections, s)
		}
	}
	if len(w.Notes) > 0 {
		notes := Section{Title: "Notes", Header: []string{"NOTE"}}
		for _, note := range w.Notes {
			notes.Rows = append(notes.Rows, []string{note})
		}
		page.Sections = append(page.Sections, notes)
	}
	return page
}

// answerText is never a bare verdict where something was not looked at that may decide otherwise, or where what is let in fails.
func (w *Why) answerText() string {
	text := w.verdictText()
	if w.Seen != nil && (w.Verdict == Allowed || w.Verdict == Partly) {
		text += prefixed(", but ", w.Seen.Failing)
	}
	return text
}

func (w *Why) verdictText() string {
	p := w.Proxies
	switch {
	case p != nil && (!p.Agrees || w.Verdict != p.Verdict):
		return string(w.Verdict) + " by the objects, " + string(p.Verdict) + " in the proxies"
	case w.Verdict == Unknown:
	case w.NotRead != "":
		return string(w.Verdict) + ", as far as was read"
	case len(w.NotEvaluated) > 0:
		return string(w.Verdict) + ", but for what is not evaluated"
	}
	return string(w.Verdict)
}

// goesTo is where requests end, in a line.
func (w *Why) goesTo() string {
	var parts []string
	for i := range w.Outcomes {
		if o := &w.Outcomes[i]; !o.Idle {
			parts = append(parts, o.brief())
		}
	}
	return firstOf(parts)
}

// brief says which outcome it is: "75% reviews in cluster-2, v3".
func (o *Outcome) brief() string {
	text := o.Host
	if o.Destination != (snapshot.Ref{}) {
		text = o.Destination.Name
	}
	if o.Subset != "" {
		text += " (" + o.Subset + ")"
	}
	if o.Share != nil {
		text = snapshot.Percent(*o.Share) + " " + text
	}
	return text
}

// change is the first one that an outcome needs.
func (w *Why) change() string {
	for _, o := range w.Outcomes {
		if o.Change != nil {
			return o.Change.Text + prefixed("; this alone is not enough: ", o.Change.NotEnough)
		}
	}
	return ""
}

func (w *Why) requestText() string {
	text := w.Request.Method + " http://" + orAny(w.Host)
	if w.Host == "" {
		text = w.Request.Method + " " + w.To.Name
	}
	if w.Request.Port != 0 {
		text += ":" + strconv.FormatUint(uint64(w.Request.Port), 10)
	}
	text += w.Request.Path
	var headers []string
	for name, value := range w.Request.Headers {
		headers = append(headers, name+": "+value)
	}
	slices.Sort(headers)
	return text + prefixed(" with ", strings.Join(headers, "; "))
}

// routeSection is what is done with the request on the way.
func (w *Why) routeSection() Section {
	s := Section{Title: "What is done with it", Header: []string{"SETTING", "VALUE", "BY"}}
	add := func(name, value string, origin snapshot.Origin) {
		s.Rows = append(s.Rows, []string{name, value, originText(origin)})
		s.Refs = append(s.Refs, origin.Ref)
	}
	if r := w.Route; r != nil {
		s.Text = "It takes the route for requests: " + r.Match + "."
		if r.TargetsOrigin != nil {
			add("traffic shift", "to "+snapshot.Count(len(r.Targets), "target"), *r.TargetsOrigin)
		}
		for _, setting := range r.Settings {
			add(setting.Name, setting.Value, setting.Origin)
		}
	}
	for _, setting := range w.Settings {
		add(setting.Name, setting.Value, setting.Origin)
	}
	return s
}

// originText names a policy, and the field of it.
func originText(o snapshot.Origin) string { return shortName(o.Ref) + prefixed(", ", o.Field) }

// outcomeSection lists the outcomes; what is the same for all of them is said once, above.
func (w *Why) outcomeSection() Section {
	s := Section{Title: "Where it ends", Header: []string{"SHARE", "DESTINATION", "PORT", "CLUSTER", "SUBSET", "PODS", "ACCESS"}}
	differ := slices.ContainsFunc(w.Outcomes, func(o Outcome) bool { return o.Reason != w.Outcomes[0].Reason })
	if differ {
		s.Header = append(s.Header, "BECAUSE")
	}
	for i := range w.Outcomes {
		o := &w.Outcomes[i]
		name := o.Host
		if o.Destination != (snapshot.Ref{}) {
			name = o.Destination.Name
		}
		pods := ""
		if o.Endpoints != nil {
			pods = strconv.Itoa(*o.Endpoints)
		}
		row := []string{o.shareText(), name, strconv.FormatUint(uint64(o.Port), 10), o.Cluster, o.Subset, pods, strings.ToLower(string(o.Verdict))}
		if differ {
			row = append(row, o.Reason)
		}
		s.Rows = append(s.Rows, row)
		s.Refs = append(s.Refs, o.Destination)
	}
	return s
}

// shareText is the share, or the place in the order of failover.
func (o *Outcome) shareText() string {
	switch {
	case o.Share != nil:
		return snapshot.Percent(*o.Share)
	case o.Idle:
		return "if those before fail"
	}
	return "as pods are"
}

// hopSection lists the connections on the way to outcomes that are behind gateways.
func (w *Why) hopSection() Section {
	s := Section{Title: "How it gets to other clusters", Header: []string{"OUTCOME", "CONNECTS TO", "ADDRESS", "PRESENTS", "SNI"}}
	for i := range w.Outcomes {
		o := &w.Outcomes[i]
		if len(o.Hops) < 2 {
			continue
		}
		for j, hop := range o.Hops {
			name := above
			if j == 0 {
				name = o.brief()
			}
			s.Rows = append(s.Rows, []string{name, hop.To, strings.Join(hop.Addresses, ", "), hop.Identity, hop.SNI})
			s.Refs = append(s.Refs, o.Destination)
		}
	}
	return s
}
