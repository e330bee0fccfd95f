package cmdutil_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestCalledUnread: a Service that stands for another name is nowhere but in its cluster.
func TestCalledUnread(t *testing.T) {
	t.Parallel()
	in, _, err := offline.Load(offline.Dir("../../testdata/world/no-ports/in"))
	require.NoError(t, err)
	state := engine.Translate(in)
	read, unread := explain.New(state), explain.NewStored(state)
	from := read.Refs(snapshot.Workload)[0]
	const missing = "nothing"
	_, err = cmdutil.Called(read, from, missing)
	require.ErrorContains(t, err, `destination "nothing" not found`)
	require.NotContains(t, err.Error(), "ExternalName")
	_, err = cmdutil.Called(unread, from, missing)
	require.ErrorContains(t, err, `destination "nothing" not found`)
	require.ErrorContains(t, err, "ExternalName is found in its cluster only, which was not read")
	require.ErrorAs(t, err, new(*cmdutil.NotFoundError))
}
