package explain

import (
	"fmt"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// mostOutages bounds the rows of a table for people.
const mostOutages = 50

// Page is the Simulation as text.
func (s *Simulation) Page() Page {
	page := Page{Title: "Outage: " + s.Verdict, Issues: s.Issues}
	lost := Section{Title: "What is lost", Header: []string{"KIND", "NAME", "SUBSET", "PODS"}}
	for i := range s.Lost {
		l := &s.Lost[i]
		lost.Rows = append(lost.Rows, []string{string(l.Kind), l.Name, l.Subset, fmt.Sprint(l.Pods)})
		lost.Refs = append(lost.Refs, l.Ref)
	}
	page.Sections = append(page.Sections, lost)
	if len(s.Services) > 0 {
		page.Sections = append(page.Sections, s.answers())
	}
	if len(s.Gateways) > 0 {
		page.Sections = append(page.Sections, refsSection("Gateways that are lost", "GATEWAY", s.Gateways))
	}
	if len(s.FailoverOff) > 0 {
		off := Section{Title: "Failover that is off", Header: []string{"SERVICE", "WHY"}}
		for i, f := range s.FailoverOff {
			if i == mostOutages {
				off.Text = fmt.Sprintf("The first %d of %d.", mostOutages, len(s.FailoverOff))
				break
			}
			off.Rows = append(off.Rows, []string{f.Service.Name, f.Why})
			off.Refs = append(off.Refs, f.Service)
		}
		page.Sections = append(page.Sections, off)
	}
	notes := Section{Title: "Notes", Header: []string{"NOTE"}}
	for _, note := range s.Notes {
		notes.Rows = append(notes.Rows, []string{note})
	}
	page.Sections = append(page.Sections, notes)
	return page
}

// answers is the table of who answers.
func (s *Simulation) answers() Section {
	out := Section{Title: "Who answers", Header: []string{"SERVICE", "FROM", "REQUESTS", "BEFORE", "AFTER"}}
	for i := range s.Services {
		if i == mostOutages {
			out.Text = fmt.Sprintf("The first %d of %d.", mostOutages, len(s.Services))
			break
		}
		o := &s.Services[i]
		out.Rows = append(out.Rows, []string{o.Service.Name, refNames(o.From), o.Requests, answersText(o.Before), answersText(o.After)})
		out.Refs = append(out.Refs, o.Service)
	}
	return out
}

// refsSection is a table of one column.
func refsSection(title, header string, refs []snapshot.Ref) Section {
	s := Section{Title: title, Header: []string{header}}
	for i, ref := range refs {
		if i == mostOutages {
			s.Text = fmt.Sprintf("The first %d of %d.", mostOutages, len(refs))
			break
		}
		s.Rows = append(s.Rows, []string{ref.Name})
		s.Refs = append(s.Refs, ref)
	}
	return s
}
