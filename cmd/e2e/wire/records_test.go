package wire

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/accesslog"
)

// sentOne is a request for the ratings of the second cluster.
type sentOne struct {
	status        int
	agent, method string
}

func (s sentOne) path() string { return fmt.Sprintf("/%d/%s/%s", s.status, s.agent, s.method) }

// robot: it is of one of two agents.
func (s sentOne) robot() bool { return strings.HasPrefix(s.agent, "robot") }

// wanting are records by their names: their filters, and which requests pass them.
var wanting = map[string]struct {
	filters string
	wants   func(sentOne) bool
}{
	"all":      {``, func(sentOne) bool { return true }},
	"equal":    {`{statusCodeMatcher: {value: 404, comparator: EQ}}`, func(s sentOne) bool { return s.status == 404 }},
	"omitted":  {`{statusCodeMatcher: {value: 500}}`, func(s sentOne) bool { return s.status == 500 }},
	"least":    {`{statusCodeMatcher: {value: 404, comparator: GE}}`, func(s sentOne) bool { return s.status >= 404 }},
	"most":     {`{statusCodeMatcher: {value: 404, comparator: LE}}`, func(s sentOne) bool { return s.status <= 404 }},
	"header":   {`{headerMatcher: {name: user-agent, value: robot-1}}`, func(s sentOne) bool { return s.agent == "robot-1" }},
	"pattern":  {`{headerMatcher: {name: User-Agent, value: "robot-[0-9]", regex: true}}`, sentOne.robot},
	"inverted": {`{headerMatcher: {name: user-agent, value: "robot-[0-9]", regex: true, invertMatch: true}}`, func(s sentOne) bool { return !s.robot() }},
	"absent":   {`{headerMatcher: {name: x-nobody}}`, func(sentOne) bool { return false }},
	"either": {`{statusCodeMatcher: {value: 501}}, {headerMatcher: {name: ":method", value: POST}}`, func(s sentOne) bool {
		return s.status == 501 || s.method == http.MethodPost
	}},
	"elsewhere": {``, nil},
}

// recordsSelect: each request is logged for the records whose filters it passes, and for no other; and none once the records are gone.
func recordsSelect(t *testing.T, e *environment) {
	t.Helper()
	s := e.seen(t)
	reviews := e.pod(t, "cluster-2", "reviews-v1")
	send := func(r sentOne, count int) {
		t.Helper()
		call := app.Call{
			URL: "http://ratings:9080" + r.path(), Method: r.method, Count: count,
			Headers: header("User-Agent", r.agent, "X-App-Status", strconv.Itoa(r.status)),
		}
		all, err := e.send(t.Context(), reviews, call)
		require.NoError(t, err)
		require.Equal(t, count, all.total())
	}
	logged := func() (map[string]int, *accesslog.Report) {
		return s.logged(t, func(entry *accesslog.Entry) string {
			return entry.HTTP.Request.Path + " " + strings.Join(entry.Records, " ")
		})
	}
	earlier, _ := logged()
	wantedBy := func(r sentOne) string {
		var names []string
		for name, w := range wanting {
			if w.wants != nil && w.wants(r) {
				names = append(names, name+".gloo-mesh")
			}
		}
		slices.Sort(names)
		return r.path() + " " + strings.Join(names, " ")
	}
	probe := sentOne{200, "prober", http.MethodGet}
	t.Run("while they are there", func(t *testing.T) {
		for name, w := range wanting {
			service := "ratings"
			if w.wants == nil {
				service = "nobody"
			}
			e.during(t, `apiVersion: observability.enterprise.mesh.gloo.solo.io/v1
kind: AccessLogRecord
metadata: {name: `+name+`, namespace: gloo-mesh}
spec:
  workloadSelectors: [{kubeWorkloadMatcher: {clusters: [cluster-2], namespaces: [bookinfo], labels: {app: `+service+`}}}]
  filters: [`+w.filters+"]\n")
		}
		waittest.NoError(t, "all records are in force", func() error {
			send(probe, 1)
			if got, _ := logged(); got[wantedBy(probe)] == 0 {
				return fmt.Errorf("%v", got)
			}
			return nil
		})
		want := map[string]int{}
		for _, status := range []int{200, 404, 500, 501} {
			for _, agent := range []string{"robot-1", "robot-2", "browser"} {
				for _, method := range []string{http.MethodGet, http.MethodPost} {
					r := sentOne{status, agent, method}
					send(r, 2)
					want[wantedBy(r)] = 2
				}
			}
		}
		found := func() map[string]int {
			got, _ := logged()
			maps.DeleteFunc(got, func(of string, _ int) bool { return earlier[of] > 0 || strings.HasPrefix(of, probe.path()) })
			return got
		}
		waittest.NoError(t, "all requests are logged", func() error {
			if got := found(); !maps.Equal(want, got) {
				return fmt.Errorf("want %v, got %v", want, got)
			}
			return nil
		})
		s.settled(t)
		assert.Equal(t, want, found())
	})
	waittest.NoError(t, "the records are gone", func() error {
		if _, report := logged(); len(report.Records) > 0 {
			return fmt.Errorf("%+v", report.Records)
		}
		return nil
	})
	s.settled(t)
	before, _ := logged()
	send(sentOne{500, "late", http.MethodGet}, 5)
	s.settled(t)
	after, _ := logged()
	assert.Equal(t, before, after, "nothing is logged for records that are gone")
}
