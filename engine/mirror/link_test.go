package mirror

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestAnAnswerFromBeforeResumesNothing: while a probe was under way, a write got no answer. The probe that is asked for
// because of it decides whether writing goes on, not the answer to the one before.
func TestAnAnswerFromBeforeResumesNothing(t *testing.T) {
	t.Parallel()
	link := &Link{}
	conn := &Connection{Mirror: New(func(int64) {}), link: link, asked: make(chan time.Duration, 1)}
	link.Use(conn)
	link.Resume(conn)
	assert.False(t, link.State().Suspended)

	assert.True(t, link.Suspend(conn, 1))
	assert.False(t, link.Suspend(conn, 2), "it is already")
	link.Resume(conn)
	assert.True(t, link.State().Suspended, "the probe that was asked for has not begun")
	<-conn.Asked()
	link.Lose(errors.New("no answer"))
	assert.Error(t, link.State().Err)
	link.Resume(conn)
	assert.Equal(t, LinkState{Conn: conn}, link.State())
}
