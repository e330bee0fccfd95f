// Package envoy says what an Envoy does with a request, by the configuration that it holds: Envoy's configuration as JSON (the mapping
// of Protocol Buffers), as a control plane sends it or as the admin interface of a proxy answers it.
//
//	config.go    reading what a control plane sends, and questions of tests about it
//	dump.go      reading what a proxy answers to /config_dump
//	known.go     fields that this package does not know, where they may decide
//	send.go      what a sidecar does with a request of its application
//	connect.go   how it connects to the endpoints of a cluster
//	receive.go   what the sidecar of a called pod does, and a gateway that passes connections on
//	filters.go   the filters on the way; decide.go, rbac.go: those for access
//	request.go   requests, and the matches of routes
//
// The types have the parts that control planes of meshes use, instead of those of go-control-plane, which make the binary 10 MB bigger.
// Where something that they do not have may decide about a request, the answer is Unknown and names it: a filter, a field of a match, a
// kind of condition. Parsers of types that decide nothing ignore other fields, so add a field before you use it. Names and meanings are
// Envoy's (envoyproxy.io/docs/envoy/latest/api-v3). Nothing here panics, whatever the configuration.
package envoy
