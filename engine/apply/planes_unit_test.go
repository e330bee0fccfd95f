package apply

import (
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestForgedManagementPlanesAreBounded: who may create objects can label them with any
// number of management planes; what is said of them stays short, and ends with them.
func TestForgedManagementPlanesAreBounded(t *testing.T) {
	t.Parallel()
	s := New(Options{Log: slog.New(slog.NewTextHandler(io.Discard, nil))}).shared
	r := newReports(s, "west")
	conn := new(mirror.Link).NewConnection(nil, new(kube.Client), "west", snapshot.Plane{})
	for n := range 1000 {
		of := mirror.ID{Kind: snapshot.VirtualService, Namespace: "tenant", Name: fmt.Sprintf("forged-%d", n)}
		conn.Written(nil, of, mirror.Object{Version: 1, Other: snapshot.Plane{Namespace: "gloo-mesh", ID: fmt.Sprintf("p%04d", n)}})
		r.observePlanes(conn)
	}
	assert.Contains(t, r.whole[ofPlanes].What, "the management plane p0000 (in a namespace gloo-mesh), the management plane p0001")
	assert.Contains(t, r.whole[ofPlanes].What, "and 97 more")
	assert.Less(t, len(r.whole[ofPlanes].What), 1000)
	r.observePlanes(&mirror.Connection{Mirror: mirror.New(func(int64) {})})
	assert.Zero(t, r.whole[ofPlanes])
}
