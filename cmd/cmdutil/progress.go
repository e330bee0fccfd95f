package cmdutil

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/charmbracelet/x/ansi"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Progress tells a waiting person what goes on: a line with a spinner on a
// terminal, plain lines elsewhere and where words stay still. Steps follow each
// other. It may be used from several goroutines.
type Progress struct {
	out   io.Writer
	tty   bool
	width int
	frame time.Duration

	mu    sync.Mutex
	step  string      // the step under way; "" if none
	note  string      // what goes on in it
	began time.Time   // when it began
	late  *time.Timer // of a step that does not show yet
	stop  chan struct{}
	done  chan struct{}
}

// NewProgress tells on the error stream.
func NewProgress(s *Streams) *Progress {
	return &Progress{out: s.Err, tty: s.ErrTTY && s.Style == Drawn, width: max(s.ErrWidth, 20), frame: 100 * time.Millisecond}
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
	p.step, p.note, p.began = Clean(step), "", time.Now()
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
	p.print("\r\x1b[K %c %s", frames[i%len(frames)], progressLine(p.step, p.note, time.Since(p.began), p.width-4))
}

// leastStep is how much of a step stays, at least, beside a long note.
const leastStep = 16

// progressLine is a step, how far it is, and for how long it has been under way. A line that wraps could not be
// drawn over: without room, the step is cut first, which stands there from the start, and then the end of the note.
func progressLine(step, note string, elapsed time.Duration, width int) string {
	took := ""
	if elapsed >= time.Second {
		took = " (" + duration.HumanDuration(elapsed) + ")"
	}
	width = max(width-ansi.StringWidth(took), 0)
	if note == "" {
		return ansi.Truncate(step, width, "…") + took
	}
	note = ": " + note
	room := max(width-ansi.StringWidth(note), min(leastStep, ansi.StringWidth(step), width))
	return ansi.Truncate(ansi.Truncate(step, room, "…")+note, width, "…") + took
}

// print writes words about the work; that they cannot be written must not end it.
func (p *Progress) print(format string, args ...any) {
	_, _ = fmt.Fprintf(p.out, format, args...)
}
