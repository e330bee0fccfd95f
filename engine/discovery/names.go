package discovery

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// hashLength is how many hexadecimal digits make the name of an object differ from one
// that is in use: so many that nobody finds a source with the digits of another one.
// Older versions wrote olderHashLength digits.
const (
	hashLength      = 12
	olderHashLength = 8
)

// objectName joins and sanitizes the parts of a generated name.
func objectName(parts ...string) string { return snapshot.Sanitize(strings.Join(parts, "-")) }

// hashedName is a name with the hash of a source.
func hashedName(name string, source snapshot.Ref) string {
	sum := sha256.Sum256([]byte(name + "/" + source.Key()))
	return cutName(name, hashLength) + "-" + hex.EncodeToString(sum[:])[:hashLength]
}

// cutName is what a hash of so many digits leaves of a name.
func cutName(name string, digits int) string { return name[:min(len(name), snapshot.MaxName-digits-1)] }

// isHashedName reports whether a name is another one with a hash of any source.
func isHashedName(name, of string) bool {
	for _, digits := range []int{hashLength, olderHashLength} {
		hash, ok := strings.CutPrefix(name, cutName(of, digits)+"-")
		if ok && len(hash) == digits && strings.Trim(hash, "0123456789abcdef") == "" {
			return true
		}
	}
	return false
}

// names gives out the names of one kind of discovered objects in one cluster, each
// once. Which object gets a name that several could have is decided by Distinct.
type names struct {
	kind  snapshot.Kind
	given map[string]bool
}

func newNames(kind snapshot.Kind, size int) *names {
	return &names{kind: kind, given: make(map[string]bool, size)}
}

// claim returns a name for source: name itself, or name with a hash if that was given
// out already.
func (n *names) claim(name string, source snapshot.Ref) string {
	for n.given[name] {
		name = hashedName(name, source)
	}
	n.given[name] = true
	return name
}
