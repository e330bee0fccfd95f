// Package serve is the running management plane: it wires the registry, the
// Source, the engine and the Sink together, and tells how it is doing.
//
//	registry ─▶ Source ─▶ loop: engine.Translate ─▶ Sink
//	               ▲                               │
//	               └────── failed writes ──────────┘
//
// Nothing here decides anything about meshes: the loop waits for a change,
// lets the engine translate, and hands over (loop.go). How long it waits when
// changes come thick and fast is the pacer's business (pace.go). One replica
// works at a time: the one that holds the Lease (lead.go).
package serve
