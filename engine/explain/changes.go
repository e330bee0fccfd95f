package explain

import (
	"strconv"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Change is what was written in one cluster because of one object.
type Change struct {
	// Key is unique among all changes.
	Key  string
	Time time.Time
	// Action is Applied, Deleted or Failed.
	Action  string
	Cluster string
	// Cause is the policy or VirtualMesh from which it follows, or the
	// discovered object for which it was made.
	Cause snapshot.Ref
	// Note says what was written, in words.
	Note string
	// Count is how often the same was done, up to Time.
	Count int
}

// Changes lists what was written, newest first. Empty says why there is nothing.
func Changes(list []Change, empty string) Table {
	columns := []column[Change]{
		since("WHEN", 0, func(c *Change) time.Time { return c.Time }),
		text("CLUSTER", 0, func(c *Change) string { return c.Cluster }),
		text("ACTION", 0, func(c *Change) string { return c.Action }),
		text("KIND", 1, func(c *Change) string { return c.Cause.Kind.String() }),
		text("NAME", 0, func(c *Change) string { return c.Cause.Name }),
		text("NAMESPACE", 3, func(c *Change) string { return c.Cause.Namespace }),
		sentence("CHANGE", func(c *Change) string { return c.Note }),
		number("TIMES", 2, func(c *Change) string { return strconv.Itoa(max(c.Count, 1)) }),
	}
	return newTable(empty, columns, list, func(c *Change) Row {
		row := Row{Key: c.Key, Ref: c.Cause, Note: c.Note}
		if c.Action == "Failed" {
			row.Level = Error
		}
		if c.Cluster != "" {
			row.Clusters = []string{c.Cluster}
		}
		return row
	})
}
