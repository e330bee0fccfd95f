// Package envoy reads the configuration that a control plane sends to a proxy:
// Envoy's configuration as JSON (the mapping of Protocol Buffers).
//
// The types have the parts that control planes of meshes use. Parse ignores other
// fields, so add a field before you use it. Names and meanings are Envoy's
// (envoyproxy.io/docs/envoy/latest/api-v3).
//
// request.go says what a proxy with that configuration does with a request.
package envoy
