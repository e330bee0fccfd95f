package accesslog

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func entry(id string, code uint32) *Entry {
	e := &Entry{
		WorkloadRef: commonv1.ClusterObjectRef{Name: "cart-v1", Namespace: "shop", ClusterName: "west"}, From: "front.shop", To: "cart-v1.shop.west", Records: []string{"failures.gloo-mesh"},
	}
	e.HTTP.Request = Request{RequestMethod: "GET", Path: "/cart/" + id, Headers: map[string]string{"x-user": "ada"}}
	e.HTTP.Response.ResponseCode = code
	return e
}

// TestQuery asks for an entry, and for others.
func TestQuery(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"": true, "name=cart-v1": true, "name=cart-v1.shop": true, "name=cart-v1.shop.west": true, "name=cart": false, "name=failures": true, "name=failures.gloo-mesh": true, "name=failures.shop": false,
		"from=front": true, "from=front.other": false, "to=cart-v1.shop": true, "to=front": false, "workload=cart-v1.shop.west": true, "workload=cart-v1.shop": false, "workload=cart.shop.west": false, "cluster=west": true, "cluster=east": false, "namespace=shop": true, "namespace=a": false,
		"status=503": true, "status=500": false, "status=5xx": true, "status=4XX": false, "status=>=500": true, "status=>503": false, "status=<=503": true, "status=<503": false, "status=!=503": false,
		"method=get": true, "method=POST": false, "path=/cart": true, "path=/c/": false, "header=x-user=ada": true, "header=x-user=bob": false, "header=X-User": true, "header=x-other": false,
	} {
		name, value, _ := strings.Cut(text, "=")
		q := Query{}
		if name == "header" {
			q.Headers = []string{value}
		} else if name != "" {
			*q.fields()[name] = value
		}
		back, err := ParseQuery(q.Values())
		require.NoError(t, err, text)
		assert.Equal(t, q, back)
		assert.Equal(t, want, q.Matches(entry("1", 503)), text)
	}
	for want, q := range map[string]Query{
		`status "6xx"`: {Status: "6xx"}, `status ">>5"`: {Status: ">>5"}, `status "999"`: {Status: "999"}, `header "=a"`: {Headers: []string{"=a"}}, "header cookie: it may have a secret": {Headers: []string{"cookie=a"}}, `path "cart"`: {Path: "cart"},
	} {
		require.ErrorContains(t, q.Check(), want)
	}
	_, err := ParseQuery(map[string][]string{"after": {"x"}})
	require.Error(t, err)
	_, err = ParseQuery(map[string][]string{"limit": {"0"}})
	require.Error(t, err)
}

// TestQueryNamesOneRecord: the full name of a record means no other one whose name begins with it.
func TestQueryNamesOneRecord(t *testing.T) {
	t.Parallel()
	r := NewRing(10, 1<<20)
	for i, records := range [][]string{{"books.shop"}, {"books.shop.west"}, {"books.shop", "books.shop.west"}, {"books.shop.east"}} {
		e := entry(fmt.Sprint(i), 200)
		e.Records = records
		r.Add("a", e)
	}
	known := []RecordReport{{Name: "books", Namespace: "shop"}, {Name: "books", Namespace: "shop", Cluster: "west"}}
	for _, c := range []struct {
		name    string
		records []RecordReport
		want    int
	}{
		{"books", known, 4}, {"books.shop", known, 2}, {"books.shop.west", known, 2}, {"books.shop.east", known, 1}, {"books.shop", known[1:], 4}, {"cart-v1.shop", known, 4},
	} {
		out := &Report{Records: c.records}
		r.Answer(&Query{Name: c.name}, out)
		assert.Len(t, out.Entries, c.want, "%s, with %v", c.name, c.records)
	}
}

// TestReportsAreBounded: those of the management cluster are all there, and of others first those that have an effect.
func TestReportsAreBounded(t *testing.T) {
	t.Parallel()
	var plans []*Plan
	add := func(cluster, name string, state commonv1.ApprovalState) {
		plans = append(plans, &Plan{Ref: snapshot.Ref{Kind: snapshot.AccessLogRecord, Cluster: cluster, Namespace: "shop", Name: name}, State: state})
	}
	for i := range 150 {
		add("west", fmt.Sprint("flood-", i), commonv1.ApprovalStateInvalid)
	}
	for i := range 120 {
		add("", fmt.Sprint("hub-", i), commonv1.ApprovalStatePending)
	}
	add("west", "mine", commonv1.ApprovalStatePending)
	got, more := ReportsOf(plans)
	require.Len(t, got, 120+maxRecords)
	assert.Equal(t, 51, more)
	assert.Equal(t, "hub-0.shop", got[0].Identity())
	assert.Equal(t, "mine.shop.west", got[120].Identity())
	assert.Equal(t, "flood-0.shop.west", got[121].Identity())
	got, more = ReportsOf(nil)
	assert.NotNil(t, got, "JSON has a list")
	assert.Zero(t, more)
}

// TestRing: who logs much loses its own oldest entries first, and what was lost is counted.
func TestRing(t *testing.T) {
	t.Parallel()
	ids := func(r *Ring, q Query) (string, *Report) {
		out := &Report{}
		r.Answer(&q, out)
		var got []string
		for i := range out.Entries {
			got = append(got, strings.TrimPrefix(out.Entries[i].HTTP.Request.Path, "/cart/"))
		}
		return strings.Join(got, " "), out
	}
	r := NewRing(3, 1<<20)
	for i := range 10 {
		r.Add("loud", entry(fmt.Sprint("a", i), 503))
	}
	r.Add("quiet", entry("b", 200))
	got, report := ids(r, Query{})
	assert.Equal(t, "a7 a8 a9 b", got)
	assert.Equal(t, uint64(7), r.Dropped())
	assert.Equal(t, uint64(11), report.Next)
	assert.Zero(t, report.Missed, "nothing was named before")
	got, report = ids(r, Query{After: 5, Limit: 2})
	assert.Equal(t, "a9 b", got)
	assert.Equal(t, 2, report.More)
	assert.Equal(t, uint64(2), report.Missed, "6 and 7 are gone")
	got, report = ids(r, Query{After: 11})
	assert.Empty(t, got)
	assert.Zero(t, report.Missed)

	// With room for few, the one that takes most makes place.
	small := NewRing(100, 4*entry("a0", 0).size()+10)
	small.Add("quiet", entry("b0", 200))
	for i := range 10 {
		small.Add("loud", entry(fmt.Sprint("a", i), 503))
	}
	got, _ = ids(small, Query{})
	assert.Equal(t, "b0 a7 a8 a9", got)
	key, taken := small.Take(5)
	assert.Equal(t, "quiet", key)
	assert.Len(t, taken, 1)
	key, taken = small.Take(2)
	assert.Equal(t, "loud", key)
	assert.Len(t, taken, 2)
	small.Forget(func(string) bool { return false })
	_, taken = small.Take(2)
	assert.Empty(t, taken)
	assert.Zero(t, small.total)
}
