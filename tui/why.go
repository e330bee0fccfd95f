package tui

import (
	"errors"
	"strings"

	tea "charm.land/bubbletea/v2"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// whyWord is the command that asks what becomes of a request: why FROM TO [METHOD] [PATH].
const whyWord = "why"

// startWhy begins a question about the object that the cursor or the page is on.
func (m *Model) startWhy() {
	ref := m.object()
	switch ref.Kind {
	case snapshot.Workload:
		m.prompt.start(':', whyWord+" "+ref.Name+" ", m.commands)
	case snapshot.Destination, snapshot.VirtualDestination:
		m.prompt.start(':', whyWord+"  "+ref.Name, m.commands)
		m.prompt.input.SetCursor(len(whyWord) + 1)
	default:
		m.prompt.start(':', whyWord+" ", m.commands)
	}
}

// askedAbout reports whether a question may be about an object of a kind.
func askedAbout(kind snapshot.Kind) bool {
	return kind == snapshot.Workload || kind == snapshot.Destination || kind == snapshot.VirtualDestination
}

// askWords are what a question can be completed to: workloads first, and then services.
func (m *Model) askWords() []string {
	x := m.latest.Index
	if x == nil {
		return nil
	}
	kinds := []snapshot.Kind{snapshot.Workload}
	if before := m.prompt.input.Value()[:m.prompt.input.Position()]; strings.Count(before, " ") > 1 {
		kinds = []snapshot.Kind{snapshot.Destination, snapshot.VirtualDestination}
	}
	var out []string
	for _, kind := range kinds {
		for _, ref := range x.Refs(kind) {
			out = append(out, ref.Name)
		}
	}
	return out
}

// ask opens the answer to a question.
func (m *Model) ask(words []string) tea.Cmd {
	x := m.latest.Index
	switch {
	case x == nil:
		m.notify("nothing has been read yet")
		return nil
	case len(words) < 2 || len(words) > 4:
		m.notify("ask: " + whyWord + " FROM TO [METHOD] [PATH]")
		return nil
	}
	from, err := onlyOne(words[0], x.Find(snapshot.Workload, words[0]))
	var to snapshot.Ref
	if err == nil {
		to, err = onlyOne(words[1], x.FindCalled(from, words[1]))
	}
	if err != nil {
		m.notify(snapshot.Clean(err.Error()))
		return nil
	}
	request := explain.Request{}
	for _, word := range words[2:] {
		if strings.HasPrefix(word, "/") {
			request.Path = word
		} else {
			request.Method = strings.ToUpper(word)
		}
	}
	return m.push(newWhy(from, to, request, strings.Join(words, " ")))
}

// onlyOne is the only object that a name may mean.
func onlyOne(name string, found []snapshot.Ref) (snapshot.Ref, error) {
	switch len(found) {
	case 0:
		return snapshot.Ref{}, errors.New("nothing is called " + name + "; tab completes")
	case 1:
		return found[0], nil
	}
	names := make([]string, len(found))
	for i, ref := range found {
		names[i] = ref.Name
	}
	return snapshot.Ref{}, errors.New(name + " may be: " + strings.Join(names, ", "))
}

// newWhy is the page of an answer. It follows the updates, as all pages do.
func newWhy(from, to snapshot.Ref, request explain.Request, words string) *readerPage {
	return &readerPage{
		name: whyWord, heading: "Why " + from.Name + " to " + to.Name, command: whyWord + " " + words,
		question: func(source Source, x *explain.Index) (explain.Page, error) {
			if !x.Has(from) || !x.Has(to) {
				return explain.Page{}, errors.New("one of them no longer exists")
			}
			if asker, ok := source.(Asker); ok {
				why, err := asker.Why(x, from, to, request)
				if err != nil {
					return explain.Page{}, err
				}
				return why.Page(), nil
			}
			return x.Why(from, to, request).Page(), nil
		},
	}
}
