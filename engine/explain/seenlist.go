package explain

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Counted reports whether proxies are counted, or should be: not of a folder.
func Counted(x *Index) bool { return x != nil && x.sight != nil }

// seenColumns are those about what was counted of the objects of a list; none where nothing is.
func seenColumns[T any](x *Index, of map[snapshot.Ref]*traffic.Row, ref func(*T) snapshot.Ref) []column[T] {
	if len(of) == 0 || x.sight.Report.Read == 0 {
		return nil
	}
	cell := func(text func(*traffic.Row) string) func(*T) string {
		return func(t *T) string {
			row := of[ref(t)]
			switch {
			case row == nil || row.State == traffic.NoData:
				return ""
			case row.State == traffic.NoTraffic:
				return "0"
			}
			return text(row)
		}
	}
	only := func(text func(*traffic.Row) string) func(*T) string {
		return func(t *T) string {
			if row := of[ref(t)]; row != nil {
				return text(row)
			}
			return ""
		}
	}
	columns := []column[T]{
		number("RPS", 2, cell(rateText)),
		number("SUCCESS", 1, only(successText)),
		number("P99", 3, only(func(o *traffic.Row) string { return latencyText(o.P99) })),
		text(trendTitle, 3, only(func(o *traffic.Row) string { return trendText(o.Trend) })),
	}
	for i := range columns {
		columns[i].Live = true
	}
	return columns
}

// beforeIssues inserts columns before the last one.
func beforeIssues[T any](columns, more []column[T]) []column[T] {
	return slices.Insert(columns, len(columns)-1, more...)
}

// calledRows are the Destinations of Evidence; nil without.
func calledRows(x *Index) map[snapshot.Ref]*traffic.Row {
	if x.sight == nil || x.sight.Report == nil {
		return nil
	}
	return x.sight.called
}

// servedRows are the Workloads of Evidence; nil without.
func servedRows(x *Index) map[snapshot.Ref]*traffic.Row {
	if x.sight == nil || x.sight.Report == nil {
		return nil
	}
	return x.sight.served
}

// Edges lists who calls what, those that fail most first.
func Edges(x *Index) Table {
	report := &traffic.Report{}
	empty := "Nobody counts what requests do here: that takes a management cluster with a meshctl serve that leads. See: meshctl top --help"
	if s := x.sight; s != nil {
		switch {
		case s.Report == nil:
			empty = "No data: " + s.Unknown
		case s.Report.Read == 0:
			empty = "No data: no proxy was read. `meshctl top workloads` says why."
		default:
			empty = "No traffic: no request was counted in the " + s.window() + "."
		}
		if s.Report != nil {
			report.Rows = slices.DeleteFunc(slices.Clone(s.Report.Rows), func(o traffic.Row) bool { return o.From == nil })
		}
	}
	t := Traffic(report, traffic.ByEdge)
	t.Empty = empty
	for i := range t.Columns {
		if t.Columns[i].Format == Number || t.Columns[i].Title == trendTitle || t.Columns[i].Title == failuresTitle {
			t.Columns[i].Live = true
		}
	}
	for i := range t.Rows {
		o, row := t.Rows[i].Item.(*traffic.Row), &t.Rows[i]
		if n := failed(o); o.Requests >= fewestRequests && percent(n, o.Requests) > mostFailures {
			row.Level, row.Note = Warning, grouped(n)+" of "+counting(o.Requests, "request")+" failed: "+orNothing(failuresText(o))
			row.Next = "ask where they go, and why: a"
		}
		if o.From.Cluster != "" && !slices.Contains(row.Clusters, o.From.Cluster) {
			row.Clusters = append(row.Clusters, o.From.Cluster)
		}
	}
	return t
}

// The titles of columns of text that change with each reading.
const (
	trendTitle    = "TREND"
	failuresTitle = "FAILURES"
)
