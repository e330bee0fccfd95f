//go:build unix

package dashboard

import "syscall"

// session makes the program's terminal the one that controls it.
func session() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }
