package explain

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/engine/access"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// podGroup are pods of a Destination about which the same decides.
type podGroup struct {
	// pods is how many there are; 0 if none is ready, and then the group stands for those that will be.
	pods int
	// port is where they listen for the port that is asked about.
	port uint32
	// bare: they run no proxy of the mesh, so that nothing decides who may call them, and they take no mutual TLS of it.
	bare bool
	// ambient is the mode of those in ambient mode; empty for others.
	ambient discoveryv1.DataPlaneMode
	// machines: they are no pods, but WorkloadEntries. Without identity, callers present none to them, and whether they run a proxy is
	// not known.
	machines, withoutIdentity bool
	// pastProxy says how connections to the port pass their proxies by, as EndpointPort.PastProxy has it; empty if they do not.
	pastProxy string
	// waypoint: they ask for a waypoint themselves.
	waypoint bool
	// plain says in a clause because of what callers of their own mesh present no identity to them; empty if they do.
	plain string
	// others are Destinations in front of the same pods whose AccessPolicies decide about calls to them, where none selects the
	// Destination itself: a mesh applies what is allowed on one service to all of its pods.
	others []*snapshot.DestinationPlan
	// also are Destinations in front of the same pods whose AccessPolicies let in what those on the Destination itself do not: pods take
	// what is allowed on any of their services, as they see only their own ports.
	also []*snapshot.DestinationPlan
	// denying are Destinations in front of the same pods, the own one among them, whose AccessPolicies deny calls to them.
	denying []*snapshot.DestinationPlan
	// guard is what users wrote about them; nil for nothing.
	guard snapshot.Guard
}

// podGroups are the groups of those pods of a Destination that have some labels, and serve a port of it; 0 is any. There is at
// least one.
func (o *outside) podGroups(d *snapshot.DestinationPlan, port uint32, with map[string]string) []*podGroup {
	k := d.Destination.Spec.KubeService
	if k == nil {
		return []*podGroup{{port: port}}
	}
	others, also, denying := o.othersInFront(d), o.alsoInFront(d), o.denyingBeside(d)
	labelsOf := o.podLabels(d, len(others)+len(also) > 0 || beside(denying, d))
	var groups []*podGroup
	var labels [][]map[string]string
	for i := range k.EndpointSubsets {
		part := &k.EndpointSubsets[i]
		number, serves := snapshot.SubsetPort(k, part, port)
		if !serves {
			continue
		}
		for _, e := range part.Endpoints {
			if !hasLabels(e.Labels, with) {
				continue
			}
			pod := labelsOf(&e)
			group := podGroup{port: number, bare: part.NoProxy && !part.Machines && !part.Ambient, machines: part.Machines, withoutIdentity: part.NoProxy && part.Machines}
			group.ambient = ambientMode(k, part)
			if group.pastProxy = pastProxyAt(part, number); group.pastProxy == "" && !group.bare {
				group.others, group.also, group.denying = selecting(others, pod), selecting(also, pod), denyingAt(denying, d, pod)
			}
			traits := traitsOf(d.Mesh, pod)
			group.plain, group.waypoint = traits.Plain, traits.Waypoint != ""
			at := slices.IndexFunc(groups, func(g *podGroup) bool {
				return g.isLike(&group)
			})
			if at < 0 {
				at = len(groups)
				groups, labels = append(groups, &group), append(labels, nil)
			}
			groups[at].pods++
			labels[at] = append(labels[at], pod)
		}
	}
	if len(groups) == 0 { // those that will be
		group := &podGroup{port: podPortOf(d, port), others: selecting(others, k.WorkloadSelectorLabels), plain: traitsOf(d.Mesh, k.WorkloadSelectorLabels).Plain,
			denying: denyingAt(denying, d, k.WorkloadSelectorLabels)}
		if snapshot.AllAmbient(k) {
			group.ambient = k.Ambient.Mode
		}
		groups = append(groups, group)
		labels = append(labels, []map[string]string{k.WorkloadSelectorLabels})
	}
	return o.guarded(d, groups, labels)
}

