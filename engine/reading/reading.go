// Package reading reads an Input once, for a command or a page that answers questions. There are six
// ways:
//
//	Folder       manifests in files
//	Archive      what "meshctl debug snapshot" recorded
//	Stored       the management cluster alone
//	Live         all clusters, or what of them the user may read
//	Clusters     the management cluster and every registered one, once
//	FromWatch    what a watch of them last returned
//
// Each gives a Reading: the Input, and what may be concluded from it. Its Index translates the Input with
// the options of the server, and answers questions. Its Plan says what an edit would change.
//
//   - reading.go: the Reading, its questions, and what an edit would change
//   - files.go: from folders and archives
//   - management.go: from a management cluster
//   - live.go: from all clusters, or from those that the user may read
//   - changes.go: what the server recorded of what changed
//   - delta.go: what differs between two readings
//   - serving.go: who serves, and how the clusters differ from what serve would write
//   - settled.go: what became of an object that was written
package reading

import (
	"time"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Reading is an Input, and how it was read.
type Reading struct {
	Input *snapshot.Input
	// Issues tell what was left out.
	Issues []snapshot.Issue
	// Notes are sentences on how it was read, for the user.
	Notes []string
	// Recorded is when an archive was recorded; zero if it is none, or has no time.
	Recorded time.Time
	// Changes are the timeline that a snapshot has, the oldest first; for a cluster, see Management.Changes.
	Changes snapshot.Changes
	// Served: a server wrote the statuses.
	Served bool

	// InForce returns which serve runs and what the clusters have; nil if neither was read. Each of its
	// results may be nil.
	InForce func(*snapshot.Output) (serving *snapshot.Serving, leads bool, observed *snapshot.Observed)

	// Evidence is what proxies have counted, for answers to show; nil if nobody was asked.
	Evidence *explain.Evidence

	// index makes a State ready for questions, as the way of reading allows.
	index func(*snapshot.State) *explain.Index
}

// FromWatch is the Reading of an Input of package watch. The watch must keep statuses; see
// watch.Options. ManagementOnly: it could not read the registered clusters.
func FromWatch(input *snapshot.Input, managementOnly bool) *Reading {
	if managementOnly {
		return &Reading{Input: input, Served: true, index: explain.NewStored}
	}
	return &Reading{Input: input, Served: true, index: explain.NewLive}
}

// Index translates the Input and indexes it for questions. With the Translator of earlier readings, it
// computes only what is new; it may be nil.
func (r *Reading) Index(translator *engine.Translator) *explain.Index {
	if translator == nil {
		translator = engine.New(engine.Options{})
	}
	state := translator.Translate(r.Input)
	index := r.index(state)
	if r.InForce != nil {
		index.Observe(r.InForce(state.Output))
	}
	return explain.WithEvidence(index, r.Evidence)
}

// Plan says what edits would do. Now is when objects that are new are created, which decides their
// precedence.
func (r *Reading) Plan(edits []explain.Edit, now time.Time) (*explain.Planned, error) {
	translator := engine.New(engine.Options{})
	planned, _, err := explain.WithEvidence(explain.New(translator.Translate(r.Input)), r.Evidence).Plan(translator.Translate, edits, now)
	return planned, err
}

// Why asks an Index of the reading, made by the same Translator, whether a request is allowed. It tries
// what the answer says would allow the request.
func (r *Reading) Why(translator *engine.Translator, index *explain.Index, from, to snapshot.Ref, request explain.Request) (*explain.Why, error) {
	why := index.Why(from, to, request)
	changed, err := why.Changed(r.Input)
	if err != nil || changed == nil {
		return why, err
	}
	why.Verify(explain.New(translator.Translate(changed)))
	return why, nil
}
