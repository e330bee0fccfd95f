package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrUnsupported is returned where processes cannot be grouped and guarded.
var ErrUnsupported = errors.New("local processes need Linux or macOS; on Windows, run meshctl in WSL")

// Supported returns ErrUnsupported where Start fails, which is where goos is not a
// Unix: what takes long, such as building the programs, asks before it begins.
func Supported(goos string) error {
	switch goos {
	case "windows", "plan9", "js", "wasip1":
		return fmt.Errorf("%s: %w", goos, ErrUnsupported)
	}
	return nil
}

// Spec says how to start a process, and how to start it again.
type Spec struct {
	// Name is the role, unique within its owner: "kube-apiserver".
	Name string `json:"name"`
	// Path is the program; Args are its arguments without the program's name.
	Path string   `json:"path"`
	Args []string `json:"args"`
	// Env is added to the environment of the caller.
	Env []string `json:"env,omitempty"`
	// Dir is the working directory.
	Dir string `json:"dir"`
	// Log is the file that receives stdout and stderr; it is appended to.
	Log string `json:"log"`
}

// Process is a process that was started, by this command or an earlier one.
type Process struct {
	Spec
	// PID is also the number of the process group.
	PID int `json:"pid"`
	// Started is the start time, which distinguishes processes with the same
	// PID; opaque.
	Started string `json:"started"`
}

// Start starts a process in a session of its own, so that neither ctrl-c nor
// a closed terminal reaches it. Until guard is released, it dies with the caller.
func Start(guard *Guard, spec Spec) (Process, error) {
	if err := os.MkdirAll(filepath.Dir(spec.Log), 0o700); err != nil {
		return Process{}, fmt.Errorf("%s: creating the folder of its log: %w", spec.Name, err)
	}
	log, err := os.OpenFile(spec.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return Process{}, fmt.Errorf("%s: opening its log: %w", spec.Name, err)
	}
	defer func() { _ = log.Close() }()

	command, gate, err := startGated(spec, log)
	if err != nil {
		return Process{}, err
	}
	defer func() { _ = gate.Close() }()
	// Reap it, otherwise it is a zombie until the caller exits.
	go func() { _ = command.Wait() }()
	p := Process{Spec: spec, PID: command.Process.Pid}
	if err := guard.watch(p.PID); err != nil {
		return Process{}, fmt.Errorf("%s: %w", spec.Name, err)
	}
	if p.Started, err = startOf(p.PID); err != nil {
		return Process{}, fmt.Errorf("%s: reading the start time of process %d: %w", spec.Name, p.PID, err)
	}
	if _, err := io.WriteString(gate, "start\n"); err != nil {
		return Process{}, fmt.Errorf("%s: starting %s: %w", spec.Name, spec.Path, err)
	}
	return p, nil
}

// startGated starts a shell that becomes the process once it reads a line from the
// gate. If the gate is closed before, also by the death of the caller, the shell
// exits: no process runs that the guard does not watch.
func startGated(spec Spec, log *os.File) (*exec.Cmd, io.WriteCloser, error) {
	path, err := exec.LookPath(spec.Path)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: starting %s: %w", spec.Name, spec.Path, err)
	}
	command := exec.Command("/bin/sh", append([]string{"-c", `read -r line && exec "$0" "$@" </dev/null`, path}, spec.Args...)...)
	command.Env = append(os.Environ(), spec.Env...)
	command.Dir = spec.Dir
	command.Stdout, command.Stderr = log, log
	if err := ownSession(command); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	gate, err := command.StdinPipe()
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", spec.Name, err)
	}
	if err := command.Start(); err != nil {
		return nil, nil, fmt.Errorf("%s: starting /bin/sh: %w", spec.Name, err)
	}
	return command, gate, nil
}

// Self identifies the calling process.
func Self() (Process, error) {
	p := Process{Spec: Spec{Name: filepath.Base(os.Args[0])}, PID: os.Getpid()}
	started, err := startOf(p.PID)
	if err != nil {
		return Process{}, fmt.Errorf("this process: %w", err)
	}
	p.Started = started
	return p, nil
}

// Alive reports whether this process still runs.
func (p Process) Alive() bool {
	if p.PID <= 0 {
		return false
	}
	started, err := startOf(p.PID)
	return err == nil && started == p.Started
}

// Kill kills the process and its group and waits until it is gone. It is not an
// error if the process is already gone.
func (p Process) Kill(ctx context.Context) error {
	if !p.Alive() {
		return nil
	}
	if err := killGroup(p.PID); err != nil {
		return fmt.Errorf("%s: killing process %d: %w; kill it manually", p.Name, p.PID, err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for p.Alive() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: process %d was killed but still exists: %w", p.Name, p.PID, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// Pause stops the process and its group where they are, until Resume.
func (p Process) Pause() error { return p.signal("pausing", pauseGroup) }

// Resume has the process and its group go on.
func (p Process) Resume() error { return p.signal("resuming", resumeGroup) }

func (p Process) signal(doing string, group func(pid int) error) error {
	if !p.Alive() {
		return fmt.Errorf("%s: %s process %d: %w", p.Name, doing, p.PID, os.ErrProcessDone)
	}
	if err := group(p.PID); err != nil {
		return fmt.Errorf("%s: %s process %d: %w", p.Name, doing, p.PID, err)
	}
	return nil
}

// Tail returns the last lines of the process's log, for error messages; it is
// empty when there is no log.
func (p Process) Tail(lines int) string {
	const window = 16 << 10
	f, err := os.Open(p.Log)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	from := max(0, info.Size()-window)
	buf := make([]byte, info.Size()-from)
	n, _ := f.ReadAt(buf, from)
	all := strings.Split(strings.TrimRight(string(buf[:n]), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
