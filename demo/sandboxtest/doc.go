// Package sandboxtest gives tests real clusters, and the built program:
//
//   - sandboxtest.go: API servers with etcd, whole clusters, meshctl, ports
//   - objects.go: objects that many tests create and read
//   - buffer.go: collects output
//   - rendered.go: validates rendered objects by the mesh of a cluster
//
// The binaries are built on first use. When the test binary exits, a guard kills
// the processes and removes their folder, also after a panic, a timeout or a
// SIGKILL.
package sandboxtest
