// Package tui is the dashboard: one screen for all clusters and meshes. It sees
// only what it shows: tables and pages of engine/explain, which a Source delivers;
// it reads no cluster and no file. The same values, screen size and time give the
// same bytes.
//
//	model.go    the root: passes keys to the page on top, and updates to all pages
//	history.go  the history of pages, and the commands typed after ":"
//	change.go   editing and deleting, by a Source that can; review.go asks before
//	source.go   what the dashboard is given: updates, and their tables
//	pages.go    the pages there are, and what a page is
//	list.go     pages with a table; grid.go, filter.go and layout.go prepare it
//	marks.go    the objects that are marked on a list, for what is done with several
//	reader.go   pages of text; line.go lays out an object, yaml.go its YAML; search.go finds text
//	pane.go     details beside a list, on wide screens
//	frame.go    the screen around a page: header, tabs, title and bottom lines
//	prompt.go   the line in which a command or a filter is typed
//	keymap.go   all keys, from which help.go makes the help
//	window.go   cursor and scrolling
//	theme.go    colours
//	text.go     cutting, padding and wrapping
package tui
