package istio

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	networking "istio.io/api/networking/v1alpha3"
	"k8s.io/apimachinery/pkg/util/validation"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// exporter lets callers see objects that the settings of a mesh would hide, because they do not say who sees them (istio.io:
// MeshConfig.defaultServiceExportTo and its like). What stands for services of other clusters is for all callers.
type exporter struct {
	// service is the one in whose namespace objects are for those who know it; nil if there is none.
	service *discoveryv1.KubeService
	// hiding are meshes with such settings, by cluster.
	hiding map[string]*snapshot.MeshPlan
	done   map[exported]*snapshot.Content
}

// exported is a content that other objects share, and to whom.
type exported struct {
	content *snapshot.Content
	to      string
}

func newExporter(service *discoveryv1.KubeService, meshes ...*snapshot.MeshPlan) *exporter {
	out := &exporter{service: service, done: map[exported]*snapshot.Content{}}
	for _, m := range meshes {
		if m != nil && m.ExportTo != nil {
			if out.hiding == nil {
				out.hiding = map[string]*snapshot.MeshPlan{}
			}
			out.hiding[m.Cluster] = m
		}
	}
	return out
}

// export replaces the contents of the objects that are hidden.
func (e *exporter) export(objects []*snapshot.Object) {
	if e.hiding == nil {
		return
	}
	for _, o := range objects {
		mesh := e.hiding[o.Ref.Cluster]
		if mesh == nil || len(defaultExportTo(mesh.ExportTo, o.Ref.Kind)) == 0 {
			continue
		}
		to := []string{allNamespaces}
		if s := e.service; s != nil && s.Ref.ClusterName == o.Ref.Cluster && s.Ref.Namespace == o.Ref.Namespace && s.Ref.Namespace != mesh.Namespace {
			to, _ = serviceExportTo(mesh, s)
			to = ofObject(to, o.Ref.Namespace)
		}
		o.Content = e.content(o.Content, to)
	}
}

// ofObject is an exportTo of a Service as Istio's objects may have it: nobody is their own namespace there, all stands alone, and what
// names no namespace is refused (Istio, validation.validateExportTo).
func ofObject(to []string, own string) (out []string) {
	for _, namespace := range to {
		switch {
		case namespace == allNamespaces:
			return []string{allNamespaces}
		case namespace == own:
			namespace = ownNamespace
		case namespace != ownNamespace && len(validation.IsDNS1123Label(namespace)) > 0:
			continue
		}
		if !slices.Contains(out, namespace) {
			out = append(out, namespace)
		}
	}
	if len(out) == 0 {
		return []string{ownNamespace}
	}
	return out
}

// serviceExportTo are the namespaces that know a service of a mesh, as an exportTo, and what says so.
func serviceExportTo(mesh *snapshot.MeshPlan, s *discoveryv1.KubeService) (to []string, by string) {
	if len(s.ExportTo) > 0 {
		return s.ExportTo, "the annotation " + exportToKey + " of the Service"
	}
	if to := defaultExportTo(mesh.ExportTo, snapshot.ServiceEntry); len(to) > 0 {
		return to, "defaultServiceExportTo in the meshConfig of mesh " + mesh.Ref.Name
	}
	return []string{allNamespaces}, ""
}

// content is one that says who sees it; what says it already stays as it is.
func (e *exporter) content(was *snapshot.Content, to []string) *snapshot.Content {
	key := exported{was, strings.Join(to, ",")}
	if now := e.done[key]; now != nil {
		return now
	}
	now := *was
	switch spec := was.Spec.(type) {
	case *networking.ServiceEntry:
		now.Spec = withExportTo(spec, spec.ExportTo, func(s *networking.ServiceEntry) { s.ExportTo = slices.Clone(to) })
	case *networking.VirtualService:
		now.Spec = withExportTo(spec, spec.ExportTo, func(s *networking.VirtualService) { s.ExportTo = slices.Clone(to) })
	case *networking.DestinationRule:
		now.Spec = withExportTo(spec, spec.ExportTo, func(s *networking.DestinationRule) { s.ExportTo = slices.Clone(to) })
	}
	e.done[key] = &now
	return &now
}

func withExportTo[T proto.Message](spec T, has []string, set func(T)) T {
	if len(has) > 0 {
		return spec
	}
	spec = proto.Clone(spec).(T)
	set(spec)
	return spec
}
