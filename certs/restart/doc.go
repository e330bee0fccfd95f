// Package restart restarts the pods of a mesh, as `kubectl rollout restart` does: it changes an annotation in the template
// of a Deployment, DaemonSet or StatefulSet, whose controller then replaces the pods by its own rules.
//
// Roller.Step compares what is with what is wanted, and does the next safe thing:
//
//   - Only so many controllers roll at once; the next one begins when one is complete (rollout.go).
//   - The control plane comes first, then gateways, then all others; with entries of a PodBounceDirective, in their order.
//     A wave begins when the one before is complete.
//   - When a rollout does not progress, nothing more is restarted in its namespace until it does, and others do not wait for
//     it. When that is the namespace of the control plane, or when it happens in three namespaces, everything stops.
//   - A controller is restarted at most once for a cause. The cause is written with the restart, in one request that fails
//     if the controller has changed meanwhile; whoever goes on after a crash sees it.
//
// What rolls is remembered by UID (Roller.Rolling), in the status of the PodBounceDirective: the owners of a namespace write
// what they like on their controllers, and that is about their own ones only.
//
// Pods of anything else are not touched, and a Plan says why.
//
//	plan.go      Plan: which controllers, in which order
//	rollout.go   how far the rollout of a controller is
//	rolling.go   how far those are that were restarted, and what does not progress
//	roller.go    Roller: steps
//	directive.go entries and the status of a PodBounceDirective
package restart
