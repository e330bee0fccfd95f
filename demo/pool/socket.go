package pool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// Variable is the environment variable with the address of a pool that test binaries share.
const Variable = "MESHCTL_TEST_POOL"

// The Wish of a test comes first, as JSON. Its server is lent until the connection ends: with the test, or with its process. Meanwhile,
// each further value asks to keep it as it is then.
type answer struct {
	Dir      string `json:"dir,omitempty"`
	Prepared bool   `json:"prepared,omitempty"`
	Error    string `json:"error,omitempty"`
}

func answerOf(loan Loan, err error) answer {
	said := answer{Dir: loan.Dir, Prepared: loan.Prepared}
	if err != nil {
		said.Error = err.Error()
	}
	return said
}

// Serve lends to other processes until the listener is closed.
func (p *Pool) Serve(ctx context.Context, listener net.Listener) error {
	for {
		connection, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("pool of API servers: %w", err)
		}
		go func() {
			defer func() { _ = connection.Close() }()
			p.serve(ctx, connection)
		}()
	}
}

func (p *Pool) serve(ctx context.Context, connection net.Conn) {
	var w Wish
	incoming, outgoing := json.NewDecoder(connection), json.NewEncoder(connection)
	if err := incoming.Decode(&w); err != nil {
		return // it ended before it asked
	}
	loan, err := p.Lend(ctx, w)
	if err != nil {
		_ = outgoing.Encode(answerOf(loan, err)) // who asked may have ended
		return
	}
	defer loan.Return()
	for outgoing.Encode(answerOf(loan, err)) == nil && incoming.Decode(&struct{}{}) == nil {
		err = loan.Keep(ctx)
	}
}

// Ask asks the pool at an address, which is that of a Unix socket.
func Ask(ctx context.Context, address string, w Wish) (Loan, error) {
	connection, err := new(net.Dialer).DialContext(ctx, "unix", address)
	if err != nil {
		return Loan{}, fmt.Errorf("pool of API servers: %w; unset %s to do without", err, Variable)
	}
	end := sync.OnceFunc(func() {
		if half, ok := connection.(*net.UnixConn); ok && half.CloseWrite() == nil {
			_, _ = io.Copy(io.Discard, half) // until the pool knows
		}
		_ = connection.Close()
	})
	outgoing, incoming := json.NewEncoder(connection), json.NewDecoder(connection)
	ask := func(what any) (said answer, err error) {
		if err = outgoing.Encode(what); err == nil {
			err = incoming.Decode(&said)
		}
		if err == nil && said.Error != "" {
			err = errors.New(said.Error)
		}
		if err != nil {
			err = fmt.Errorf("pool of API servers: %w", err)
		}
		return said, err
	}
	said, err := ask(w)
	if err != nil {
		end()
		return Loan{}, err
	}
	keep := func(context.Context) error {
		_, err := ask(struct{}{})
		return err
	}
	return Loan{Dir: said.Dir, Prepared: said.Prepared, keep: keep, back: end}, nil
}
