package engine_test

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
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
	refused, accepted := 0, 0
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
			}
		}
	}
	assert.Positive(t, accepted)
	assert.Positive(t, refused)
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
