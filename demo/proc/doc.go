// Package proc starts and ends the processes of a demo.
//
// A demo outlives the command that started it, so its processes are found
// again by number. Numbers are reused by the operating system; a process is
// therefore known by its number and the moment it started (Process.Alive),
// and nothing is ever signalled by number alone.
//
// While a demo is being built the opposite must hold: nothing may outlive a
// command that fails, is interrupted or is killed. That is the Guard's work.
package proc
