package accesslog

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// MaxShown bounds the entries of a report, and Shown is how many it has unless more are asked for.
const (
	MaxShown = 5000
	Shown    = 50
	// maxRecords bounds the AccessLogRecords of registered clusters in a report: users there may write very many.
	maxRecords = 100
)

// Query says which entries are asked for. Empty fields ask for all.
type Query struct {
	// Name is an AccessLogRecord or the workload whose proxy logged: NAME, NAME.NAMESPACE or NAME.NAMESPACE.CLUSTER.
	Name string
	// From and To are the two sides of a request, named in the same way.
	From, To           string
	Cluster, Namespace string
	// Workload is the one whose proxy logged, as NAME.NAMESPACE.CLUSTER and no less.
	Workload string
	// Status is a status, a class such as 5xx, or a comparison such as >=500; Method is one of HTTP, and Path what the path begins with.
	Status, Method, Path string
	// Headers are request headers that were logged, as NAME=VALUE; without a value, the header has to be there.
	Headers []string
	// After leaves out the entries up to a sequence number, and Limit those before the last so many; all are wanted if it is 0.
	After uint64
	Limit int
	// Only, if set, tells the entries that are wanted, beside the other fields. It is no part of a URL.
	Only func(*Entry) bool
}

// Values are the query as those of a URL.
func (q *Query) Values() url.Values {
	out := url.Values{}
	for name, value := range q.fields() {
		if *value != "" {
			out.Set(name, *value)
		}
	}
	if len(q.Headers) > 0 {
		out["header"] = q.Headers
	}
	if q.After > 0 {
		out.Set("after", strconv.FormatUint(q.After, 10))
	}
	if q.Limit > 0 {
		out.Set("limit", strconv.Itoa(q.Limit))
	}
	return out
}

func (q *Query) fields() map[string]*string {
	return map[string]*string{
		"name": &q.Name, "from": &q.From, "to": &q.To, "cluster": &q.Cluster, "namespace": &q.Namespace, "workload": &q.Workload, "status": &q.Status, "method": &q.Method, "path": &q.Path,
	}
}

// ParseQuery reads what Values wrote.
func ParseQuery(v url.Values) (Query, error) {
	q := Query{Headers: v["header"]}
	for name, to := range q.fields() {
		*to = v.Get(name)
	}
	var err error
	if text := v.Get("after"); text != "" {
		if q.After, err = strconv.ParseUint(text, 10, 64); err != nil {
			return q, fmt.Errorf("after %q: want the number of an entry, as next says", text)
		}
	}
	if text := v.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 || q.Limit > MaxShown {
			return q, fmt.Errorf("limit %q: want a number from 1 to %d", text, MaxShown)
		}
	}
	return q, q.Check()
}

// Check says what of a query cannot be asked.
func (q *Query) Check() error {
	if _, err := statusTest(q.Status); err != nil {
		return err
	}
	for _, h := range q.Headers {
		name, _, _ := strings.Cut(h, "=")
		switch {
		case name == "":
			return fmt.Errorf("header %q: want NAME=VALUE", h)
		case Secret(name):
			return fmt.Errorf("header %s: it may have a secret, and is never logged", name)
		}
	}
	if q.Path != "" && !strings.HasPrefix(q.Path, "/") {
		return fmt.Errorf("path %q: want what a path begins with, such as /cart", q.Path)
	}
	return nil
}

// statusTest reads a condition on a status.
func statusTest(text string) (func(uint32) bool, error) {
	wrong := fmt.Errorf("status %q: want a status such as 503, a class such as 5xx, or a comparison such as >=500", text)
	if text == "" {
		return func(uint32) bool { return true }, nil
	}
	if len(text) == 3 && text[0] >= '1' && text[0] <= '5' && strings.EqualFold(text[1:], "xx") {
		class := uint32(text[0] - '0')
		return func(code uint32) bool { return code/100 == class }, nil
	}
	number := strings.TrimLeft(text, "<>=!")
	want, err := strconv.ParseUint(strings.TrimSpace(number), 10, 16)
	if err != nil || want > 599 {
		return nil, wrong
	}
	n := uint32(want)
	switch strings.TrimSuffix(text, number) {
	case "", "=", "==":
		return func(code uint32) bool { return code == n }, nil
	case "!=":
		return func(code uint32) bool { return code != n }, nil
	case ">=":
		return func(code uint32) bool { return code >= n }, nil
	case ">":
		return func(code uint32) bool { return code > n }, nil
	case "<=":
		return func(code uint32) bool { return code <= n && code > 0 }, nil
	case "<":
		return func(code uint32) bool { return code < n && code > 0 }, nil
	}
	return nil, wrong
}

// Matches reports whether an entry is asked for.
func (q *Query) Matches(e *Entry) bool { return q.matches(e, false) }

