package apply

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestMemoryOfAGreatFleet bounds what the sink holds beside the Output itself:
// an item and a mirror entry for each of 245,000 objects.
//
//nolint:paralleltest // other tests would be in the measured heap
func TestMemoryOfAGreatFleet(t *testing.T) {
	out := fleet(50, 1000, 49)
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	s := New(Options{})
	before := heap()
	s.apply(ctx, &group, out, Edits{All: true})
	objects := 0
	for _, c := range s.clusters {
		c.mu.Lock()
		conn := new(mirror.Link).NewConnection(nil, new(kube.Client), c.name, snapshot.Plane{})
		for of := range c.items {
			// What comes off the wire shares no strings with what is wanted.
			of.Name, of.Namespace = string([]byte(of.Name)), string([]byte(of.Namespace))
			conn.Written(nil, of, mirror.Object{Version: 1})
			objects++
		}
		c.remote.now.Conn = conn
		c.mu.Unlock()
	}
	require.Equal(t, 245_000, objects)
	each := (heap() - before) / uint64(objects)
	t.Logf("%d bytes an object", each)
	assert.Less(t, each, uint64(700))
	runtime.KeepAlive(out)
}

func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
