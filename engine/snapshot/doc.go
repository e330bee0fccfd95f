// Package snapshot holds the nouns that the rest of the engine speaks: Input
// (what one translation may know), Plan (what shall be true, in no mesh's own
// words) and Output (the objects, statuses and issues that follow). All three
// are values: built once, never changed, compared by pointer to tell what is new.
package snapshot
