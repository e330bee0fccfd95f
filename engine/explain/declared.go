package explain

import (
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Import is a mesh that imports a service, where its VirtualMesh imports only what is declared.
type Import struct {
	Mesh snapshot.Ref `json:"mesh"`
	// By is what declares that callers of the mesh need the service, ascending.
	By []snapshot.Origin `json:"by"`
}

// importsOf are the meshes that import a service, and because of what; nil where nothing has to be declared.
func importsOf(f *snapshot.Federation) []Import {
	if f == nil || f.ImportedBy == nil {
		return nil
	}
	out := make([]Import, len(f.To))
	for i, mesh := range f.To {
		out[i] = Import{Mesh: mesh.Ref, By: f.ImportedBy[i]}
	}
	return out
}

// notImportedBy are the meshes that could import a service, and that nothing declares to need it, ascending.
func notImportedBy(d *snapshot.DestinationPlan) []snapshot.Ref {
	if d.Offered == nil || d.LeftOut.Why != "" {
		return nil
	}
	var out []snapshot.Ref
	for _, mesh := range d.Offered.To {
		if d.NotImported(mesh) {
			out = append(out, mesh.Ref)
		}
	}
	return out
}

// notImportedText says which meshes do not import it, and why; empty if none of them could.
func (d *Destination) notImportedText() string {
	if len(d.NotImportedBy) == 0 {
		return ""
	}
	return verb(len(d.NotImportedBy), "Mesh ", "Meshes ") + refNames(d.NotImportedBy) +
		verb(len(d.NotImportedBy), " does not import it: no ServiceDependency or policy there names it", " do not import it: no ServiceDependency or policy there names it")
}

// needText says because of what a mesh imports a service: " needed by ServiceDependency gloo-mesh/web"; empty where nothing has
// to be declared.
func needText(by []snapshot.Origin) string {
	names := make([]string, 0, len(by))
	for _, origin := range by {
		if name := kindAndName(origin.Ref); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "needed by " + firstOf(names)
}

// undeclared says why the callers' mesh does not import a Destination although it could.
func undeclared(q *query, d *snapshot.DestinationPlan) string {
	return fmt.Sprintf("not imported: no ServiceDependency or policy of mesh %s names it, and VirtualMesh %s imports only what is declared (federation.mode DECLARED)",
		q.mesh.Ref.Name, shortName(d.Offered.Origin.Ref))
}

// declaration is the manifest of a ServiceDependency that has the callers' mesh import a Destination, as JSON.
func declaration(q *query, d *snapshot.DestinationPlan) string {
	k := q.workload.Spec.Kubernetes
	if k == nil {
		return ""
	}
	service := d.Destination.Spec.KubeService.Ref
	labels := k.PodLabels
	if app, ok := labels["app"]; ok {
		labels = map[string]string{"app": app}
	}
	spec := enterprisev1beta1.ServiceDependencySpec{
		SourceSelectors: []commonv1.WorkloadSelector{{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{
			Labels: labels, Namespaces: []string{k.Controller.Namespace}, Clusters: []string{k.Controller.ClusterName},
		}}},
		DestinationSelectors: []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{service}}}},
	}
	info := snapshot.ServiceDependency.Info().GroupVersionKind
	text, err := json.Marshal(struct {
		metav1.TypeMeta
		Metadata commonv1.ObjectRef                      `json:"metadata"`
		Spec     enterprisev1beta1.ServiceDependencySpec `json:"spec"`
	}{
		metav1.TypeMeta{APIVersion: info.GroupVersion().String(), Kind: info.Kind},
		commonv1.ObjectRef{Name: snapshot.Sanitize(k.Controller.Name + "-calls-" + service.Name + "-" + service.ClusterName), Namespace: q.state.Input.Management.Namespace},
		spec,
	})
	if err != nil {
		return "" // plain structs of strings always marshal
	}
	return string(text)
}

// declareText is the next step where a declaration is missing.
func (w *Why) declareText() string {
	if w.Declaration == "" {
		return ""
	}
	return "apply a ServiceDependency; it also limits these workloads to what their ServiceDependencies name, so name all that they call: " + w.Declaration
}

// mostReach is how many services a plan names that callers of one mesh gain or lose.
const mostReach = 25

// gather makes one effect of what callers of one mesh gain, or lose, if that is a lot.
func gather(list []Effect) []Effect {
	type group struct {
		mesh snapshot.Ref
		harm bool
	}
	groups := map[group][]snapshot.Ref{}
	of := func(e *Effect) (group, bool) {
		if e.Kind != EffectReach || len(e.From) != 1 {
			return group{}, false
		}
		return group{e.From[0], e.Harm}, true
	}
	for i := range list {
		if g, ok := of(&list[i]); ok {
			groups[g] = append(groups[g], list[i].On)
		}
	}
	out := slices.DeleteFunc(list, func(e Effect) bool {
		g, ok := of(&e)
		return ok && len(groups[g]) > mostReach
	})
	for g, services := range groups {
		if len(services) <= mostReach {
			continue
		}
		slices.SortFunc(services, snapshot.Ref.Compare)
		e := Effect{Kind: EffectReach, On: g.mesh, What: "callers can call"}
		text := snapshot.Count(len(services), "service") + " of other meshes: " + refNames(services)
		if g.harm {
			e.Before, e.Harm = text, true
		} else {
			e.After = text
		}
		out = append(out, e)
	}
	return out
}
