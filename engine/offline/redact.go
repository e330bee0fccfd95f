package offline

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// redacted is an object as it is recorded: what was read of it may have more than what meshctl
// uses.
func redacted(object snapshot.APIObject) snapshot.APIObject {
	cm, ok := object.(*corev1.ConfigMap)
	if !ok {
		return object
	}
	out := cm.DeepCopy()
	engine.Detectors().Redact(out)
	return out
}
