package kind

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Replace lets the Deployments of bookinfo run the application of a demo, whose answers say which
// pod they come from; bookinfo's own services do not.
func Replace(objects []*unstructured.Unstructured, cluster, image string) error {
	for _, o := range objects {
		if o.GetKind() != "Deployment" {
			continue
		}
		path := []string{"spec", "template", "spec", "containers"}
		containers, _, err := unstructured.NestedSlice(o.Object, path...)
		if err != nil || len(containers) != 1 {
			return fmt.Errorf("Deployment %s has not exactly one container", o.GetName())
		}
		container, ok := containers[0].(map[string]any)
		if !ok {
			return fmt.Errorf("Deployment %s: its container is not an object", o.GetName())
		}
		field := func(name, path string) any {
			return map[string]any{"name": name, "valueFrom": map[string]any{"fieldRef": map[string]any{"fieldPath": path}}}
		}
		container["image"] = image
		container["imagePullPolicy"] = "IfNotPresent"
		container["env"] = []any{field("POD", "metadata.name"), field("NAMESPACE", "metadata.namespace")}
		container["args"] = []any{
			"demo", "app", "--http", "9080", "--cluster", cluster, "--workload", o.GetName(),
			"--namespace", "$(NAMESPACE)", "--pod", "$(POD)",
		}
		if err := unstructured.SetNestedSlice(o.Object, containers, path...); err != nil {
			return fmt.Errorf("Deployment %s: %w", o.GetName(), err)
		}
	}
	return nil
}
