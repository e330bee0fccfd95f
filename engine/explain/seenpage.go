package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// on puts what was seen into a page, after its first section. Without Evidence, the page stays as it is.
func (o *Seen) on(page Page, sections func() []Section) Page {
	if o == nil || len(page.Sections) == 0 {
		return page
	}
	first := Section{Title: "Seen (" + o.Window + ")", Text: o.summary()}
	var more []Section
	if o.State == traffic.HasNumbers || len(o.Calls) > 0 {
		more = sections()
	}
	if len(more) > 0 && more[0].Title == "" {
		more[0].Title, more[0].Text = first.Title, first.Text+prefixed(" ", more[0].Text)
	} else {
		more = slices.Insert(more, 0, first)
	}
	page.Sections = slices.Insert(slices.Clone(page.Sections), 1, more...)
	return page
}

// summary is what was seen as a sentence or two.
func (o *Seen) summary() string {
	switch o.State {
	case traffic.HasNumbers:
		if o.Requests == 0 {
			return "No request to it." + prefixed(" Not all is known: ", o.Why) + pointAfter(o.Why)
		}
		text := counting(o.Requests, "request")
		if n := o.Failed; n > 0 {
			text += ", " + grouped(n) + " failed (" + shareText(n, o.Requests) + ")"
		}
		if n := o.Refused; n > 0 {
			text += ", " + grouped(n) + " refused with status 403"
		}
		if n := o.Denied; n > 0 {
			text += ", " + grouped(n) + " denied by the proxies of its pods"
		}
		return text + "." + prefixed(" Not all is known: ", o.Why) + pointAfter(o.Why)
	case traffic.NoTraffic:
		return "No traffic." + prefixed(" Not all is known: ", o.Why) + pointAfter(o.Why)
	}
	return "No data: " + o.Why + pointAfter(o.Why)
}

// pointAfter ends a sentence that is not empty.
func pointAfter(text string) string {
	if text == "" {
		return ""
	}
	return "."
}

// callSection is a table of calls: of their callers, or of what is called.
func (o *Seen) callSection(title string, from, to, by bool) Section {
	s := Section{Title: title}
	if len(o.Calls) == 0 {
		return s
	}
	add := func(when bool, name string) {
		if when {
			s.Header = append(s.Header, name)
		}
	}
	add(to, "CALLED")
	add(from, "CALLER")
	add(true, "VIA")
	s.Header = append(s.Header, "REQUESTS", "SUCCESS", "REFUSED")
	add(by, "BY")
	for i := range o.Calls {
		c := &o.Calls[i]
		var row []string
		about := c.To
		if to {
			row = append(row, nameOf(c.To, "(not known)"))
		}
		if from {
			row, about = append(row, nameOf(c.From, "(others)")), c.From
		}
		row = append(append(row, c.Via), c.cells()...)
		if by {
			row = append(row, c.byText())
		}
		s.Rows, s.Refs = append(s.Rows, row), append(s.Refs, about)
	}
	if o.More > 0 {
		s.Text = "The first " + grouped(mostCalls) + " of " + grouped(uint64(o.More+mostCalls)) + "."
	}
	return s
}

// calledSections are what a workload called; none if it called nothing.
func (o *Seen) calledSections() []Section {
	if len(o.Calls) == 0 {
		return nil
	}
	return []Section{o.callSection("What it called ("+o.Window+")", false, true, false)}
}

// shiftSections are a table of asked and seen shares, and one of timeouts and retries.
func (o *Seen) shiftSections() (out []Section) {
	s := Section{Header: []string{"ON", "FROM MESH", "REQUESTS", "GO TO", "ASKED", "SEEN", "JUDGED"}}
	for i := range o.Shifts {
		shift := &o.Shifts[i]
		if shift.Requests == 0 {
			row := []string{shift.Destination.Name, shift.Mesh.Name, shift.Match, "", "", "", string(shift.Targets[0].Judged)}
			s.Rows, s.Refs = append(s.Rows, row), append(s.Refs, shift.Destination)
		}
		for j := range shift.Targets {
			if shift.Requests == 0 {
				break
			}
			t := &shift.Targets[j]
			row := []string{above, above, above, t.name(), snapshot.Percent(t.Asked), shareText(t.Requests, shift.Requests), string(t.Judged)}
			if j == 0 {
				row[0], row[1], row[2] = shift.Destination.Name, shift.Mesh.Name, shift.Match+" ("+grouped(shift.Requests)+")"
			}
			s.Rows, s.Refs = append(s.Rows, row), append(s.Refs, t.Destination)
		}
		if shift.Window != o.Window {
			s.Text += "Of " + shift.Destination.Name + ", only requests of the " + shift.Window + " are counted, in whole minutes: before, the policy was not in force as it is. "
		}
		if shift.Shared > 0 {
			s.Text += counting(shift.Shared, "request") + " of callers of " + shift.Destination.Name + " that reach a target in another way, too, are left out. "
		}
		if shift.Unnamed > 0 {
			s.Text += counting(shift.Unnamed, "request") + " to " + shift.Destination.Name + " are left out, as the proxies count by host and not by subset. "
		}
	}
	if len(s.Rows) > 0 {
		s.Text += "Off is what 100 requests or more show to differ by a percentage point, and not by chance (4 standard deviations)."
		out = append(out, s)
	}
	if len(o.Settings) > 0 {
		settings := Section{Title: "Timeouts and retries, asked and seen", Header: []string{"ON", "SETTING", "ASKED", "SEEN"}}
		for i := range o.Settings {
			setting := &o.Settings[i]
			settings.Rows = append(settings.Rows, []string{setting.Destination.Name, setting.Name, setting.Asked, setting.timesText()})
			settings.Refs = append(settings.Refs, setting.Destination)
		}
		out = append(out, settings)
	}
	return out
}
