package local

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/meshctl/meshctl/demo/files"
	"github.com/meshctl/meshctl/demo/proc"
)

// ErrNoCluster is returned by Open for a folder without a cluster.
var ErrNoCluster = errors.New("no cluster here")

const stateFile = "state.json"

// state is the content of a cluster's state.json.
type state struct {
	Name   string `json:"name"`
	Index  int    `json:"index"`
	Helper string `json:"helper"`
	// RealProxies says that package proxies runs the pods that have a proxy.
	RealProxies bool           `json:"realProxies,omitempty"`
	Ports       map[string]int `json:"ports"`
	// Processes in the order in which they were started.
	Processes []proc.Process `json:"processes"`
}

func readState(dir string) (s state, err error) {
	err = files.ReadState(filepath.Join(dir, stateFile), &s)
	if errors.Is(err, fs.ErrNotExist) {
		return s, fmt.Errorf("%s: %w", dir, ErrNoCluster)
	}
	return s, err
}

func (s state) write(dir string) error { return files.WriteState(filepath.Join(dir, stateFile), s) }

// find returns the process of a role.
func (s state) find(role string) (proc.Process, bool) {
	for _, p := range s.Processes {
		if p.Name == role {
			return p, true
		}
	}
	return proc.Process{}, false
}

// put replaces the process of the same role, or adds it at the end.
func (s *state) put(p proc.Process) {
	for i := range s.Processes {
		if s.Processes[i].Name == p.Name {
			s.Processes[i] = p
			return
		}
	}
	s.Processes = append(s.Processes, p)
}
