// Package sandboxtest gives tests real clusters, and the built program:
//
//   - sandboxtest.go: API servers with etcd, whole clusters, meshctl, ports
//   - objects.go: objects that many tests create and read
//   - rendered.go: asks a cluster what its mesh says to rendered objects
//
// The binaries are built on first use. Nothing survives the test binary, however
// it ends: a guard beside it kills the processes and removes their folder, also
// after a panic, a timeout or a SIGKILL.
package sandboxtest
