package explain

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// refusedOnEntering says what becomes of requests at a gateway itself, before it sends them anywhere: what users wrote for its pods decides,
// and a global access policy where the gateway does not stay open. Who enters presents no identity of the mesh. The verdict is empty if
// they are let in.
func refusedOnEntering(q *query, w *wayIn, name string) (Verdict, string) {
	k := q.workload.Spec.Kubernetes
	none := snapshot.Ref{}
	listens, err := strconv.ParseUint(w.Listens, 10, 16)
	if err != nil {
		listens = uint64(w.Port)
	}
	request := q.request.proxied()
	call := &snapshot.Call{HTTP: w.Traffic == snapshot.Requests, PodPort: uint32(listens)}
	if call.HTTP {
		call.Method, call.Path, call.Query, call.Headers = request.Method, request.PathOnly(), queryOf(request.Path), maps.Clone(request.Headers)
		if call.Headers == nil {
			call.Headers = map[string]string{}
		}
		call.Headers["host"] = cmp.Or(call.Headers["host"], name)
	}
	var ruling snapshot.Ruling
	if hand := q.outside.byHand[q.mesh]; hand != nil {
		for _, g := range hand.Guards(&snapshot.PodQuery{Mesh: q.mesh, Namespace: k.Controller.Namespace, Pods: []map[string]string{k.PodLabels}}) {
			ruling = g.Decide(call)
		}
	}
	isOpen := q.mesh.DenyByDefault != nil && slices.ContainsFunc(q.mesh.OpenGateways, func(g snapshot.OpenGateway) bool {
		return g.Service.Namespace == k.Controller.Namespace && hasLabels(k.PodLabels, g.Selector)
	})
	isClosed := q.mesh.DenyByDefault != nil && !isOpen
	const enters = "requests that enter at the gateway"
	switch {
	case ruling.Denied != none:
		return Refused, byHandName(ruling.Denied) + " denies " + enters
	case selectedAsService(q):
		return Unknown, "AccessPolicies select the Service of the gateway, and whether they let in " + enters + " is not followed"
	case (ruling.Closed != none || isClosed) && !isOpen && ruling.Allowed == none && len(ruling.MayAllow) > 0:
		return Unknown, "nothing else lets in " + enters + ", and " + whatText(ruling.MayAllow)
	case ruling.Closed != none && !isOpen && ruling.Allowed == none:
		return Refused, byHandName(ruling.Closed) + " lets the gateway take only what a policy allows, and none allows these requests"
	case isClosed && ruling.Allowed == none:
		return Refused, kindAndName(q.mesh.DenyByDefault.Ref) + " denies by default what no policy allows, and the gateway is none that stays open: see meshctl describe virtualmesh"
	case len(ruling.MayDeny) > 0:
		return Unknown, "of " + enters + ", " + whatText(ruling.MayDeny)
	}
	return "", ""
}

// selectedAsService reports whether AccessPolicies are in force on a service whose pods the callers are.
func selectedAsService(q *query) bool {
	k := q.workload.Spec.Kubernetes
	for _, d := range q.destinations {
		s := d.Destination.Spec.KubeService
		if s != nil && (len(d.Access) > 0 || d.Denials != nil) && s.Ref.ClusterName == k.Controller.ClusterName && s.Ref.Namespace == k.Controller.Namespace &&
			len(s.WorkloadSelectorLabels) > 0 && hasLabels(k.PodLabels, s.WorkloadSelectorLabels) {
			return true
		}
	}
	return false
}
