// Package kind tests the demo in kind clusters: real nodes, pods, rollouts and requests. It needs
// a container engine and images; `make test-kind` provides both.
package kind
