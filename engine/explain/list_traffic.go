package explain

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/traffic"
)

// Traffic lists the rows of a report on what proxies count.
func Traffic(r *traffic.Report, by traffic.By) Table {
	columns := []column[traffic.Row]{
		text("SERVICE", 0, func(o *traffic.Row) string { return peerName(&o.To) }),
		text("NAMESPACE", 2, func(o *traffic.Row) string { return o.To.Namespace }),
		text("CLUSTER", 0, func(o *traffic.Row) string { return o.To.Cluster }),
		text("STATE", 1, func(o *traffic.Row) string { return string(o.State) }),
	}
	switch by {
	case traffic.ByWorkload:
		columns[0].Title = "WORKLOAD"
	case traffic.ByEdge:
		columns = []column[traffic.Row]{
			text("FROM", 0, func(o *traffic.Row) string { return placed(o.From) }),
			text("TO", 0, func(o *traffic.Row) string { return placed(&o.To) }),
			text("PORT", 5, func(o *traffic.Row) string { return some(int(o.Port)) }),
			text("SUBSET", 1, func(o *traffic.Row) string { return o.Subset }),
			text("VIA", 3, func(o *traffic.Row) string { return o.Via }),
		}
	}
	columns = append(columns, number("RPS", 0, rateText), number("SUCCESS", 0, successText))
	if by != traffic.ByWorkload {
		columns = append(columns, number("REFUSED", 1, func(o *traffic.Row) string { return some(int(o.Refused)) }))
	}
	columns = append(columns,
		number("P50", 4, func(o *traffic.Row) string { return latencyText(o.P50) }),
		number("P95", 3, func(o *traffic.Row) string { return latencyText(o.P95) }),
		number("P99", 1, func(o *traffic.Row) string { return latencyText(o.P99) }),
		number("REQUESTS", 1, func(o *traffic.Row) string { return counted(o, o.Requests) }),
		number("RETRIES", 4, func(o *traffic.Row) string { return some(int(o.Retries)) }),
	)
	if by == traffic.ByWorkload {
		columns = append(columns, number("DENIED", 2, func(o *traffic.Row) string { return some(int(o.Denied)) }))
		if slices.ContainsFunc(r.Rows, func(o traffic.Row) bool { return o.ShadowDenied > 0 }) {
			columns = append(columns, number("AUDITED", 2, func(o *traffic.Row) string { return some(int(o.ShadowDenied)) }))
		}
	}
	columns = append(columns, text(failuresTitle, 2, failuresText), text(trendTitle, 3, func(o *traffic.Row) string { return trendText(o.Trend) }), text("DOOR", 6, doorsText))
	const empty = "Nothing was counted."
	return newTable(empty, columns, r.Rows, func(o *traffic.Row) Row {
		row := Row{Key: placed(o.From) + " " + placed(&o.To) + " " + strconv.Itoa(int(o.Port)) + " " + o.Subset, Ref: o.To.Ref}
		if o.To.Cluster != "" {
			row.Clusters = []string{o.To.Cluster}
		}
		n := countFailing(o)
		if severity, fails := n.severity(); fails {
			row.Level = LevelOf(severity)
		}
		return row
	})
}

// peerName is the name of a workload or a service, or what stands for several.
func peerName(p *traffic.Peer) string {
	if p.Ref == (snapshot.Ref{}) {
		return "(not known)"
	}
	return p.Name
}

// placed is the name of a peer with its cluster; empty for none.
func placed(p *traffic.Peer) string {
	switch {
	case p == nil:
		return ""
	case p.Ref == (snapshot.Ref{}) && p.Name == "":
		return "(others)"
	case p.Cluster == "":
		return peerName(p)
	}
	return p.Cluster + "/" + peerName(p)
}

