package mirror

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Relations are those of an object as they are stored with it, for a process that starts later: names as hashes, because they are only
// compared, and a gateway may provide thousands.
type Relations struct {
	// Needs and Provides are ascending by hash.
	Needs, Provides []Name
	Protects        bool
}

// Name is a snapshot.Name, as stored.
type Name struct {
	hash uint64
	// Text is what it is the hash of; empty if it was read from an object.
	Text                  string
	local, Home, Together bool
}

// Key is what stands for a name of an object in a cluster: each cluster has local names of its own.
func (n Name) Key(cluster string) Key {
	if n.local {
		return Key{n.hash, cluster}
	}
	return Key{hash: n.hash}
}

// Key stands for a name in all clusters.
type Key struct {
	hash    uint64
	cluster string
}

// Compare orders keys, those of one cluster as their names.
func (k Key) Compare(o Key) int {
	return cmp.Or(cmp.Compare(k.hash, o.hash), strings.Compare(k.cluster, o.cluster))
}

// RelationsOf are those that a renderer states.
func RelationsOf(r *snapshot.Relations) Relations {
	return Relations{Needs: namesOf(r.Needs), Provides: namesOf(r.Provides), Protects: r.Protects}
}

func namesOf(names []snapshot.Name) []Name {
	out := make([]Name, len(names))
	for i, n := range names {
		sum := sha256.Sum256([]byte(n.Name))
		out[i] = Name{hash: binary.BigEndian.Uint64(sum[:]), Text: n.Name, local: n.Local, Home: n.Home, Together: n.Together}
	}
	slices.SortFunc(out, byHash)
	return out
}

func byHash(a, b Name) int { return cmp.Compare(a.hash, b.hash) }

// With are r with what only others have.
func (r Relations) With(others Relations) Relations {
	return Relations{Needs: union(r.Needs, others.Needs), Provides: union(r.Provides, others.Provides), Protects: r.Protects || others.Protects}
}

func union(names, more []Name) []Name {
	out := slices.Concat(names, more)
	slices.SortStableFunc(out, byHash)
	return slices.CompactFunc(out, func(a, b Name) bool { return a.hash == b.hash })
}

// stored is the JSON of relations.
type stored struct {
	Needs    names `json:"needs,omitempty"`
	Provides names `json:"provides,omitempty"`
	Protects bool  `json:"protects,omitempty"`
}

// names are stored as base64: of each, nameSize bytes, with the flags last.
type names []Name

const nameSize = 9

// maxNames bounds the names that are stored with an object: an API server takes 256 KiB of annotations.
const maxNames = 6000

// Flags of a stored name.
const (
	localFlag = 1 << iota
	homeFlag
	togetherFlag
)

// MarshalText implements encoding.TextMarshaler.
func (n names) MarshalText() ([]byte, error) {
	raw := make([]byte, 0, nameSize*len(n))
	for _, name := range n {
		var flags byte
		if name.local {
			flags |= localFlag
		}
		if name.Home {
			flags |= homeFlag
		}
		if name.Together {
			flags |= togetherFlag
		}
		raw = append(binary.BigEndian.AppendUint64(raw, name.hash), flags)
	}
	return base64.RawStdEncoding.AppendEncode(nil, raw), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (n *names) UnmarshalText(text []byte) error {
	raw, err := base64.RawStdEncoding.AppendDecode(nil, text)
	if err != nil {
		return err
	}
	for of := range slices.Chunk(raw, nameSize) {
		if len(of) == nameSize {
			flags := of[nameSize-1]
			*n = append(*n, Name{
				hash: binary.BigEndian.Uint64(of), local: flags&localFlag != 0, Home: flags&homeFlag != 0, Together: flags&togetherFlag != 0,
			})
		}
	}
	slices.SortFunc(*n, byHash)
	return nil
}

// Annotation is the value of the snapshot.RelationsAnnotation; empty if there are no relations. Names beyond maxNames are left out:
// a later process does not know of them.
func (r Relations) Annotation() string {
	if len(r.Needs)+len(r.Provides) == 0 && !r.Protects {
		return ""
	}
	few := func(n []Name) names { return n[:min(len(n), maxNames)] }
	text, err := json.Marshal(stored{Needs: few(r.Needs), Provides: few(r.Provides), Protects: r.Protects})
	if err != nil {
		return "" // it has nothing that cannot be marshalled
	}
	return string(text)
}

// ReadRelations reads an Annotation. There are none if it is damaged.
func ReadRelations(annotation string) Relations {
	var r stored
	if annotation == "" || json.Unmarshal([]byte(annotation), &r) != nil {
		return Relations{}
	}
	return Relations{Needs: r.Needs, Provides: r.Provides, Protects: r.Protects}
}
