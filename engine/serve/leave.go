package serve

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/relay/hub"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// leaver follows clusters that leave. Nothing is wanted there any more, so the sink removes what stands; when nothing is left, and meshes
// have got back what they had, the agent is told to remove itself. What is waited for is told as a Failure, which the status has.
type leaver struct {
	state func() *snapshot.State
	link  func(name string) *mirror.Link
	// hub has the agents; nil if there is none.
	hub  func() *hub.Hub
	wake chan struct{}
	// changed says that failures returns something else.
	changed chan struct{}

	mu      sync.Mutex
	waiting map[string]snapshot.Reason
	// empty is since when nothing is left in a cluster.
	empty map[string]time.Time
}

func newLeaver(state func() *snapshot.State, link func(string) *mirror.Link, h func() *hub.Hub) *leaver {
	return &leaver{
		state: state, link: link, hub: h, wake: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		waiting: map[string]snapshot.Reason{}, empty: map[string]time.Time{},
	}
}

const (
	// leavePause is the pause between two looks at clusters that leave, and leaveQuiet for how long nothing must be left: what is on its
	// way is not seen yet.
	leavePause = time.Second
	leaveQuiet = 3 * time.Second
	// maxLeaving bounds the names of meshes that are told.
	maxLeaving = 3
)

// notify says that a cluster may leave.
func (l *leaver) notify() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run looks after clusters that leave until ctx ends.
func (l *leaver) run(ctx context.Context) {
	for {
		var again <-chan time.Time
		if l.look(time.Now()) {
			again = time.After(leavePause)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
		case <-l.wake:
		}
	}
}

// look looks at all clusters that leave, and reports whether there are any.
func (l *leaver) look(at time.Time) bool {
	state := l.state()
	if state == nil {
		return false
	}
	now := map[string]snapshot.Reason{}
	for _, kc := range state.Input.Management.KubernetesClusters {
		if kc.Annotations[cluster.LeavingAnnotation] != "" && kc.Namespace == state.Input.Management.Namespace {
			reason := l.lookAt(kc, state.Input.Cluster(kc.Name), at)
			reason.Code = snapshot.ClusterLeaving
			now[kc.Name] = reason
		}
	}
	l.mu.Lock()
	same := maps.Equal(l.waiting, now)
	l.waiting = now
	maps.DeleteFunc(l.empty, func(name string, _ time.Time) bool { _, leaves := now[name]; return !leaves })
	l.mu.Unlock()
	if !same {
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
	return len(now) > 0
}

// failures are what clusters that leave wait for.
func (l *leaver) failures() []snapshot.Failure {
	state := l.state()
	if state == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []snapshot.Failure
	for _, name := range slices.Sorted(maps.Keys(l.waiting)) {
		out = append(out, snapshot.Failure{
			Ref:    snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: state.Input.Management.Namespace, Name: name},
			Reason: l.waiting[name],
		})
	}
	return out
}

// Reasons of clusters that are left.
var (
	leftReason  = snapshot.Reason{Cause: snapshot.LeavingDone, What: "nothing of meshctl is left there"}
	partsReason = snapshot.Reason{Cause: snapshot.LeavingAgent, What: "its agent removes itself"}
)

// lookAt is what a cluster waits for at a time.
func (l *leaver) lookAt(kc *multiclusterv1alpha1.KubernetesCluster, c *snapshot.Cluster, at time.Time) snapshot.Reason {
	var said snapshot.Reason
	if r := snapshot.Left(kc); r != nil { // by an earlier leader
		said = snapshot.Reason{Cause: snapshot.Code(r.Cause), What: r.What}
	}
	if c == nil {
		return cmp.Or(said, snapshot.Reason{Cause: snapshot.LeavingAsked, What: "it is not connected yet"})
	}
	h := l.hub()
	relayed := c.Relay != nil && h != nil
	if relayed && h.Parting(c.Name).Gone {
		return leftReason
	}
	waits := l.stands(c)
	switch quiet := l.quiet(c.Name, waits.Cause == "", at); {
	case waits.Cause != "" && c.Frozen():
		return cmp.Or(said, waits) // it is away because it has gone
	case waits.Cause != "":
		return waits
	case quiet < leaveQuiet:
		return snapshot.Reason{Cause: snapshot.LeavingObjects, What: "nothing that meshctl wrote is seen there any more; what may be on its way is waited for"}
	case !relayed:
		return snapshot.Reason{Cause: snapshot.LeavingDone, What: "nothing that meshctl wrote is left there"}
	}
	if stays := h.Part(c.Name).Stays; stays != "" {
		return snapshot.Reason{Cause: snapshot.LeavingStays, What: "its agent has removed what meshctl serve wrote there, and stays itself: " + stays}
	}
	return partsReason
}

// quiet is for how long nothing is left in a cluster.
func (l *leaver) quiet(name string, empty bool, at time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !empty {
		delete(l.empty, name)
		return 0
	}
	if l.empty[name].IsZero() {
		l.empty[name] = at
	}
	return at.Sub(l.empty[name])
}

// stands is what is still in a cluster; zero if nothing is.
func (l *leaver) stands(c *snapshot.Cluster) snapshot.Reason {
	if outage := c.Outage(); outage != nil {
		return snapshot.Reason{Cause: cmp.Or(outage.Cause, snapshot.ClusterFrozen), What: "it is left when it can be read and written again: " + outage.Text(), Hint: outage.Next}
	}
	link := l.link(c.Name)
	if link == nil || link.State().Conn == nil {
		return snapshot.Reason{Cause: snapshot.StillRead, What: "its objects are still being read"}
	}
	left := 0
	for _, o := range link.State().Conn.All() {
		if o.Ours() && o.Here {
			left++
		}
	}
	if left > 0 {
		return snapshot.Reason{Cause: snapshot.LeavingObjects, What: fmt.Sprintf("%d objects that meshctl wrote are deleted there, after what needs them", left)}
	}
	if meshes := c.MeshesLeaving(); len(meshes) > 0 {
		names := strings.Join(meshes[:min(len(meshes), maxLeaving)], ", ")
		if more := len(meshes) - maxLeaving; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		return snapshot.Reason{Cause: snapshot.LeavingMeshes, What: "its agent gives meshes back the certificates that they had before, which takes a minute or more: " + names}
	}
	return snapshot.Reason{}
}
