package wizards

import (
	"context"
	"io"
	"os"
	"testing"
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
