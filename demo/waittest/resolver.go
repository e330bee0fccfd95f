package waittest

import (
	"context"
	"net"
)

// init has Go's resolver make its channel outside of any bubble of testing/synctest: made by the first
// lookup, it ends a test binary when that was in a bubble and another one is not.
func init() { //nolint:gochecknoinits // before the first test
	_, _ = net.DefaultResolver.LookupHost(context.Background(), "localhost") // whatever it is
}
