package discovery

import (
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// hashLength is the length of the hash that is appended to a name already in use.
const hashLength = 8

// objectName joins and sanitizes the parts of a generated name.
func objectName(parts ...string) string { return snapshot.Sanitize(strings.Join(parts, "-")) }

// hash is hashLength hexadecimal digits of s.
func hash(s string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s)) // never fails
	return fmt.Sprintf("%0*x", hashLength, h.Sum32())
}

// names assigns the names of one kind of discovered objects in one cluster.
type names struct {
	kind  snapshot.Kind
	taken map[string]snapshot.Ref
}

func newNames(kind snapshot.Kind, size int) *names {
	return &names{kind: kind, taken: make(map[string]snapshot.Ref, size)}
}

// claim returns the name to use for source: name itself, or name with a hash and an
// issue if an earlier source has it already.
func (n *names) claim(name string, source snapshot.Ref) (string, *snapshot.Issue) {
	holder, clash := n.taken[name]
	if !clash {
		n.taken[name] = source
		return name, nil
	}
	own := name
	for clash {
		own = name[:min(len(name), snapshot.MaxName-hashLength-1)] + "-" + hash(own+"/"+source.Key())
		_, clash = n.taken[own]
	}
	n.taken[own] = source
	return own, &snapshot.Issue{
		Code: snapshot.NameCollision, Severity: snapshot.Warning, Ref: source,
		Message: fmt.Sprintf("its %s would be called %s, as that of %s is; it is called %s instead", n.kind, name, holder, own),
		Hint:    "rename one of the two if you need the name",
		Cause:   holder,
	}
}
