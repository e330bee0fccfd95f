package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file decides when an object that is no longer wanted is deleted. What a user's edit
// explains goes at once. What nobody edited follows from something that is missing, and it
// may come back: the object stays for a grace period. If so much would go that a mistake
// is more likely than a change, or what denies requests, nothing is deleted in the cluster
// until an administrator says so.

// Edits are what users changed since the Output before: they explain why objects are no
// longer wanted.
type Edits struct {
	// All: everything is explained, as for an Output that was asked for as it is.
	All bool
	// Objects are the users' objects that were created, changed or deleted.
	Objects map[snapshot.Ref]bool
	// Released are the codes of withdrawals that an administrator lets pass, by cluster.
	Released map[string]string
	// Leaving are the clusters in which nothing is wanted, because an administrator deregisters them: all that goes there is explained.
	Leaving map[string]bool
}

// covers reports whether the edits explain that an object with these parents goes.
func (e *Edits) covers(parents []snapshot.Ref) bool {
	if e.All {
		return true
	}
	for ref := range e.Objects {
		switch ref.Kind {
		case snapshot.TrafficPolicy, snapshot.AccessPolicy:
		default:
			return true // a VirtualMesh, or another object that concerns many
		}
	}
	return slices.ContainsFunc(parents, func(p snapshot.Ref) bool { return e.Objects[p] })
}

// merge adds the edits after e, where the Output in between was not written.
func (e *Edits) merge(after Edits) {
	e.All = e.All || after.All
	e.Released, e.Leaving = after.Released, after.Leaving
	for ref := range after.Objects {
		if e.Objects == nil {
			e.Objects = map[snapshot.Ref]bool{}
		}
		e.Objects[ref] = true
	}
}

// withdrawals are the objects of ours in one cluster that are no longer wanted. The
// cluster's lock guards them.
type withdrawals struct {
	edits   Edits
	limits  snapshot.Withdrawals
	pending map[mirror.ID]*withdrawal
}

type withdrawal struct {
	since     time.Time
	explained bool
}

// unexplainedSince reports whether the object is no longer wanted since a time, and no edit explains it.
func (w *withdrawal) unexplainedSince(t time.Time) bool {
	return w != nil && !w.explained && !w.since.After(t)
}

// brakeLeast is how many unexplained deletions are never too many at once.
const brakeLeast = 5

// note enters that an object is no longer wanted.
func (w *withdrawals) note(of mirror.ID, explained bool) *withdrawal {
	p := w.pending[of]
	if p == nil {
		p = &withdrawal{since: time.Now()}
		w.pending[of] = p
	}
	p.explained = p.explained || explained
	return p
}

// enqueueDeletion queues the deletion of an object that no part wants, if it is one.
func (c *cluster) enqueueDeletion(of mirror.ID, asked bool) {
	c.withdrawals.note(of, c.withdrawals.edits.All)
	c.enqueue(c.item(of), asked)
}

// opens reports whether the deletion of an object that guards lets in everybody: no other
// one denies requests. Users rename an AccessPolicy by deleting one and creating another.
func (p *pass) opens() bool {
	c := p.cluster
	if p.item.id.Kind.Info().Effect&snapshot.Guards == 0 || c.withdrawals.edits.All {
		return false
	}
	for _, i := range c.items {
		if i.object != nil && i.object.Content.Relations.Protects {
			return false
		}
	}
	return true
}

// denied reports whether an object that guards has to stay because one that denies all
// other requests is about to go, which goes first.
func (p *pass) denied() bool {
	c, of := p.cluster, p.item.id
	if of.Kind.Info().Effect&snapshot.Guards == 0 {
		return false
	}
	if l, exists := c.remote.find(of); exists && l.Protects {
		return false
	}
	for other := range c.withdrawals.pending {
		if l, exists := c.remote.find(other); exists && l.Protects && c.remote.garbage(other, l) {
			return true
		}
	}
	return false
}

