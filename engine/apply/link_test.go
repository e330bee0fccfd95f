package apply_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAClusterWithoutACredential is written to again when it has one, and what was asked for meanwhile waits.
func TestAClusterWithoutACredential(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set(one, w.config)
	object := func(host string) *snapshot.Object {
		return w.object(snapshot.VirtualService, one, "a", hosts(host))
	}
	sink.apply(output([]string{one}, object("a")))
	before := w.get(snapshot.VirtualService, "a").GetResourceVersion()

	sink.source.Set(one, "", nil, errors.New("its Secret holds no kubeconfig"))
	require.NoError(t, sink.Settled(t.Context()))
	sink.apply(output([]string{one}, object("b")))
	assert.Equal(t, before, w.get(snapshot.VirtualService, "a").GetResourceVersion())

	sink.Set(one, w.config)
	w.eventually("what was asked for is written", func() bool {
		return w.get(snapshot.VirtualService, "a").GetResourceVersion() != before
	})
}
