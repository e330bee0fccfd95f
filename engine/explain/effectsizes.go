package explain

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// hosts compares what ServiceDependencies let the proxies of workloads know.
func (e *effects) hosts() {
	before, after := knownHosts(e.before.state.Plan), knownHosts(e.after.state.Plan)
	for _, ref := range sortedRefs(union(before, after)) {
		was, is := before[ref], after[ref]
		if was == is {
			continue
		}
		text := func(n int) string {
			if n == 0 {
				return "all hosts"
			}
			return snapshot.Count(n, "host")
		}
		e.add(Effect{Kind: EffectHosts, On: ref, What: "its proxies are configured with", Before: text(was), After: text(is), Harm: is > 0 && (was == 0 || is < was)})
	}
}

// knownHosts counts the hosts that the proxies of a workload know; 0 and none mean all.
func knownHosts(plan *snapshot.Plan) map[snapshot.Ref]int {
	out := map[snapshot.Ref]int{}
	for _, s := range plan.Sidecars {
		if s.Egress.Everything {
			continue
		}
		for _, ref := range s.Workloads {
			out[ref] = len(s.Egress.Hosts)
		}
	}
	return out
}

// trust compares whose certificates the members of VirtualMeshes have.
func (e *effects) trust() {
	for _, ref := range sortedRefs(union(e.before.meshes, e.after.meshes)) {
		was, is := trustOf(e.before.meshes[ref]), trustOf(e.after.meshes[ref])
		if was != is {
			e.add(Effect{Kind: EffectTrust, On: ref, What: "the control plane changes its certificate, and workloads restart one after another", Before: was, After: is})
		}
	}
}

// trustOf says by which trust the workloads of a mesh have certificates.
func trustOf(m *snapshot.MeshPlan) string {
	switch {
	case m == nil || m.Trust == nil:
		return "a root of its own"
	case m.Limited:
		return "a root of its own, and gateways trust those of " + m.VirtualMesh.Name
	}
	return "the root of " + m.VirtualMesh.Name
}

// sizes compares how much proxies hold because of federation.
func (e *effects) sizes() {
	before, after := loads(e.before.state.Plan), loads(e.after.state.Plan)
	if !maps.Equal(before, after) {
		addBytes(before, e.before)
		addBytes(after, e.after)
	}
	for _, ref := range sortedRefs(union(before, after)) {
		was, is := before[ref], after[ref]
		if was == is {
			continue
		}
		e.add(Effect{Kind: EffectSize, On: ref, What: "each proxy holds, of other meshes", Before: was.text(), After: is.text()})
	}
}

// size is what federation adds to each proxy of a mesh.
type size struct{ services, endpoints, bytes int }

// addBytes adds the estimated bytes to what the proxies of meshes hold.
func addBytes(to map[snapshot.Ref]size, x *Index) {
	bytes := federatedBytes(x.state)
	for mesh, s := range to {
		s.bytes = bytes[mesh]
		to[mesh] = s
	}
}

func (s size) text() string {
	text := fmt.Sprintf("%s and %s", snapshot.Count(s.services, "service"), strconv.Itoa(s.endpoints)+verb(s.endpoints, " endpoint", " endpoints"))
	if s.bytes > 0 {
		text += ", about " + bytesText(s.bytes)
	}
	return text
}

// loads are what the meshes of VirtualMeshes hold of others.
func loads(plan *snapshot.Plan) map[snapshot.Ref]size {
	out := map[snapshot.Ref]size{}
	for _, v := range plan.VirtualMeshes {
		for _, load := range v.Loads {
			out[load.Mesh] = size{services: load.ServiceEntries, endpoints: load.Endpoints}
		}
	}
	return out
}
