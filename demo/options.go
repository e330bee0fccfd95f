package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Options of all functions of this package.
type Options struct {
	// Dir holds everything that belongs to one demo; empty means DefaultDir.
	// Demos in different folders run side by side.
	Dir string
	// Runtime is the sort of clusters; empty means RuntimeLocal.
	Runtime string
	// Meshctl is the path of the meshctl binary to drive; empty means the
	// binary that is running.
	Meshctl string
	// Progress hears what goes on. Only Up and Down need it.
	Progress Progress
	// Terminal says that notes to Progress overwrite each other, so that there
	// may be many of them.
	Terminal bool
	// Out receives what Up has to say in the end.
	Out io.Writer
}

// Progress shows a list of steps to whoever waits. It is used from several
// goroutines.
type Progress interface {
	// Start begins a step, after the one before has ended.
	Start(step string)
	// Note says how far the step is.
	Note(format string, args ...any)
	// End ends the step; err is nil if it succeeded.
	End(err error)
}

// DefaultDir returns the folder of a demo that was given none.
func DefaultDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("demo: finding the cache folder: %w; name a folder with --dir", err)
	}
	return filepath.Join(cache, "meshctl", "demo"), nil
}

// complete fills in what was left out.
func (o Options) complete() (Options, error) {
	if o.Dir == "" {
		dir, err := DefaultDir()
		if err != nil {
			return o, err
		}
		o.Dir = dir
	}
	// The clusters' processes have working folders of their own.
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return o, fmt.Errorf("demo: folder %s: %w", o.Dir, err)
	}
	o.Dir = dir
	if o.Meshctl == "" {
		o.Meshctl, err = os.Executable()
		if err != nil {
			return o, fmt.Errorf("demo: finding the meshctl binary: %w", err)
		}
	}
	if o.Runtime == "" {
		o.Runtime = RuntimeLocal
	}
	if o.Progress == nil {
		o.Progress = silent{}
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	return o, nil
}

// ErrNotRunning is returned where a demo is needed and there is none.
var ErrNotRunning = errors.New("no demo is running here; start one with `meshctl demo up`")

type silent struct{}

func (silent) Start(string)        {}
func (silent) Note(string, ...any) {}
func (silent) End(error)           {}
