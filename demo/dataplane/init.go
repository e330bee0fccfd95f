package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

// initialize runs another role in user, mount and PID namespaces of its own. It
// stays in the network namespace of the caller, where the API servers and istiods
// listen; each pod gets its own.
func initialize(args []string) int {
	// The death signal follows the thread that starts the process.
	runtime.LockOSThread()
	command := exec.Command("/proc/self/exe", append([]string{"first"}, args[1:]...)...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   unix.SIGKILL,
	}
	if err := command.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "creating a user namespace: %v\n", err)
		return exitRefused
	}
	forward(command.Process)
	return exitCode(command.Wait())
}

// exitRefused is the exit code if the machine does not permit namespaces.
const exitRefused = 3

// first is the first process in the PID namespace: its end is the end of all
// others. It adopts processes whose parents have died, and reaps them.
func first(args []string) int {
	if err := prepareMounts(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitRefused
	}
	command := exec.Command("/proc/self/exe", args[1:]...)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	if err := command.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "starting %s: %v\n", args[1], err)
		return 1
	}
	forward(command.Process)
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			fmt.Fprintf(os.Stderr, "waiting for processes: %v\n", err)
			return 1
		case pid == command.Process.Pid && status.Exited():
			return status.ExitStatus()
		case pid == command.Process.Pid && status.Signaled():
			return 128 + int(status.Signal())
		}
	}
}

// prepareMounts mounts /proc for the PID namespace. Mounts made here are not seen
// outside.
func prepareMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mount namespace: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc in a PID namespace: %w", err)
	}
	return nil
}

// forward passes on the signals that ask a process to end.
func forward(p *os.Process) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	go func() {
		for s := range signals {
			_ = p.Signal(s)
		}
	}()
}

func exitCode(err error) int {
	exit := (*exec.ExitError)(nil)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode()
	default:
		return 1
	}
}

// check tries what pods need: a network namespace that is attached to a bridge,
// with redirection.
func check([]string) int {
	err := func() error {
		n, err := newNetwork(0)
		if err != nil {
			return err
		}
		pod, err := n.attach(net.IPv4(10, 0, 0, 1))
		if err != nil {
			return err
		}
		return redirect(pod, &corev1.Pod{})
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return exitRefused
	}
	return 0
}
