package apply

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about objects with our kind of labels that are not ours, or not those of the
// cluster that they are in.

// Whoever may create one object can give it the labels of any number of management planes.
const (
	// mostOthers is how many of them are counted; fewOthers, how many are named.
	mostOthers = 100
	fewOthers  = 3
)

// put enters what exists.
func (m *mirror) put(of id, l live) {
	m.take(of)
	m.hold(of.size())
	m.objects[of] = l
	if _, known := m.others[l.other]; l.other != (snapshot.Plane{}) && (known || len(m.others) < mostOthers) {
		m.others[l.other]++
	}
}

// take removes what does not exist any more.
func (m *mirror) take(of id) {
	was, exists := m.objects[of]
	if !exists {
		return
	}
	m.hold(-of.size())
	other := was.other
	delete(m.objects, of)
	if m.others[other] > 1 {
		m.others[other]--
	} else {
		delete(m.others, other)
	}
}

// meet reports the other management planes that write to the cluster. Both go on: neither
// changes an object that the other wrote.
func (c *cluster) meet() {
	var reason snapshot.Reason
	if c.conn != nil && len(c.conn.others) > 0 {
		others := slices.SortedFunc(maps.Keys(c.conn.others), func(a, b snapshot.Plane) int {
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
	if c.met.Reason == reason {
		return
	}
	c.met = snapshot.Failure{}
	if reason.Code != "" {
		c.met = snapshot.Failure{Ref: snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: c.Namespace, Name: c.name}, Reason: reason}
		c.Log.Warn("another management plane writes to a cluster", "cluster", c.name, "reason", reason.String())
	}
	c.notifyFailures()
}

// Identify sets the UIDs of the registered clusters, as their servers say who they are;
// empty where that is not known. An object that we wrote under the name of one cluster and
// that is in another is deleted only where both are known.
func (s *Sink) Identify(uids map[string]types.UID) {
	s.shared.uids.Store(&uids)
	s.request(func(r *requests) { r.identified = true })
}

// checkStrays looks again at what names another cluster: the identity of one is known now.
func (c *cluster) checkStrays() {
	c.mu.Lock()
	defer c.unlock()
	if c.name == "" || !c.writable() {
		return
	}
	for of, l := range c.conn.objects {
		if i := c.items[of]; l.ours && l.source != "" && i != nil {
			c.enqueue(i, false)
		}
	}
	c.sweepGarbage()
}

// stray reports whether an object that names another cluster is known to be in the wrong one.
func (c *cluster) stray(l live) bool {
	known := c.uids.Load()
	if known == nil || !l.marked || c.PlaneID == "" || l.source == "" || c.name == "" {
		return false
	}
	here := (*known)[c.name]
	there, registered := (*known)[l.source]
	return here != "" && (!registered || there != "" && there != here)
}
