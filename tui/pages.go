package tui

import (
	"strings"

	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// pageID is one of the list pages.
type pageID uint8

const (
	pageFleet pageID = iota
	pageDestinations
	pageWorkloads
	pageVirtualMeshes
	pagePolicies
	pageChanges
	pageProblems
	pageCheck
	pageEdges
	pageCount
)

// pageInfo describes a list page.
type pageInfo struct {
	title, short string
	// names are what `:` takes, the first one for crumbs.
	names []string
	// describe are the words of the command that lists the same.
	describe string
}

// pageInfos is read-only.
var pageInfos = [pageCount]pageInfo{
	pageFleet:         {"Fleet", "Fleet", []string{"fleet", "clusters", "meshes", "mesh"}, "describe clusters"},
	pageDestinations:  {"Destinations", "Dest", []string{"destinations", "services", "svc", "traffictargets", "tt"}, "describe destinations"},
	pageWorkloads:     {"Workloads", "Work", []string{"workloads", "wl"}, "describe workloads"},
	pageVirtualMeshes: {"Virtual meshes", "VM", []string{"virtualmeshes", "vmeshes", "vm"}, "describe virtualmeshes"},
	pagePolicies:      {"Policies", "Policies", []string{"policies", "trafficpolicies", "tp", "accesspolicies", "ap", "map", "virtualdestinations", "vdest", "failover", "servicedependencies", "sdep"}, "describe policies"},
	pageChanges:       {"Changes", "Changes", []string{"changes", "events"}, "changes"},
	pageProblems:      {"Problems", "Prob", []string{"problems", "issues"}, "describe problems"},
	pageCheck:         {"Check", "Check", []string{"check", "health"}, "check"},
	pageEdges:         {"Edges", "Edges", []string{"edges", "top", "requests"}, "top edges"},
}

// pageNamed finds a page by the beginning of one of its names: the first one
// that fits.
func pageNamed(name string) (pageID, bool) {
	for exact := range 2 {
		for id, info := range pageInfos {
			for _, n := range info.names {
				if exact == 0 && n == name || exact == 1 && name != "" && strings.HasPrefix(n, name) {
					return pageID(id), true
				}
			}
		}
	}
	return 0, false
}

// kindsOfPolicies are the kinds that page 5 lists, with what ":" takes for one of them.
var kindsOfPolicies = []struct {
	kind  snapshot.Kind
	names []string
}{
	{snapshot.TrafficPolicy, []string{"trafficpolicies", "tp"}}, {snapshot.AccessPolicy, []string{"accesspolicies", "ap", "map"}},
	{snapshot.VirtualDestination, []string{"virtualdestinations", "vdest", "failover"}}, {snapshot.ServiceDependency, []string{"servicedependencies", "sdep"}},
}

// kindNamed is the kind of policies that a word means alone; NoKind if it means a whole page.
func kindNamed(word string) snapshot.Kind {
	for exact := range 2 {
		for _, k := range kindsOfPolicies {
			for _, name := range k.names {
				if id, _ := pageNamed(word); id == pagePolicies && (name == word || exact == 1 && !strings.HasPrefix("policies", word) && strings.HasPrefix(name, word)) {
					return k.kind
				}
			}
		}
	}
	return snapshot.NoKind
}

// kindWord is what describe calls a kind.
func kindWord(kind snapshot.Kind) string {
	if kind == snapshot.KubernetesCluster {
		return "cluster"
	}
	return strings.ToLower(kind.String())
}

// shared is what all pages see. They do not change it.
type shared struct {
	theme  *Theme
	source Source
	latest *Update
	tables map[pageID]*grid
	// tally counts what is wrong; nil before anything was read.
	tally *explain.Tally
	// cluster is the scope; empty is all.
	cluster string
	// problems keeps only rows with warnings and errors; wide shows all columns.
	problems, wide bool
	// details: those of the row under the cursor are beside the list.
	details bool
	now     int64
}

// changes reports whether an object can be changed from here.
func (s *shared) changes(ref snapshot.Ref) bool {
	changer, can := s.source.(Changer)
	return can && ref != (snapshot.Ref{}) && changer.Refuses(ref) == ""
}

// page is what the middle of the screen shows.
type page interface {
	crumb() string
	// title is shown in the line above it.
	title(s *shared) string
	// position says which part of it is on the screen; empty if that is all.
	position() string
	// press handles a key; the Model carries out the action, if there is one.
	press(v verb, s *shared) action
	// refresh takes the latest tables, the scope, and the size of the middle.
	refresh(s *shared, width, height int)
	// render gives the lines of the middle, at most height, none wider than width.
	render(s *shared, width, height int) []string
	// selected is what the cursor is on; zero if nothing that can be opened.
	selected(s *shared) snapshot.Ref
	// commandLine is the command that shows the same; empty if there is none.
	commandLine(s *shared) string
	// narrow filters a list, or searches another page, for what is typed after "/"; narrowed
	// is what was typed last.
	narrow(typed string) error
	narrowed() string
	// keys are those that are needed most, in that order.
	keys(s *shared) []hint
	// disabled says why a key does nothing here; empty if it does something.
	disabled(v verb, s *shared) string
}

// hint is a key for the bottom line, and what it does on the page.
type hint struct {
	verb verb
	does string
}

// action is what the Model does for a page.
type action interface{ isAction() }

type (
	// open shows all about an object.
	open struct{ ref snapshot.Ref }
	// openYAML shows the YAML of objects.
	openYAML struct{ refs []snapshot.Ref }
)

func (open) isAction()     {}
func (openYAML) isAction() {}
