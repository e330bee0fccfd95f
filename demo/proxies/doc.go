// Package proxies runs real Istio proxies for the pods of local clusters, and sends
// requests as their workloads.
//
//	plane.go    starting the process that stands in for the kubelets
//	check.go    whether this machine permits it
//	envoy.go    where Envoy comes from
//	control.go  what runs, and what is broken on purpose
//	call.go     requests as a workload, and their outcomes
//
// It also runs programs as pods without a proxy, in the network of a cluster: that is
// where proxies reach them, with the addresses of their pods.
//
// The process is the role kubelet of the binary in demo/dataplane, in user, mount
// and PID namespaces of its own: when it ends, all proxies do. It needs Linux, but
// neither root nor a container engine.
package proxies
