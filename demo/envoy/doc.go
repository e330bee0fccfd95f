// Package envoy reads what a control plane tells a proxy: Envoy's configuration
// as JSON (the mapping of Protocol Buffers), and questions about it.
//
// The types hold the parts that control planes of meshes use; what is left out
// is left out of them silently, so add a field when a question needs it. Their
// names and meanings are Envoy's (envoyproxy.io/docs/envoy/latest/api-v3).
package envoy
