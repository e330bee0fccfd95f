package apply

import (
	"time"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// remote is the API server of one cluster: whether it may be written to, and what exists there. The cluster's lock guards it.
type remote struct {
	*shared
	cluster string
	gate    gate
	// link leads there; now is what it is like, and writer sends through its connection.
	link   *mirror.Link
	now    mirror.LinkState
	writer *kube.Client
	faults faults
	// closed: the sink writes there no more.
	closed bool
}

// gate says whether an Output allows writes to a cluster.
type gate struct {
	// armed: there is an Output. listed: it lists the cluster. frozen: the cluster is
	// frozen in it.
	armed, listed, frozen bool
	// clusters says for each registered cluster whether it is frozen; set for the
	// management cluster, where the discovered objects of frozen clusters are kept.
	clusters map[string]bool
}

func (g gate) open() bool { return g.armed && g.listed && !g.frozen }

// faults are writes that got no answer about the object from a server that answers probes.
type faults struct {
	// inRow counts them; last is when the last one failed.
	inRow int
	last  time.Time
}

// dial prepares to write through the connection in use.
func (r *remote) dial() (err error) {
	r.writer, err = mirror.Dial(r.Guard(r.now.Conn.Config), warnings{r.Log, r.cluster})
	return err
}

// writable reports whether writes are allowed.
func (r *remote) writable() bool {
	return r.gate.open() && r.writer != nil && !r.now.Suspended && !r.closed
}

// find is an object that exists, as far as is known.
func (r *remote) find(of mirror.ID) (mirror.Object, bool) {
	if r.now.Conn == nil {
		return mirror.Object{}, false
	}
	return r.now.Conn.Find(of)
}

// written counts the objects of ours that may be deleted.
func (r *remote) written() int {
	total := 0
	for of, l := range r.now.Conn.All() {
		if l.Ours() && l.Here && of.Kind.Info().Access&snapshot.Write != 0 {
			total++
		}
	}
	return total
}

// garbage reports whether an object that no part wants is to be deleted.
func (r *remote) garbage(of mirror.ID, l mirror.Object) bool {
	if r.Keep || of.Kind.Info().Access&snapshot.Write == 0 || !l.Ours() || !l.Here && !r.stray(l) || l.Going {
		return false
	}
	if !r.now.Conn.State(of.Kind).Complete() {
		return false
	}
	if r.cluster != "" {
		return true
	}
	// A discovered object is kept while its cluster is frozen, and deleted when the
	// cluster is no longer registered.
	frozen, registered := r.gate.clusters[l.Source]
	return !registered || !frozen
}

// stray reports whether an object that names another cluster is known to be in the wrong one.
func (r *remote) stray(l mirror.Object) bool {
	known := r.uids.Load()
	if known == nil || l.Owner != mirror.Marked || r.PlaneID == "" || l.Source == "" || r.cluster == "" {
		return false
	}
	here := (*known)[r.cluster]
	there, registered := (*known)[l.Source]
	return here != "" && (!registered || there != "" && there != here)
}
