package offline

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Exported is an object of the management plane as a user would write it: without what API servers and meshctl note
// in it.
type Exported struct {
	Ref      snapshot.Ref
	Manifest map[string]any
}

// Export gives the objects of the management plane that users write, in the order of their kinds and names: policies,
// VirtualMeshes, Settings, Roles, registrations, and Destinations outside of the clusters. It has no status and no
// credential, and no annotation by which an administrator asked for something once. Load reads the same objects from it.
// Their age is not in it, which decides between policies in conflict.
func Export(m *snapshot.Management) ([]Exported, error) {
	var out []Exported
	for kind, list := range m.Lists {
		for i := range list.Len() {
			object := list.At(i)
			if !snapshot.WrittenByUsers(kind, object) {
				continue
			}
			data, err := json.Marshal(object)
			if err != nil {
				return nil, fmt.Errorf("%s: write as JSON: %w", snapshot.RefOf(kind, object), err)
			}
			var fields map[string]any
			if err := json.Unmarshal(data, &fields); err != nil {
				return nil, fmt.Errorf("%s: read as JSON: %w", snapshot.RefOf(kind, object), err)
			}
			out = append(out, Exported{snapshot.RefOf(kind, object), clean(kind, object, fields)})
		}
	}
	return out, nil
}

// notWanted are annotations in which tools note what they did.
var notWanted = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"control-plane.alpha.kubernetes.io/leader",
}

// clean is an object with its name, labels and annotations, and what else its user wrote.
func clean(kind snapshot.Kind, object snapshot.APIObject, fields map[string]any) map[string]any {
	metadata := map[string]any{"name": object.GetName()}
	if object.GetNamespace() != "" {
		metadata["namespace"] = object.GetNamespace()
	}
	if labels := object.GetLabels(); len(labels) > 0 {
		metadata["labels"] = labels
	}
	annotations := map[string]string{}
	for key, value := range object.GetAnnotations() {
		if !snapshot.IsRequest(key) && !slices.Contains(notWanted, key) {
			annotations[key] = value
		}
	}
	if len(annotations) > 0 {
		metadata["annotations"] = annotations
	}
	delete(fields, "status")
	fields["apiVersion"], fields["kind"], fields["metadata"] = kind.Info().GroupVersion().String(), kind.Info().Kind, metadata
	return fields
}

// File is the name of the object's file: KIND/NAMESPACE/NAME.yaml.
func (e *Exported) File() string {
	return path.Join(strings.ToLower(e.Ref.Kind.String()), e.Ref.Namespace, e.Ref.Name+".yaml")
}

// YAML is the object as one document without separator.
func (e *Exported) YAML() ([]byte, error) {
	data, err := snapshot.YAML(e.Manifest)
	if err != nil {
		return nil, fmt.Errorf("%s: write as YAML: %w", e.Ref, err)
	}
	return data, nil
}
