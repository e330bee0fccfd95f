package webhook

import (
	"context"
	"time"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// previewer translates Inputs and edits of them with a memo of its own: the loop of serve never waits for a user, nor a user
// for the loop. It follows the Input of the loop, with which it shares all objects.
type previewer struct {
	// turn is held by the one who uses the rest.
	turn       chan struct{}
	translator *engine.Translator
	state      *snapshot.State
}

func newPreviewer() *previewer {
	return &previewer{turn: make(chan struct{}, 1), translator: engine.New(engine.Options{})}
}

// follow translates an Input ahead, so that the next edit of it is answered fast.
func (p *previewer) follow(ctx context.Context, input *snapshot.Input) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case p.turn <- struct{}{}:
	}
	defer func() { <-p.turn }()
	return p.safely(func() { p.base(input) })
}

func (p *previewer) base(input *snapshot.Input) {
	if p.state == nil || p.state.Input != input {
		p.state = p.translator.Translate(input)
	}
}

// safely starts with an empty memo after a panic, of which an edit may be the cause.
func (p *previewer) safely(f func()) error {
	err := kube.Catch(f)
	if err != nil {
		p.translator, p.state = engine.New(engine.Options{}), nil
	}
	return err
}

// of says what an edit does. A translation cannot be stopped: when ctx ends, it is left to itself, and who asks meanwhile
// waits for it within their own time.
func (p *previewer) of(ctx context.Context, input *snapshot.Input, edit explain.Edit, now time.Time) ([]explain.Caution, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case p.turn <- struct{}{}:
	}
	type answer struct {
		found []explain.Caution
		err   error
	}
	done := make(chan answer, 1)
	go func() {
		defer func() { <-p.turn }()
		var a answer
		broken := p.safely(func() {
			p.base(input)
			a.found, a.err = explain.Foresee(p.state, p.translator.Translate, edit, now)
		})
		if broken != nil {
			a.err = broken
		}
		done <- a
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case a := <-done:
		return a.found, a.err
	}
}
