package tui

// window is a part of a list, and a cursor in it.
type window struct {
	cursor, offset int
	length, height int
}

// set takes a new length and height and keeps the cursor in sight.
func (w *window) set(length, height int) {
	w.length, w.height = length, max(height, 1)
	w.to(w.cursor)
}

// to moves the cursor.
func (w *window) to(n int) {
	w.cursor = max(0, min(n, w.length-1))
	w.offset = max(w.cursor-w.height+1, min(w.offset, w.cursor))
	w.offset = max(0, min(w.offset, w.length-w.height))
}

// move handles a key that moves the cursor and reports whether it was one.
func (w *window) move(v verb) bool {
	switch v {
	case verbUp:
		w.to(w.cursor - 1)
	case verbDown:
		w.to(w.cursor + 1)
	case verbPageUp:
		w.offset -= w.height
		w.to(w.cursor - w.height)
	case verbPageDown:
		w.offset += w.height
		w.to(w.cursor + w.height)
	case verbTop:
		w.to(0)
	case verbBottom:
		w.to(w.length - 1)
	default:
		return false
	}
	return true
}
