package istio

import (
	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// certificates are what the agent of a mesh is asked for: a CA certificate for istiod, and
// what it may restart so that all take it up.
func certificates(plan *snapshot.MeshPlan, namespace string) []*snapshot.Object {
	if plan.Trust == nil || plan.Trust.Spec == nil {
		return nil
	}
	vm := snapshot.RefOf(snapshot.VirtualMesh, plan.VirtualMesh)
	content := func(spec any) *snapshot.Content {
		return render.NewContent(namespace, spec, []snapshot.Ref{vm}, []snapshot.Ref{vm})
	}
	out := []*snapshot.Object{{Ref: plan.Trust.Ref, Content: content(plan.Trust.Spec)}}
	if plan.Trust.Restart != nil {
		ref := plan.Trust.Ref
		ref.Kind = snapshot.PodBounceDirective
		out = append(out, &snapshot.Object{Ref: ref, Content: content(plan.Trust.Restart)})
	}
	return out
}
