package policy

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// escaping finds, for the policies of one pass, the callers whose proxies do not see what they send to services: no route of a policy
// holds for them, and they present no identity. Nil if the proxies of all workloads see all.
type escaping struct {
	*captures
	env *environment
	// known are ports of Destinations to which connections of a kind pass proxies by.
	known map[escapeKey]escapePort
}

// captures are the workloads whose proxies do not capture all connections.
type captures struct {
	// kinds are the different Captures, and kindOf says which of them a workload has.
	kinds  []*discoveryv1.Capture
	kindOf map[int]int
	// index and byMesh are the workloads that have one.
	index  map[snapshot.Ref]int
	byMesh map[commonv1.ObjectRef][]int
}

// escapeKey is a kind of callers, and the index of a Destination.
type escapeKey struct {
	kind, destination int
	// foreign: the callers are of another mesh.
	foreign bool
}

// escapePort is a port to which connections pass proxies by, or may; 0 if there is none.
type escapePort struct {
	number uint32
	sure   bool
}

func newCaptures(inv *inventory.Inventory) *captures {
	c := &captures{kindOf: map[int]int{}, index: map[snapshot.Ref]int{}, byMesh: map[commonv1.ObjectRef][]int{}}
	for i, w := range inv.Workloads {
		k := w.Spec.Kubernetes
		if k == nil || k.Capture == nil {
			continue
		}
		kind := slices.IndexFunc(c.kinds, func(o *discoveryv1.Capture) bool { return reflect.DeepEqual(o, k.Capture) })
		if kind < 0 {
			kind, c.kinds = len(c.kinds), append(c.kinds, k.Capture)
		}
		c.kindOf[i], c.index[snapshot.RefOf(snapshot.Workload, w)] = kind, i
		c.byMesh[w.Spec.Mesh] = append(c.byMesh[w.Spec.Mesh], i)
	}
	return c
}

func newEscaping(r *reconciler) *escaping {
	if len(r.env.captures.kinds) == 0 {
		return nil
	}
	return &escaping{env: r.env, captures: r.env.captures, known: map[escapeKey]escapePort{}}
}

// escapePolicy is what of a policy callers lose.
type escapePolicy struct {
	ref snapshot.Ref
	// ports limits the policy to some of services; nil for all.
	ports []uint32
	// loses says in a clause what that means, and or what helps beside what makes proxies see it.
	loses, or string
}

// ofEscapes is a TrafficPolicy.
func (b *trafficBinding) ofEscapes() escapePolicy {
	return escapePolicy{ref: b.ref, loses: "no route and no setting of this policy applies"}
}

// ofEscapes is an AccessPolicy, unless it lets in callers without identity.
func (b *accessBinding) ofEscapes() escapePolicy {
	if b.rule == nil || b.rule.Anyone {
		return escapePolicy{}
	}
	if b.rule.Denies {
		return escapePolicy{
			ref: b.ref, ports: b.rule.Ports, loses: "they present no identity, so that this policy does not deny them",
			or: "; or have the pods that are called take mutual TLS only",
		}
	}
	return escapePolicy{
		ref: b.ref, ports: b.rule.Ports, loses: "they present no identity, so that this policy does not let them in",
		or: "; or allow anyone to call",
	}
}

