package relay

// Objects is how many objects there are, without what is Written of those that are not an Input's.
func (r *Receiver) Objects() int {
	n := 0
	for kind, k := range r.kinds {
		if _, written := WrittenNamed(kind); !written {
			n += len(k.held.of)
		}
	}
	return n
}
