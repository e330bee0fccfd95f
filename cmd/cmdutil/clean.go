package cmdutil

import (
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Clean makes a string from a cluster safe to paint: control characters (which
// could move the cursor, hide text or fake a line) become "?", line ends and
// tabs become spaces.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case snapshot.Unprintable(r):
			return '?'
		}
		return r
	}, s)
}

// CleanLines is Clean that keeps line ends.
func CleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Clean(lines[i])
	}
	return strings.Join(lines, "\n")
}
