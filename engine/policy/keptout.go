package policy

import (
	"slices"

	"github.com/meshctl/meshctl/engine/access"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// refuseKeptOut rejects policies that would let in callers whom the policies on another
// service over the same pods keep out. Policies count as they are written, also if they
// are rejected for the same reason: none of two depends on the other.
func (g *grants) refuseKeptOut(a *accounts, members []int, attached []*attachments) {
	type question struct {
		binding *accessBinding
		account accountKey
	}
	known := map[question]*snapshot.Issue{} // the same for all services with the account
	refused := map[grantKey]snapshot.Issue{}
	for _, i := range members {
		for _, b := range attached[i].access {
			key := grantKey{b, i}
			if snapshot.HasErrors(g.issues[key]) || len(g.grants[key]) == 0 {
				continue
			}
			for _, account := range a.accountsOf(i) {
				q := question{b, accountKey{*a.inv.Destinations[i].Spec.Mesh, account}}
				issue, ok := known[q]
				if !ok {
					issue = g.keptOut(a, key, q.account, attached)
					known[q] = issue
				}
				if issue != nil {
					refused[key] = *issue
					break
				}
			}
		}
	}
	for key, issue := range refused {
		g.issues[key] = append(g.issues[key], issue)
	}
}

// keptOut is the issue if the policies on some service over pods of an account do not
// allow all that a grant to the account allows; nil if there is no such service.
func (g *grants) keptOut(a *accounts, key grantKey, account accountKey, attached []*attachments) *snapshot.Issue {
	checked := map[int]bool{}
	for _, x := range a.pods[account] {
		for _, destination := range a.destinationsOf[x] {
			if checked[destination] {
				continue
			}
			if checked[destination] = true; g.allowedOn(destination, g.grants[key][0], key.binding, attached[destination].access) {
				continue
			}
			other := a.inv.Destinations[destination]
			issue := snapshot.Errorf(snapshot.PodsShared, "select both services in one AccessPolicy, or give the services different pods and service accounts",
				"it would let in callers to pods of service %s, under service account %s, whom the AccessPolicies on that service keep out",
				inventory.ServiceName(other.Spec.KubeService.Ref), accountName(account.Account)).
				At("destinationSelector").CausedBy(inventory.DestinationRef(other))
			return &issue
		}
	}
	return nil
}

// allowedOn reports whether the policies on a service allow each caller of a policy's
// grant what it allows; without valid policies, they keep nobody out.
func (g *grants) allowedOn(destination int, asked *snapshot.Grant, by *accessBinding, policies []*accessBinding) bool {
	var held []*snapshot.Grant
	valid := false
	for _, b := range policies {
		key := grantKey{b, destination}
		if snapshot.HasErrors(g.issues[key]) {
			continue
		}
		if b == by {
			return true
		}
		valid = true
		held = append(held, g.grants[key]...)
	}
	rules := access.NewIntersection(nil)
	return !valid || !slices.ContainsFunc(asked.From, func(caller snapshot.Account) bool {
		return !slices.ContainsFunc(held, func(h *snapshot.Grant) bool {
			return slices.Contains(h.From, caller) && rules.Contains(requests(h), requests(asked))
		})
	})
}

// requests are what a grant allows, whoever calls.
func requests(g *snapshot.Grant) *snapshot.EffectiveRule {
	return &snapshot.EffectiveRule{Anyone: true, Paths: g.Rule.Paths, Methods: g.Rule.Methods, PodPorts: g.Ports}
}