// isLike reports whether two groups differ in their pods only.
func (g *podGroup) isLike(o *podGroup) bool {
	return g.port == o.port && g.bare == o.bare && g.ambient == o.ambient && g.machines == o.machines && g.withoutIdentity == o.withoutIdentity &&
		g.pastProxy == o.pastProxy && g.plain == o.plain && g.waypoint == o.waypoint && slices.Equal(g.others, o.others) && slices.Equal(g.also, o.also) && slices.Equal(g.denying, o.denying)
}

// traitsOf are what labels of pods of a mesh say about calls to them.
func traitsOf(mesh *snapshot.MeshPlan, labels map[string]string) snapshot.PodTraits {
	if mesh == nil || mesh.Dialect.PodTraits == nil {
		return snapshot.PodTraits{}
	}
	return mesh.Dialect.PodTraits(mesh, labels)
}

// podPortsOf are the ports of pods of a Destination to which a port of it leads; 0 is any.
func podPortsOf(d *snapshot.DestinationPlan, port uint32) (ports []uint32) {
	k := d.Destination.Spec.KubeService
	for i := range k.EndpointSubsets {
		if port == 0 {
			for _, p := range k.EndpointSubsets[i].Ports {
				ports = append(ports, p.Port)
			}
		} else if number, serves := snapshot.SubsetPort(k, &k.EndpointSubsets[i], port); serves {
			ports = append(ports, number)
		}
	}
	return ports
}

// podsOfDestination are the pods of a Destination that have some labels; nil if users wrote nothing for its mesh.
func (o *outside) podsOfDestination(d *snapshot.DestinationPlan, with map[string]string) *snapshot.PodQuery {
	k := d.Destination.Spec.KubeService
	if d.Mesh == nil || k == nil || o.byHand[d.Mesh] == nil {
		return nil
	}
	of, labelsOf := &snapshot.PodQuery{Mesh: d.Mesh, Namespace: k.Ref.Namespace}, o.podLabels(d, true)
	for _, e := range endpointsOf(d, with) {
		of.Pods = append(of.Pods, labelsOf(&e))
	}
	if len(of.Pods) == 0 { // those that will be
		of.Pods = append(of.Pods, k.WorkloadSelectorLabels)
	}
	return of
}

// selecting are the Destinations that select a pod.
func selecting(among []*snapshot.DestinationPlan, pod map[string]string) (out []*snapshot.DestinationPlan) {
	for _, o := range among {
		if inventory.MatchLabels(o.Destination.Spec.KubeService.WorkloadSelectorLabels, pod) {
			out = append(out, o)
		}
	}
	return out
}

// podNamespace is where the pods of a Destination are.
type podNamespace struct{ cluster, namespace string }

// addRestricted notes a Destination if AccessPolicies are in force on its pods.
func (o *outside) addRestricted(d *snapshot.DestinationPlan) {
	s := d.Destination.Spec.KubeService
	if s == nil || d.Mesh == nil || len(s.WorkloadSelectorLabels) == 0 {
		return
	}
	at := podNamespace{s.Ref.ClusterName, s.Ref.Namespace}
	if len(d.Access) > 0 && d.Open() == snapshot.OpenNot {
		o.restricted[at] = append(o.restricted[at], d)
	}
	if d.Denials != nil {
		o.denying[at] = append(o.denying[at], d)
	}
}

// othersInFront are the Destinations in whose namespace a Destination is, and on which AccessPolicies are in force, if none is on
// itself.
func (o *outside) othersInFront(d *snapshot.DestinationPlan) []*snapshot.DestinationPlan {
	if len(d.Access) > 0 {
		return nil
	}
	return o.restrictedBeside(d)
}

