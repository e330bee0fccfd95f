// Package relay measures a hub of the relay with many agents: `make bench-relay`. It has no code but that of its tests.
//
//	bench_test.go    the hub, and what is measured of it
//	agents_test.go   the agents, in a process of their own
//	figures_test.go  the table
package relay
