package render

import (
	"encoding/json"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// NewContent labels a spec as ours and names what contributed to it. Namespace is the
// management plane's; parents are the users' objects whose statuses report failures.
func NewContent(namespace string, spec any, contributors, parents []snapshot.Ref) *snapshot.Content {
	return &snapshot.Content{
		Labels:      map[string]string{snapshot.NetworkingOwnerLabel: namespace},
		Annotations: map[string]string{snapshot.ParentsAnnotation: parentsJSON(contributors)},
		Spec:        spec,
		Parents:     parents,
	}
}

// parentsJSON lists references by kind, in the format of Gloo Mesh 1.x:
// {"<group>/<version>, Kind=<Kind>": [{"name", "namespace"}]}.
func parentsJSON(refs []snapshot.Ref) string {
	byKind := map[string][]commonv1.ObjectRef{}
	for _, ref := range refs {
		kind := ref.Kind.Info().GroupVersionKind.String()
		byKind[kind] = append(byKind[kind], commonv1.ObjectRef{Name: ref.Name, Namespace: ref.Namespace})
	}
	text, err := json.Marshal(byKind)
	if err != nil {
		return "{}" // a map of plain structs always marshals
	}
	return string(text)
}
