package relay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/telemetry"
	"github.com/meshctl/meshctl/engine/traffic"
)

// TestReadingsPass as they are, but for their cluster, which the hub knows.
func TestReadingsPass(t *testing.T) {
	t.Parallel()
	part := traffic.Part{Target: traffic.Target{ProxyTarget: snapshot.ProxyTarget{Host: "b.a", Port: 80, Subset: "v1"}}, Measures: []uint32{1, 4}, Values: []uint64{5, 6}, Latency: []uint64{1, 2}}
	for _, s := range []*telemetry.Sent{
		{Proxy: traffic.Proxy{Namespace: "a", Pod: "b", Created: 7}, Age: 3 * time.Second, Reason: traffic.Failed, Detail: "refused"},
		{Proxy: traffic.Proxy{Namespace: "a", Pod: "b", Created: 7}, Parts: &traffic.Parts{
			Started: time.UnixMilli(1234), Uptime: 5 * time.Second, Counts: true, Overflow: true, Refused: 2,
			Clusters: []traffic.Part{part}, Owned: []traffic.Part{{Target: traffic.Target{Serves: true}, Measures: []uint32{0}, Values: []uint64{1}}}, Both: traffic.Part{Measures: []uint32{3}, Values: []uint64{4}},
		}},
		{Parts: &traffic.Parts{Own: true, Clusters: []traffic.Part{}, Owned: []traffic.Part{}}},
	} {
		text, err := proto.Marshal(ReadingOf(s))
		require.NoError(t, err)
		got := &relayv1.Reading{}
		require.NoError(t, proto.Unmarshal(text, got))
		assert.Equal(t, s, SentOf(got))
	}
}

// TestReadingsAreBounded: one that is too large for a frame is not sent, and what is in it does not matter to who takes it.
func TestReadingsAreBounded(t *testing.T) {
	t.Parallel()
	large := &traffic.Parts{}
	for i := range 4000 {
		large.Clusters = append(large.Clusters, traffic.Part{Target: traffic.Target{ProxyTarget: snapshot.ProxyTarget{Host: fmt.Sprint(i, strings.Repeat("a", 1000))}}})
	}
	r := ReadingOf(&telemetry.Sent{Proxy: traffic.Proxy{Pod: "b"}, Parts: large})
	assert.Equal(t, string(traffic.Failed), r.GetFailed())
	assert.Equal(t, "b", r.GetPod().GetName())
	assert.Less(t, proto.Size(r), 200)
	s := SentOf(&relayv1.Reading{AgeMilliseconds: 1 << 63, UptimeSeconds: 1 << 63, Started: proto.Int64(1 << 62), Detail: "\x1b[2J" + strings.Repeat("a", 5000)})
	assert.Positive(t, s.Age)
	assert.Positive(t, s.Parts.Uptime)
	assert.Less(t, len(s.Detail), 600)
	assert.NotContains(t, s.Detail, "\x1b")
	assert.Empty(t, SentOf(nil).Proxy.Pod)
}

// FuzzSentOf: whatever an agent sends becomes a reading or an error.
func FuzzSentOf(f *testing.F) {
	seed, _ := proto.Marshal(ReadingOf(&telemetry.Sent{Parts: &traffic.Parts{Clusters: []traffic.Part{{Measures: []uint32{1}, Values: []uint64{1}}}}}))
	f.Add(seed)
	f.Fuzz(func(_ *testing.T, text []byte) {
		r := &relayv1.Reading{}
		if proto.Unmarshal(text, r) != nil {
			return
		}
		if s := SentOf(r); s.Parts != nil {
			_, _ = s.Parts.Reading()
		}
	})
}
