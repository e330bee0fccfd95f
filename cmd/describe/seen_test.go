package describe

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/seentest"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/golden"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// described is what the command prints of an object in a folder.
func described(t *testing.T, args ...string) string {
	t.Helper()
	streams, _, out, errs := cmdutil.TestStreams()
	cmd := NewCmd(&cmdutil.Factory{Streams: streams, Now: time.Now}, nil)
	cmd.SetArgs(args)
	require.NoError(t, cmd.ExecuteContext(t.Context()), errs)
	return out.String()
}

const bookinfo = "../../testdata/translate/bookinfo/in"

// TestGoldenSeen: what was counted stands beside what is asked.
func TestGoldenSeen(t *testing.T) {
	t.Parallel()
	url := seentest.Serve(t, bookinfo, enginetest.Bookinfo(), "cluster-2")
	for _, name := range [][2]string{
		{"trafficpolicy", "reviews-shift"}, {"trafficpolicy", "patient"}, {"accesspolicy", "reviews-calls"}, {"accesspolicy", "productpage-calls"}, {"destination", "reviews.bookinfo.cluster-1"},
		{"destination", "ratings.bookinfo.cluster-2"}, {"workload", "productpage-v1"}, {"workload", "ratings-v1.bookinfo.cluster-2"},
	} {
		golden.File(t, "testdata/seen-"+name[0]+"-"+name[1]+".txt", described(t, name[0], name[1], "--dir", bookinfo, "--server", url))
	}
	golden.File(t, "testdata/seen-problems.txt", described(t, "problems", "--dir", bookinfo, "--server", url))
	with, without := described(t, "destination", "reviews.bookinfo.cluster-1", "--dir", bookinfo, "--server", "http://127.0.0.1:1"), described(t, "destination", "reviews.bookinfo.cluster-1", "--dir", bookinfo)
	assert.Contains(t, with, "Seen (last 15m)")
	assert.Contains(t, with, "No data: meshctl serve")
	assert.NotContains(t, without, "Seen", "who names no server gets no words about one")
}

// TestGoldenAudited: what is audited says how many requests it would have refused, and whose: as the proxies of the pods count it that are
// called, which know of each request, or else as those of callers do.
func TestGoldenAudited(t *testing.T) {
	t.Parallel()
	sent := func(from, to string, n uint64) enginetest.Sent {
		return enginetest.Sent{From: from, To: to, Counts: map[snapshot.Measure]uint64{snapshot.Answered2xx: n}}
	}
	const web, cart, orders = "web-front-cluster-1-statefulset", "cart-v1-shop-cluster-1-statefulset", "orders-till-cluster-1-statefulset"
	all := []enginetest.Sent{
		sent(web, "cart-shop-cluster-1", 212), sent(cart, "cart-shop-cluster-1", 9189), sent(web, "orders-till-cluster-1", 40), sent(cart, "cache-shop-cluster-1", 1000),
	}
	tried := func(workload string, letIn, refused, denied uint64) enginetest.Sent {
		return enginetest.Sent{To: workload, Counts: map[snapshot.Measure]uint64{
			snapshot.Answered2xx: letIn + refused, snapshot.ShadowLetIn: letIn, snapshot.ShadowRefused: refused, snapshot.Refused: denied,
		}}
	}
	const cache = "cache-v1-shop-cluster-1-statefulset"
	for name, c := range map[string]struct {
		folder string
		sent   []enginetest.Sent
		unread []string
		args   []string
	}{
		"narrowed": {"audit", all, nil, []string{"accesspolicy", "cache-read-only"}},
		"denied":   {"audit", all, nil, []string{"accesspolicy", "orders-not-for-web"}},
		"allowed":  {"audit", all, nil, []string{"accesspolicy", "cart-for-shop"}},
		"global":   {"audit-global", append(all, sent(orders, "cache-shop-cluster-1", 3)), nil, []string{"virtualmesh", "virtual-mesh"}},
		// The proxies of cache know the methods; none of cart has counted.
		"tried-narrowed": {"audit", append(all, tried(cache, 930, 70, 0)), nil, []string{"accesspolicy", "cache-read-only"}},
		"tried-closed":   {"audit", append(all, tried(cart, 9189, 230, 0)), nil, []string{"accesspolicy", "cart-for-shop"}},
		"tried-denied":   {"audit", append(all, tried(orders, 0, 41, 0)), nil, []string{"accesspolicy", "orders-not-for-web"}},
		"tried-at-most":  {"audit", append(all, tried(orders, 0, 41, 5)), nil, []string{"accesspolicy", "orders-not-for-web"}},
		"tried-global":   {"audit-global", append(all, tried(cache, 0, 1000, 0), tried(cart, 9401, 0, 0)), nil, []string{"virtualmesh", "virtual-mesh"}},
		"unread":         {"audit", nil, []string{"cluster-1"}, []string{"accesspolicy", "cart-for-shop"}},
	} {
		folder := "../../testdata/translate/" + c.folder + "/in"
		url := seentest.Serve(t, folder, c.sent, c.unread...)
		golden.File(t, "testdata/audited-"+name+".txt", described(t, append(c.args, "--dir", folder, "--server", url)...))
	}
}
