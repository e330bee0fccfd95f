package agent

import (
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// FuzzRequest: whatever a hub asks for, what is passed on reads, or changes one object that is marked as the hub's, or deletes one version
// of one, or answers a request for a certificate.
func FuzzRequest(f *testing.F) {
	plane := snapshot.Plane{Namespace: "gloo-mesh", ID: "p1"}
	for _, r := range []*relayv1.Request{applyOf("cart"), deletionOf("cart", false), {Method: http.MethodGet, Path: "/readyz"}, {}} {
		raw, err := proto.Marshal(r)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := &relayv1.Request{}
		if proto.Unmarshal(raw, r) != nil {
			return
		}
		of, changes, err := (rules{cluster: "west", plane: plane}).allow(r)
		if err != nil || r.GetMethod() == http.MethodGet {
			return
		}
		target := requested(t, r.GetPath())
		at, sub, ok := objectAt(target)
		if !ok || at.Name == "" {
			t.Fatalf("%s %q is allowed", r.GetMethod(), r.GetPath())
		}
		if sub != "" {
			if changes || sub != "status" || !answered(at.Kind) || r.GetMethod() != http.MethodPatch {
				t.Errorf("%s %q is allowed", r.GetMethod(), r.GetPath())
			}
			return
		}
		if !changes || of != at || at.Kind.Info().Access&snapshot.Write == 0 {
			t.Errorf("%s %q changes %v", r.GetMethod(), r.GetPath(), of)
		}
		if r.GetMethod() == http.MethodPatch {
			var o written
			require.NoError(t, json.Unmarshal(r.GetBody(), &o))
			if o.Metadata.Labels[snapshot.ClusterLabel] != "west" || o.Metadata.Labels[snapshot.PlaneLabel] != plane.ID {
				t.Errorf("%v of somebody else is written", at)
			}
		}
	})
}
