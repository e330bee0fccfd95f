package explain

import (
	"strconv"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Change is what was written in one cluster because of one object.
type Change struct {
	// Key tells it from all others.
	Key  string
	Time time.Time
	// Action is Applied, Deleted or Failed.
	Action  string
	Cluster string
	// Because is the policy or VirtualMesh from which it follows, or the
	// discovered object for which it was made.
	Because snapshot.Ref
	// Note says what was written, in words.
	Note string
	// Count is how often the same was done, up to Time.
	Count int
}

// Changes lists what was written, newest first. Empty says why there is nothing.
func Changes(list []Change, empty string) Table {
	t := Table{Columns: columns("WHEN@", "CLUSTER", "ACTION", "BECAUSE OF", "WHAT", "+TIMES#"), Empty: empty}
	for _, c := range list {
		level := Fine
		if c.Action == "Failed" {
			level = Broken
		}
		row := Row{Key: c.Key, Ref: c.Because, Level: level, Note: c.Note}
		if c.Cluster != "" {
			row.Clusters = []string{c.Cluster}
		}
		because := ""
		if c.Because != (snapshot.Ref{}) {
			because = c.Because.String()
		}
		row.Cells = []string{moment(c.Time), c.Cluster, c.Action, because, c.Note, strconv.Itoa(max(c.Count, 1))}
		t.Rows = append(t.Rows, row)
	}
	return t
}
