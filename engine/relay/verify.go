package relay

import (
	"encoding/hex"
	"fmt"
	"maps"
	"strings"
)

// Sum is what the objects of one kind come to on one side.
type Sum struct {
	Count int `json:"count"`
	// Digest is the exclusive or of what names and hashes come to, in hexadecimal.
	Digest string `json:"digest"`
}

// Sums are by the names of kinds.
type Sums map[string]Sum

// Hashes are those of the objects of one kind, by NAMESPACE/NAME, in hexadecimal.
type Hashes map[string]string

// VerifyPath is what the hub asks the agent for, to compare: the Sums of all kinds as a Verification; or, with the query kind=NAME, the
// Hashes of one kind as VerifiedKind.
const VerifyPath = "/relay/verify"

// VerifyKind is the parameter of VerifyPath.
const VerifyKind = "kind"

// Verification is what the agent answers: what it reports, and what is in the cluster now, listed for this.
type Verification struct {
	Agent   Sums `json:"agent"`
	Cluster Sums `json:"cluster"`
	// Unlisted are kinds that could not be listed now, with the reason.
	Unlisted map[string]string `json:"unlisted,omitempty"`
}

// VerifiedKind is the answer about one kind.
type VerifiedKind struct {
	Agent   Hashes `json:"agent"`
	Cluster Hashes `json:"cluster"`
}

// sum is that of a set.
func (s *set) sum() Sum { return Sum{Count: len(s.of), Digest: hex.EncodeToString(s.digest[:])} }

// hashes are those of a set.
func (s *set) hashes() Hashes {
	out := make(Hashes, len(s.of))
	for key, hash := range s.of {
		out[key.Namespace+"/"+key.Name] = hex.EncodeToString(hash[:])
	}
	return out
}

// Sums are what the receiver has.
func (r *Receiver) Sums() Sums {
	out := Sums{}
	for kind, k := range r.kinds {
		out[kind] = k.held.sum()
	}
	return out
}

// Hashes are what the receiver has of a kind.
func (r *Receiver) Hashes(kind string) Hashes {
	if k := r.kinds[kind]; k != nil {
		return k.held.hashes()
	}
	return nil
}

// Sums are what the sender has.
func (s *Sender) Sums() Sums {
	out := Sums{}
	for kind, k := range s.kinds {
		s.look(kind, k)
		out[kind] = k.here.sum()
	}
	return out
}

// Hashes are what the sender has of a kind.
func (s *Sender) Hashes(kind string) Hashes {
	k := s.kinds[kind]
	if k == nil {
		return nil
	}
	s.look(kind, k)
	return k.here.hashes()
}

// HashesOf are those of objects, by the bytes that are sent.
func HashesOf(objects map[Key][]byte) (Sum, Hashes) {
	s := newSet()
	for key, object := range objects {
		s.put(key, HashOf(object))
	}
	return s.sum(), s.hashes()
}

// ObjectDifference is an object that is not the same on all sides. Each has the beginning of the hash of what is there; empty if there is none.
type ObjectDifference struct{ Name, Hub, Agent, Cluster string }

// shownHash is how much of a hash is shown, in hexadecimal digits.
const shownHash = 8

// Differing are the objects that differ between the hub, the agent and the cluster. Without a list of the cluster (nil), only the hub and
// the agent are compared.
func Differing(hub, agent, cluster Hashes) map[string]ObjectDifference {
	names := maps.Clone(hub)
	if names == nil {
		names = Hashes{}
	}
	maps.Copy(names, agent)
	maps.Copy(names, cluster)
	out := map[string]ObjectDifference{}
	for name := range names {
		if hub[name] == agent[name] && (cluster == nil || agent[name] == cluster[name]) {
			continue
		}
		show := func(h string) string { return h[:min(len(h), shownHash)] }
		out[name] = ObjectDifference{Name: strings.TrimPrefix(name, "/"), Hub: show(hub[name]), Agent: show(agent[name]), Cluster: show(cluster[name])}
	}
	return out
}

// String says which side has what.
func (d ObjectDifference) String() string {
	has := func(h string) string {
		if h == "" {
			return "has none"
		}
		return "has " + h
	}
	return fmt.Sprintf("%s: the hub %s, the agent %s, the cluster %s", d.Name, has(d.Hub), has(d.Agent), has(d.Cluster))
}