// explain lets go what was no longer wanted before, if an edit explains it now: a user
// deletes the policy of a Service that is gone, or removes a mesh that is gone from its
// VirtualMesh. Settings are about how much may go, so they explain nothing afterwards.
// It returns those items.
func (w *withdrawals) explain(items map[mirror.ID]*item) (explained []*item) {
	later := Edits{Objects: map[snapshot.Ref]bool{}}
	for ref := range w.edits.Objects {
		if ref.Kind != snapshot.Settings {
			later.Objects[ref] = true
		}
	}
	later.All = w.edits.All
	if len(later.Objects) == 0 && !later.All {
		return nil
	}
	for of, p := range w.pending {
		if i := items[of]; i != nil && !p.explained && later.covers(i.lastParents) {
			p.explained = true
			explained = append(explained, i)
		}
	}
	return explained
}

// unexplained lists what would be deleted, and no edit explains it; denies: one of it denies requests.
func (w *withdrawals) unexplained(r *remote) (going []mirror.ID, denies bool) {
	for of, p := range w.pending {
		if l, exists := r.find(of); !p.explained && exists && r.garbage(of, l) {
			going = append(going, of)
			denies = denies || l.Protects
		}
	}
	return going, denies
}

// excess is why nothing is deleted without an explanation, because that would be too much; zero if it is not.
func (w *withdrawals) excess(r *remote) snapshot.Reason {
	going, denies := w.unexplained(r)
	if len(going) == 0 {
		return snapshot.Reason{}
	}
	total := r.written()
	if !denies && (len(going) < brakeLeast || len(going)*100 <= total*w.limits.MaxPercent) {
		return snapshot.Reason{}
	}
	slices.SortFunc(going, func(a, b mirror.ID) int { return a.Ref(r.cluster).Compare(b.Ref(r.cluster)) })
	code := codeOf(going)
	if w.edits.Released[r.cluster] == code {
		for _, of := range going {
			w.pending[of].explained = true
		}
		r.Log.Warn("an administrator lets objects be deleted that no edit explains", "cluster", r.cluster, "objects", len(going), "code", code)
		return snapshot.Reason{}
	}
	return heldReason(r.cluster, going, total, code)
}

// checkDeletionLimit decides whether so much would be deleted without an explanation that nothing is.
func (c *cluster) checkDeletionLimit() {
	if c.name == "" || c.remote.now.Conn == nil {
		return // discovered objects protect nothing
	}
	var reason snapshot.Reason
	if !c.withdrawals.edits.All {
		reason = c.withdrawals.excess(&c.remote)
	}
	switch {
	case !c.reports.set(ofDeletions, reason):
	case reason.Code == "":
		c.collectGarbage() // it was held
	default:
		c.Log.Error("objects stay that are no longer wanted", "cluster", c.name, "reason", reason.String())
	}
}

// codeOf identifies what would be deleted, so that an administrator lets pass what was
// shown, and nothing else.
func codeOf(going []mirror.ID) string {
	sum := sha256.New()
	for _, of := range going {
		_, _ = fmt.Fprintf(sum, "%s/%s/%s\n", of.Kind, of.Namespace, of.Name)
	}
	return hex.EncodeToString(sum.Sum(nil))[:8]
}

// heldReason says what would be deleted.
func heldReason(cluster string, going []mirror.ID, total int, code string) snapshot.Reason {
	counts := map[string]int{}
	for _, of := range going {
		counts[of.Kind.String()]++
	}
	kinds := make([]string, 0, len(counts))
	for kind, n := range counts {
		kinds = append(kinds, fmt.Sprintf("%d of kind %s", n, kind))
	}
	slices.Sort(kinds)
	return snapshot.Reason{
		Code: snapshot.WithdrawalHeld, ReleaseCode: code,
		What: fmt.Sprintf("%d of %d objects of ours are no longer wanted there (%s), and no edit of a policy, VirtualMesh or registration explains it, so they stay",
			len(going), total, strings.Join(kinds, ", ")),
		Hint: fmt.Sprintf("restore what is missing or, if they should go, run `meshctl cluster release %s --code %s`", cluster, code),
	}
}

// edited takes over what the next Output brings with it.
func (c *cluster) edited(edits Edits, limits snapshot.Withdrawals) {
	c.mu.Lock()
	defer c.mu.Unlock()
	edits.All = edits.All || edits.Leaving[c.name]
	c.withdrawals.edits, c.withdrawals.limits = edits, limits
}
