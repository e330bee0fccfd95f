package serve

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/apply"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// maxFieldsTold bounds the fields that an entry about a hand edit names.
const maxFieldsTold = 3

// revertedChange tells what somebody else had done to a generated object, which was put back.
func revertedChange(c *apply.Change) snapshot.Change {
	drift := c.Reverted
	out := snapshot.Change{Time: c.Time, Kind: snapshot.ChangeReverted, On: c.Ref, Cluster: c.Ref.Cluster}
	switch {
	case drift.State == snapshot.DriftMissing:
		out.What = "was deleted by somebody else, and was created again"
	case len(drift.Fields) == 0:
		out.What = "was changed by somebody else, and was put back"
	default:
		fields := make([]string, 0, maxFieldsTold+1)
		for i := range drift.Fields[:min(len(drift.Fields), maxFieldsTold)] {
			fields = append(fields, fieldText(&drift.Fields[i]))
		}
		if more := len(drift.Fields) - maxFieldsTold; more > 0 {
			fields = append(fields, snapshot.Count(more, "more field"))
		}
		out.What = "was changed by somebody else, and was put back: " + strings.Join(fields, ", ")
	}
	if drift.By != "" {
		out.Causes = []snapshot.ChangeCause{{Kind: snapshot.ChangeEdited, On: c.Ref, What: "was edited", By: drift.By}}
	}
	return out
}

// fieldText says what a field was changed to, and what it is again.
func fieldText(f *snapshot.DriftField) string {
	return fmt.Sprintf("%s %s → %s", f.Path, valueText(f.Path, f.InForce), valueText(f.Path, f.Wanted))
}

// harmless are the fields whose texts hold no secret, by the end of their paths: names, hosts and the like. Of all other
// fields, only numbers and durations are told.
var harmless = regexp.MustCompile(`(?i)\.(host|hosts|subset|mode|namespace|name|resolution|location|protocol|action|version|address|exportTo|number|weight|timeout)(\[\d*\])?$`)

// plainValue is a number, a truth value or a duration.
var plainValue = regexp.MustCompile(`^(true|false|-?\d+(\.\d+)?(ms|s|m|h)?|[\d/.-]+)$`)

// valueText is a value if it can hold no secret: anybody may have written it.
func valueText(path, value string) string {
	switch {
	case value == "":
		return "(none)"
	case plainValue.MatchString(value):
		return value
	case harmless.MatchString(path) && !strings.ContainsAny(value, "{[") && !strings.Contains(strings.ToLower(path), "header"):
		return strconv.Quote(value)
	}
	return "(not shown)"
}