// issues is one about a policy that selects some Destinations and callers, if proxies of these do not see all that it is about. With more
// callers than are listed, those of all workloads of the calling meshes are taken.
func (e *escaping) issues(p escapePolicy, selected []int, listed inventory.WorkloadList) []snapshot.Issue {
	if e == nil || len(selected) == 0 || p.loses == "" {
		return nil
	}
	var first *escapeFound
	n, unsure := 0, 0
	for _, i := range e.callers(selected, listed) {
		f := e.find(i, p.ports, selected)
		switch {
		case f == nil:
			continue
		case f.sure:
			n++
		default:
			unsure++
		}
		if first == nil || f.sure && !first.sure {
			first = f
		}
	}
	if first == nil {
		return nil
	}
	others := n + unsure - 1
	text := fmt.Sprintf("%s: for what they send to %s, %s", first.by, inventory.ServiceName(first.to), p.loses)
	if !first.sure {
		text = fmt.Sprintf("%s: for what passes them by to %s, %s", first.by, inventory.ServiceName(first.to), p.loses)
	}
	if others > 0 {
		text += fmt.Sprintf("; the same may hold for %s", snapshot.Count(others, "more caller"))
	}
	return []snapshot.Issue{snapshot.Warnf(snapshot.CallersPassBy, first.hint+p.or, "%s", text).On(p.ref, snapshot.Ref{})}
}

// escapeFound is a caller whose proxies do not see what it sends to a service, or may not.
type escapeFound struct {
	by, hint string
	to       commonv1.ClusterObjectRef
	sure     bool
}

// callers are the workloads of a policy whose proxies do not see all, by index.
func (e *escaping) callers(selected []int, listed inventory.WorkloadList) (out []int) {
	if listed.Count <= len(listed.First) {
		for _, ref := range listed.First {
			if i, known := e.index[ref]; known {
				out = append(out, i)
			}
		}
		return out
	}
	for mesh := range e.env.topology.CallingMeshes(selected) {
		out = append(out, e.byMesh[mesh]...)
	}
	slices.Sort(out)
	return out
}

// find is what one of the callers loses: for certain, or else perhaps; nil if nothing.
func (e *escaping) find(workload int, ports []uint32, selected []int) (found *escapeFound) {
	w := e.env.inv.Workloads[workload]
	for _, i := range selected {
		d := e.env.inv.Destinations[i]
		if d.Spec.KubeService == nil || d.Spec.Mesh == nil {
			continue
		}
		at := e.at(workload, i, ports)
		if at.number == 0 || found != nil && !at.sure {
			continue
		}
		of := snapshot.Escapes(w, at.number, e.addresses(d, *d.Spec.Mesh == w.Spec.Mesh))
		found = &escapeFound{by: of.By, hint: of.Hint, to: d.Spec.KubeService.Ref, sure: at.sure}
		if at.sure {
			break
		}
	}
	return found
}

// at is the first port of a Destination to which connections of a caller pass its proxies by for certain, or else perhaps.
func (e *escaping) at(workload, destination int, ports []uint32) (out escapePort) {
	w, d := e.env.inv.Workloads[workload], e.env.inv.Destinations[destination]
	key := escapeKey{e.kindOf[workload], destination, *d.Spec.Mesh != w.Spec.Mesh}
	known, ok := e.known[key]
	if ok && len(ports) == 0 {
		return known
	}
	addresses := e.addresses(d, !key.foreign)
	for _, p := range d.Spec.KubeService.Ports {
		if len(ports) > 0 && !slices.Contains(ports, p.Port) {
			continue
		}
		of := snapshot.Escapes(w, p.Port, addresses)
		sure := of.Sure && !key.foreign // the address of a name that only the mesh knows is no matter of the cluster
		if of.By != "" && (out.number == 0 || sure && !out.sure) {
			out = escapePort{p.Port, sure}
		}
	}
	if len(ports) == 0 {
		e.known[key] = out
	}
	return out
}

// addresses are those to which callers of its own mesh connect; none if they are not known.
func (e *escaping) addresses(d *discoveryv1.Destination, own bool) []netip.Prefix {
	if !own {
		return nil
	}
	return e.env.calledAt(d.Spec.KubeService)
}

// calledAt are the addresses to which callers in the cluster of a service connect; none if they are not known.
func (env *environment) calledAt(k *discoveryv1.KubeService) []netip.Prefix {
	services := env.services[k.Ref.ClusterName]
	if services == nil {
		return nil
	}
	return snapshot.CalledAt(k, services.from)
}
