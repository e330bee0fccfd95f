// Package sandboxtest gives tests real clusters: an API server with etcd, or
// whole clusters with Istio. The helper binary is built on first use.
//
// Nothing survives the test binary, however it ends: processes are guarded, so
// a panic, a timeout or a SIGKILL takes them along. Only temporary folders may
// then stay.
package sandboxtest
