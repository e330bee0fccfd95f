package cmdutil

import (
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Clean makes a string from a cluster safe to paint; see snapshot.Clean.
func Clean(s string) string { return snapshot.Clean(s) }

// CleanLines is Clean that keeps line ends.
func CleanLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Clean(lines[i])
	}
	return strings.Join(lines, "\n")
}
