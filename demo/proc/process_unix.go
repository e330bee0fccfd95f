//go:build unix

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

var errGone = errors.New("no such process")

func ownSession(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return nil
}

func killGroup(pid int) error {
	err := syscall.Kill(-pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

func pauseGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGSTOP) }

func resumeGroup(pid int) error { return syscall.Kill(-pid, syscall.SIGCONT) }

// startOf returns the start time of a process; a zombie counts as gone.
func startOf(pid int) (string, error) {
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		return startFromProc(pid)
	}
	return startFromPS(pid)
}

// startFromProc reads field 22 of /proc/PID/stat (proc(5)): clock ticks since boot.
func startFromProc(pid int) (string, error) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", errGone
	}
	// The second field is the program's name in parentheses and may contain spaces.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 20 {
		return "", fmt.Errorf("process %d: /proc/%d/stat is too short", pid, pid)
	}
	// A killed process is a zombie when its first thread ends; until the last
	// thread ends (field 20 counts them), it still has its files and ports open.
	if dead := fields[0] == "Z" || fields[0] == "X"; dead && (fields[17] == "0" || fields[17] == "1") {
		return "", errGone
	}
	return fields[19], nil
}

// startFromPS is for systems without /proc.
func startFromPS(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	state, started, found := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || !found || strings.HasPrefix(state, "Z") {
		return "", errGone
	}
	return strings.TrimSpace(started), nil
}
