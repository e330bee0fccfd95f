package wire

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// running is a process on this machine.
type running struct {
	pid    int
	folder string
	// network and pids are its namespaces, see namespaces(7).
	network, pids string
	// role is the first argument of the data plane's program, or the command of meshctl's demo.
	role string
}

// working lists the processes that work in or below a folder. Those of other users
// are left out.
func working(t *testing.T, folder string) (list []running) {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		dir := filepath.Join("/proc", entry.Name())
		at, err := os.Readlink(filepath.Join(dir, "cwd"))
		if err != nil {
			continue // it ended, or is another user's
		}
		at = strings.TrimSuffix(at, " (deleted)")
		if within, err := filepath.Rel(folder, at); err != nil || strings.HasPrefix(within, "..") {
			continue
		}
		p := running{pid: pid, folder: at}
		p.network, _ = os.Readlink(filepath.Join(dir, "ns/net"))
		p.pids, _ = os.Readlink(filepath.Join(dir, "ns/pid"))
		if line, err := os.ReadFile(filepath.Join(dir, "cmdline")); err == nil {
			arguments := strings.Split(string(line), "\x00")
			if len(arguments) > 2 && arguments[1] == "demo" {
				arguments = arguments[1:]
			}
			if len(arguments) > 1 {
				p.role = arguments[1]
			}
		}
		if p.pids != "" { // it has not ended meanwhile
			list = append(list, p)
		}
	}
	return list
}

// programs are the processes of a pod by their role.
func programs(t *testing.T, folder string) map[string]int {
	t.Helper()
	pids := map[string]int{}
	for _, p := range working(t, folder) {
		pids[p.role] = p.pid
	}
	return pids
}

// holding lists what keeps a network namespace: threads in it, and open handles, of the
// processes that work in or below a folder.
func holding(t *testing.T, folder, network string) (holders []string) {
	t.Helper()
	for _, p := range working(t, folder) {
		dir := filepath.Join("/proc", strconv.Itoa(p.pid))
		for _, pattern := range []string{"task/*/ns/net", "fd/*"} {
			links, err := filepath.Glob(filepath.Join(dir, pattern))
			require.NoError(t, err)
			for _, link := range links {
				if to, err := os.Readlink(link); err == nil && to == network {
					holders = append(holders, link)
				}
			}
		}
	}
	return holders
}
