package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// unwritten are the effects of the generated objects for a host that are not written, as they have the names of others that are not ours.
type unwritten map[clusterHost][]snapshot.Effect

// viewsOf are the views of a Destination as they are written: without what would be in an object whose name has another one that is not
// ours.
func (u unwritten) viewsOf(d *snapshot.DestinationPlan) []*snapshot.View {
	if len(u) == 0 {
		return d.Views
	}
	out := slices.Clone(d.Views)
	for i, v := range out {
		noRoutes := u.any(v, func(e snapshot.Effect) bool { return e&snapshot.Routes != 0 })
		noSettings := u.any(v, func(e snapshot.Effect) bool { return e&snapshot.Hosts != 0 && e&(snapshot.Routes|snapshot.Aged) == 0 })
		if !noRoutes && !noSettings {
			continue
		}
		left := *v
		if noRoutes {
			left.Routes = nil
		}
		if noSettings {
			left = snapshot.View{Mesh: v.Mesh, Host: v.Host, Routes: left.Routes}
		}
		out[i] = &left
	}
	return out
}

// any reports whether one with an effect is for the host of a view.
func (u unwritten) any(v *snapshot.View, has func(snapshot.Effect) bool) bool {
	return slices.ContainsFunc(u[clusterHost{v.Mesh.Cluster, v.Host}], has)
}

// clusterHost is a host in a cluster.
type clusterHost struct{ cluster, host string }

func newUnwritten(out *snapshot.Output) unwritten {
	if len(out.Foreign) == 0 {
		return nil
	}
	hosts := unwritten{}
	for o := range out.Objects {
		if !out.IsForeign(o.Ref) {
			continue
		}
		var names []string
		switch spec := o.Content.Spec.(type) {
		case interface{ GetHosts() []string }:
			names = spec.GetHosts()
		case interface{ GetHost() string }:
			names = []string{spec.GetHost()}
		}
		for _, name := range names {
			at := clusterHost{o.Ref.Cluster, name}
			hosts[at] = append(hosts[at], o.Ref.Kind.Info().Effect)
		}
	}
	return hosts
}
