package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Opening is where a service that policies protect lets in whoever is in its cluster and presents no identity: some requests at least, at
// some of its pods.
type Opening struct {
	Service snapshot.Ref `json:"service"`
	// Ports are those of the service; none if it has no ports.
	Ports []uint32 `json:"ports,omitempty"`
	// Pods is how many pods it is about; 0 if none is ready.
	Pods int `json:"pods"`
	// Known: it is so. Else it is not known.
	Known bool `json:"known"`
	// Why is what lets them in, or because of what it is not known.
	Why string `json:"why"`
}

// anonymous is how somebody in a cluster connects to the pods of its services without a proxy of the mesh.
func anonymous() connection {
	return connection{plain: "they present no identity", foreign: true, past: true}
}

// openingsOf are those of a Destination, ascending by Why. What nobody protects has none: all of it is open.
func openingsOf(x *Index, d *snapshot.DestinationPlan) (out []Opening) {
	add := func(isHTTP bool, port uint32) {
		for _, group := range x.outside.podGroups(d, port, nil) {
			j := judge(d, d.Mesh, anonymous(), snapshot.Call{HTTP: isHTTP, AnyRequest: true}, group)
			if j.verdict != Allowed && j.verdict != Unknown && !group.withoutIdentity {
				continue
			}
			one := Opening{d.Ref, []uint32{port}, group.pods, j.verdict == Allowed, whyOpen(&j)}
			switch {
			case group.withoutIdentity:
				one.Known, one.Why = false, "whether WorkloadEntries without a serviceAccount stand for machines with a proxy is not known; without one, no policy holds there"
			case group.machines:
				one.Known, one.Why = false, one.Why+"; not known: who reaches the machines of WorkloadEntries"
			}
			if unsure := othersThere(x, d, port, group); unsure != "" && one.Known {
				one.Known, one.Why = false, one.Why+"; not evaluated: "+unsure
			}
			out = addOpening(out, one)
		}
	}
	for i := range d.Destination.Spec.KubeService.Ports {
		if p := &d.Destination.Spec.KubeService.Ports[i]; isTCP(*p) {
			add(dialectOf(d).IsHTTP(p), p.Port)
		}
	}
	slices.SortFunc(out, func(a, b Opening) int { return strings.Compare(a.Why, b.Why) })
	return out
}

// othersThere names what users wrote because of which the proxies of pods may take a port otherwise; empty if nothing is, or if no proxy
// decides.
func othersThere(x *Index, d *snapshot.DestinationPlan, port uint32, group *podGroup) string {
	if group.bare || group.pastProxy != "" {
		return ""
	}
	return firstOf(slices.Concat(x.outside.filtersOfPods(d, port), unseenRequests(x, d, d.Mesh, port)))
}

// addOpening adds to the one with the same cause, if there is one.
func addOpening(list []Opening, one Opening) []Opening {
	at := slices.IndexFunc(list, func(o Opening) bool { return o.Why == one.Why && o.Known == one.Known })
	if at < 0 {
		return append(list, one)
	}
	list[at].Pods = max(list[at].Pods, one.Pods)
	if !slices.Contains(list[at].Ports, one.Ports[0]) {
		list[at].Ports = append(list[at].Ports, one.Ports[0])
	}
	return list
}

func whyOpen(j *judged) string {
	switch {
	case j.reason != "":
		return j.reason
	case len(j.ours.By) > 0:
		return policiesText(j.ours.By) + " " + verb(len(j.ours.By), "lets", "let") + " in anyone"
	}
	return "access is open by default, and policies deny some calls only"
}

// row is a line of a table.
func (o *Opening) row() []string {
	var ports []string
	for _, p := range o.Ports {
		ports = append(ports, fmt.Sprint(p))
	}
	why := o.Why
	if !o.Known {
		why = "not known: " + why
	}
	return []string{o.Service.Name, strings.Join(ports, ", "), fmt.Sprint(o.Pods), why}
}
