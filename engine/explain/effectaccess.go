package explain

import (
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Who may call a service, in words.
const (
	anyoneMayCall = "anyone"
	namedMayCall  = "those whom AccessPolicies name"
)

// openness says if a service begins or ceases to let everybody in because of the AccessPolicies that select it. What its mesh does
// with services that none selects is for defaults.
func (e *effects) openness(ref snapshot.Ref, was, is *snapshot.DestinationPlan) {
	if len(was.Access)+len(is.Access) == 0 {
		return
	}
	effect := Effect{Kind: EffectAccess, On: ref, What: "who may call it"}
	switch wasOpen, isOpen := was.Open() != snapshot.OpenNot, is.Open() != snapshot.OpenNot; {
	case isOpen && !wasOpen:
		effect.Before, effect.After, effect.Opens = namedMayCall, anyoneMayCall, true
	case wasOpen && !isOpen:
		effect.Before, effect.After = anyoneMayCall, namedMayCall
	default:
		return
	}
	e.add(effect)
}

// defaults compares what meshes do with calls to services that no AccessPolicy selects: what a VirtualMesh or the settings of a
// mesh say of them.
func (e *effects) defaults() {
	type change struct {
		origin snapshot.Origin
		denies bool
	}
	changed, of := map[change]int{}, map[snapshot.Ref]change{}
	for _, ref := range sortedRefs(e.after.meshes) {
		was, is := e.before.meshes[ref], e.after.meshes[ref]
		if was == nil || (was.DenyByDefault == nil) == (is.DenyByDefault == nil) {
			continue
		}
		c := change{denies: is.DenyByDefault != nil}
		if c.denies {
			c.origin = *is.DenyByDefault
		} else {
			c.origin = *was.DenyByDefault
		}
		changed[c], of[ref] = 0, c
	}
	for ref, is := range e.after.destinations {
		was := e.before.destinations[ref]
		if was == nil || is.Mesh == nil || len(was.Access)+len(is.Access) > 0 {
			continue
		}
		if c, found := of[is.Mesh.Ref]; found && (was.Open() == snapshot.OpenNot) != (is.Open() == snapshot.OpenNot) {
			changed[c]++
		}
	}
	for c, n := range changed {
		// What opens may be nothing that is there today, but pods without a service, and what comes.
		effect := Effect{Kind: EffectAccess, On: c.origin.Ref, What: c.origin.Field, Harm: c.denies && n > 0, Opens: !c.denies}
		services := snapshot.Count(n, "service") + " without an AccessPolicy "
		if n == 0 {
			services = "what no AccessPolicy selects "
		}
		if c.denies {
			effect.After, effect.Then = "ENABLED", services+verb(max(n, 1), "closes", "close")
		} else {
			effect.Before, effect.Then = "ENABLED", services+verb(max(n, 1), "opens", "open")
		}
		if c.origin.Ref.Kind != snapshot.VirtualMesh {
			effect.What = "denial of what no policy allows" + prefixed(", by ", c.origin.Field)
		}
		e.add(effect)
	}
}
