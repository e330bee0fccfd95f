package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/meshctl/meshctl/demo/files"
	"github.com/meshctl/meshctl/demo/proc"
)

// Phase says how far a demo is.
type Phase string

// Phases of a demo.
const (
	// Starting: Up is at work, or was killed.
	Starting Phase = "starting"
	// Running: Up has finished.
	Running Phase = "running"
	// Failed: Up failed and has cleaned up; the logs are still there.
	Failed Phase = "failed"
)

const (
	stateFile      = "state.json"
	lockFile       = "lock"
	kubeconfigFile = "kubeconfig"
	logsDir        = "logs"
)

// state is what stands in state.json of a demo's folder.
type state struct {
	Phase   Phase     `json:"phase"`
	Runtime string    `json:"runtime"`
	Created time.Time `json:"created"`
	// Owner is the command that is bringing the demo up.
	Owner proc.Process `json:"owner"`
	// Clusters are the names, the management cluster first.
	Clusters []string          `json:"clusters"`
	Versions map[string]string `json:"versions,omitempty"`
	// Serve is the management plane; Metrics its address, host:port.
	Serve   proc.Process `json:"serve,omitzero"`
	Metrics string       `json:"metrics,omitempty"`
}

// readState returns fs.ErrNotExist if the folder holds no demo.
func readState(dir string) (s state, err error) {
	if err := files.ReadState(filepath.Join(dir, stateFile), &s); err != nil {
		return s, fmt.Errorf("demo: %w", err)
	}
	return s, nil
}

func (s state) write(dir string) error {
	if err := files.WriteState(filepath.Join(dir, stateFile), s); err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	return nil
}

// busy says whether another command is bringing this demo up.
func (s state) busy() bool { return s.Phase == Starting && s.Owner.Alive() }

// claim makes the folder the caller's. It returns the state of a demo that is
// there and finished, or a new one, written down, that the caller has to fill.
// What a failed or killed Up left is passed to clearRemains first.
func claim(opts Options, clearRemains func(state) error) (s state, fresh bool, err error) {
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return state{}, false, fmt.Errorf("demo: making its folder: %w", err)
	}
	if err := refuseForeign(opts.Dir); err != nil {
		return state{}, false, err
	}
	// Two commands that start at once must not both find the folder free.
	unlock, err := lockedfile.MutexAt(filepath.Join(opts.Dir, lockFile)).Lock()
	if err != nil {
		return state{}, false, fmt.Errorf("demo: locking its folder: %w", err)
	}
	defer unlock()
	s, err = readState(opts.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return state{}, false, err
	case s.busy():
		return state{}, false, fmt.Errorf("demo: `%s` (process %d) is bringing one up in %s; wait for it, or name another folder with --dir", s.Owner.Name, s.Owner.PID, opts.Dir)
	case s.Phase == Running:
		return s, false, nil
	default:
		if err := clearRemains(s); err != nil {
			return state{}, false, err
		}
	}
	owner, err := proc.Self()
	if err != nil {
		return state{}, false, fmt.Errorf("demo: %w", err)
	}
	s = state{Phase: Starting, Runtime: opts.Runtime, Owner: owner, Created: time.Now().UTC(), Clusters: clusterNames()}
	return s, true, s.write(opts.Dir)
}

// refuseForeign protects a folder that is somebody else's: down removes what is in it.
func refuseForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	for _, entry := range entries {
		if !slices.Contains(contents(), entry.Name()) {
			return fmt.Errorf("demo: folder %s is not a demo's: it holds %s; name an empty or new one with --dir", dir, entry.Name())
		}
	}
	return nil
}

// contents are the names of all that a demo puts into its folder.
func contents() []string {
	return append(clusterNames(), stateFile, lockFile, kubeconfigFile, logsDir)
}

// remove removes everything of a demo but the names in keep, and the folder
// itself once it is empty.
func remove(dir string, keep ...string) error {
	var errs []error
	for _, name := range contents() {
		if !slices.Contains(keep, name) {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, name)))
		}
	}
	if len(keep) == 0 {
		errs = append(errs, os.Remove(dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("demo: removing %s: %w", dir, err)
	}
	return nil
}
