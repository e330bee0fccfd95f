package cluster

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDetouring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dialled []string
		answers := map[string]error{"stored": errors.New("no such host"), "one": errors.New("refused")}
		asked := 0
		dial := detouring(func(ctx context.Context, _, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			if address == "silent" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			if err := answers[address]; err != nil {
				return nil, err
			}
			conn, _ := net.Pipe()
			return conn, nil
		}, func(context.Context) []string {
			asked++
			return []string{"one", "two"}
		})
		take := func(address string) ([]string, error) {
			dialled = nil
			conn, err := dial(t.Context(), "tcp", address)
			if err == nil {
				require.NoError(t, conn.Close())
			}
			return dialled, err
		}

		got, err := take("good")
		require.NoError(t, err)
		assert.Equal(t, []string{"good"}, got)
		assert.Zero(t, asked, "nobody is asked while the stored address works")
		got, err = take("stored")
		require.NoError(t, err)
		assert.Equal(t, []string{"stored", "one", "two"}, got)
		got, err = take("stored")
		require.NoError(t, err)
		assert.Equal(t, []string{"two"}, got)
		assert.Equal(t, 1, asked)

		answers["two"] = errors.New("refused")
		_, err = take("stored")
		require.EqualError(t, err, "no such host", "the reason is that of the stored address")
		answers["two"] = nil
		began := time.Now()
		got, err = take("silent")
		require.NoError(t, err)
		assert.Equal(t, []string{"two"}, got, "it is taken still")

		silent := detouring(func(ctx context.Context, _, address string) (net.Conn, error) {
			if address == "silent" {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			conn, _ := net.Pipe()
			return conn, nil
		}, func(context.Context) []string { return []string{"two"} })
		_, err = silent(t.Context(), "tcp", "silent")
		require.NoError(t, err)
		assert.Equal(t, directTimeout, time.Since(began))
	})
}
