package relay

import "github.com/meshctl/meshctl/engine/snapshot"

// maxText is how many characters of a text count that the other side wrote for people.
const maxText = 500

// Text is a text of the other side, fit to be shown and stored: without control characters, and not longer than a few sentences.
func Text(s string) string {
	n := 0
	for at := range s {
		if n++; n > maxText {
			return snapshot.Clean(s[:at]) + "..."
		}
	}
	return snapshot.Clean(s)
}
