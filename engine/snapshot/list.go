package snapshot

import (
	"iter"
	"slices"
)

// List is a long list whose next version costs what changed in it, not what it
// holds: versions share, by identity, the pieces that are alike. A List is
// immutable, and so are the elements' slices given to it. The zero List is
// empty.
type List[T comparable] struct {
	pieces [][]T // none is empty
	length int
}

// piece is how many elements are copied where one changes: with some ten
// thousand elements, about as many as there are pieces to list again.
const piece = 128

// ListOf makes a List of a slice, without copying it: two Lists of one slice
// are the same.
func ListOf[T comparable](elements []T) List[T] {
	l := List[T]{length: len(elements), pieces: make([][]T, 0, (len(elements)+piece-1)/piece)}
	for p := range slices.Chunk(elements, piece) {
		l.pieces = append(l.pieces, p)
	}
	return l
}

// Concat joins Lists; it shares all their pieces.
func Concat[T comparable](lists ...List[T]) List[T] {
	var out List[T]
	for _, l := range lists {
		out.pieces = append(out.pieces, l.pieces...)
		out.length += l.length
	}
	return out
}

// Len is the number of elements.
func (l List[T]) Len() int { return l.length }

// All iterates over the elements in order.
func (l List[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for _, p := range l.pieces {
			for _, e := range p {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Slice is a new slice of the elements.
func (l List[T]) Slice() []T { return slices.Concat(l.pieces...) }

// Same reports whether two Lists share all their pieces: then they are equal.
// False says nothing.
func (l List[T]) Same(o List[T]) bool {
	return l.length == o.length && slices.EqualFunc(l.pieces, o.pieces, SameSlice)
}

// With is the List with other elements at the given indexes.
func (l List[T]) With(elements map[int]T) List[T] {
	if len(elements) == 0 {
		return l
	}
	out := List[T]{length: l.length, pieces: slices.Clone(l.pieces)}
	copied := map[int]bool{}
	for i, e := range elements {
		n := 0
		for ; i >= len(out.pieces[n]); n++ {
			i -= len(out.pieces[n])
		}
		if !copied[n] {
			out.pieces[n], copied[n] = slices.Clone(out.pieces[n]), true
		}
		out.pieces[n][i] = e
	}
	return out
}

// Project makes a List with an element for each element of from. Of the pieces
// that from shares with the List before, made is shared with what was made of
// that one; before and made must have come from one Project (or be empty).
// Given is what was made of the same place before, if the places are the same.
func Project[S, T comparable](before, from List[S], made List[T], element func(s S, old S, given T) T) List[T] {
	out := List[T]{length: from.length, pieces: make([][]T, len(from.pieces))}
	alike := before.shaped(from)
	for n, p := range from.pieces {
		if alike && SameSlice(before.pieces[n], p) {
			out.pieces[n] = made.pieces[n]
			continue
		}
		out.pieces[n] = make([]T, len(p))
		for i, s := range p {
			var old S
			var given T
			if alike {
				old, given = before.pieces[n][i], made.pieces[n][i]
			}
			out.pieces[n][i] = element(s, old, given)
		}
	}
	return out
}

// shaped reports whether each piece of one List is as long as that of the other.
func (l List[T]) shaped(o List[T]) bool {
	return slices.EqualFunc(l.pieces, o.pieces, func(a, b []T) bool { return len(a) == len(b) })
}

// Diff walks two Lists that are ascending by compare, and calls changed for
// each pair that is not the same element; the side that lacks one is the zero
// T. Pieces that the Lists share are passed over as wholes.
func Diff[T comparable](before, after List[T], compare func(a, b T) int, changed func(a, b T)) {
	var none T
	a, b := cursor[T]{rest: before.pieces}, cursor[T]{rest: after.pieces}
	for a.more() && b.more() {
		if a.at == 0 && b.at == 0 && SameSlice(a.rest[0], b.rest[0]) {
			a.rest, b.rest = a.rest[1:], b.rest[1:]
			continue
		}
		x, y := a.now(), b.now()
		if x == y {
			a.step()
			b.step()
			continue
		}
		c := compare(x, y)
		switch {
		case c < 0:
			changed(x, none)
		case c > 0:
			changed(none, y)
		default:
			changed(x, y)
		}
		if c <= 0 {
			a.step()
		}
		if c >= 0 {
			b.step()
		}
	}
	for ; a.more(); a.step() {
		changed(a.now(), none)
	}
	for ; b.more(); b.step() {
		changed(none, b.now())
	}
}

// cursor is a place in a List.
type cursor[T any] struct {
	rest [][]T
	at   int
}

func (c *cursor[T]) more() bool { return len(c.rest) > 0 }

func (c *cursor[T]) now() T { return c.rest[0][c.at] }

func (c *cursor[T]) step() {
	if c.at++; c.at == len(c.rest[0]) {
		c.rest, c.at = c.rest[1:], 0
	}
}

// SameSlice reports whether two slices are one: they share their elements in
// memory, or are empty both.
func SameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
