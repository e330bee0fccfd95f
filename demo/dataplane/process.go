package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a process of a pod that is started again whenever it ends.
type process struct {
	name    string
	command func() *exec.Cmd
	pod     *pod
	network *namespace

	mu      sync.Mutex
	current *exec.Cmd
	paused  bool
	ended   bool
	done    chan struct{}
	changed chan struct{}
}

// process starts a process and keeps it running.
func (p *pod) process(name string, network *namespace, command func() *exec.Cmd) *process {
	s := &process{name: name, command: command, pod: p, network: network, done: make(chan struct{}), changed: make(chan struct{}, 1)}
	go s.keep()
	return s
}

func (s *process) keep() {
	defer close(s.done)
	for {
		s.mu.Lock()
		ended, paused := s.ended, s.paused
		s.mu.Unlock()
		if ended {
			return
		}
		if paused {
			<-s.changed
			continue
		}
		err := s.once()
		s.mu.Lock()
		ended, paused = s.ended, s.paused
		s.mu.Unlock()
		if ended || paused {
			continue
		}
		log.Printf("pod %s: its %s ended (%v) and is restarted", s.pod, s.name, err)
		select {
		case <-time.After(restartAfter):
		case <-s.changed:
		}
	}
}

// once runs the process until it ends.
func (s *process) once() error {
	output, err := os.OpenFile(filepath.Join("logs", s.pod.logName(s.name)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }()
	command := s.command()
	command.Dir = s.pod.folder
	command.Stdout, command.Stderr = output, output
	// A group, because Envoy is a child of the agent.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	s.mu.Lock()
	if s.ended || s.paused {
		s.mu.Unlock()
		return nil
	}
	err = s.network.start(command)
	if err == nil {
		s.current = command
	}
	s.mu.Unlock()
	if err != nil {
		return err
	}
	err = command.Wait()
	// What the process has started ends with it.
	_ = unix.Kill(-command.Process.Pid, unix.SIGKILL)
	s.mu.Lock()
	s.current = nil
	s.mu.Unlock()
	return err
}

func (p *pod) logName(process string) string {
	return fmt.Sprintf("%s.%s.%s.%s.log", p.Cluster, p.Namespace, p.Pod, process)
}

func (s *process) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current != nil
}

// pid identifies the process that runs; 0 if none does.
func (s *process) pid() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return 0
	}
	return s.current.Process.Pid
}

// pause kills the process, and keeps it down until it is resumed.
func (s *process) pause(paused bool) {
	s.mu.Lock()
	changed := s.paused != paused
	s.paused = paused
	if changed && paused && s.current != nil {
		_ = unix.Kill(-s.current.Process.Pid, unix.SIGKILL)
	}
	s.mu.Unlock()
	if changed {
		s.wake()
	}
}

func (s *process) wake() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// terminate ends the process for good, and kills it if it takes longer than
// grace.
func (s *process) terminate(grace time.Duration) {
	s.signal(unix.SIGTERM)
	s.wake()
	select {
	case <-s.done:
	case <-time.After(grace):
		s.signal(unix.SIGKILL)
		<-s.done
	}
}

func (s *process) signal(signal unix.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	if s.current != nil {
		_ = unix.Kill(-s.current.Process.Pid, signal)
	}
}
