package relay

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/meshctl/meshctl/engine/relay/relayv1"
)

// Versions of the protocol that this software speaks: all from OldestProtocol to Protocol.
const (
	Protocol       = 2
	OldestProtocol = 1
	// togetherSince is the version from which on all kinds are compared at once: after a stream ended, mostly nothing changed.
	togetherSince = 2
)

// Common is the newest version of the protocol that the side with a Hello and this one both speak; false if there is none.
func Common(hello *relayv1.Hello) (protocol uint32, ok bool) {
	protocol = min(hello.GetNewestProtocol(), Protocol)
	return protocol, protocol >= max(hello.GetOldestProtocol(), OldestProtocol)
}

// together are the count of the objects of all kinds, and their digest with the names of the kinds.
func together(kinds []string, of func(kind string) *set) (count uint64, digest Hash) {
	h := sha256.New()
	for _, kind := range slices.Sorted(slices.Values(kinds)) {
		s := of(kind)
		n := uint64(len(s.of))
		_, _ = h.Write(append([]byte(kind), 0))
		_, _ = h.Write(binary.BigEndian.AppendUint64(s.digest[:], n))
		count += n
	}
	return count, Hash(h.Sum(nil)[:hashSize])
}

func (r *Receiver) together() (count uint64, digest Hash) {
	return together(r.order, func(kind string) *set { return r.kinds[kind].held })
}

// sayAll tells the sender what there is of each kind.
func (r *Receiver) sayAll() {
	for _, kind := range r.order {
		r.say(kind)
	}
}

// sayTogether tells the sender what there is of all kinds together.
func (r *Receiver) sayTogether() {
	count, digest := r.together()
	r.frames = append(r.frames, &relayv1.Feedback{Frame: &relayv1.Feedback_HeldAll{HeldAll: &relayv1.HeldAll{Count: count, Digest: digest[:]}}})
}

func (r *Receiver) receiveSame(same *relayv1.Same) {
	if count, digest := r.together(); same.GetCount() != count || string(same.GetDigest()) != string(digest[:]) {
		r.mismatches++
		r.sayAll()
		return
	}
	seen := make(map[string]uint64, len(same.GetSeen()))
	for _, s := range same.GetSeen() {
		seen[s.GetKind()] = s.GetVersion()
	}
	incomplete := make(map[string]bool, len(same.GetIncomplete()))
	for _, kind := range same.GetIncomplete() {
		incomplete[kind] = true
	}
	for _, kind := range r.order {
		if !incomplete[kind] {
			r.completed(kind, r.kinds[kind], seen[kind])
		}
	}
}

// completed says that everything of a kind is there.
func (r *Receiver) completed(kind string, k *incoming, version uint64) {
	k.complete, k.unknown = true, false
	r.store.Complete(kind, version, func(of Key) bool { _, held := k.held.of[of]; return held })
}

// receiveHeldAll compares all kinds at once, and asks for each kind if that is not all the same.
func (s *Sender) receiveHeldAll(h *relayv1.HeldAll) {
	for kind, k := range s.kinds {
		s.look(kind, k)
		k.there, k.due, k.stage, k.told = newSet(), keys{}, unknown, false
	}
	count, digest := together(s.order, func(kind string) *set { return s.kinds[kind].here })
	if h.GetCount() != count || string(h.GetDigest()) != string(digest[:]) {
		s.frames = append(s.frames, &relayv1.Data{Frame: &relayv1.Data_Ask{Ask: &relayv1.Ask{}}})
		return
	}
	same := &relayv1.Same{Count: count, Digest: digest[:]}
	for _, kind := range s.order {
		k := s.kinds[kind]
		k.there.of, k.there.digest = maps.Clone(k.here.of), k.here.digest
		k.stage, k.told = following, k.complete
		switch {
		case !k.complete:
			same.Incomplete = append(same.Incomplete, kind)
		case k.version != 0:
			same.Seen = append(same.Seen, &relayv1.Seen{Kind: kind, Version: k.version})
		}
	}
	s.frames = append(s.frames, &relayv1.Data{Frame: &relayv1.Data_Same{Same: same}})
}