// alsoInFront are those on which AccessPolicies are in force where some are on the Destination itself.
func (o *outside) alsoInFront(d *snapshot.DestinationPlan) []*snapshot.DestinationPlan {
	if len(d.Access) == 0 || d.Open() != snapshot.OpenNot {
		return nil
	}
	return o.restrictedBeside(d)
}

// restrictedBeside are the Destinations on which AccessPolicies are in force and that may select pods of another one.
func (o *outside) restrictedBeside(d *snapshot.DestinationPlan) []*snapshot.DestinationPlan {
	k := d.Destination.Spec.KubeService
	if k == nil || d.Mesh == nil || d.Mesh.Dialect.ByAccount || d.Open() != snapshot.OpenByDefault && d.Open() != snapshot.OpenNot {
		return nil
	}
	var out []*snapshot.DestinationPlan
	for _, other := range o.restricted[podNamespace{k.Ref.ClusterName, k.Ref.Namespace}] {
		if other != d && other.MeshRef() == d.MeshRef() && mayShare(k.WorkloadSelectorLabels, other.Destination.Spec.KubeService.WorkloadSelectorLabels) {
			out = append(out, other)
		}
	}
	return out
}

// mayShare reports whether a pod may have the labels of two selectors.
func mayShare(a, b map[string]string) bool {
	for key, value := range a {
		if other, both := b[key]; both && other != value {
			return false
		}
	}
	return true
}

// closedInFront reports whether AccessPolicies on other services decide about calls to pods of a Destination.
func (o *outside) closedInFront(d *snapshot.DestinationPlan) bool {
	return len(o.othersInFront(d)) > 0 && slices.ContainsFunc(o.podGroups(d, 0, nil), func(g *podGroup) bool { return len(g.others) > 0 })
}

// podLabels returns a function for the labels of the pod of an endpoint: those of its workload where the pod itself is not known or
// not needed.
func (o *outside) podLabels(d *snapshot.DestinationPlan, needed bool) func(*discoveryv1.Endpoint) map[string]string {
	k := d.Destination.Spec.KubeService
	var pods map[string]map[string]string
	if d.Mesh != nil && o.pods[d.Mesh.Cluster] != nil {
		index := o.pods[d.Mesh.Cluster]
		return func(e *discoveryv1.Endpoint) map[string]string {
			if labels, found := index.labels(k.Ref.Namespace, e.IpAddress, k.WorkloadSelectorLabels); found {
				return labels
			}
			return e.Labels
		}
	}
	if d.Mesh != nil && (needed || o.byHand[d.Mesh] != nil) {
		pods = podsOf(o.clusters[d.Mesh.Cluster], k.Ref.Namespace, k.WorkloadSelectorLabels)
	}
	return func(e *discoveryv1.Endpoint) map[string]string {
		if labels, found := pods[e.IpAddress]; found {
			return labels
		}
		return e.Labels
	}
}

// guarded splits groups by what users wrote about their pods.
func (o *outside) guarded(d *snapshot.DestinationPlan, groups []*podGroup, labels [][]map[string]string) []*podGroup {
	hand := o.byHand[d.Mesh]
	if d.Mesh == nil || hand == nil {
		return groups
	}
	var out []*podGroup
	for i, g := range groups {
		var guards []snapshot.Guard
		if !g.bare {
			guards = hand.Guards(&snapshot.PodQuery{Mesh: d.Mesh, Namespace: d.Destination.Spec.KubeService.Ref.Namespace, Pods: labels[i]})
		}
		for _, guard := range guards {
			part := *g
			part.guard = guard
			if g.pods > 0 {
				part.pods = guard.Pods()
			}
			out = append(out, &part)
		}
		if len(guards) == 0 {
			out = append(out, g)
		}
	}
	return out
}

