package wizards

import (
	"bytes"
	"context"

	"github.com/AlecAivazis/survey/v2/terminal"
)

// keyReader returns one key at a time. The library makes a new buffer for each
// question, and for the terminal's reports about its cursor; with whole reads,
// what is typed or pasted ahead would be lost with that buffer.
//
// When the command ends, Read returns ctrl-c: the library stops only for a key,
// and restores the terminal only when it stops by itself.
type keyReader struct {
	terminal.FileReader
	ctx     context.Context
	pending []byte
}

const (
	ctrlC  = 3
	escape = 0x1b
)

// Read waits for a key or for the end of the command. A read that is still
// blocked then is abandoned: no question follows.
func (k *keyReader) Read(into []byte) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	if len(k.pending) == 0 {
		if err := k.wait(); err != nil {
			return 0, err
		}
	}
	if ended(k.ctx) {
		k.pending = []byte{ctrlC}
	}
	n := copy(into, k.pending[:firstKey(k.pending)])
	k.pending = k.pending[n:]
	return n, nil
}

func ended(ctx context.Context) bool { return ctx.Err() != nil }

// wait waits until something is pending, or until the command ends.
func (k *keyReader) wait() error {
	type result struct {
		data []byte
		err  error
	}
	if ended(k.ctx) {
		return nil
	}
	done := make(chan result, 1)
	go func() {
		buffer := make([]byte, 4096)
		n, err := k.FileReader.Read(buffer)
		done <- result{buffer[:n], err}
	}()
	select {
	case r := <-done:
		k.pending = r.data
		if len(r.data) > 0 {
			return nil
		}
		return r.err
	case <-k.ctx.Done():
		return nil
	}
}

// firstKey is the length of the first key. An escape sequence (ECMA-48 section
// 5.4) is one key: the bytes that follow distinguish it from the key Esc.
func firstKey(data []byte) int {
	if len(data) < 3 || data[0] != escape || data[1] != '[' && data[1] != 'O' {
		return min(len(data), 1)
	}
	final := bytes.IndexFunc(data[2:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
	if final < 0 {
		return len(data)
	}
	return final + 3
}
