package discovery

import (
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Distinct makes the names of objects unique across clusters. Service a in namespace
// b-c of cluster d would have the name of service a in namespace b of cluster c-d: the
// object of the first cluster, by name, keeps it; the others get a short hash as
// suffix, and an issue. The argument is ascending by cluster. It is not modified, and
// returned as it is if all names are unique already.
func Distinct(all []*snapshot.Discovered) []*snapshot.Discovered {
	if !mayClash(all) {
		return all
	}
	out := make([]*snapshot.Discovered, len(all))
	given := map[snapshot.Kind]*names{}
	for _, k := range []snapshot.Kind{snapshot.Mesh, snapshot.Workload, snapshot.Destination} {
		given[k] = newNames(k, 0)
	}
	for i, d := range all {
		out[i] = renameTaken(d, given)
	}
	return out
}

// mayClash reports whether generated names can be the same: as all of them end in the
// name of the cluster, only if the name of one cluster ends in that of another.
func mayClash(all []*snapshot.Discovered) bool {
	endings := make([]string, len(all))
	for i, d := range all {
		endings[i] = "-" + snapshot.Sanitize(d.Cluster)
	}
	for i, a := range endings {
		for j, b := range endings {
			if i != j && strings.HasSuffix(a, b) {
				return true
			}
		}
	}
	return false
}

// renameTaken returns d with new names for the objects whose names others in given
// have; d itself if there are none.
func renameTaken(d *snapshot.Discovered, given map[snapshot.Kind]*names) *snapshot.Discovered {
	out := *d
	var issues []snapshot.Issue
	rename := func(kind snapshot.Kind, name string, source snapshot.Ref) (string, bool) {
		source.Kind, source.Cluster = kind, d.Cluster
		own, issue := given[kind].claim(name, source)
		if issue != nil {
			issues = append(issues, *issue)
		}
		return own, own != name
	}
	meshes := map[string]string{}
	out.Meshes = replace(d.Meshes, func(o *discoveryv1.Mesh) *discoveryv1.Mesh {
		name, renamed := rename(snapshot.Mesh, o.Name, snapshot.RefOf(snapshot.Mesh, o))
		if !renamed {
			return o
		}
		meshes[o.Name] = name
		m := *o
		m.Name = name
		return &m
	})
	out.Workloads = replace(d.Workloads, func(o *discoveryv1.Workload) *discoveryv1.Workload {
		source := o.Spec.Kubernetes.Controller
		name, renamed := rename(snapshot.Workload, o.Name, snapshot.Ref{Namespace: source.Namespace, Name: source.Name})
		mesh, moved := meshes[o.Spec.Mesh.Name]
		if !renamed && !moved {
			return o
		}
		wl := *o
		wl.Name = name
		if moved {
			wl.Spec.Mesh.Name = mesh
		}
		return &wl
	})
	out.Destinations = replace(d.Destinations, func(o *discoveryv1.Destination) *discoveryv1.Destination {
		source := o.Spec.KubeService.Ref
		name, renamed := rename(snapshot.Destination, o.Name, snapshot.Ref{Namespace: source.Namespace, Name: source.Name})
		mesh, moved := meshes[o.Spec.Mesh.Name]
		if !renamed && !moved {
			return o
		}
		dest := *o
		dest.Name = name
		if moved {
			dest.Spec.Mesh = &commonv1.ObjectRef{Name: mesh, Namespace: o.Spec.Mesh.Namespace}
		}
		return &dest
	})
	if len(issues) == 0 {
		return d
	}
	out.Issues = append(slices.Clone(d.Issues), issues...)
	slices.SortFunc(out.Issues, snapshot.Issue.Compare)
	return &out
}

// replace is a new list, ascending by name, of what change makes of the objects.
func replace[T named](list []T, change func(T) T) []T {
	out := make([]T, len(list))
	for i, o := range list {
		out[i] = change(o)
	}
	slices.SortFunc(out, byName)
	return out
}