// matches is Matches; if a record is named exactly, others whose names begin with that are not meant.
func (q *Query) matches(e *Entry, exactly bool) bool {
	status, err := statusTest(q.Status)
	at := e.WorkloadRef.Name + "." + e.WorkloadRef.Namespace + "." + e.WorkloadRef.ClusterName
	r := &e.HTTP.Request
	switch {
	case err != nil || !status(e.HTTP.Response.ResponseCode),
		q.Name != "" && !named(at, q.Name) && !slices.ContainsFunc(e.Records, func(record string) bool { return record == q.Name || !exactly && named(record, q.Name) }),
		q.From != "" && !named(e.From, q.From), q.To != "" && !named(e.To, q.To),
		q.Workload != "" && q.Workload != at,
		q.Cluster != "" && q.Cluster != e.WorkloadRef.ClusterName, q.Namespace != "" && q.Namespace != e.WorkloadRef.Namespace,
		q.Only != nil && !q.Only(e),
		q.Method != "" && !strings.EqualFold(q.Method, r.RequestMethod), q.Path != "" && !strings.HasPrefix(r.Path, q.Path):
		return false
	}
	for _, h := range q.Headers {
		name, want, valued := strings.Cut(h, "=")
		if value, has := r.header(name); !has || valued && value != want {
			return false
		}
	}
	return true
}

// named reports whether a name is NAME, NAME.NAMESPACE or NAME.NAMESPACE.CLUSTER of a full one.
func named(full, name string) bool { return full == name || strings.HasPrefix(full, name+".") }

// Report are entries that were asked for.
type Report struct {
	// Since is since when entries are kept: since the instance of meshctl serve that answers leads.
	Since time.Time `json:"since"`
	// Entries are the last ones, the oldest first.
	Entries []Entry `json:"entries"`
	// More is how many older entries match, and Missed how many of all workloads, after the one that was named, are no longer kept.
	More   int    `json:"more,omitempty"`
	Missed uint64 `json:"missed,omitempty"`
	// Next is to be named to get what comes after these.
	Next uint64 `json:"next"`
	// Records are the AccessLogRecords: those of the management cluster, and then some of registered clusters. MoreRecords is how many
	// others there are.
	Records     []RecordReport `json:"records"`
	MoreRecords int            `json:"moreRecords,omitempty"`
	// Clusters are those whose agent has said anything of access logs, ascending by name.
	Clusters []ClusterReport `json:"clusters"`
}

// RecordReport is what became of an AccessLogRecord.
type RecordReport struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Cluster is the registered cluster in which it is; empty for one of the management cluster.
	Cluster string `json:"cluster,omitempty"`
	State   string `json:"state"`
	// Workloads is how many it selects, and Logging how many of these send their log.
	Workloads int `json:"workloads"`
	Logging   int `json:"logging"`
	// Issues are what is wrong with it.
	Issues []snapshot.Issue `json:"issues,omitempty"`
}

// ClusterReport is what the agent of a cluster says.
type ClusterReport struct {
	Cluster string `json:"cluster"`
	// Proxies is how many send their log now. Dropped is how many entries the agent dropped as there were too many, and Rejected how many
	// were not taken, since this instance leads.
	Proxies  int    `json:"proxies"`
	Dropped  uint64 `json:"dropped,omitempty"`
	Rejected uint64 `json:"rejected,omitempty"`
}

// Answer puts the entries that a query asks for into a report, which has the records.
func (r *Ring) Answer(q *Query, out *Report) {
	var all []Kept
	kept := uint64(0)
	exactly := slices.ContainsFunc(out.Records, func(o RecordReport) bool { return o.Identity() == q.Name })
	for _, list := range r.byKey {
		for _, k := range list {
			if k.Sequence <= q.After {
				continue
			}
			kept++
			if q.matches(k.Entry, exactly) {
				all = append(all, k)
			}
		}
	}
	slices.SortFunc(all, func(a, b Kept) int { return int(int64(a.Sequence) - int64(b.Sequence)) })
	limit := q.Limit
	if limit <= 0 || limit > MaxShown {
		limit = MaxShown
	}
	out.More = max(len(all)-limit, 0)
	out.Entries = make([]Entry, 0, min(len(all), limit))
	for _, k := range all[out.More:] {
		out.Entries = append(out.Entries, *k.Entry)
	}
	out.Next = r.Last()
	if q.After > 0 && q.After <= r.Last() {
		out.Missed = r.Last() - q.After - kept
	}
}

// ReportsOf are what became of records, and how many are left out: those of registered clusters that have no effect, before others.
func ReportsOf(plans []*Plan) (out []RecordReport, more int) {
	sorted := slices.Clone(plans)
	rank := func(p *Plan) int {
		switch {
		case p.Ref.Cluster == "":
			return 0
		case p.State != commonv1.ApprovalStateInvalid:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(sorted, func(a, b *Plan) int { return cmp.Compare(rank(a), rank(b)) })
	hub := len(sorted)
	if at := slices.IndexFunc(sorted, func(p *Plan) bool { return p.Ref.Cluster != "" }); at >= 0 {
		hub = at
	}
	shown := min(len(sorted), hub+maxRecords)
	out = make([]RecordReport, 0, shown)
	for _, p := range sorted[:shown] {
		out = append(out, RecordReport{
			Name: p.Ref.Name, Namespace: p.Ref.Namespace, Cluster: p.Ref.Cluster, State: string(p.State), Workloads: len(p.Workloads), Logging: p.Logging, Issues: p.Issues,
		})
	}
	return out, len(sorted) - shown
}

// Identity is the name by which entries say that the record wants them.
func (r *RecordReport) Identity() string {
	return snapshot.Ref{Kind: snapshot.AccessLogRecord, Cluster: r.Cluster, Namespace: r.Namespace, Name: r.Name}.Identity()
}
