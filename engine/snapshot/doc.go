// Package snapshot defines the values that the engine computes with: Input (all
// that one translation may know), Plan (the desired state, independent of any
// mesh) and Output (the objects, statuses and issues that follow). They are built
// once and never change; unchanged parts are shared, so that comparing pointers
// tells what is new.
//
//   - input.go: Input, Cluster, Management; objects.go finds, lists, adds and
//     removes their objects; byusers.go says which of them users write
//   - objectlist.go: which list of an Input holds which kind
//   - kind.go: the kinds, with what Kubernetes calls them; ref.go names one object
//   - discovered.go: what discovery finds in a cluster
//   - plan.go: State, Plan, and the verdicts on policies; mesh.go, destination.go,
//     access.go, virtualdestination.go and dependency.go: the parts of a Plan;
//     identities.go: who may answer for a service; limited.go: trust between gateways
//     only
//   - support.go: what a kind of mesh can express
//   - plane.go: whose objects are ours
//   - output.go: Output; drift.go: what exists of it; issue.go and codes.go: Issue; codeclass.go: what an
//     edit fixes; labels.go: what generated objects are labelled with
//   - outage.go: why a cluster is frozen, and what to do; reason.go, health.go
//   - list.go: long lists that share their unchanged pieces; derived.go: lists
//     computed from others
//   - names.go, ports.go, words.go, fields.go: generated names, ports of pods,
//     words of messages, fields of a type
//   - yaml.go, json.go, escape.go: YAML and JSON, safe to print
package snapshot
