package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about objects with our kind of labels that are not ours, or not those of the
// cluster that they are in.

// fewOthers is how many other management planes are named.
const fewOthers = 3

// observePlanes reports the other management planes that write to the cluster. Both go on: neither
// changes an object that the other wrote.
func (r *reports) observePlanes(conn *mirror.Connection) {
	var reason snapshot.Reason
	var others []snapshot.Plane
	if conn != nil {
		others = conn.Others()
	}
	if len(others) > 0 {
		slices.SortFunc(others, func(a, b snapshot.Plane) int {
			return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Namespace, b.Namespace))
		})
		names := make([]string, 0, fewOthers+1)
		for _, p := range others[:min(fewOthers, len(others))] {
			names = append(names, planeName(p))
		}
		if more := len(others) - fewOthers; more > 0 {
			names = append(names, fmt.Sprintf("and %d more", more))
		}
		reason = snapshot.Reason{
			Code: snapshot.AnotherPlane,
			What: strings.Join(names, ", ") + " also writes to this cluster; the objects of both stay, and the mesh decides which of them applies",
			Hint: "deregister the cluster from one of them, unless they configure different services",
		}
	}
	if r.set(ofPlanes, reason) && reason.Code != "" {
		r.Log.Warn("another management plane writes to a cluster", "cluster", r.cluster, "reason", reason.String())
	}
}

// Identify sets the UIDs of the registered clusters, as their servers say who they are;
// empty where that is not known. An object that we wrote under the name of one cluster and
// that is in another is deleted only where both are known.
func (s *Sink) Identify(uids map[string]types.UID) {
	s.shared.uids.Store(&uids)
	s.request(func(r *requests) { r.identified = true })
}

// checkStrays requeues what names another cluster: the identity of one is known now.
func (c *cluster) checkStrays() {
	c.mu.Lock()
	defer c.unlock()
	if c.name == "" || !c.remote.writable() {
		return
	}
	for of, l := range c.remote.now.Conn.All() {
		if i := c.items[of]; l.Ours() && l.Source != "" && i != nil {
			c.enqueue(i, false)
		}
	}
	c.collectGarbage()
}
