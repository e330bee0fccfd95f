package cmdutil

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Progress tells a waiting person what goes on: a line with a spinner on a
// terminal, plain lines elsewhere. Steps follow each other. It may be used
// from several goroutines.
type Progress struct {
	out   io.Writer
	tty   bool
	width int
	frame time.Duration

	mu   sync.Mutex
	step string      // the step under way; "" if none
	note string      // what goes on in it
	late *time.Timer // of a step that does not show yet
	stop chan struct{}
	done chan struct{}
}

// NewProgress tells on the error stream.
func NewProgress(s *Streams) *Progress {
	return &Progress{out: s.Err, tty: s.ErrTTY, width: max(s.ErrWidth, 20), frame: 100 * time.Millisecond}
}

// Start ends the step before as done, if there is one, and begins another.
func (p *Progress) Start(step string) {
	p.End(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(step)
}

// StartLate is Start of a step that shows only if it takes longer than that.
func (p *Progress) StartLate(step string, after time.Duration) {
	p.End(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	var late *time.Timer
	late = time.AfterFunc(after, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.late == late { // or it has ended
			p.late = nil
			p.begin(step)
		}
	})
	p.late = late
}

// begin shows a step. The caller holds the lock.
func (p *Progress) begin(step string) {
	p.step, p.note = Clean(step), ""
	if !p.tty {
		p.print(" • %s ...\n", p.step)
		return
	}
	p.stop, p.done = make(chan struct{}), make(chan struct{})
	go p.spin(p.stop, p.done)
}

// Note says how far the step under way is; elsewhere than on a terminal it is
// a line of its own.
func (p *Progress) Note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.note = Clean(fmt.Sprintf(format, args...))
	if !p.tty {
		p.print("   %s\n", p.note)
	}
}

// End ends the step under way: done if err is nil, else failed. The error
// itself is for the caller to show.
func (p *Progress) End(err error) {
	p.mu.Lock()
	stop, done := p.stop, p.done
	p.stop, p.done = nil, nil
	if p.late != nil {
		p.late.Stop()
		p.late = nil
	}
	p.mu.Unlock()
	if stop != nil {
		close(stop)
		<-done
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.step == "" {
		return
	}
	mark := "✓"
	if err != nil {
		mark = "✗"
	}
	if p.tty {
		p.print("\r\x1b[K")
	}
	p.print(" %s %s\n", mark, p.step)
	p.step, p.note = "", ""
}

// spin redraws the line until stop is closed.
func (p *Progress) spin(stop, done chan struct{}) {
	defer close(done)
	tick := time.NewTicker(p.frame)
	defer tick.Stop()
	for i := 0; ; i++ {
		p.draw(i)
		select {
		case <-stop:
			return
		case <-tick.C:
		}
	}
}

func (p *Progress) draw(i int) {
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	p.mu.Lock()
	defer p.mu.Unlock()
	line := p.step
	if p.note != "" {
		line += ": " + p.note
	}
	// A line that wraps could not be drawn over.
	if runes := []rune(line); len(runes) > p.width-4 {
		line = string(runes[:p.width-5]) + "…"
	}
	p.print("\r\x1b[K %c %s", frames[i%len(frames)], line)
}

// print writes words about the work; that they cannot be written must not end it.
func (p *Progress) print(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format, args...)
}
