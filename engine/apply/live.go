package apply

import (
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file handles watch events, and connections that work or fail.

// changed implements listener.
func (c *cluster) changed(conn *connection, of id, l live, deleted bool) {
	c.mu.Lock()
	if !conn.event(of, l, deleted) || conn != c.conn {
		c.mu.Unlock()
		return
	}
	defer c.unlock()
	c.meet()
	c.check(of)
}

// replaced implements listener.
func (c *cluster) replaced(conn *connection, kind snapshot.Kind, list map[id]live, version uint64) {
	c.mu.Lock()
	defer c.unlock()
	current := conn.kinds[kind].current()
	changed := conn.replace(kind, list, version)
	c.meet()
	switch {
	case conn == c.next:
		c.promote()
	case conn == c.conn && !current:
		c.sweepKind(kind)
	case conn == c.conn:
		for _, of := range changed {
			c.check(of)
		}
	}
}

// incomparable implements listener: err is why an object cannot be compared with
// what is wanted. If it is ours, it is written once for each change.
func (c *cluster) incomparable(of id, err error) {
	c.Log.Error("object cannot be compared with what is wanted", "object", of.ref(c.name).String(), "error", err)
}

// sweepKind queues all objects of a kind that has become readable.
func (c *cluster) sweepKind(kind snapshot.Kind) {
	for of, i := range c.items {
		if of.kind == kind {
			c.enqueue(i, true)
		}
	}
	c.sweepGarbage()
}

// promote puts the next connection into use if it is ready.
func (c *cluster) promote() {
	if c.next == nil || !c.next.ready() {
		return
	}
	c.drop(c.conn)
	c.conn, c.next = c.next, nil
	c.clearProblem()
	c.forgive()
	c.Log.Debug("cluster connected", "cluster", c.name, "objects", len(c.conn.objects))
	c.awaitCluster()
	c.meet()
	c.sweep(true)
}

// reported implements listener: err is the result of a list or watch request.
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
			c.Log.Warn("cluster rejects listing a kind", "cluster", c.name, "kind", kind.String(), "error", reason)
			c.sweepKind(kind)
		}
	case conn == c.conn:
		c.suspect(conn, err)
		return
	case c.conn == nil:
		c.setProblem(unreachableMessage(err))
		return
	default:
		if problem := kube.Message(err); conn.problem != problem {
			conn.problem = problem
			c.Log.Warn("the new connection to the cluster does not work; the previous one stays in use", "cluster", c.name, "error", problem)
		}
		return
	}
	if conn == c.next {
		c.promote()
	}
}

// listPatience is how long a cluster may take to list all objects before that is
// reported as a failure. The listing continues.
const listPatience = 30 * time.Second

// overdue reports a new connection that is not ready in time.
func (c *cluster) overdue(conn *connection) {
	c.mu.Lock()
	defer c.unlock()
	if conn == c.next && c.conn == nil && c.problem.Code == "" {
		c.setProblem("the API server has not finished listing objects, so nothing is written there; check its load and the network")
	}
}

// setProblem records why the cluster as a whole cannot be written to.
func (c *cluster) setProblem(message string) {
	if c.problem.What == message {
		return
	}
	c.problem = snapshot.Failure{
		Ref:    snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: c.Namespace, Name: c.name},
		Reason: snapshot.Reason{Code: snapshot.WriteFailed, What: message},
	}
	c.Log.Warn("cluster cannot be written to", "cluster", c.name, "error", message)
	c.awaitCluster()
	c.notifyFailures()
}

// clearProblem clears the problem of the cluster as a whole.
func (c *cluster) clearProblem() {
	if c.problem.Code != "" {
		c.problem = snapshot.Failure{}
		c.Log.Info("cluster can be written to again", "cluster", c.name)
		c.awaitCluster()
		c.notifyFailures()
	}
}

// fault enters a write that got no answer about the object: the server is down, or it
// answers probes and rejects writes. An object that fails again while others do not is
// tried again like one that is refused, and is no reason to slow down others.
func (c *cluster) fault(conn *connection, i *item, s step, err error) {
	c.retry(i, s.verb)
	switch {
	case conn != c.conn:
		return
	case i.refusal.tries > 1 && c.problem.Code == "":
		c.setFailure(i, s, snapshot.WriteFailed, kube.Message(err))
	case i.refusal.tries == 1 && !conn.suspect:
		conn.faults++
	}
	conn.faulted = time.Now()
	c.suspect(conn, err)
}

// suspect stops writing on a connection until the API server answers a probe. If it
// answers the first one and takes writes then, only the connection was broken, and
// nothing is reported.
func (c *cluster) suspect(conn *connection, err error) {
	if conn.suspect || conn != c.conn {
		return
	}
	conn.suspect = true
	c.flush()
	first := unreachableMessage(err)
	if conn.faults > 1 {
		c.setProblem(first)
	}
	pause := kube.Backoff(probeFirst, probeMost, conn.faults-1)
	conn.group.Go(func() {
		select {
		case <-conn.ctx.Done():
		case <-conn.hurry:
			c.probe(conn, first)
		case <-time.After(pause):
			c.probe(conn, first)
		}
	})
}

// Probes of an API server that gave no answer: after 0.5 s, doubled each time, at
// most 10 s apart, each bounded by probeTimeout.
const (
	probeFirst   = 500 * time.Millisecond
	probeMost    = 10 * time.Second
	probeTimeout = 10 * time.Second
)

func (c *cluster) probe(conn *connection, message string) {
	for failures := 1; ; failures++ {
		err := conn.Probe(conn.ctx, probeTimeout)
		if conn.ctx.Err() != nil {
			return
		}
		if err == nil {
			c.resume(conn)
			return
		}
		c.mu.Lock()
		if conn == c.conn {
			c.setProblem(message)
		}
		c.unlock()
		select {
		case <-conn.ctx.Done():
			return
		case <-conn.hurry:
			failures = 0
		case <-time.After(kube.Jitter(kube.Backoff(probeFirst, probeMost, failures))):
		}
	}
}

// hurry tries again at once what failed, because the connection has another credential.
func (c *cluster) hurry() {
	c.mu.Lock()
	defer c.unlock()
	if c.conn == nil || !c.conn.suspect && c.conn.faults == 0 {
		return
	}
	c.forgive()
	if !c.conn.suspect {
		c.sweep(false)
		return
	}
	select {
	case c.conn.hurry <- struct{}{}:
	default:
	}
}

func (c *cluster) resume(conn *connection) {
	c.mu.Lock()
	defer c.unlock()
	conn.suspect = false
	if conn != c.conn {
		return
	}
	if conn.faults > 1 {
		c.expire(conn, faultMemory) // a write that is taken clears the problem
	} else {
		c.clearProblem()
	}
	c.sweep(false)
}

// faultMemory is longer than the longest pause between two writes that fail.
const faultMemory = 2 * retryMost

// expire clears the problem of a server that has rejected writes, if nothing is left to
// write that could tell.
func (c *cluster) expire(conn *connection, after time.Duration) {
	time.AfterFunc(after, func() {
		c.mu.Lock()
		defer c.unlock()
		rest := faultMemory - time.Since(conn.faulted)
		switch {
		case conn != c.conn || conn.suspect || conn.faults == 0:
		case rest > 0:
			c.expire(conn, rest)
		default:
			conn.faults = 0
			c.clearProblem()
		}
	})
}