// podsOf are the labels of the pods that a selector selects, by address.
func podsOf(c *snapshot.Cluster, namespace string, selector map[string]string) map[string]map[string]string {
	out := map[string]map[string]string{}
	if c == nil {
		return out
	}
	at, _ := slices.BinarySearchFunc(c.Pods, namespace, func(p *corev1.Pod, namespace string) int { return strings.Compare(p.Namespace, namespace) })
	for ; at < len(c.Pods) && c.Pods[at].Namespace == namespace; at++ {
		if p := c.Pods[at]; hasLabels(p.Labels, selector) {
			out[p.Status.PodIP] = p.Labels
			for _, also := range p.Status.PodIPs {
				out[also.IP] = p.Labels
			}
		}
	}
	return out
}

// lacksPort says that ready endpoints of a Destination do not serve a port of it; empty if some do, or if none is ready.
func lacksPort(d *snapshot.DestinationPlan, port uint32) string {
	k := d.Destination.Spec.KubeService
	if k == nil {
		return ""
	}
	n := 0
	for i := range k.EndpointSubsets {
		if _, serves := snapshot.SubsetPort(k, &k.EndpointSubsets[i], port); serves {
			return ""
		}
		n += len(k.EndpointSubsets[i].Endpoints)
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("none of the endpoints of %s that are ready has the port to which port %d leads", d.Ref.Name, port)
}

// local: callers in other clusters do not get their addresses.
func (g *podGroup) local() bool { return g.bare || g.machines || g.ambient != "" }

// allows is what AccessPolicies decide about a call to pods of a group: those that deny, whatever others allow.
func (g *podGroup) allows(d *snapshot.DestinationPlan, from *snapshot.MeshPlan, call *snapshot.Call) access.Decision {
	out := g.letsIn(d, from, call)
	if len(g.denying) == 0 {
		return out
	}
	allowing := anything()
	if verdictOf(out) == Allowed {
		allowing = g.allowing(d, from)
	}
	return out.Deny(d.Mesh, g.denials(from), allowing, call)
}

// letsIn is what the AccessPolicies decide that allow: those on the Destination, or else those on others in front
// of the pods, of which one that allows it is enough.
func (g *podGroup) letsIn(d *snapshot.DestinationPlan, from *snapshot.MeshPlan, call *snapshot.Call) access.Decision {
	if len(g.others) > 0 {
		return onAny(g.others, d, from, call)
	}
	own := access.Allows(d, from, call)
	if len(g.also) > 0 && own.Open == "" && len(own.By) == 0 {
		if also := onAny(g.also, d, from, call); len(also.By) > 0 {
			return also
		}
	}
	return own
}

// onAny is what AccessPolicies on some Destinations decide about a call to a pod of another one.
func onAny(of []*snapshot.DestinationPlan, d *snapshot.DestinationPlan, from *snapshot.MeshPlan, call *snapshot.Call) access.Decision {
	var rules []snapshot.EffectiveRule
	for _, o := range of {
		rules = append(rules, access.RulesFor(o, from)...)
	}
	return access.Decide(d.Mesh, rules, call)
}

// unlikeText says how many endpoints of a Destination have no proxy, or are no pods, and what that means; empty if none are.
func unlikeText(d *snapshot.DestinationPlan) string {
	k := d.Destination.Spec.KubeService
	if k == nil {
		return ""
	}
	text := snapshot.MachineText(k)
	text = snapshot.Sentences(snapshot.PastProxyText(k), text)
	if all, bare := snapshot.EndpointCounts(k); bare > 0 {
		text = snapshot.Sentences(snapshot.NoProxyText(bare, all), text)
	}
	if ambient := ambientText(d); ambient != "" && k.Ambient.Partly {
		text = snapshot.Sentences(ambient+", and callers in other clusters do not reach them", text)
	}
	return prefixed(d.Ref.Name+": ", text)
}

// othersText names the services whose AccessPolicies decide about a Destination.
func othersText(others []*snapshot.DestinationPlan) string {
	refs := make([]snapshot.Ref, len(others))
	for i, o := range others {
		refs[i] = o.Ref
	}
	return "its pods are also those of " + services(refs)
}
