package virtualmesh

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// countLoads counts, for each mesh of each VirtualMesh, what federation adds to the
// configuration of each of its proxies.
func (t *Topology) countLoads() {
	byMesh := map[*snapshot.MeshPlan]*snapshot.ProxyLoad{}
	behind := map[*snapshot.MeshPlan]int{} // the number of addresses of a mesh's gateways
	for i, f := range t.federations {
		if f == nil {
			continue
		}
		d := t.inv.Destinations[i]
		endpoints := pods(d.Spec.KubeService)
		if !f.Flat {
			mesh := t.MeshOf(d)
			addresses, ok := behind[mesh]
			if !ok {
				for _, gw := range mesh.Gateways {
					addresses += len(gw.Addresses)
				}
				behind[mesh] = addresses
			}
			endpoints = addresses * labelSets(d.Spec.KubeService)
		}
		for _, to := range f.To {
			load := byMesh[to]
			if load == nil {
				load = &snapshot.ProxyLoad{Mesh: to.Ref}
				byMesh[to] = load
			}
			load.ServiceEntries++
			load.Endpoints += endpoints
		}
	}
	for _, vm := range t.VirtualMeshes {
		for _, member := range vm.Members {
			if load := byMesh[member]; load != nil {
				vm.Loads = append(vm.Loads, *load)
			}
		}
		slices.SortFunc(vm.Loads, func(a, b snapshot.ProxyLoad) int {
			return cmp.Or(cmp.Compare(b.Endpoints, a.Endpoints), cmp.Compare(b.ServiceEntries, a.ServiceEntries), a.Mesh.Compare(b.Mesh))
		})
	}
}

// pods is the number of endpoints of a service that other clusters get.
func pods(s *discoveryv1.KubeService) int {
	n := 0
	for _, part := range s.EndpointSubsets {
		if !snapshot.StaysLocal(&part) {
			n += len(part.Endpoints)
		}
	}
	return n
}

// labelSets is the number of different label sets of a service's endpoints: behind a
// gateway, endpoints with equal labels are one.
func labelSets(s *discoveryv1.KubeService) int {
	var first map[string]string
	var seen map[string]bool
	for _, part := range s.EndpointSubsets {
		if snapshot.StaysLocal(&part) {
			continue
		}
		for i := range part.Endpoints {
			labels := part.Endpoints[i].Labels
			switch {
			case first == nil:
				first = labels
				if first == nil {
					first = map[string]string{}
				}
			case seen == nil && maps.Equal(first, labels):
			default:
				if seen == nil {
					seen = map[string]bool{labelKey(first): true}
				}
				seen[labelKey(labels)] = true
			}
		}
	}
	switch {
	case seen != nil:
		return len(seen)
	case first != nil:
		return 1
	}
	return 0
}

func labelKey(labels map[string]string) string {
	var b strings.Builder
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		b.WriteString(k + "=" + labels[k] + ",")
	}
	return b.String()
}

// warnOfLoads warns of VirtualMeshes that add more to proxies than the limits in
// Settings.
func (t *Topology) warnOfLoads() {
	settings := t.settings
	if settings == nil || settings.Spec.Federation == nil {
		return
	}
	most := settings.Spec.Federation
	where := "Settings " + settings.Name + "." + settings.Namespace
	for _, vm := range t.VirtualMeshes {
		for _, load := range vm.Loads {
			for _, part := range []struct {
				has   int
				most  *uint32
				what  string
				field string
			}{
				{load.ServiceEntries, most.WarnServiceEntriesPerProxy, "ServiceEntries", "warnServiceEntriesPerProxy"},
				{load.Endpoints, most.WarnEndpointsPerProxy, "endpoints", "warnEndpointsPerProxy"},
			} {
				if part.most == nil || part.has <= int(*part.most) {
					continue
				}
				vm.Issues = append(vm.Issues, snapshot.Warnf(snapshot.FederationLarge,
					"federate fewer services, or to fewer meshes, with federation.selectors",
					"federation adds %d %s to each proxy of mesh %s; spec.federation.%s of %s is %d",
					part.has, part.what, load.Mesh.Name, part.field, where, *part.most).At("federation").CausedBy(snapshot.RefOf(snapshot.Settings, settings)).On(vm.Ref, load.Mesh))
			}
		}
	}
}
