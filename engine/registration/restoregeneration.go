package registration

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file adapts generations in statuses. An object that is created again begins with generation 1, whatever it had. A status says
// which generation it is about, and of other objects which one is in force: if that was the present one, it is the present one again. If
// it was an earlier one, nothing is said of it, because no object has it any more: its spec is in the status.

// generationsOf are the generations of one object: as it was in the Backup, and as it is.
type generationsOf struct{ was, is int64 }

// generations are those of all restored objects.
type generations map[snapshot.Ref]generationsOf

// aboutOthers are the fields of statuses that say of other objects of a kind which generation of them is in force.
var aboutOthers = map[string]snapshot.Kind{
	"appliedTrafficPolicies": snapshot.TrafficPolicy, "requiredSubsets": snapshot.TrafficPolicy, "appliedAccessPolicies": snapshot.AccessPolicy,
	"appliedVirtualMesh": snapshot.VirtualMesh, "appliedVirtualDestinations": snapshot.VirtualDestination,
	"appliedServiceDependencies": snapshot.ServiceDependency, "appliedAccessLogRecords": snapshot.AccessLogRecord,
	"appliedWasmDeployments": snapshot.WasmDeployment,
}

const (
	observedGeneration = "observedGeneration"
	lastEnforced       = "lastEnforcedGeneration"
)

// status is the status of an object as it is to be written; nil if it has none.
func (g generations) status(o *unstructured.Unstructured) map[string]any {
	status, ok, err := unstructured.NestedMap(o.Object, "status")
	if !ok || err != nil || len(status) == 0 {
		return nil
	}
	own := g[refOf(o)]
	if enforced, ok := status[lastEnforced].(int64); ok && enforced > 0 {
		status[lastEnforced] = own.is // that it was in force once decides, and not when
	}
	g.adapt(status, own)
	return status
}

// adapt adapts the generations of a part of a status that is about an object with these.
func (g generations) adapt(part any, of generationsOf) {
	switch part := part.(type) {
	case []any:
		for _, item := range part {
			g.adapt(item, of)
		}
	case map[string]any:
		if observed, ok := part[observedGeneration].(int64); ok {
			if observed == of.was {
				part[observedGeneration] = of.is
			} else {
				delete(part, observedGeneration)
			}
		}
		for key, value := range part {
			kind, about := aboutOthers[key]
			switch {
			case key == "spec": // a user's words
			case about:
				g.adaptOthers(kind, value)
			default:
				g.adapt(value, of)
			}
		}
	}
}

// adaptOthers adapts what is said of objects of a kind.
func (g generations) adaptOthers(kind snapshot.Kind, value any) {
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok {
			continue
		}
		if at, _ := fields["clusterName"].(string); at != "" {
			continue // it is in a registered cluster, and the same
		}
		ref := snapshot.Ref{Kind: kind}
		for _, key := range []string{"ref", "trafficPolicyRef", "serviceDependencyRef"} {
			if of, ok := fields[key].(map[string]any); ok {
				ref.Name, _ = of["name"].(string)
				ref.Namespace, _ = of["namespace"].(string)
			}
		}
		if of, known := g[ref]; known {
			g.adapt(item, of)
		}
	}
}

// refOf names an object of the management cluster.
func refOf(o *unstructured.Unstructured) snapshot.Ref {
	kind, _ := snapshot.KindOf(o.GroupVersionKind().GroupKind())
	return snapshot.Ref{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}
