package explain_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/accesslog"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAccessLogNotes: records are told with the cluster that they are in; those of users of clusters do not hide the others.
func TestAccessLogNotes(t *testing.T) {
	t.Parallel()
	bad := func(message string) []snapshot.Issue {
		return []snapshot.Issue{snapshot.Errorf(snapshot.HeaderSecret, "name another", "%s", message)}
	}
	r := &accesslog.Report{MoreRecords: 7}
	for i := range 8 {
		r.Records = append(r.Records, accesslog.RecordReport{Name: fmt.Sprint("r-", i), Namespace: "shop", Cluster: "west", Issues: bad("of a tenant")})
	}
	r.Records = append(r.Records, accesslog.RecordReport{Name: "r-0", Namespace: "shop", Issues: bad("of the management cluster")})
	got := strings.Join(explain.AccessLogNotes(r), "\n")
	assert.Contains(t, got, "AccessLogRecord r-0.shop.west: of a tenant")
	assert.Contains(t, got, "AccessLogRecord r-4.shop.west: of a tenant")
	assert.NotContains(t, got, "r-5")
	assert.Contains(t, got, "AccessLogRecord r-0.shop: of the management cluster")
	assert.Contains(t, got, "10 other AccessLogRecords of registered clusters: see their statuses there, or run meshctl check.")
}
