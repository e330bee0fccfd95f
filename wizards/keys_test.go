package wizards

import (
	"context"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestKeysComeOneByOne(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = reader.Close(); _ = writer.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	k := &keyReader{FileReader: reader, ctx: ctx}
	_, err = writer.WriteString("a\x1b[B\x1b[24;80R\x1bOAé\r\x1b[12")
	require.NoError(t, err)
	into := make([]byte, 16)
	for _, want := range []string{"a", "\x1b[B", "\x1b[24;80R", "\x1bOA", "\xc3", "\xa9", "\r", "\x1b[12"} {
		n, err := k.Read(into)
		require.NoError(t, err)
		assert.Equal(t, want, string(into[:n]))
	}
	time.AfterFunc(10*time.Millisecond, cancel)
	for range 2 {
		n, err := k.Read(into)
		require.NoError(t, err)
		assert.Equal(t, "\x03", string(into[:n]), "the end of the command is ctrl-c")
	}
}

func TestKeysEnd(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	t.Cleanup(func() { _ = reader.Close() })
	_, err = writer.WriteString("\x1b")
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	k := &keyReader{FileReader: reader, ctx: t.Context()}
	into := make([]byte, 16)
	n, err := k.Read(into)
	require.NoError(t, err)
	assert.Equal(t, "\x1b", string(into[:n]))
	_, err = k.Read(into)
	require.ErrorIs(t, err, io.EOF)
}

// typed are what a terminal gives to one read after the other. It is closed at the end.
type typed chan string

func (t typed) Read(p []byte) (int, error) {
	keys, open := <-t
	if !open {
		return 0, io.EOF
	}
	return copy(p, keys), nil
}

func (typed) Fd() uintptr { return 0 }

// TestEscAndEscapeSequences: the key Esc goes back, and what begins with it does not, even if the
// rest comes later, in time that does not pass by itself.
func TestEscAndEscapeSequences(t *testing.T) {
	t.Parallel()
	synctest.Test(t, escAndEscapeSequences)
}

func escAndEscapeSequences(t *testing.T) {
	terminal := make(typed, 1)
	defer close(terminal)
	k := &keyReader{FileReader: terminal, ctx: t.Context(), back: true}
	into := make([]byte, 16)
	read := func() string {
		n, err := k.Read(into)
		require.NoError(t, err)
		return string(into[:n])
	}
	write := func(s string) { terminal <- s }
	write("\x1b")
	assert.Equal(t, "\x03", read(), "the library stops for ctrl-c")
	assert.True(t, k.escaped)
	write("x")
	assert.Equal(t, "x", read(), "the read that waited for the rest was not lost")

	k.escaped = false
	write("\x1b\x1b[A\x1bj\r")
	assert.Equal(t, "\x03", read())
	assert.True(t, k.escaped, "Esc, and then an arrow")
	k.escaped = false
	assert.Equal(t, "\x1b[A", read())
	assert.Equal(t, "\r", read(), "Alt and a letter is no key")

	for _, parts := range [][2]string{{"\x1b", "[B"}, {"\x1b[", "B"}, {"\x1b[24", ";80R"}, {"\x1b", "OA"}} {
		write(parts[0])
		time.AfterFunc(time.Millisecond, func() { write(parts[1]) })
		assert.Equal(t, parts[0]+parts[1], read())
	}
	assert.False(t, k.escaped)

	k.back = false
	write("\x1b")
	assert.Equal(t, "\x1b", read(), "where there is no way back")
	assert.False(t, k.escaped)
}
