package istio

import (
	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func newContent(namespace string, spec any, contributors, parents []snapshot.Ref) *snapshot.Content {
	return render.NewContent(namespace, spec, contributors, parents)
}
