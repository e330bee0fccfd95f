//go:build unix

package proc

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reserveFor, when set in the environment, makes this test binary reserve ports
// for that folder and print them instead of running tests.
const reserveFor = "MESHCTL_TEST_RESERVE_FOR"

// The numbers of the test below; without reservations, about 70 of the ports would
// be equal.
const (
	askers    = 6
	questions = 20
	perAnswer = 10
)

func TestMain(m *testing.M) {
	owner := os.Getenv(reserveFor)
	if owner == "" {
		os.Exit(m.Run())
	}
	for range questions {
		ports, err := ReservePorts(owner, perAnswer)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		for _, port := range ports {
			fmt.Println(port)
		}
	}
}

// TestReservationsOfManyProcesses: processes that reserve ports at the same time,
// and one that does so after they exited, get different ports, although none
// listens.
func TestReservationsOfManyProcesses(t *testing.T) {
	t.Parallel()
	cache, owner := t.TempDir(), t.TempDir()
	ask := func(out *strings.Builder) *exec.Cmd {
		command := exec.Command(os.Args[0])
		command.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "HOME="+cache, reserveFor+"="+owner)
		command.Stdout, command.Stderr = out, os.Stderr
		require.NoError(t, command.Start())
		return command
	}
	commands := make([]*exec.Cmd, askers)
	outputs := make([]strings.Builder, askers+1)
	for i := range commands {
		commands[i] = ask(&outputs[i])
	}
	for _, command := range commands {
		require.NoError(t, command.Wait())
	}
	require.NoError(t, ask(&outputs[askers]).Wait())

	given := map[string]bool{}
	total := 0
	for i := range outputs {
		for _, port := range strings.Fields(outputs[i].String()) {
			given[port] = true
			total++
		}
	}
	assert.Equal(t, (askers+1)*questions*perAnswer, total)
	assert.Len(t, given, total, "ports were reserved twice")
}

// somePorts are n reserved ports on which no process listens.
func somePorts(t *testing.T, n int) []int {
	t.Helper()
	ports, err := ReservePorts(t.TempDir(), n)
	require.NoError(t, err)
	return ports
}

//nolint:paralleltest // not while another test starts processes: these have open, until their exec, the listener with which ReservePorts looks
func TestReservationHoldsUntilItsOwnerIsRemoved(t *testing.T) {
	all := somePorts(t, 3)
	r := reservations{filepath.Join(t.TempDir(), "ports")}
	first, second := t.TempDir(), t.TempDir()
	ports, err := r.add(first, 2, all)
	require.NoError(t, err)
	require.Len(t, ports, 2)
	assert.NotEqual(t, ports[0], ports[1])

	_, err = r.add(second, 2, all)
	require.ErrorContains(t, err, "only 1 of 2 are free, and 2 are reserved")
	assert.ErrorContains(t, err, r.dir)

	require.NoError(t, os.Remove(first))
	ports, err = r.add(second, 3, all)
	require.NoError(t, err)
	assert.ElementsMatch(t, all, ports)
}

//nolint:paralleltest // as above
func TestPortOfAnotherProgramIsNotGiven(t *testing.T) {
	all := somePorts(t, 2)
	for _, address := range []string{"127.0.0.1", "0.0.0.0"} {
		foreign, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(all[0])))
		require.NoError(t, err)
		assert.True(t, PortInUse(all[0]), address)

		r := reservations{t.TempDir()}
		_, err = r.add(t.TempDir(), 2, all)
		require.ErrorContains(t, err, "only 1 of 2 are free, and 0 are reserved")
		ports, err := r.add(t.TempDir(), 1, all)
		require.NoError(t, err)
		assert.Equal(t, all[1:], ports)

		require.NoError(t, foreign.Close())
		assert.False(t, PortInUse(all[0]), address)
	}
}

func TestPortsAreNotEphemeral(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ low, high, first, last, count int }{
		"Linux":                         {32768, 60999, 20000, 29999, 10000},
		"RFC 6335":                      {49152, 65535, 20000, 29999, 10000},
		"a range that takes some":       {28000, 65535, 20000, 27999, 8000},
		"a range that takes nearly all": {20500, 65535, 1024, 20499, 19476},
		"a range that takes all":        {1024, 65535, 20000, 29999, 10000},
	} {
		ports := candidates(test.low, test.high)
		assert.Equal(t, test.first, ports[0], name)
		assert.Equal(t, test.last, ports[len(ports)-1], name)
		assert.Len(t, ports, test.count, name)
	}
	low, high := ephemeralPorts()
	assert.Positive(t, low)
	assert.Greater(t, high, low)
}
