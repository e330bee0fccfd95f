package snapshot

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
)

// ConditionsOf are the conditions in the stored status of an object; none of kinds without conditions.
func ConditionsOf(o APIObject) []metav1.Condition { return ConditionsIn(StatusOf(o)) }

// ConditionsIn are the conditions in a status; none of kinds without conditions.
func ConditionsIn(status any) []metav1.Condition {
	switch s := status.(type) {
	case *multiclusterv1alpha1.KubernetesClusterStatus:
		return s.Conditions
	case *settingsv1.SettingsStatus:
		return s.Conditions
	case *networkingv1.VirtualMeshStatus:
		return s.Conditions
	case *networkingv1.TrafficPolicyStatus:
		return s.Conditions
	case *networkingv1.AccessPolicyStatus:
		return s.Conditions
	case *enterprisev1beta1.VirtualDestinationStatus:
		return s.Conditions
	case *enterprisev1beta1.ServiceDependencyStatus:
		return s.Conditions
	case *observabilityv1.AccessLogRecordStatus:
		return s.Conditions
	}
	return nil
}

// Undated is a status, as JSON has it, without the times of its conditions. Who writes a status
// sets them, so they tell nothing of what follows from the input.
func Undated(status any) any {
	fields, _ := status.(map[string]any)
	list, _ := fields["conditions"].([]any)
	if len(list) == 0 {
		return status
	}
	undated := make([]any, len(list))
	for i, element := range list {
		undated[i] = element
		if condition, ok := element.(map[string]any); ok {
			condition = maps.Clone(condition)
			delete(condition, "lastTransitionTime")
			undated[i] = condition
		}
	}
	out := maps.Clone(fields)
	out["conditions"] = undated
	return out
}
