package telemetry

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/meshctl/meshctl/engine/traffic"
)

// FuzzPushed: whatever a proxy sends as a message of Envoy's metrics service, what is kept of it is bounded, and what it says of its node and
// settings is read or not.
func FuzzPushed(f *testing.F) {
	// The first statistics of a recorded message: mutations of a whole one take too long.
	recorded, first := message(f, "envoy-1.40.0-requests.bin"), 0
	for range 4 {
		_, _, n := protowire.ConsumeField(recorded[first:])
		first += n
	}
	f.Add(recorded[:first])
	f.Add(from("sidecar~10.1.0.6~web-1.shop~shop.svc.cluster.local"))
	stats := istioStats()
	f.Fuzz(func(t *testing.T, text []byte) {
		var p pushed
		if err := p.read(text); err != nil {
			return
		}
		require.LessOrEqual(t, len(p.metrics), len(text))
		namespace, pod, ok := stats.Node(p.node)
		require.Equal(t, ok, namespace != "" && pod != "")
		book := traffic.NewPushed(stats, stats.Counts(p.metadata))
		book.Take(p.at, p.metrics)
		if r := book.Complete(); r != nil {
			require.LessOrEqual(t, r.Size(), traffic.MaxTargets+1)
		}
	})
}
