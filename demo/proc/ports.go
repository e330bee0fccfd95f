package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/lockedfile"
)

const (
	// The preferred ports stay below NodePorts (30000) and, on most systems,
	// below the ephemeral ports, which the kernel uses for outgoing connections.
	firstPort = 20000
	lastPort  = 29999
	// enoughPorts is the minimum size of a usable range.
	enoughPorts = 1000
)

// ReservePorts reserves n different ports of 127.0.0.1 on which no process listens.
// The reservation belongs to owner, a file or folder, and lasts until the owner is
// removed: until then no process of this user reserves one of the ports, whether
// or not the caller still runs, and whether or not a process listens there.
//
// Other programs ignore reservations, see PortInUse.
func ReservePorts(owner string, n int) ([]int, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("ports: finding the cache folder: %w; set HOME or XDG_CACHE_HOME", err)
	}
	owner, err = filepath.Abs(owner)
	if err != nil {
		return nil, fmt.Errorf("ports: %w", err)
	}
	low, high := ephemeralPorts()
	return reservations{filepath.Join(cache, "meshctl", "ports")}.add(owner, n, candidates(low, high))
}

// PortInUse reports whether a process listens on a port of 127.0.0.1 or, on Linux,
// of any address.
func PortInUse(port int) bool {
	l, err := listen(port)
	if err != nil {
		return true
	}
	_ = l.Close()
	return false
}

// listen binds to all addresses, which fails if any of them is in use; not on
// macOS, which asks the user about every program that listens beyond 127.0.0.1.
func listen(port int) (net.Listener, error) {
	host := ""
	if runtime.GOOS != "linux" {
		host = "127.0.0.1"
	}
	return net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}

// reservations is a folder with a symbolic link for each reserved port: its name
// is the port, its target the owner. A link without a target has expired.
type reservations struct{ dir string }

// add reserves n of the candidates.
func (r reservations) add(owner string, n int, candidates []int) ([]int, error) {
	if err := os.MkdirAll(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("ports: %w", err)
	}
	unlock, err := lockedfile.MutexAt(filepath.Join(r.dir, "lock")).Lock()
	if err != nil {
		return nil, fmt.Errorf("ports: %w", err)
	}
	defer unlock()
	reserved, err := r.active()
	if err != nil {
		return nil, err
	}
	ports := make([]int, 0, n)
	for _, i := range rand.Perm(len(candidates)) {
		if len(ports) == n {
			break
		}
		if port := candidates[i]; !reserved[port] && !PortInUse(port) {
			ports = append(ports, port)
		}
	}
	if len(ports) < n {
		return nil, fmt.Errorf("ports: only %d of %d are free, and %d are reserved; remove the folders of old demos and tests, to which the links in %s point", len(ports), n, len(reserved), r.dir)
	}
	for _, port := range ports {
		if err := os.Symlink(owner, r.link(port)); err != nil {
			return nil, fmt.Errorf("ports: %w", err)
		}
	}
	return ports, nil
}

// active lists the reserved ports, and removes expired links.
func (r reservations) active() (map[int]bool, error) {
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		return nil, fmt.Errorf("ports: %w", err)
	}
	reserved := map[int]bool{}
	for _, entry := range entries {
		port, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue // the lock
		}
		if _, err := os.Stat(r.link(port)); !errors.Is(err, fs.ErrNotExist) {
			reserved[port] = true
			continue
		}
		if err := os.Remove(r.link(port)); err != nil {
			return nil, fmt.Errorf("ports: %w", err)
		}
	}
	return reserved, nil
}

func (r reservations) link(port int) string { return filepath.Join(r.dir, strconv.Itoa(port)) }

// candidates lists the ports to choose from: the preferred ones; if too many of
// these are ephemeral, all that are not; if these are too few as well, the
// preferred ones again.
func candidates(ephemeralLow, ephemeralHigh int) []int {
	between := func(first, last int) (ports []int) {
		for port := first; port <= last; port++ {
			if port < ephemeralLow || port > ephemeralHigh {
				ports = append(ports, port)
			}
		}
		return ports
	}
	for _, r := range [][2]int{{firstPort, lastPort}, {1024, 65535}} {
		if ports := between(r[0], r[1]); len(ports) >= enoughPorts {
			return ports
		}
	}
	ephemeralLow, ephemeralHigh = 0, 0
	return between(firstPort, lastPort)
}

// ephemeralPorts is the range from which the kernel takes the local port of an
// outgoing connection: on Linux as in ip(7), elsewhere that of RFC 6335.
func ephemeralPorts() (low, high int) {
	if data, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range"); err == nil {
		if fields := strings.Fields(string(data)); len(fields) == 2 {
			low, errLow := strconv.Atoi(fields[0])
			high, errHigh := strconv.Atoi(fields[1])
			if errLow == nil && errHigh == nil {
				return low, high
			}
		}
	}
	return 49152, 65535
}
