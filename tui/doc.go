// Package tui is the dashboard: one screen for all clusters and meshes. It sees
// only what it paints: tables and pages of engine/explain, which a Source hands
// over as messages; it reads no cluster and no file.
//
// The root Model (model.go) routes: keys to the page on top of the stack, news
// to every page. A page (page.go) folds messages and paints itself; what it
// wants done it returns as an action, and the Model does it. Painting is
// functions of values: the same values, size and time give the same bytes.
//
// All keys stand in keymap.go, from which the help is made.
package tui
