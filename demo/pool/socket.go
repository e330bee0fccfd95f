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

// question asks for an API server, which is lent until the connection ends: with the test, or
// with its process.
type question struct {
	Holder string `json:"holder"`
	Index  int    `json:"index"`
}

type answer struct {
	Dir   string `json:"dir,omitempty"`
	Error string `json:"error,omitempty"`
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
	var asked question
	incoming := json.NewDecoder(connection)
	if err := incoming.Decode(&asked); err != nil {
		return // it ended before it asked
	}
	loan, err := p.Lend(ctx, asked.Holder, asked.Index)
	said := answer{Dir: loan.Dir}
	if err != nil {
		said.Error = err.Error()
	} else {
		defer loan.Return()
	}
	if json.NewEncoder(connection).Encode(said) == nil {
		_, _ = incoming.Token() // nothing comes until it ends
	}
}

// Ask asks the pool at an address, which is that of a Unix socket.
func Ask(ctx context.Context, address, holder string, index int) (Loan, error) {
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
	var said answer
	err = json.NewEncoder(connection).Encode(question{holder, index})
	if err == nil {
		err = json.NewDecoder(connection).Decode(&said)
	}
	if err == nil && said.Error != "" {
		err = errors.New(said.Error)
	}
	if err != nil {
		end()
		return Loan{}, fmt.Errorf("pool of API servers: %w", err)
	}
	return Loan{Dir: said.Dir, back: end}, nil
}
