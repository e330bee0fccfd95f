package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// statusFacts are what of a status says whether something is in force, and where.
// Texts are left out: they may change from version to version.
type statusFacts struct {
	// judged: the status has a state.
	judged   bool
	observed int64
	state    commonv1.ApprovalState
	errors   []string
	// targets are the states by key. They may have been cut short: a key that is
	// missing says nothing.
	targets map[string]commonv1.ApprovalStatus
	// listsAll: the targets are those of a policy, and were not cut short.
	listsAll bool
	// applied are what a discovered object has in force, by field.
	applied []appliedField
}

type appliedField struct{ name, value string }

// factsOf reads a status; nil if it says nothing of the kind.
func factsOf(status any) *statusFacts {
	switch s := status.(type) {
	case *networkingv1.TrafficPolicyStatus:
		return &statusFacts{judged: true, observed: s.ObservedGeneration, state: s.State, errors: s.Errors, targets: s.Destinations, listsAll: s.Counts != nil && int(s.Counts.Destinations) == len(s.Destinations)}
	case *networkingv1.AccessPolicyStatus:
		return &statusFacts{judged: true, observed: s.ObservedGeneration, state: s.State, errors: s.Errors, targets: s.Destinations, listsAll: s.Counts != nil && int(s.Counts.Destinations) == len(s.Destinations)}
	case *networkingv1.VirtualMeshStatus:
		return &statusFacts{judged: true, observed: s.ObservedGeneration, state: s.State, errors: s.Errors, targets: s.Meshes}
	case *enterprisev1beta1.VirtualDestinationStatus:
		return &statusFacts{judged: true, observed: s.ObservedGeneration, state: s.State, errors: s.Errors, targets: s.Meshes}
	case *enterprisev1beta1.ServiceDependencyStatus:
		return &statusFacts{judged: true, observed: s.ObservedGeneration, state: s.State, errors: s.Errors, targets: s.Workloads}
	case *observabilityv1.AccessLogRecordStatus:
		return &statusFacts{judged: true, observed: s.ObservedGeneration, state: s.State, errors: s.Errors}
	case *discoveryv1.DestinationStatus:
		return &statusFacts{observed: s.ObservedGeneration, applied: []appliedField{
			{"appliedTrafficPolicies", listNames(s.AppliedTrafficPolicies, func(a *discoveryv1.AppliedTrafficPolicy) string {
				return inForceOf(a.Ref, a.ClusterName, a.ObservedGeneration)
			})},
			{"appliedAccessPolicies", listNames(s.AppliedAccessPolicies, func(a *discoveryv1.AppliedAccessPolicy) string {
				return inForceOf(a.Ref, a.ClusterName, a.ObservedGeneration)
			})},
		}}
	case *discoveryv1.MeshStatus:
		member := ""
		if a := s.AppliedVirtualMesh; a != nil {
			member = inForce(a.Ref, a.ObservedGeneration)
		}
		return &statusFacts{observed: s.ObservedGeneration, applied: []appliedField{{"appliedVirtualMesh", member}}}
	}
	return nil
}

// inForce names an object with the generation of its spec that is in force.
func inForce(ref commonv1.ObjectRef, generation int64) string {
	return fmt.Sprintf("%s.%s (generation %d)", ref.Name, ref.Namespace, generation)
}

// inForceOf is inForce for an object that may be one of a registered cluster.
func inForceOf(ref commonv1.ObjectRef, cluster string, generation int64) string {
	of := snapshot.Ref{Cluster: cluster, Namespace: ref.Namespace, Name: ref.Name}
	return fmt.Sprintf("%s (generation %d)", of.Identity(), generation)
}

func listNames[T any](list []T, name func(*T) string) string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = name(&list[i])
	}
	return strings.Join(out, ", ")
}

// differencesOf lists the facts that are not the same.
func differencesOf(was, is *statusFacts) []Difference {
	var out []Difference
	add := func(field, on, a, b string) {
		if a != b {
			out = append(out, Difference{Field: field, On: on, Stored: a, WouldBe: b})
		}
	}
	// Whether writes succeed is known to the server only.
	if was.state != commonv1.ApprovalStateFailed {
		add("state", "", string(was.state), string(is.state))
	}
	for _, key := range slices.Sorted(maps.Keys(is.targets)) {
		if before, known := was.targets[key]; known {
			add("state", strings.TrimSuffix(key, "."), string(before.State), string(is.targets[key].State))
		}
	}
	for i, now := range is.applied {
		add(now.name, "", was.applied[i].value, now.value)
	}
	return out
}
