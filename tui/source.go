package tui

import (
	"context"
	"slices"
	"time"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Source is where the dashboard's values come from. It is called from tea.Cmds,
// never while a message is handled.
type Source interface {
	// Next waits until something has changed and returns it. An error ends the
	// dashboard; a failure that may pass is Update.ReadError.
	Next(ctx context.Context) (*Update, error)
	// Name is shown as the source, such as "context kind-mgmt".
	Name() string
	// Command completes a command of this program with the flags that name the
	// source: "describe mesh" becomes "meshctl describe mesh --dir x".
	Command(words string) string
	// Kubectl is the same for kubectl; empty where there is no cluster.
	Kubectl(words string) string
}

// Asker is a Source that says what becomes of a request, and tries what would allow it.
type Asker interface {
	Why(x *explain.Index, from, to snapshot.Ref, request explain.Request) (*explain.Why, error)
}

// Update is what has changed in a source; fields that are not set are as before.
type Update struct {
	Index *explain.Index
	// Facts are facts about clusters that are not in their objects, by name.
	Facts map[string]explain.ClusterFacts
	// Changes are all that are known, the oldest first; HasChanges is false if
	// there is nothing new about them.
	Changes    snapshot.Changes
	HasChanges bool
	// NoChanges says why there are no changes, and what to do.
	NoChanges string
	// Serving is what is known of the serve that runs; nil where nothing serves by its
	// nature, and before that is known.
	Serving *snapshot.Serving
	// Checkup is the latest one; nil before the first.
	Checkup *explain.Checkup
	// ReadError says why the source cannot be read at present; empty if it can.
	ReadError string
	At        time.Time
}

// updateMsg is an Update with its tables, which are made off the loop.
type updateMsg struct {
	update *Update
	tables map[pageID]*grid
	// tally counts what is wrong; nil if that is as before.
	tally *explain.Tally
	// names are those of the objects that open by name; nil if they are as before.
	names []string
	err   error
}

// namesOf lists the names of the objects that open by name, each once.
func namesOf(x *explain.Index) []string {
	if x == nil {
		return nil
	}
	out := []string{}
	for _, kind := range openedByName() {
		for _, ref := range x.Refs(kind) {
			out = append(out, ref.Name)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// tickMsg comes every second, so that ages grow and news gets old.
type tickMsg time.Time

// prepared is an update with what is made of it.
func prepared(update *Update, before map[pageID]*grid) updateMsg {
	msg := updateMsg{update: update, tables: prepare(update, before), names: namesOf(update.Index)}
	if x := update.Index; x != nil {
		tally := explain.TallyAt(x, update.At)
		msg.tally = &tally
	}
	return msg
}

// prepare makes the tables of an update. Rows that differ from before are news.
func prepare(update *Update, before map[pageID]*grid) map[pageID]*grid {
	tables := map[pageID]*grid{}
	if x := update.Index; x != nil {
		all := x.Tables(update.Facts)
		tables[pageFleet] = newGrid(all.Fleet())
		tables[pageDestinations] = newGrid(all.Destinations())
		tables[pageWorkloads] = newGrid(all.Workloads())
		tables[pageVirtualMeshes] = newGrid(all.VirtualMeshes())
		tables[pagePolicies] = newGrid(all.Policies())
		tables[pageProblems] = newGrid(all.Problems(update.At))
		tables[pageEdges] = newGrid(explain.Edges(x))
	}
	if update.Checkup != nil {
		tables[pageCheck] = newGrid(update.Checkup.Table())
	}
	if update.HasChanges {
		tables[pageChanges] = newGrid(explain.Changes(update.Changes, update.NoChanges))
	}
	for id, grid := range tables {
		grid.noteNews(before[id], update.At)
	}
	return tables
}
