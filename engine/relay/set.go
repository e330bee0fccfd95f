package relay

import (
	"crypto/sha256"
	"crypto/subtle"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// Key names an object of a kind.
type Key struct{ Namespace, Name string }

// keyOf is a name on the wire.
func keyOf(n *relayv1.Name) Key { return Key{n.GetNamespace(), n.GetName()} }

func (k Key) wire() *relayv1.Name { return &relayv1.Name{Namespace: k.Namespace, Name: k.Name} }

// hashSize is the size of hashes and digests, in bytes.
const hashSize = 16

// Hash stands for the bytes of an object as its sender made them, or for all objects of a kind.
type Hash [hashSize]byte

// HashOf is 128 bits of SHA-256.
func HashOf(object []byte) Hash {
	full := sha256.Sum256(object)
	return Hash(full[:hashSize])
}

// hashFrom reads a hash from the wire; false if it is none.
func hashFrom(raw []byte) (Hash, bool) {
	if len(raw) != hashSize {
		return Hash{}, false
	}
	return Hash(raw), true
}

// set is names and hashes of the objects of one kind.
type set struct {
	of map[Key]Hash
	// digest is the exclusive or of the marks of all objects, so that one change costs one mark.
	digest Hash
}

func newSet() *set { return &set{of: map[Key]Hash{}} }

// mark is what an object comes to in a digest. Names have no zero bytes.
func mark(k Key, h Hash) Hash {
	text := make([]byte, 0, len(k.Namespace)+len(k.Name)+2+hashSize)
	text = append(text, k.Namespace...)
	text = append(text, 0)
	text = append(text, k.Name...)
	text = append(text, 0)
	return HashOf(append(text, h[:]...))
}

func (s *set) flip(k Key, h Hash) {
	m := mark(k, h)
	subtle.XORBytes(s.digest[:], s.digest[:], m[:])
}

func (s *set) put(k Key, h Hash) {
	s.remove(k)
	s.of[k] = h
	s.flip(k, h)
}

func (s *set) remove(k Key) {
	if h, known := s.of[k]; known {
		delete(s.of, k)
		s.flip(k, h)
	}
}

// has reports whether an object is in the set as h says.
func (s *set) has(k Key, h Hash) bool {
	known, found := s.of[k]
	return found && known == h
}

// is reports whether the set has this count and digest.
func (s *set) is(count uint64, digest []byte) bool {
	h, ok := hashFrom(digest)
	return ok && uint64(len(s.of)) == count && s.digest == h
}
