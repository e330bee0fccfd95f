package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proc"
)

// ErrNoCluster is returned by Open for a folder that holds no cluster.
var ErrNoCluster = errors.New("no cluster here")

const stateFile = "state.json"

// state is what stands in a cluster's state.json.
type state struct {
	Name   string         `json:"name"`
	Index  int            `json:"index"`
	Helper string         `json:"helper"`
	Ports  map[string]int `json:"ports"`
	// Processes stand in the order in which they were started.
	Processes []proc.Process `json:"processes"`
}

func readState(dir string) (state, error) {
	path := filepath.Join(dir, stateFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{}, fmt.Errorf("%s: %w", dir, ErrNoCluster)
	}
	if err != nil {
		return state{}, fmt.Errorf("reading a cluster's state: %w", err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return state{}, fmt.Errorf("%s: %w; the file is damaged: end the processes it names and remove the folder", path, err)
	}
	return s, nil
}

func (s state) write(dir string) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("cluster %s: encoding its state: %w", s.Name, err)
	}
	return kube.WriteFile(filepath.Join(dir, stateFile), append(data, '\n'))
}

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
