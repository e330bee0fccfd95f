package cmdutil

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPrintDeclared: as JSON, only what Prints declares is printed, so that each answer has a schema.
func TestPrintDeclared(t *testing.T) {
	t.Parallel()
	type one struct{ A int }
	type other struct{ B int }
	o := OutputFlag{Format: FormatJSON}
	o.Prints(Form{Value: one{}}, Form{Value: []one{}})
	for _, value := range []any{one{}, &one{}, []one{}, []*one{}, []any{}, []any{&one{}, one{}}} {
		var out strings.Builder
		require.NoError(t, o.Print(&out, value, nil))
		assert.NotEmpty(t, out.String())
	}
	for _, value := range []any{other{}, &other{}, []other{}, []any{one{}, other{}}, map[string]one{}} {
		var out strings.Builder
		assert.ErrorContains(t, o.Print(&out, value, nil), "which no schema describes")
		assert.Empty(t, out.String())
	}
}
