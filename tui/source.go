package tui

import (
	"context"
	"time"

	"github.com/meshctl/meshctl/engine/explain"
)

// Source is where the dashboard's values come from. It is used by commands
// only, never while a message is folded.
type Source interface {
	// Next waits for news and returns them. An error ends the dashboard; what
	// passes by itself is News.Trouble.
	Next(ctx context.Context) (*News, error)
	// Name says for people what is looked at, such as "context kind-mgmt".
	Name() string
	// Command makes a command of this program look at the same: "describe mesh"
	// becomes "meshctl describe mesh --dir x".
	Command(words string) string
	// Kubectl is the same for kubectl; empty where there is no cluster.
	Kubectl(words string) string
}

// News are what is new; fields that are not set are as before.
type News struct {
	Index *explain.Index
	// Facts are what is known of clusters beside their objects, by name.
	Facts map[string]explain.ClusterFacts
	// Changes are all that are known, newest first; HasChanges is false if
	// there is nothing new about them.
	Changes    []explain.Change
	HasChanges bool
	// NoChanges says why there are no changes, and what to do.
	NoChanges string
	// Trouble says why the source cannot be read at present; empty if it can.
	Trouble string
	At      time.Time
}

// newsMsg are news with all tables made, off the loop.
type newsMsg struct {
	news   *News
	tables map[pageID]*grid
	err    error
}

// tickMsg tells the time, so that ages grow and marks fade.
type tickMsg time.Time

// prepare makes the tables of news. Before are the tables to compare with.
func prepare(news *News, before map[pageID]*grid) map[pageID]*grid {
	tables := map[pageID]*grid{}
	if x := news.Index; x != nil {
		tables[pageFleet] = newGrid(x.Fleet(news.Facts))
		tables[pageDestinations] = newGrid(x.Destinations())
		tables[pageWorkloads] = newGrid(x.Workloads())
		tables[pageVirtualMeshes] = newGrid(x.VirtualMeshes())
		tables[pagePolicies] = newGrid(x.Policies())
		tables[pageProblems] = newGrid(x.Problems())
	}
	if news.HasChanges {
		tables[pageChanges] = newGrid(explain.Changes(news.Changes, news.NoChanges))
	}
	for id, grid := range tables {
		grid.compare(before[id], news.At)
	}
	return tables
}
