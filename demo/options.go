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
	// Dir is the folder of the demo; empty means DefaultDir. Demos in different
	// folders can run at the same time.
	Dir string
	// Runtime is the kind of clusters; empty means RuntimeLocal.
	Runtime string
	// NodeImage is the image of the nodes of kind clusters; empty means that of kind.
	NodeImage string
	// Image is that of meshctl in kind clusters; empty means one of the binary.
	Image string
	// Proxies says whether pods have real proxies; empty means ProxiesAuto.
	Proxies ProxyMode
	// Relay has the last cluster reached through its agent, which dials the management plane.
	Relay bool
	// Meshctl is the path of the meshctl binary to run; empty means the running
	// binary.
	Meshctl string
	// Progress receives the steps of Up and Down.
	Progress Progress
	// Terminal says that notes to Progress overwrite each other, so that there
	// may be many of them.
	Terminal bool
	// Out receives the summary of Up.
	Out io.Writer
}

// ProxyMode says whether pods have real proxies.
type ProxyMode string

// Modes of proxies: where the machine permits them, always (it is an error if it
// does not), and never.
const (
	ProxiesAuto ProxyMode = "auto"
	ProxiesOn   ProxyMode = "on"
	ProxiesOff  ProxyMode = "off"
)

// Progress shows a list of steps. It is used from several goroutines.
type Progress interface {
	// Start begins a step, after the previous one has ended.
	Start(step string)
	// Note says how far the step is.
	Note(format string, args ...any)
	// End ends the step; err is nil if it succeeded.
	End(err error)
}

// DefaultDir returns the folder of a demo without --dir.
func DefaultDir() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("demo: finding the cache folder: %w; set a folder with --dir", err)
	}
	return filepath.Join(cache, "meshctl", "demo"), nil
}

// complete sets the defaults.
func (o Options) complete() (Options, error) {
	if o.Dir == "" {
		dir, err := DefaultDir()
		if err != nil {
			return o, err
		}
		o.Dir = dir
	}
	// The processes have other working directories, so the path must be absolute.
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
	if o.Proxies == "" {
		o.Proxies = ProxiesAuto
	}
	if o.Proxies != ProxiesAuto && o.Proxies != ProxiesOn && o.Proxies != ProxiesOff {
		return o, fmt.Errorf("demo: proxies %q: want %s, %s or %s", o.Proxies, ProxiesAuto, ProxiesOn, ProxiesOff)
	}
	if o.Progress == nil {
		o.Progress = silent{}
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	return o, nil
}

// ErrNotRunning is returned if there is no running demo.
var ErrNotRunning = errors.New("no demo is running; start one with `meshctl demo up`")

type silent struct{}

func (silent) Start(string)        {}
func (silent) Note(string, ...any) {}
func (silent) End(error)           {}
