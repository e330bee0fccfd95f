package waittest

import (
	"net"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
)

// TestNamesAreResolvedAfterABubble: see init.
func TestNamesAreResolvedAfterABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, _ = net.DefaultResolver.LookupHost(t.Context(), "localhost") // whatever it is
	})
	_, err := net.DefaultResolver.LookupHost(t.Context(), "localhost")
	require.NoError(t, err)
}
