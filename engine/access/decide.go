package access

import (
	"slices"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Obstacle is a condition of a rule that a call does not fulfil.
type Obstacle string

// The obstacles, in the order in which they are told.
const (
	WrongCaller Obstacle = "caller"
	WrongMethod Obstacle = "method"
	WrongPath   Obstacle = "path"
	WrongPort   Obstacle = "port"
)

// Decision is whether a call is allowed.
type Decision struct {
	// Open is set if all calls are.
	Open snapshot.Openness
	// By are the policies that allow it, ascending; none if no rule does.
	By []snapshot.Ref
	// Nearest is the first rule with the fewest obstacles, where none allows the call; nil if
	// there are no rules.
	Nearest   *snapshot.EffectiveRule
	Obstacles []Obstacle
	// Denied are the policies that deny it, ascending: then it is refused, whatever the rest says. Denier is the first rule that does.
	Denied []snapshot.Ref
	Denier *snapshot.EffectiveRule
}

// Allows evaluates a call to a Destination from a mesh.
func Allows(d *snapshot.DestinationPlan, from *snapshot.MeshPlan, call *snapshot.Call) Decision {
	if open := d.Open(); open != snapshot.OpenNot {
		return Decision{Open: open}
	}
	return Decide(d.Mesh, RulesFor(d, from), call)
}

// RulesFor are the rules to which a Destination that is not open holds the callers of a mesh.
func RulesFor(d *snapshot.DestinationPlan, from *snapshot.MeshPlan) []snapshot.EffectiveRule {
	switch {
	case d.Callers == nil:
		return nil
	case from.Ref != d.Mesh.Ref && d.Mesh.Limited:
		return d.Callers.Relayed
	}
	return d.Callers.Rules
}

// Decide evaluates a call to a service of a mesh, as its proxies do: one rule that allows it is
// enough.
func Decide(mesh *snapshot.MeshPlan, rules []snapshot.EffectiveRule, call *snapshot.Call) Decision {
	var out Decision
	for i := range rules {
		rule := &rules[i]
		obstacles := obstaclesOf(mesh, rule, call)
		switch {
		case len(obstacles) == 0:
			out.By = append(append(out.By, rule.Policy), rule.With...)
		case out.Nearest == nil || len(obstacles) < len(out.Obstacles):
			out.Nearest, out.Obstacles = rule, obstacles
		}
	}
	if len(out.By) > 0 {
		slices.SortFunc(out.By, snapshot.Ref.Compare)
		return Decision{By: slices.Compact(out.By)}
	}
	return out
}

// AllowsCaller reports whether a rule is for a caller, whatever it asks for. The caller is nil if
// it presents no certificate.
func AllowsCaller(mesh *snapshot.MeshPlan, rule *snapshot.EffectiveRule, caller *snapshot.Identity) bool {
	if rule.Anyone || caller == nil {
		return rule.Anyone
	}
	x, only := NewIntersection(mesh), snapshot.Source{Identities: []snapshot.Identity{*caller}}
	return slices.ContainsFunc(rule.Sources, func(s snapshot.Source) bool { return x.sourceContains(s, only) })
}

// obstaclesOf are the conditions of a rule that a call does not fulfil.
func obstaclesOf(mesh *snapshot.MeshPlan, rule *snapshot.EffectiveRule, call *snapshot.Call) (out []Obstacle) {
	if !AllowsCaller(mesh, rule, call.Caller) {
		out = append(out, WrongCaller)
	}
	if len(rule.Methods) > 0 && (!call.HTTP || !call.AnyRequest && !matchesAny(rule.Methods, call.Method)) {
		out = append(out, WrongMethod)
	}
	if len(rule.Paths) > 0 && (!call.HTTP || !call.AnyRequest && !matchesAny(rule.Paths, call.Path)) {
		out = append(out, WrongPath)
	}
	if len(rule.PodPorts) > 0 && !slices.Contains(rule.PodPorts, call.PodPort) && (!call.AnyRequest || call.PodPort != 0) {
		out = append(out, WrongPort)
	}
	return out
}

func matchesAny(patterns []string, text string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return ParsePattern(p).Matches(text) })
}
