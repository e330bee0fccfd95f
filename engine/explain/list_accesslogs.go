package explain

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/accesslog"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxFaulty is of how many AccessLogRecords of registered clusters the notes say what is wrong with them.
const maxFaulty = 5

// AccessLogs lists the requests of a report on access logs, the last one at the end.
func AccessLogs(r *accesslog.Report) Table {
	columns := []column[accesslog.Entry]{
		text("TIME", 0, func(o *accesslog.Entry) string {
			if o.HTTP.Common.StartTime.IsZero() {
				return ""
			}
			return o.HTTP.Common.StartTime.UTC().Format(time.TimeOnly)
		}),
		text("FROM", 2, func(o *accesslog.Entry) string { return cmp.Or(o.From, "(not known)") }),
		text("TO", 0, func(o *accesslog.Entry) string { return cmp.Or(o.To, "(not known)") }),
		text("PROXY", 5, func(o *accesslog.Entry) string { return o.WorkloadRef.ClusterName + "/" + o.Pod }),
		number("STATUS", 0, func(o *accesslog.Entry) string { return some(int(o.HTTP.Response.ResponseCode)) }),
		text("FLAGS", 3, func(o *accesslog.Entry) string { return strings.Join(o.HTTP.Common.Flags, ",") }),
		text("METHOD", 1, func(o *accesslog.Entry) string { return o.HTTP.Request.RequestMethod }),
		sentence("PATH", func(o *accesslog.Entry) string { return o.HTTP.Request.Path }),
		number("TOOK", 4, func(o *accesslog.Entry) string { return tookText(o.HTTP.Common.Took) }),
		text("HOST", 6, func(o *accesslog.Entry) string { return o.HTTP.Request.Authority }),
		text("RECORDS", 7, func(o *accesslog.Entry) string { return strings.Join(o.Records, ",") }),
	}
	const empty = "No request was logged."
	return newTable(empty, columns, r.Entries, func(o *accesslog.Entry) Row {
		return Row{Key: o.HTTP.Request.RequestID, Clusters: []string{o.WorkloadRef.ClusterName}}
	})
}

// tookText is a time in seconds as people read it; empty if it is none.
func tookText(seconds string) string {
	n, err := strconv.ParseFloat(strings.TrimSuffix(seconds, "s"), 64)
	if err != nil || seconds == "" {
		return ""
	}
	return strconv.FormatFloat(n*1000, 'f', 1, 64) + "ms"
}

// AccessLogNotes are sentences about a report: what was left out, since when requests are kept, and what is wrong with the AccessLogRecords.
func AccessLogNotes(r *accesslog.Report) (out []string) {
	if r.More > 0 {
		out = append(out, fmt.Sprintf("%s before these match, too; show them with --limit.", snapshot.Count(r.More, "request")))
	}
	if r.Missed > 0 {
		out = append(out, fmt.Sprintf("… %s came and went in between.", snapshot.Count(int(min(r.Missed, 1<<31)), "other request")))
	}
	for i := range r.Clusters {
		if c := &r.Clusters[i]; c.Dropped+c.Rejected > 0 {
			out = append(out, fmt.Sprintf("Cluster %s: %d logged requests were dropped, as there were too many.", c.Cluster, c.Dropped+c.Rejected))
		}
	}
	if len(r.Records) == 0 {
		return append(out, "There is no AccessLogRecord, so that nothing is logged; `meshctl create accesslogrecord` makes one.")
	}
	faulty := 0
	for i := range r.Records {
		o := &r.Records[i]
		if o.Cluster != "" && len(o.Issues) > 0 {
			if faulty++; faulty > maxFaulty {
				continue
			}
		}
		for j := range o.Issues {
			out = append(out, fmt.Sprintf("AccessLogRecord %s: %s", o.Identity(), o.Issues[j].Text()))
		}
	}
	if more := max(faulty-maxFaulty, 0) + r.MoreRecords; more > 0 {
		out = append(out, fmt.Sprintf("%s of registered clusters: see their statuses there, or run meshctl check.", snapshot.Count(more, "other AccessLogRecord")))
	}
	if len(r.Entries) == 0 {
		out = append(out, fmt.Sprintf("Requests are kept since %s.", r.Since.UTC().Format(time.RFC3339)))
	}
	return out
}
