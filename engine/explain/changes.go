package explain

import (
	"strconv"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Changes lists a timeline, newest first. Empty says why there is nothing.
func Changes(list snapshot.Changes, empty string) Table {
	columns := []column[snapshot.Change]{
		since("WHEN", 0, func(c *snapshot.Change) time.Time { return c.Time }),
		text("CLUSTER", 2, func(c *snapshot.Change) string { return c.Cluster }),
		text("CHANGE", 3, func(c *snapshot.Change) string { return string(c.Kind) }),
		sentence("WHAT", func(c *snapshot.Change) string { return subjectText(c) }),
		text("BECAUSE", 5, func(c *snapshot.Change) string { return c.Because() }),
		number("TIMES", 4, func(c *snapshot.Change) string { return strconv.Itoa(max(c.Times, 1)) }),
	}
	newest := make([]snapshot.Change, len(list))
	keys := map[string]int{}
	for i := range list {
		newest[len(list)-1-i] = list[i]
	}
	return newTable(empty, columns, newest, func(c *snapshot.Change) Row {
		key := timeText(c.Time) + " " + c.On.String() + " " + c.What
		keys[key]++
		// Columns have no room for all of it.
		row := Row{Key: key + " " + strconv.Itoa(keys[key]), Ref: c.On, Level: levelOfChange(c), Note: c.Text()}
		if c.Cluster != "" {
			row.Clusters = []string{c.Cluster}
		}
		return row
	})
}

// subjectText is what changed, without its causes and how often.
func subjectText(c *snapshot.Change) string {
	bare := *c
	bare.Causes, bare.Times = nil, 0
	return bare.Text()
}

// levelOfChange is how bad a change is.
func levelOfChange(c *snapshot.Change) Level {
	switch {
	case c.Harm || c.Kind == snapshot.ChangeClusterLost || c.Kind == snapshot.ChangeRefused:
		return Error
	case c.Kind == snapshot.ChangeProblem || c.Kind == snapshot.ChangeReverted || c.Kind == snapshot.ChangeRecord:
		return Warning
	}
	return OK
}

// NoChanges says why a timeline of a management cluster is empty, and what to do.
const NoChanges = "meshctl serve has recorded no change in the last 24 hours. Edit a policy, and what it changes for traffic shows here; if it does not, check that a meshctl serve runs that records changes: meshctl check"
