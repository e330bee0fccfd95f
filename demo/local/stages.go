package local

import (
	"bytes"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/demo/kube"
)

// addressStage gives pods with a proxy an address, and nothing else: whoever runs
// them writes their status, and removes them when they have ended. The functions
// are those of kwok's templates.
const addressStage = `apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-address
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: .metadata.deletionTimestamp
      operator: DoesNotExist
    - key: .status.podIP
      operator: DoesNotExist
  next:
    statusTemplate: |
      {{ with NodeIPsWith .spec.nodeName }}
      hostIP: {{ index . 0 | Quote }}
      {{ end }}
      {{ with PodIPsWith .spec.nodeName ( or .spec.hostNetwork false ) ( or .metadata.uid "" ) ( or .metadata.name "" ) ( or .metadata.namespace "" ) }}
      podIP: {{ index . 0 | Quote }}
      podIPs:
      - ip: {{ index . 0 | Quote }}
      {{ end }}
      phase: Pending
`

// withoutProxies changes kwok's stages so that kwok only gives an address to pods
// that have a proxy.
func withoutProxies(stages []byte) ([]byte, error) {
	objects, err := kube.Decode(append(slices.Clone(stages), "\n---\n"+addressStage...))
	if err != nil {
		return nil, fmt.Errorf("stages of kwok: %w", err)
	}
	var out bytes.Buffer
	for _, stage := range objects {
		operator := map[string]string{"pod-ready": "NotIn", "pod-delete": "NotIn", "pod-address": "In"}[stage.GetName()]
		if operator != "" {
			if err := selectProxies(stage, operator); err != nil {
				return nil, fmt.Errorf("stage %s of kwok: %w", stage.GetName(), err)
			}
		}
		data, err := yaml.Marshal(stage.Object)
		if err != nil {
			return nil, fmt.Errorf("stage %s of kwok: %w", stage.GetName(), err)
		}
		out.WriteString("---\n")
		out.Write(data)
	}
	return out.Bytes(), nil
}

// selectProxies restricts a stage to pods that have, or do not have, a proxy.
func selectProxies(stage *unstructured.Unstructured, operator string) error {
	path := []string{"spec", "selector", "matchExpressions"}
	expressions, _, err := unstructured.NestedSlice(stage.Object, path...)
	if err != nil {
		return err
	}
	expressions = append(expressions, map[string]any{
		"key": ".spec | (.containers, .initContainers) | .[]? | .name", "operator": operator, "values": []any{istioProxy},
	})
	return unstructured.SetNestedSlice(stage.Object, expressions, path...)
}
