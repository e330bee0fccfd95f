package tui

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestGoldenWalk: the arrow keys walk from a service to its callers, and on to what those call.
func TestGoldenWalk(t *testing.T) {
	t.Parallel()
	for _, size := range [][2]int{{80, 24}, {120, 30}, {200, 40}} {
		m := startWith(t, countedUpdate(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), size[0], size[1])
		press(t, m, ":reviews.bookinfo.cluster-1\nx")
		screens := frameOf(m).screen()
		press(t, m, "←←")
		screens += "\n" + frameOf(m).screen()
		press(t, m, "→")
		p, walks := m.top().(*walkPage)
		require.True(t, walks)
		assert.Equal(t, "productpage-v1-bookinfo-cluster-1-deployment", p.ref.Name)
		press(t, m, "→↓")
		screens += "\n" + frameOf(m).screen()
		golden.File(t, fmt.Sprintf("testdata/walk-%dx%d.txt", size[0], size[1]), screens)
	}
}

// TestWalk: keys do what they say, also without numbers, and at the ends of the graph.
func TestWalk(t *testing.T) {
	t.Parallel()
	m := start(t, load(t, "../testdata/translate/bookinfo/in"), NewTheme(NoColour), 100, 30)
	press(t, m, "4x")
	assert.Contains(t, frameOf(m).screen(), "the graph is of services and workloads")
	press(t, m, ":reviews.bookinfo.cluster-1\nx")
	p, walks := m.top().(*walkPage)
	require.True(t, walks)
	require.NotEmpty(t, p.of.Left)
	require.NotEmpty(t, p.of.Right)
	assert.Contains(t, frameOf(m).screen(), "10% of requests")
	crosses := false
	for i := range p.of.Right {
		crosses = crosses || p.of.Right[i].Crosses && p.of.Right[i].Cluster == "cluster-2"
	}
	assert.True(t, crosses)
	press(t, m, "→")
	for range p.of.Right {
		press(t, m, "↓")
	}
	last := p.selected(&m.shared)
	assert.Equal(t, p.of.Right[len(p.of.Right)-1].Ref, last)
	press(t, m, "→")
	assert.Equal(t, last, p.ref, "what was outermost is in the middle")
	assert.Equal(t, snapshot.Workload, p.ref.Kind)
	require.NotNil(t, p.of)
	assert.NotEmpty(t, p.of.Left, "its service")
	press(t, m, "s")
	assert.Contains(t, frameOf(m).screen(), "this works on list pages only")
	press(t, m, "⎋")
	_, reads := m.top().(*readerPage)
	assert.True(t, reads)
}
