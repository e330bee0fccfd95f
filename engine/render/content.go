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

// maxParents is how many references of a kind an annotation has: an API server takes
// 256 KiB of annotations, and all of them are sent with each write and to each watch.
const maxParents = 100

// parentsJSON lists references by kind, in the format of Gloo Mesh 1.x:
// {"<group>/<version>, Kind=<Kind>": [{"name", "namespace"}]}, with "clusterName" for those of registered clusters. Of each kind, it has the
// first maxParents. Nothing of ours reads it.
func parentsJSON(refs []snapshot.Ref) string {
	byKind := map[string][]commonv1.ClusterObjectRef{}
	for _, ref := range refs {
		kind := ref.Kind.Info().GroupVersionKind.String()
		if len(byKind[kind]) < maxParents {
			byKind[kind] = append(byKind[kind], commonv1.ClusterObjectRef{Name: ref.Name, Namespace: ref.Namespace, ClusterName: ref.Cluster})
		}
	}
	text, err := json.Marshal(byKind)
	if err != nil {
		return "{}" // a map of plain structs always marshals
	}
	return string(text)
}
