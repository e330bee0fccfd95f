package serve

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	causeStart = "start"
	// causeNone: no Input has changed since everything was written, so this write
	// repairs what somebody else changed, or is a retry.
	causeNone = "repair"
	// maxCauses bounds how many things one cause names.
	maxCauses = 4
)

// cause is why the Sink has work at present: what changed in the Inputs since
// everything was last written.
type cause struct {
	mu   sync.Mutex
	list []string
	more int
}

// add adds what led to a translation with something to write.
func (c *cause) add(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case slices.Contains(c.list, text):
	case len(c.list) < maxCauses:
		c.list = append(c.list, text)
	default:
		c.more++
	}
}

// clear forgets everything: all is written.
func (c *cause) clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list, c.more = nil, 0
}

// String names the cause.
func (c *cause) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return causeNone
	}
	text := strings.Join(c.list, "; ")
	if c.more > 0 {
		text += fmt.Sprintf("; and %d more", c.more)
	}
	return text
}

// logger adds the cause to each line of a logger.
func (c *cause) logger(log *slog.Logger) *slog.Logger {
	return slog.New(&causeHandler{Handler: log.Handler(), cause: c})
}

type causeHandler struct {
	slog.Handler
	cause *cause
}

// Handle implements slog.Handler.
func (h *causeHandler) Handle(ctx context.Context, r slog.Record) error {
	r.AddAttrs(slog.String("cause", h.cause.String()))
	return h.Handler.Handle(ctx, r) //nolint:wrapcheck // a handler returns the error of the next one
}

// WithAttrs implements slog.Handler.
func (h *causeHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &causeHandler{Handler: h.Handler.WithAttrs(attrs), cause: h.cause}
}

// WithGroup implements slog.Handler.
func (h *causeHandler) WithGroup(name string) slog.Handler {
	return &causeHandler{Handler: h.Handler.WithGroup(name), cause: h.cause}
}

// describe names what changed in an Input: "TrafficPolicy bookinfo/reviews",
// "12 Pods in cluster-1".
func describe(before *snapshot.State, now *snapshot.Input) string {
	if before == nil {
		return causeStart
	}
	var d differences
	was := before.Input
	if was.Management != now.Management {
		d.lists("", was.Management, now.Management)
	}
	known := map[string]*snapshot.Cluster{}
	for _, c := range was.Clusters {
		known[c.Name] = c
	}
	for _, c := range now.Clusters {
		old := known[c.Name]
		delete(known, c.Name)
		switch {
		case old == c:
		case old == nil:
			d.add("cluster " + c.Name + " was added")
		case old.Sync != c.Sync:
			d.add("cluster " + c.Name + " is " + cmp.Or(c.Unreachable(), "reachable"))
		default:
			d.cluster(old, c)
		}
	}
	for _, c := range was.Clusters {
		if known[c.Name] != nil {
			d.add("cluster " + c.Name + " was removed")
		}
	}
	if !snapshot.SameSlice(was.Failures, now.Failures) {
		d.add("failed writes")
	}
	return d.String()
}

// differences collects what to name.
type differences struct {
	named []string
	more  int
}

func (d *differences) add(text string) {
	if len(d.named) == maxCauses {
		d.more++
		return
	}
	d.named = append(d.named, text)
}

// String lists what was collected.
func (d *differences) String() string {
	text := strings.Join(d.named, ", ")
	if d.more > 0 {
		text += fmt.Sprintf(" and %d more", d.more)
	}
	return text
}

// cluster names what changed in a cluster.
func (d *differences) cluster(a, b *snapshot.Cluster) {
	if a.Domain != b.Domain || a.Reason != b.Reason {
		d.add("cluster " + b.Name)
	}
	d.lists(b.Name, a, b)
}

// lists names what changed in the lists of a cluster, which is empty for the
// management cluster: first what users write, then what follows from it.
func (d *differences) lists(cluster string, a, b snapshot.ObjectLists) {
	for _, derived := range []bool{false, true} {
		for kind, now := range b.Lists {
			if isDerived(kind) == derived {
				d.list(kind, cluster, a.List(kind), now)
			}
		}
	}
}

// isDerived reports whether objects of a kind follow from others.
func isDerived(kind snapshot.Kind) bool {
	switch kind {
	case snapshot.Mesh, snapshot.Workload, snapshot.Destination,
		snapshot.ReplicaSet, snapshot.Pod, snapshot.EndpointSlice, snapshot.Node:
		return true
	}
	return false
}

// list names the objects in which two lists, both ascending, differ.
func (d *differences) list(kind snapshot.Kind, cluster string, a, b snapshot.ObjectList) {
	count := 0
	var first snapshot.APIObject
	eachChange(a, b, func(was, now snapshot.APIObject) {
		if count++; count == 1 {
			first = now
			if now == nil {
				first = was
			}
		}
	})
	switch {
	case count == 1:
		ref := snapshot.RefOf(kind, first)
		ref.Cluster = cluster
		d.add(ref.String())
	case count > 1 && cluster != "":
		d.add(fmt.Sprintf("%d %s in %s", count, kind.Info().Resource, cluster))
	case count > 1:
		d.add(fmt.Sprintf("%d %s", count, kind.Info().Resource))
	}
}

// eachChange calls yield for each object in which two lists, both ascending, differ: with
// nil for one that is in one list only.
func eachChange(a, b snapshot.ObjectList, yield func(was, now snapshot.APIObject)) {
	if a.Same(b) {
		return
	}
	for i, j := 0, 0; i < a.Len() || j < b.Len(); {
		switch order := compareHeads(a, i, b, j); {
		case order < 0:
			yield(a.At(i), nil)
			i++
		case order > 0:
			yield(nil, b.At(j))
			j++
		default:
			if a.At(i) != b.At(j) {
				yield(a.At(i), b.At(j))
			}
			i, j = i+1, j+1
		}
	}
}

// compareHeads orders a.At(i) and b.At(j), of which one may be past the end.
func compareHeads(a snapshot.ObjectList, i int, b snapshot.ObjectList, j int) int {
	switch {
	case i == a.Len():
		return 1
	case j == b.Len():
		return -1
	}
	return snapshot.CompareNames(a.At(i), b.At(j))
}