// counted is a number of what has numbers, and empty otherwise: 0 says that there is nothing, which is not known without data.
func counted(o *traffic.Row, n uint64) string {
	if o.State == traffic.NoData {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func rateText(o *traffic.Row) string {
	if o.State == traffic.NoData {
		return ""
	}
	return strconv.FormatFloat(o.PerSecond, 'f', 1, 64)
}

func successText(o *traffic.Row) string {
	if o.Success == nil {
		return ""
	}
	// 99.99 is not 100.
	return strconv.FormatFloat(float64(int(*o.Success*100))/100, 'f', -1, 64) + "%"
}

func latencyText(ms *float64) string {
	switch {
	case ms == nil:
		return ""
	case *ms >= traffic.MostLatency:
		return ">" + (time.Duration(traffic.Bounds[len(traffic.Bounds)-1]) * time.Millisecond).String()
	}
	return (time.Duration(*ms) * time.Millisecond).String()
}

// doorsText is how the numbers came in.
func doorsText(o *traffic.Row) string {
	doors := make([]string, len(o.Doors))
	for i, door := range o.Doors {
		doors[i] = string(door)
	}
	return strings.Join(doors, ",")
}

func failuresText(o *traffic.Row) string {
	var parts []string
	for m := range snapshot.Latency {
		if n := o.Failures[m.String()]; n > 0 {
			parts = append(parts, fmt.Sprint(m, " ", n))
		}
	}
	return strings.Join(parts, ", ")
}

// TrafficNotes are sentences about a report: since when it counts, and why something has no data.
func TrafficNotes(r *traffic.Report, window time.Duration) []string {
	first := fmt.Sprintf("In the last %s, %d of %s were read.", short(window), r.Read, snapshot.Count(r.Proxies, "proxy"))
	if covered := time.Duration(r.Seconds) * time.Second; covered < window-traffic.Point {
		first = fmt.Sprintf("Counted for %s, since %s; %d of %s were read.", short(covered), r.Since.Local().Format(time.TimeOnly), r.Read, snapshot.Count(r.Proxies, "proxy"))
	}
	out := []string{first}
	rows := map[traffic.Reason][]*traffic.Row{}
	for i := range r.Rows {
		if o := &r.Rows[i]; o.Reason != "" {
			rows[o.Reason] = append(rows[o.Reason], o)
		}
	}
	reasons := make([]traffic.Reason, 0, len(rows))
	for reason := range rows {
		reasons = append(reasons, reason)
	}
	slices.Sort(reasons)
	for _, reason := range reasons {
		of := rows[reason]
		text := fmt.Sprintf("%s: %s", firstPlaced(of), reason)
		if detail := of[0].Detail; detail != "" {
			text += " (" + detail + ")"
		}
		out = append(out, text+".")
	}
	sending := map[string][]*traffic.Row{}
	for i := range r.Rows {
		if o := &r.Rows[i]; o.Sends != nil && o.Sends.State == traffic.NoData {
			why := reasonText(o.Sends.Reason, o.Sends.Detail)
			sending[why] = append(sending[why], o)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(sending)) {
		out = append(out, fmt.Sprintf("Nothing is known of what is sent by %s: %s.", firstPlaced(sending[why]), why))
	}
	for _, c := range r.Clusters {
		if lost := lostText(&c); lost != "" {
			out = append(out, fmt.Sprintf("%s: %s; the next reading of a proxy has what a lost one had.", c.Cluster, lost))
		}
	}
	for i := range r.Clusters {
		if c := &r.Clusters[i]; c.Refused > 0 {
			out = append(out, c.Cluster+": "+refusedText(c)+".")
		}
	}
	if r.Folded > 0 {
		out = append(out, fmt.Sprintf("Callers with few requests were counted together %d times, as there were more than %d edges.", r.Folded, traffic.MaxEdges))
	}
	return out
}

// firstPlaced names the first of some rows, and counts the others.
func firstPlaced(rows []*traffic.Row) string {
	var names []string
	for _, o := range rows[:min(len(rows), 3)] {
		names = append(names, placed(&o.To))
	}
	if len(rows) > 3 {
		names = append(names, fmt.Sprintf("%d more", len(rows)-3))
	}
	return strings.Join(names, ", ")
}

// lostText says how many readings of an agent were lost; empty if none was.
func lostText(c *traffic.ClusterReport) string {
	var parts []string
	if c.Dropped > 0 {
		parts = append(parts, fmt.Sprintf("its agent dropped %s that could not be sent in time", count64(c.Dropped, "reading")))
	}
	if c.Rejected > 0 {
		parts = append(parts, fmt.Sprintf("%s of its agent came too soon or late, or of unknown pods", count64(c.Rejected, "reading")))
	}
	if c.LogsDropped > 0 {
		parts = append(parts, fmt.Sprintf("its agent dropped %s, as there were too many", count64(c.LogsDropped, "logged request")))
	}
	if c.LogsRejected > 0 {
		parts = append(parts, fmt.Sprintf("%s of its agent came too soon or late, or of unknown pods", count64(c.LogsRejected, "logged request")))
	}
	return strings.Join(parts, ", ")
}

// refusedText says what an agent has refused of proxies.
func refusedText(c *traffic.ClusterReport) string {
	return fmt.Sprintf("its agent refused what proxies send %s; the last time: %s", count64(c.Refused, "time"), c.Refusal)
}

func count64(n uint64, what string) string { return snapshot.Count(int(min(n, 1<<62)), what) }

// short is a duration without the units that are 0, such as 5m.
func short(d time.Duration) string {
	text := d.Round(time.Second).String()
	if d >= time.Minute {
		text = strings.TrimSuffix(text, "0s")
	}
	return text
}
