package istio

import (
	"slices"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Trial renders AuthorizationPolicies that proxies only try (istio.io: Dry Run): they count what these would refuse, apart for what is
// allowed and what is denied, and go on to what is in force. Each is named like the one that would be in force, with .audit behind it.
func (Renderer) Trial(plan *snapshot.TrialPlan, namespace string) []*snapshot.Object {
	var objects []*snapshot.Object
	contributors := plan.Audits
	if plan.Destination == nil {
		objects = globalAccess(plan.Mesh, namespace)
	} else {
		of := *plan.Destination
		of.Denials = plan.Denials
		if !plan.Allows {
			of.Access = nil
		}
		r := &builder{plan: &of, namespace: namespace}
		r.authorizationPolicy()
		r.denials()
		objects = r.objects
		contributors = append([]snapshot.Ref{of.Ref}, plan.Audits...)
	}
	for _, o := range objects {
		o.Ref.Name += ".audit"
		o.Content = render.NewContent(namespace, o.Content.Spec, contributors, plan.Audits)
		o.Content.Annotations[dryRun] = "true"
	}
	slices.SortFunc(objects, func(a, b *snapshot.Object) int { return a.Ref.Compare(b.Ref) })
	return objects
}

// tries reports whether pods of a service, or with nil all of a mesh, try such policies. In ambient mode, the proxies of nodes do not:
// istiod leaves these out, or, asked for them (AMBIENT_ENABLE_DRY_RUN_AUTHORIZATION_POLICY), has ztunnel before 1.29 enforce them.
func tries(mesh *snapshot.MeshPlan, service *discoveryv1.KubeService) bool {
	if service != nil {
		return service.Ambient == nil
	}
	istio := mesh.Mesh.Spec.Istio
	return istio == nil || istio.Ambient == nil
}
