package explain

import (
	"slices"
	"strconv"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// SeenFailover is where the requests for a VirtualDestination went. Its callers do not say that; it follows from what the pods of the
// services behind it got, without the requests that other workloads sent to these services by their own names.
type SeenFailover struct {
	Backing []SeenBacking `json:"backing"`
	// Views say for the callers of each mesh whether requests went to services that are to take them only if those before them fail.
	Views []SeenFailoverView `json:"views"`
}

// SeenBacking is a service behind a VirtualDestination.
type SeenBacking struct {
	Destination snapshot.Ref `json:"destination"`
	// Got are the requests that its pods got; nil if they are not counted. Direct are those that were sent by the name of the service, and
	// Left are the others: those of the VirtualDestination, and of callers that are not read.
	Got    *uint64 `json:"got,omitempty"`
	Direct uint64  `json:"direct"`
	Left   uint64  `json:"left"`
}

// FailedOver says whether requests of a mesh went to services of a later priority.
type FailedOver string

const (
	// OverYes: the services of the first priority got next to nothing, and others did.
	OverYes FailedOver = "yes"
	// OverPartly: others did, too.
	OverPartly FailedOver = "partly"
	// OverNo: the services of the first priority got all.
	OverNo FailedOver = "no"
	// OverUnknown: pods behind it are not counted, several meshes call it, or there are too few requests.
	OverUnknown FailedOver = "not known"
)

// SeenFailoverView is for the callers of one mesh.
type SeenFailoverView struct {
	Mesh       snapshot.Ref `json:"mesh"`
	Requests   uint64       `json:"requests"`
	FailedOver FailedOver   `json:"failedOver"`
}

// seenVirtual is what was seen of a VirtualDestination.
func seenVirtual(x *Index, v *snapshot.VirtualDestinationPlan) *Seen {
	out := seenDestination(x, v.Ref)
	if out == nil || out.State != traffic.HasNumbers {
		return out
	}
	f := &SeenFailover{Backing: []SeenBacking{}, Views: []SeenFailoverView{}}
	for _, b := range v.Backing {
		f.Backing = append(f.Backing, seenBacking(x, b.Ref))
	}
	calling := map[snapshot.Ref]uint64{}
	for _, edge := range x.sight.edgesTo[v.Ref] {
		if w := x.workloads[edge.From.Ref]; w != nil && x.meshOf(w) != nil {
			calling[x.meshOf(w).Ref] += edge.Requests
		}
	}
	for _, view := range v.Views {
		if n := calling[view.Mesh.Ref]; n > 0 {
			f.Views = append(f.Views, SeenFailoverView{view.Mesh.Ref, n, f.failedOver(view, n, len(calling))})
		}
	}
	out.Failover = f
	return out
}

// seenBacking counts what the pods of a service got.
func seenBacking(x *Index, ref snapshot.Ref) SeenBacking {
	out := SeenBacking{Destination: ref}
	d := x.destinations[ref]
	if d == nil {
		return out
	}
	for _, edge := range x.sight.edgesTo[ref] {
		out.Direct += edge.Requests
	}
	for name, w := range x.workloads {
		if w.Spec.Kubernetes == nil || !backs(w.Spec.Kubernetes, d) {
			continue
		}
		row := x.sight.served[name]
		if row == nil || row.State == traffic.NoData || row.Reason == traffic.Uncounted {
			out.Got = nil
			return out
		}
		if out.Got == nil {
			out.Got = new(uint64)
		}
		*out.Got += row.Requests
	}
	if out.Got != nil {
		out.Left = *out.Got - min(out.Direct, *out.Got)
	}
	return out
}

// failedOver says whether the requests of a mesh left the services of the first priority. Several meshes have orders of their own, and
// what pods get does not say from whom.
func (f *SeenFailover) failedOver(view *snapshot.VirtualView, requests uint64, meshes int) FailedOver {
	if len(view.Priorities) < 2 || requests < fewestRequests || meshes > 1 || slices.ContainsFunc(f.Backing, func(b SeenBacking) bool { return b.Got == nil }) {
		return OverUnknown
	}
	left := [2]uint64{}
	for i, p := range view.Priorities {
		for _, t := range p.Targets {
			for _, b := range f.Backing {
				if b.Destination == t.Backing.Ref {
					left[min(i, 1)] += b.Left
				}
			}
		}
	}
	// Of what pods get a few are read in another moment than those that callers sent.
	few := requests / 20
	switch {
	case left[1] <= few:
		return OverNo
	case left[0] <= few:
		return OverYes
	}
	return OverPartly
}

// sections are where the requests went, and whether that is what the order of failover says.
func (f *SeenFailover) sections() []Section {
	went := Section{Title: "Where its requests went", Header: []string{"SERVICE", "ITS PODS GOT", "OF THEM BY ITS OWN NAME", "LEFT"}}
	for _, b := range f.Backing {
		row := []string{b.Destination.Name, "not counted", grouped(b.Direct), ""}
		if b.Got != nil {
			row[1], row[3] = grouped(*b.Got), grouped(b.Left)
		}
		went.Rows, went.Refs = append(went.Rows, row), append(went.Refs, b.Destination)
	}
	over := Section{Title: "Failed over", Header: []string{"CALLS FROM MESH", "REQUESTS", "FAILED OVER"}}
	for _, v := range f.Views {
		over.Rows, over.Refs = append(over.Rows, []string{v.Mesh.Name, strconv.FormatUint(v.Requests, 10), string(v.FailedOver)}), append(over.Refs, v.Mesh)
	}
	return []Section{went, over}
}
