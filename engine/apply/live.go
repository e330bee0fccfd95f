package apply

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is how a cluster learns what exists and who answers.

// changed implements listener.
func (c *cluster) changed(conn *connection, of id, l live, deleted bool) {
	c.mu.Lock()
	if !conn.event(of, l, deleted) || conn != c.conn {
		c.mu.Unlock()
		return
	}
	defer c.unlock()
	c.look(of)
}

// replaced implements listener.
func (c *cluster) replaced(conn *connection, kind snapshot.Kind, list map[id]live, version uint64) {
	c.mu.Lock()
	defer c.unlock()
	current := conn.kinds[kind].current()
	changed := conn.replace(kind, list, version)
	switch {
	case conn == c.next:
		c.promote()
	case conn == c.conn && !current:
		c.sweepKind(kind)
	case conn == c.conn:
		for _, of := range changed {
			c.look(of)
		}
	}
}

// undigested implements listener: err is why an object cannot be compared with
// what is wanted. If it is ours, it is written once for each change.
func (c *cluster) undigested(of id, err error) {
	c.Log.Error("object cannot be compared with what is wanted", "object", of.ref(c.name).String(), "error", err)
}

// sweepKind has a look taken at all of a kind that has become readable.
func (c *cluster) sweepKind(kind snapshot.Kind) {
	for of, i := range c.items {
		if of.kind == kind {
			c.enqueue(i, true)
		}
	}
	c.sweepGarbage()
}

// promote puts the next connection into use if it knows enough.
func (c *cluster) promote() {
	if c.next == nil || !c.next.ready() {
		return
	}
	c.drop(c.conn)
	c.conn, c.next = c.next, nil
	c.mended()
	c.Log.Debug("cluster connected", "cluster", c.name, "objects", len(c.conn.objects))
	c.sweep(true)
}

// reported implements listener: err is what became of a list or watch request.
func (c *cluster) reported(conn *connection, kind snapshot.Kind, err error) {
	c.mu.Lock()
	defer c.unlock()
	if conn != c.conn && conn != c.next {
		return
	}
	state := conn.kinds[kind]
	switch {
	case err == nil:
		if state.refused != "" {
			state.refused = ""
			c.sweepKind(kind)
		}
		return
	case apierrors.IsNotFound(err):
		if !state.absent {
			conn.forget(kind)
			c.Log.Debug("cluster does not serve a kind", "cluster", c.name, "kind", kind.String())
			c.sweepKind(kind)
		}
	case classify(err) == refused:
		if reason := kube.Message(err); state.refused != reason {
			state.refused = reason
			c.Log.Warn("cluster does not let a kind be listed", "cluster", c.name, "kind", kind.String(), "error", reason)
			c.sweepKind(kind)
		}
	case conn == c.conn:
		c.suspect(conn, err)
		return
	case c.conn == nil:
		c.complain(unreachableMessage(err))
		return
	default:
		if problem := kube.Message(err); conn.problem != problem {
			conn.problem = problem
			c.Log.Warn("new connection does not work; the old one stays in use", "cluster", c.name, "error", problem)
		}
		return
	}
	if conn == c.next {
		c.promote()
	}
}

// listPatience is how long a cluster may take to list what is there before that
// is a failure. It goes on trying.
const listPatience = 30 * time.Second

// overdue says that a new connection is not ready though nothing was refused.
func (c *cluster) overdue(conn *connection) {
	c.mu.Lock()
	defer c.unlock()
	if conn == c.next && c.conn == nil && c.problem.Code == "" {
		c.complain("the API server does not finish listing what exists, so nothing is written there; see its load and the network to it")
	}
}

// complain notes why the cluster as a whole cannot be written to.
func (c *cluster) complain(message string) {
	if c.problem.Message == message {
		return
	}
	c.problem = snapshot.Failure{
		Ref:     snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: c.Namespace, Name: c.name},
		Code:    snapshot.WriteFailed,
		Message: message,
	}
	c.Log.Warn("cluster cannot be written to", "cluster", c.name, "error", message)
	c.announce()
}

// mended forgets the problem of the cluster as a whole.
func (c *cluster) mended() {
	if c.problem.Code != "" {
		c.problem = snapshot.Failure{}
		c.Log.Info("cluster can be written to again", "cluster", c.name)
		c.announce()
	}
}

// suspect stops writing on a connection until the API server gives a sign of
// life. One that answers the first probe was only a broken connection.
func (c *cluster) suspect(conn *connection, err error) {
	if conn.suspect || conn != c.conn {
		return
	}
	conn.suspect = true
	c.flush()
	first := unreachableMessage(err)
	conn.group.Go(func() { c.revive(conn, first) })
}

// Probes of an API server that gave no answer: after 0.5 s, doubled each time, at
// most 10 s apart, each bounded by probeTimeout.
const (
	probeFirst   = 500 * time.Millisecond
	probeMost    = 10 * time.Second
	probeTimeout = 10 * time.Second
)

func (c *cluster) revive(conn *connection, message string) {
	for failures := 1; ; failures++ {
		err := conn.Probe(conn.ctx, probeTimeout)
		if conn.ctx.Err() != nil {
			return
		}
		if err == nil {
			c.revived(conn)
			return
		}
		c.mu.Lock()
		if conn == c.conn {
			c.complain(message)
		}
		c.unlock()
		select {
		case <-conn.ctx.Done():
			return
		case <-time.After(kube.Jitter(kube.Backoff(probeFirst, probeMost, failures))):
		}
	}
}

func (c *cluster) revived(conn *connection) {
	c.mu.Lock()
	defer c.unlock()
	conn.suspect = false
	if conn != c.conn {
		return
	}
	c.mended()
	c.sweep(false)
}
