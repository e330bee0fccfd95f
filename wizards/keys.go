package wizards

import (
	"bytes"
	"context"
	"time"

	"github.com/AlecAivazis/survey/v2/terminal"
)

// keyReader returns one key at a time. The library makes a new buffer for each
// question, and for the terminal's reports about its cursor; with whole reads,
// what is typed or pasted ahead would be lost with that buffer.
//
// When the command ends, Read returns ctrl-c: the library stops only for a key,
// and restores the terminal only when it stops by itself. The same is done for
// the key Esc where it goes back; escaped distinguishes the two.
type keyReader struct {
	terminal.FileReader
	ctx     context.Context
	pending []byte
	// reading is the read under way; nil if there is none.
	reading chan result
	// back: the key Esc goes back.
	back bool
	// escaped: it was pressed.
	escaped bool
}

// result is that of a read.
type result struct {
	data []byte
	err  error
}

const (
	ctrlC  = 3
	escape = 0x1b
)

// escapeWait is how long the rest of an escape sequence may take to arrive, as over a slow network,
// before its first byte counts as the key Esc.
const escapeWait = 50 * time.Millisecond

// Read waits for a key or for the end of the command. A read that is still
// blocked then is abandoned: no question follows.
func (k *keyReader) Read(into []byte) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	for {
		if len(k.pending) == 0 {
			if err := k.wait(nil); err != nil {
				return 0, err
			}
		}
		if unfinished(k.pending) {
			// An error is met again by the next read.
			_ = k.wait(time.After(escapeWait))
		}
		if ended(k.ctx) {
			k.pending = []byte{ctrlC}
		}
		key := firstKey(k.pending)
		if isMeta(k.pending[:key]) {
			// The library takes Alt and a letter for an error.
			k.pending = k.pending[key:]
			continue
		}
		if k.back && key == 1 && k.pending[0] == escape {
			k.escaped, k.pending[0] = true, ctrlC
		}
		n := copy(into, k.pending[:key])
		k.pending = k.pending[n:]
		return n, nil
	}
}

func ended(ctx context.Context) bool { return ctx.Err() != nil }

// wait waits until more is pending, or until the command or the time ends.
func (k *keyReader) wait(timeout <-chan time.Time) error {
	if ended(k.ctx) {
		return nil
	}
	if k.reading == nil {
		reading := make(chan result, 1)
		go func() {
			buffer := make([]byte, 4096)
			n, err := k.FileReader.Read(buffer)
			reading <- result{buffer[:n], err}
		}()
		k.reading = reading
	}
	select {
	case r := <-k.reading:
		k.reading = nil
		k.pending = append(k.pending, r.data...)
		if len(r.data) > 0 {
			return nil
		}
		return r.err
	case <-timeout:
		return nil
	case <-k.ctx.Done():
		return nil
	}
}

// firstKey is the length of the first key. An escape sequence (ECMA-48 section
// 5.4) is one key: the bytes that follow distinguish it from the key Esc. Alt and
// a letter is Esc and the letter.
func firstKey(data []byte) int {
	if len(data) < 2 || data[0] != escape {
		return min(len(data), 1)
	}
	if data[1] != '[' && data[1] != 'O' {
		if data[1] > ' ' && data[1] < 0x7f {
			return 2
		}
		return 1
	}
	final := finalByte(data)
	if final < 0 {
		return len(data)
	}
	return final + 1
}

// finalByte is the index of the byte that ends an escape sequence, or -1.
func finalByte(data []byte) int {
	const introducer = 2
	final := bytes.IndexFunc(data[introducer:], func(r rune) bool { return r >= 0x40 && r <= 0x7e })
	if final < 0 {
		return -1
	}
	return final + introducer
}

// unfinished reports whether data may be the beginning of an escape sequence.
func unfinished(data []byte) bool {
	switch {
	case len(data) == 0 || data[0] != escape:
		return false
	case len(data) == 1:
		return true
	}
	return (data[1] == '[' || data[1] == 'O') && finalByte(data) < 0
}

// isMeta reports whether a key is Alt and a letter.
func isMeta(key []byte) bool {
	return len(key) == 2 && key[0] == escape && key[1] != '[' && key[1] != 'O'
}
