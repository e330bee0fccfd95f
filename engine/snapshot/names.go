package snapshot

import (
	"crypto/md5" //nolint:gosec // not for security: the names of Gloo Mesh 1.x have it
	"encoding/hex"
	"strings"
)

const (
	// MaxName is the longest generated name, so that it also fits into label values.
	MaxName = 63
	// cutName is how much of a name that is too long stays readable.
	cutName = 31
)

// sanitizer is read-only.
var sanitizer = strings.NewReplacer(
	"*", "-", "/", "-", ".", "-", ":", "-", " ", "-",
	"[", "", "]", "", "\n", "", `"`, "", "'", "",
)

// Sanitize makes a valid object name of s, as Gloo Mesh 1.x does: characters
// that names cannot have are replaced or dropped, and what is longer than
// MaxName ends in a hash.
func Sanitize(s string) string {
	s = sanitizer.Replace(s)
	if len(s) > MaxName {
		sum := md5.Sum([]byte(s)) //nolint:gosec // see the import
		s = (s[:cutName] + "-" + hex.EncodeToString(sum[:]))[:MaxName]
	}
	return strings.ToLower(s)
}
