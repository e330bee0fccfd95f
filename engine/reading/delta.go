package reading

import (
	"fmt"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
)

// Compare says what differs between two readings, and what that does to traffic. This version of meshctl translates
// both; a note says so if another version recorded one of them.
func Compare(before, after *Reading) (*explain.Delta, error) {
	translator := engine.New(engine.Options{})
	was, is := explain.New(translator.Translate(before.Input)), explain.New(translator.Translate(after.Input))
	out, err := explain.Diff(was, is)
	if err != nil {
		return nil, err
	}
	out.Before.Recorded, out.After.Recorded = before.Recorded, after.Recorded
	if a, b := before.Input.Version, after.Input.Version; a != b && a != "" && b != "" {
		out.Notes = append(out.Notes, fmt.Sprintf("they were recorded by the versions %s and %s; what follows from each is what this version makes of it", a, b))
	}
	return out, nil
}
