package wizards

import (
	"bytes"
	"context"

	"github.com/AlecAivazis/survey/v2/terminal"
)

// keys are those of a person, handed on one by one: what is typed or pasted
// ahead then stays for the questions to come, although the library reads each
// question, and the terminal's answers about its cursor, by a buffer of its own.
//
// The end of the command is ctrl-c: the library heeds keys only, and only by
// itself does it leave the terminal as it was.
type keys struct {
	terminal.FileReader
	ctx     context.Context
	pending []byte
}

const (
	ctrlC  = 3
	escape = 0x1b
)

// Read waits for a key or for the end of the command. A read that is under way
// then is left behind: nothing is asked any more.
func (k *keys) Read(into []byte) (int, error) {
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

// wait reads until there is something pending, or until the command ends.
func (k *keys) wait() error {
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

// firstKey is the length of the first key: of an escape sequence all of it
// (ECMA-48 section 5.4), as it is told from the key Esc by what comes with it.
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
