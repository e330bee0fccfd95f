package check

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/explain"
)

// TestNoTitleWithoutLines: a category of which nothing could be checked is counted at its cause only. What could not be checked from
// here fails nothing.
func TestNoTitleWithoutLines(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	o := &Options{Streams: streams, Strict: true, Output: cmdutil.OutputFlag{Format: cmdutil.FormatTable}}
	skipped := explain.Check{ID: "c", Description: "c", Result: explain.CheckSkipped, Because: "a"}
	checkup := explain.NewCheckupOf(
		explain.CheckCategory{Title: "Before", Checks: []explain.Check{skipped}},
		explain.CheckCategory{Title: "Cluster one", Checks: []explain.Check{{ID: "a", Description: "it answers", Result: explain.CheckOK}}},
		explain.CheckCategory{Title: "Trust", Checks: []explain.Check{skipped}},
		explain.CheckCategory{Title: "Gateways", Checks: []explain.Check{
			{ID: "g", Description: "the gateway answers", Result: explain.CheckInfo, Message: "not checked from here: no answer within 1s", Hint: "ask proxies"},
		}},
	)
	var out strings.Builder
	require.NoError(t, o.paint(&out, checkup))
	assert.Equal(t, `Cluster one
  ok       it answers

Gateways
  info     the gateway answers: not checked from here: no answer within 1s
           → ask proxies

1 info, 2 not made, 1 ok
`, out.String())
	assert.False(t, o.fails(checkup), "also with --strict")
	assert.Equal(t, explain.CheckOK, checkup.Result)
}
