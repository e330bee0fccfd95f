package engine_test

import (
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAccountsAreJudgedAnew: where services share accounts, a policy on one of
// them decides over policies on others; what is remembered must know that.
func TestAccountsAreJudgedAnew(t *testing.T) {
	t.Parallel()
	in, _, err := offline.Load(offline.Dir("../testdata/translate/osm-access/in"))
	require.NoError(t, err)
	services := []string{"shared", "sharer", "all-1", "all-2", "v1", "root", "two-accounts", "mixed", "ports"}
	all := in.Management.AccessPolicies
	refused, accepted, keptOut := 0, 0, 0
	for seed := range int64(20) {
		r := rand.New(rand.NewSource(seed))
		translator := engine.New(engine.Options{})
		policies := append([]*networkingv1.AccessPolicy(nil), all...)
		for round := range 10 {
			policies = change(r, policies, services, fmt.Sprintf("extra-%d", round))
			management := *in.Management
			management.AccessPolicies = policies
			next := *in
			next.Management = &management
			full := engine.Translate(&next)
			require.Equal(t, text(t, full.Output), text(t, translator.Translate(&next).Output), "seed %d, round %d", seed, round)
			for d := range full.Plan.Destinations.All() {
				for _, g := range d.Grants {
					require.NotEmpty(t, g.From, "no sources are read as everybody")
					accepted++
				}
			}
			for _, issue := range full.Output.Issues {
				if issue.Severity == snapshot.Error {
					refused++
				}
				if issue.Code == snapshot.PodsShared {
					keptOut++
				}
			}
			requireKeptOut(t, full, fmt.Sprintf("seed %d, round %d", seed, round))
		}
	}
	assert.Positive(t, accepted)
	assert.Positive(t, refused)
	assert.Positive(t, keptOut)
}

// requireKeptOut: whoever may call pods is allowed by the policies on each service in
// front of them that has any.
func requireKeptOut(t *testing.T, state *snapshot.State, at string) {
	t.Helper()
	valid := map[snapshot.Ref][]*networkingv1.AccessPolicy{}
	for _, p := range state.Plan.Policies {
		for _, v := range p.Verdicts {
			if policy, ok := p.Policy.(*networkingv1.AccessPolicy); ok && !slices.ContainsFunc(v.Issues, func(i snapshot.Issue) bool {
				return i.Severity == snapshot.Error && i.Code != snapshot.PodsShared && i.Code != snapshot.FieldConflict
			}) {
				valid[v.Destination] = append(valid[v.Destination], policy)
			}
		}
	}
	fronts := map[snapshot.Account][]*snapshot.DestinationPlan{}
	for _, workload := range state.Plan.Workloads {
		k := workload.Spec.Kubernetes
		account := snapshot.Account{Namespace: k.Controller.Namespace, Name: k.ServiceAccountName}
		for d := range state.Plan.Destinations.All() {
			service := d.Destination.Spec.KubeService
			if len(service.WorkloadSelectorLabels) > 0 && service.Ref.Namespace == account.Namespace && inventory.MatchLabels(service.WorkloadSelectorLabels, k.PodLabels) {
				fronts[account] = append(fronts[account], d)
			}
		}
	}
	for d := range state.Plan.Destinations.All() {
		for _, g := range d.Grants {
			for _, front := range fronts[g.To] {
				for _, caller := range g.From {
					require.True(t, len(valid[front.Ref]) == 0 || slices.ContainsFunc(valid[front.Ref], func(p *networkingv1.AccessPolicy) bool {
						return p.Name == g.Rule.Origin.Ref.Name || allowsGrant(&p.Spec, caller, g)
					}), "%s: %s lets %s call pods of %s", at, g.Rule.Origin.Ref, caller, front.Ref)
				}
			}
		}
	}
}

// allowsGrant reports whether a policy allows a caller all that a grant does.
func allowsGrant(spec *networkingv1.AccessPolicySpec, caller snapshot.Account, g *snapshot.Grant) bool {
	workload := &discoveryv1.KubernetesWorkload{
		Controller: commonv1.ClusterObjectRef{Namespace: caller.Namespace, ClusterName: "cluster-1"}, ServiceAccountName: caller.Name,
	}
	paths := len(spec.AllowedPaths) == 0 || len(g.Rule.Paths) > 0 && !slices.ContainsFunc(g.Rule.Paths, func(p string) bool { return !anyPattern(spec.AllowedPaths, p) })
	methods := len(spec.AllowedMethods) == 0 || slices.Equal(spec.AllowedMethods, g.Rule.Methods)
	return inventory.SelectsIdentity(spec.SourceSelector, workload) && paths && methods && (len(spec.AllowedPorts) == 0 || g.Ports != nil)
}

// change takes a policy away, or adds one on one or two services; the list stays
// ascending by name.
func change(r *rand.Rand, policies []*networkingv1.AccessPolicy, services []string, name string) []*networkingv1.AccessPolicy {
	at := r.Intn(len(policies))
	if r.Intn(3) == 0 {
		return append(append([]*networkingv1.AccessPolicy(nil), policies[:at]...), policies[at+1:]...)
	}
	p := &networkingv1.AccessPolicy{}
	p.Name, p.Namespace, p.Generation = name, snapshot.DefaultNamespace, 1
	refs := &commonv1.KubeServiceRefs{}
	for range 1 + r.Intn(2) {
		refs.Services = append(refs.Services, commonv1.ClusterObjectRef{Name: services[r.Intn(len(services))], Namespace: "shop", ClusterName: "cluster-1"})
	}
	p.Spec.DestinationSelector = []commonv1.DestinationSelector{{KubeServiceRefs: refs}}
	if r.Intn(2) == 0 {
		p.Spec.SourceSelector = []commonv1.IdentitySelector{{KubeServiceAccountRefs: &commonv1.KubeServiceAccountRefs{
			ServiceAccounts: []commonv1.ClusterObjectRef{{Name: "web", Namespace: "front"}},
		}}}
	}
	if r.Intn(2) == 0 {
		p.Spec.AllowedPaths = []string{[]string{"/a", "/a*", "*/b"}[r.Intn(3)]}
	}
	if r.Intn(3) == 0 {
		p.Spec.AllowedPorts = []uint32{80}
	}
	out := make([]*networkingv1.AccessPolicy, 0, len(policies)+1)
	placed := false
	for _, o := range policies {
		if !placed && o.Name > p.Name {
			out, placed = append(out, p), true
		}
		out = append(out, o)
	}
	if !placed {
		out = append(out, p)
	}
	return out
}
