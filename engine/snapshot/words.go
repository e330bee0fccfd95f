package snapshot

import (
	"strconv"
	"strings"
)

// Count says "1 policy" or "3 policies".
func Count(n int, word string) string {
	if n != 1 {
		switch {
		case strings.HasSuffix(word, "y"):
			word = strings.TrimSuffix(word, "y") + "ies"
		case strings.HasSuffix(word, "sh"):
			word += "es"
		default:
			word += "s"
		}
	}
	return strconv.Itoa(n) + " " + word
}
