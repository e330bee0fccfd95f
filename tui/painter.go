package tui

import (
	"bytes"
	"runtime/pprof"
	"time"
)

// painter is what the stack of the goroutine names that paints the screen.
const painter = "bubbletea/v2.(*Program).startRenderer.func"

// awaitPainter returns when no goroutine paints the screen any more. Bubble Tea tells its own to end
// before it gives the terminal to another program, and does not wait for it: on a busy machine it stops
// the ticker of the next one, and the screen stays empty for ever
// (github.com/charmbracelet/bubbletea issue 1778, in v2.1.1 still).
func awaitPainter() {
	for {
		var stacks bytes.Buffer
		// Only a failing writer fails.
		if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil || !bytes.Contains(stacks.Bytes(), []byte(painter)) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
