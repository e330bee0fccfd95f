// Package proc starts and stops the processes of a demo.
//
// A demo outlives the command that started it, so its processes are found by PID.
// The operating system reuses PIDs; a process is therefore identified by its PID
// and its start time (Process.Alive), and never signalled by PID alone.
//
// While a demo starts, no process may outlive a command that fails, is interrupted
// or is killed. The Guard ensures that.
package proc
