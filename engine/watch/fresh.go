package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Freshness says how old what is known of a cluster may be.
type Freshness struct {
	// Cluster is its name, empty for the management cluster.
	Cluster string
	// Age is the time since the API server last sent something (an event, a bookmark or
	// a list) about the kind of which it has sent nothing for longest. A cluster that is
	// not frozen is at most two times Options.Silence behind, and a probe.
	Age time.Duration
	// Silences is how many watches were ended because they delivered nothing.
	Silences int64
	// Collected is how many changes of objects that change in groups counted together with an earlier one.
	Collected int64
}

// Freshness is that of each cluster that was read, ascending by name.
func (s *Source) Freshness() []Freshness {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Freshness
	add := func(name string, heard time.Time, silences, collected int64) {
		if !heard.IsZero() {
			out = append(out, Freshness{Cluster: name, Age: time.Since(heard), Silences: silences, Collected: collected})
		}
	}
	_, heard := s.management.quietest()
	add("", heard, s.management.silences.Load(), 0)
	for name, c := range s.clusters {
		silences, collected := c.counts()
		add(name, c.heard(), silences, collected)
	}
	slices.SortFunc(out, func(a, b Freshness) int { return cmp.Compare(a.Cluster, b.Cluster) })
	return out
}

// heard is when the API server last sent something about the kind of which it has sent
// nothing for longest; zero before everything was read.
func (m *member) heard() (heard time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.cache != nil {
		_, heard = m.cache.quietest()
	}
	return heard
}

// quietest is the kind of which the server has sent nothing for longest, and since when;
// the zero time if it has never sent anything. What may not be read counts no more than what was not asked for: the server
// answers, and says so.
func (c *clusterCache[V]) quietest() (kind snapshot.Kind, heard time.Time) {
	first := true
	for _, f := range c.feeds {
		if at := f.heard(); !f.isDenied() && (first || at.Before(heard)) {
			kind, heard, first = f.kind(), at, false
		}
	}
	for _, f := range c.configMaps.running() {
		// What has not been read, or may not be, is reported to the reader.
		if at := f.heard(); f.isFilled() && !f.isDenied() && at.Before(heard) {
			kind, heard = f.kind(), at
		}
	}
	return kind, heard
}

// onSilence counts a watch that delivered nothing, and logs the first one of a kind.
func (c *clusterCache[V]) onSilence(kind snapshot.Kind) {
	c.silences.Add(1)
	if _, logged := c.logged.LoadOrStore(kind, true); !logged {
		c.log.Info("a watch delivered nothing, not even a bookmark; the objects are listed instead, as often as that happens",
			"kind", kind.String(), "time", c.silence)
	}
}

// freezeIfSilent freezes a cluster in use that answers probes, but sends neither events
// nor lists of a kind. It reports whether it did.
func (s *session) freezeIfSilent(cache *clusterCache[snapshot.Cluster]) bool {
	if !cache.published.Load() {
		return false
	}
	// A watch may be silent for once this time; then the list has as long.
	limit := 2 * s.silence
	kind, heard := cache.quietest()
	if time.Since(heard) <= limit {
		return false
	}
	err := fmt.Errorf("%s answers, but has sent nothing about its %s for more than %s, neither events nor a list; check what is between here and there",
		strings.TrimSuffix(s.config.Host, "/"), kind.Info().Resource, limit)
	s.cluster.freeze(s, err.Error(), err)
	return true
}
