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

// Phase is the phase of a demo.
type Phase string

// Phases of a demo.
const (
	// Starting: Up runs, or was killed.
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
	proxiesDir     = "proxies"
)

// state is the content of state.json in a demo's folder.
type state struct {
	Phase   Phase     `json:"phase"`
	Runtime string    `json:"runtime"`
	Created time.Time `json:"created"`
	// Owner is the command that starts the demo.
	Owner proc.Process `json:"owner"`
	// Clusters are the names, the management cluster first.
	Clusters []string          `json:"clusters"`
	Versions map[string]string `json:"versions,omitempty"`
	// Proxies is the process that runs all proxies; NoProxies is why there are
	// none.
	Proxies   proc.Process `json:"proxies,omitzero"`
	NoProxies string       `json:"noProxies,omitempty"`
	// Agents are those of the clusters, with what they need.
	Agents []proc.Process `json:"agents,omitempty"`
	// Serve is the management plane; Metrics and Webhook are its addresses, host:port.
	Serve   proc.Process `json:"serve,omitzero"`
	Metrics string       `json:"metrics,omitempty"`
	Webhook string       `json:"webhook,omitempty"`
	// Relay is how the agent of the last cluster dials the management plane; nil if that dials all clusters.
	Relay *relayState `json:"relay,omitempty"`
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

// busy reports whether another command is starting this demo.
func (s state) busy() bool { return s.Phase == Starting && s.Owner.Alive() }

// claim takes ownership of the folder. It returns the state of the running demo,
// or a new, stored state that the caller fills in. clearRemains first removes what
// a failed or killed Up left.
func claim(opts Options, clearRemains func(state) error) (s state, fresh bool, err error) {
	if err := os.MkdirAll(opts.Dir, 0o700); err != nil {
		return state{}, false, fmt.Errorf("demo: creating its folder: %w", err)
	}
	if err := rejectForeign(opts.Dir); err != nil {
		return state{}, false, err
	}
	// Two commands that start at the same time must not both claim the folder.
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
		return state{}, false, fmt.Errorf("demo: `%s` (process %d) is starting a demo in %s; wait for it, or set another folder with --dir", s.Owner.Name, s.Owner.PID, opts.Dir)
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

// rejectForeign rejects a folder with other files, because Down removes them.
func rejectForeign(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	for _, entry := range entries {
		if !slices.Contains(contents(), entry.Name()) {
			return fmt.Errorf("demo: folder %s is not that of a demo, because it contains %s; set an empty or new folder with --dir", dir, entry.Name())
		}
	}
	return nil
}

// contents are the names of the files in the folder of a demo.
func contents() []string {
	return append(clusterNames(), stateFile, lockFile, kubeconfigFile, faultFile, logsDir, proxiesDir)
}

// remove removes the files of a demo, except those in keep, and the folder if it
// is empty then.
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
