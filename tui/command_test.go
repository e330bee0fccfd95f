package tui

import (
	"strconv"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestKindsOfPolicies: the name of a kind shows that kind alone, with what else was typed.
func TestKindsOfPolicies(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]snapshot.Kind{
		"tp": snapshot.TrafficPolicy, "trafficp": snapshot.TrafficPolicy, "ap": snapshot.AccessPolicy, "accesspolicies": snapshot.AccessPolicy,
		"vdest": snapshot.VirtualDestination, "failover": snapshot.VirtualDestination, "sdep": snapshot.ServiceDependency,
		"policies": snapshot.NoKind, "pol": snapshot.NoKind, "p": snapshot.NoKind, "tt": snapshot.NoKind, "services": snapshot.NoKind, "patient": snapshot.NoKind,
	} {
		assert.Equal(t, want, kindNamed(word), word)
	}
	bookinfo := load(t, "../testdata/translate/bookinfo/in")
	for keys, want := range map[string]string{
		":tp\n":       "Policies [2 of 4] /^TrafficPolicy.* ",
		":ap\n":       "Policies [2 of 4] /^AccessPolicy.* ",
		":ap\n⎋":      "Policies [4] ",
		":policies\n": "Policies [4] ",
		":tp\n/pat\n": "Policies [1 of 4] /^TrafficPolicy.*pat ",
		":tp /pat\n":  "Policies [1 of 4] /pat",
	} {
		m := start(t, bookinfo, NewTheme(NoColour), 100, 30)
		press(t, m, keys)
		assert.Contains(t, frameOf(m).screen(), want, keys)
	}
}

// TestInterruptQuitsAtOnce: wherever the cursor is, as the help says.
func TestInterruptQuitsAtOnce(t *testing.T) {
	t.Parallel()
	bookinfo := load(t, "../testdata/translate/bookinfo/in")
	for _, keys := range []string{"", ":de", "2/rev", "?"} {
		m := start(t, bookinfo, NewTheme(NoColour), 100, 30)
		press(t, m, keys)
		_, cmd := m.Update(tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl})
		if assert.NotNil(t, cmd, keys) {
			assert.Equal(t, tea.Quit(), cmd(), keys)
		}
		assert.ErrorIs(t, m.Err(), ErrInterrupted, keys)
	}
}

// TestDeletedIsKept: what was deleted is shown with the commands, as it was, the last one first, and without what terminals would obey.
func TestDeletedIsKept(t *testing.T) {
	t.Parallel()
	m := start(t, load(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), 100, 30)
	for _, name := range []string{"first", "second"} {
		draft := Draft{Ref: snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: name}, Before: "kind: TrafficPolicy\nmetadata:\n  name: " + name + "\x1b[2J\n"}
		m.Update(writtenMsg{page: newReview([]Draft{draft}), outcomes: []outcome{{draft: draft, text: draft.Ref.String() + " was deleted"}}})
		assert.Contains(t, frameOf(m).screen(), "TrafficPolicy gloo-mesh/"+name+" was deleted; @ shows what it was")
	}
	press(t, m, "@")
	screen := frameOf(m).screen()
	assert.Regexp(t, `(?s)kubectl apply -f FILE makes it again.*TrafficPolicy gloo-mesh/second *\n.*name: second.*TrafficPolicy gloo-mesh/first *\n.*name: first`, screen)
	assert.NotContains(t, screen, "\x1b[2J")
	for range 2 * mostDeleted {
		draft := Draft{Ref: snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "gloo-mesh", Name: "more"}, Before: "kind: TrafficPolicy\n"}
		m.Update(writtenMsg{page: newReview([]Draft{draft}), outcomes: []outcome{{draft: draft}}})
	}
	assert.Len(t, m.deleted, mostDeleted)

	var many []outcome
	for i := range 2 * mostDeleted {
		many = append(many, outcome{draft: Draft{Ref: snapshot.Ref{Kind: snapshot.TrafficPolicy, Name: strconv.Itoa(i)}, Before: "kind: TrafficPolicy\n"}})
	}
	m.Update(writtenMsg{page: newReview([]Draft{many[0].draft}), outcomes: many})
	assert.Len(t, m.deleted, len(many), "what was deleted at once is kept, all of it")
}
