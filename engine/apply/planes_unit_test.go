package apply

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestForgedManagementPlanesAreBounded: who may create objects can label them with any
// number of management planes; what is said of them stays short, and ends with them.
func TestForgedManagementPlanesAreBounded(t *testing.T) {
	t.Parallel()
	s := New(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}).shared
	c := &cluster{shared: s, name: "west", conn: &connection{mirror: newMirror([]snapshot.Kind{snapshot.VirtualService}, func(int64) {})}}
	of := func(n int) id {
		return id{kind: snapshot.VirtualService, namespace: "tenant", name: fmt.Sprintf("forged-%d", n)}
	}
	const forged = 10 * mostOthers
	for n := range forged {
		c.conn.put(of(n), live{other: snapshot.Plane{Namespace: "gloo-mesh", ID: fmt.Sprintf("p%04d", n)}})
		c.meet()
	}
	assert.Len(t, c.conn.others, mostOthers)
	assert.Contains(t, c.met.What, "the management plane p0000 (in a namespace gloo-mesh), the management plane p0001")
	assert.Contains(t, c.met.What, "and 97 more")
	assert.Less(t, len(c.met.What), 1000)
	for n := range forged {
		c.conn.take(of(n))
	}
	c.meet()
	assert.Empty(t, c.conn.others)
	assert.Zero(t, c.met)
}
