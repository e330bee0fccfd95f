package tui

import (
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
		assert.Contains(t, m.screen(), want, keys)
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
