// Package wizards asks for what a policy or a VirtualMesh needs, shows what each
// answer selects, and makes the manifest. It has no client: the Catalog is made
// from a snapshot.Input, and the Outcome says what to do with the manifest.
//
// An answer is the value of the flag of the same name. A Form turns flags into a
// manifest and a manifest into flags, so that the printed command makes the same
// manifest, byte for byte.
//
//	session.go     one run of a wizard: the answers, and how they are asked for
//	ask.go         the questions about each kind; moreasks.go: about the enterprise kinds; shift.go: about traffic shifts
//	history.go     going back to questions that were answered; steps.go: titles, the sections of the questions, changing an answer
//	earlier.go     the object that an edit begins from; begin.go: flags over it; changes.go: what differs; trust.go: members and trust
//	finish.go      the end: show the manifest, then apply, save, edit or cancel
//	form.go        flags to manifest and back; forms.go and moreforms.go: the flags of each kind
//	codec.go       how values are written; references.go and targets.go: those with a syntax
//	preview.go     the Catalog of what was discovered, and what an object would change
//	offers.go      the options that the Catalog has for a question; found.go: its summary
//	clusters.go    which cluster is the management cluster, and which ones to register
//	prompter.go    the interface of a terminal; terminal.go: arrow keys; plain.go: line by line
//	keys.go        reads key by key; editor.go: the user's editor
package wizards
