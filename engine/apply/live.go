package apply

import (
	"time"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file handles watch events, and connections that work or fail.

// Turned implements mirror.Listener.
func (c *cluster) Turned() {
	c.mu.Lock()
	defer c.unlock()
	c.observeLink()
}

// observeLink takes over the state of the link.
func (c *cluster) observeLink() {
	if c.remote.link == nil {
		return
	}
	was := c.remote.now
	c.remote.now = c.remote.link.State()
	switch {
	case c.remote.now.Conn != was.Conn:
		c.remote.faults.inRow, c.remote.writer = 0, nil
		if c.remote.now.Conn == nil {
			c.flush()
			break
		}
		if err := c.remote.dial(); err != nil {
			c.setProblem(err.Error())
			c.flush()
			break
		}
		c.clearProblem()
		c.resetRefusals()
		c.Log.Debug("cluster connected", "cluster", c.name)
		c.awaitCluster()
		c.reports.observePlanes(c.remote.now.Conn)
		c.resync(true)
	case c.remote.now.Suspended && !was.Suspended:
		c.flush()
	case was.Suspended && !c.remote.now.Suspended:
		if c.remote.faults.inRow > 1 {
			c.timers.set(&c.remote.faults, time.Now().Add(faultMemory)) // a write that is taken clears the problem
		} else {
			c.clearProblem()
		}
		c.resync(false)
	}
	switch {
	case c.remote.now.Err != nil:
		c.setProblem(unreachableMessage(c.remote.now.Err))
	case c.remote.now.Connecting:
		c.reports.set(ofConnection, snapshot.Reason{}) // of a connection that is gone
	}
}

// Changed implements mirror.Listener.
func (c *cluster) Changed(conn *mirror.Connection, objects []mirror.ID) {
	c.mu.Lock()
	if conn != c.remote.now.Conn {
		c.mu.Unlock()
		return
	}
	defer c.unlock()
	c.reports.observePlanes(c.remote.now.Conn)
	for _, of := range objects {
		c.enqueueObserved(of)
	}
}

// Relisted implements mirror.Listener.
func (c *cluster) Relisted(conn *mirror.Connection, kind snapshot.Kind) {
	c.mu.Lock()
	defer c.unlock()
	if conn == c.remote.now.Conn {
		c.reports.observePlanes(c.remote.now.Conn)
		c.resyncKind(kind)
	}
}

// Incomparable implements mirror.Listener: err is why an object cannot be compared with
// what is wanted. If it is ours, it is written once for each change.
func (c *cluster) Incomparable(of mirror.ID, err error) {
	c.Log.Error("object cannot be compared with what is wanted", "object", of.Ref(c.name).String(), "error", err)
}

// resyncKind queues all objects of a kind that has become readable.
func (c *cluster) resyncKind(kind snapshot.Kind) {
	for of, i := range c.items {
		if of.Kind == kind {
			c.enqueue(i, true)
		}
	}
	c.collectGarbage()
}

// setProblem records why the cluster as a whole cannot be written to.
func (c *cluster) setProblem(message string) {
	if c.reports.set(ofConnection, snapshot.Reason{Code: snapshot.WriteFailed, What: message}) {
		c.Log.Warn("cluster cannot be written to", "cluster", c.name, "error", message)
		c.awaitCluster()
	}
}

// clearProblem clears the problem of the cluster as a whole.
func (c *cluster) clearProblem() {
	if c.reports.set(ofConnection, snapshot.Reason{}) {
		c.Log.Info("cluster can be written to again", "cluster", c.name)
		c.awaitCluster()
	}
}

// probe stops writing on a connection until the API server answers a probe. If it
// answers the first one and takes writes then, only the connection was broken, and
// nothing is reported.
func (c *cluster) probe(conn *mirror.Connection, err error) {
	if !c.remote.link.Suspend(conn, c.remote.faults.inRow) {
		return
	}
	c.observeLink()
	if c.remote.faults.inRow > 1 {
		c.setProblem(unreachableMessage(err))
	}
}

// retryNow tries again at once what failed, because the connection has another credential. A connection that is suspended is first
// probed by its owner.
func (c *cluster) retryNow() {
	c.mu.Lock()
	defer c.unlock()
	if c.remote.now.Conn == nil || !c.remote.now.Suspended && c.remote.faults.inRow == 0 {
		return
	}
	c.resetRefusals()
	if !c.remote.now.Suspended {
		c.resync(false)
	}
}

// faultMemory is longer than the longest pause between two writes that fail.
const faultMemory = 2 * retryMost

// fire implements timer: it clears the problem of a server that has rejected writes, if nothing is left to write that could tell.
func (f *faults) fire(c *cluster, now time.Time) {
	end := f.last.Add(faultMemory)
	switch {
	case c.remote.now.Suspended || f.inRow == 0:
	case end.After(now):
		c.timers.set(f, end)
	default:
		f.inRow = 0
		c.clearProblem()
	}
}
