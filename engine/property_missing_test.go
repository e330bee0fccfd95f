package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestPoliciesOutliveTheirTargets: policies that are in force stay in force when
// targets disappear, with the targets that are left; and when all targets are back, so
// are the routes.
func TestPoliciesOutliveTheirTargets(t *testing.T) {
	t.Parallel()
	reduced, restored := 0, 0
	for seed := range int64(rounds) {
		w := newRandomWorld(seed)
		for range 5 {
			w.change()
		}
		w.addShifts()
		translator := engine.New(engine.Options{})
		whole := echo(w.input(), translator.Translate(w.input()).Output)
		before := translator.Translate(whole)
		whole = echo(whole, before.Output)

		less := w.withoutTargets(whole)
		for range 2 { // then as after a restart
			state := translator.Translate(less)
			require.Equal(t, text(t, engine.Translate(less).Output), text(t, state.Output), "seed %d", seed)
			reduced += keepsPolicies(t, before.Plan, state.Plan)
			less = echo(less, state.Output)
		}
		again := *less
		again.Clusters, again.Management = whole.Clusters, back(whole, less)
		restored += restoresRoutes(t, before.Plan, engine.Translate(&again).Plan)
	}
	t.Logf("%d policies in force without a target, %d routes restored", reduced, restored)
	require.Greater(t, reduced, 20)
	require.Greater(t, restored, 20)
}

// addShifts adds policies that are valid as long as their targets are there.
func (w *randomWorld) addShifts() {
	federated := func() commonv1.ClusterObjectRef {
		n := 2 * w.r.Intn(randomServices/2)
		return commonv1.ClusterObjectRef{Name: enginetest.Service(n), Namespace: enginetest.Namespace(n), ClusterName: enginetest.Cluster(w.r.Intn(randomClusters))}
	}
	w.traffic = slices.Clone(w.traffic)
	for n := range 8 {
		p := &networkingv1.TrafficPolicy{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("shift-%d", n), Namespace: "gloo-mesh", Generation: 1}}
		p.Spec.DestinationSelector = []commonv1.DestinationSelector{{KubeServiceRefs: &commonv1.KubeServiceRefs{Services: []commonv1.ClusterObjectRef{federated()}}}}
		p.Spec.HttpRequestMatchers = []networkingv1.HttpMatcher{{Uri: &commonv1.StringMatch{Prefix: fmt.Sprintf("/shift-%d", n)}}}
		p.Spec.Policy = &networkingv1.Policy{RequestTimeout: &metav1.Duration{Duration: time.Second}, TrafficShift: &networkingv1.MultiDestination{}}
		if mirror := federated(); w.r.Intn(3) == 0 {
			p.Spec.Policy.Mirror = &networkingv1.Mirror{KubeService: &mirror}
		}
		for range 1 + w.r.Intn(3) {
			to := federated()
			d := networkingv1.WeightedDestination{Weight: uint32(w.r.Intn(3))}
			switch w.r.Intn(4) {
			case 0:
				d.VirtualDestination = w.virtualTarget().VirtualDestination
			case 1:
				d.StaticDestination = w.external()
			default:
				d.KubeService = &networkingv1.KubeDestination{Name: to.Name, Namespace: to.Namespace, ClusterName: to.ClusterName}
			}
			p.Spec.Policy.TrafficShift.Destinations = append(p.Spec.Policy.TrafficShift.Destinations, d)
		}
		w.traffic = append(w.traffic, p)
	}
}

// back is the management plane of an Input with what less has not, and the statuses
// of less.
func back(whole, less *snapshot.Input) *snapshot.Management {
	m := *less.Management
	m.VirtualMeshes, m.VirtualDestinations = whole.Management.VirtualMeshes, whole.Management.VirtualDestinations
	m.Destinations = slices.Clone(m.Destinations)
	for _, d := range whole.Management.Destinations {
		if d.Spec.ExternalService != nil && !slices.ContainsFunc(m.Destinations, func(o *discoveryv1.Destination) bool { return o.Name == d.Name }) {
			m.Destinations = append(m.Destinations, d)
		}
	}
	sortByName(m.Destinations)
	return &m
}

// withoutTargets takes away some of what policies send requests to.
func (w *randomWorld) withoutTargets(in *snapshot.Input) *snapshot.Input {
	less, m := *in, *in.Management
	less.Management = &m
	switch w.r.Intn(3) {
	case 0:
		m.VirtualMeshes = nil
	case 1:
		m.VirtualDestinations = without(w.r, m.VirtualDestinations)
		m.Destinations = slices.DeleteFunc(slices.Clone(m.Destinations), func(d *discoveryv1.Destination) bool { return d.Spec.ExternalService != nil })
	default:
		less.Clusters = slices.Clone(in.Clusters)
		c := *in.Clusters[w.r.Intn(len(in.Clusters))]
		c.Services = slices.DeleteFunc(slices.Clone(c.Services), func(*corev1.Service) bool { return w.r.Intn(2) == 0 })
		less.Clusters[slices.IndexFunc(in.Clusters, func(o *snapshot.Cluster) bool { return o.Name == c.Name })] = &c
	}
	return &less
}

// keepsPolicies checks that the policies in force before are so now, and that what
// is said of them is true. It counts those that are in force without a target.
func keepsPolicies(t *testing.T, before, now *snapshot.Plan) (reduced int) {
	t.Helper()
	verdicts := map[[2]snapshot.Ref]snapshot.Verdict{}
	for _, p := range now.Policies {
		for _, v := range p.Verdicts {
			verdicts[[2]snapshot.Ref{p.Ref, v.Destination}] = v
		}
	}
	was, plans := plansByRef(before), plansByRef(now)
	for d := range now.Destinations.All() {
		if was[d.Ref] == nil {
			continue
		}
		for _, a := range was[d.Ref].Traffic {
			ref := snapshot.RefOf(snapshot.TrafficPolicy, a.Policy)
			v := verdicts[[2]snapshot.Ref{ref, d.Ref}]
			has := func(code snapshot.Code) bool {
				return slices.ContainsFunc(v.Issues, func(i snapshot.Issue) bool { return i.Code == code })
			}
			at := slices.IndexFunc(d.Traffic, func(b snapshot.AppliedTraffic) bool { return b.Policy.Name == a.Policy.Name })
			if at < 0 {
				assert.True(t, has(snapshot.FieldConflict), "%s is withdrawn from %s: %v", ref, d.Ref, v.Issues)
				continue
			}
			assert.Equal(t, !snapshot.HasErrors(v.Issues), v.Accepted, "%s on %s: %v", ref, d.Ref, v.Issues)
			assert.Equal(t, d.Traffic[at].LastGood, has(snapshot.LastGoodInForce), "%s on %s", ref, d.Ref)
			if has(snapshot.TargetMissing) {
				reduced++
			}
		}
		checkTargets(t, d, plans)
	}
	return reduced
}

// restoresRoutes checks that the same policies have the same routes as before, and
// counts them.
func restoresRoutes(t *testing.T, before, now *snapshot.Plan) (restored int) {
	t.Helper()
	names := func(d *snapshot.DestinationPlan) (out []string) {
		for _, a := range d.Traffic {
			out = append(out, fmt.Sprint(a.Policy.Name, a.LastGood, a.Generation))
		}
		return out
	}
	was := plansByRef(before)
	for d := range now.Destinations.All() {
		b := was[d.Ref]
		if !slices.Equal(names(b), names(d)) {
			continue // a policy was accepted meanwhile
		}
		require.Len(t, d.Views, len(b.Views), d.Ref)
		for i, v := range d.Views {
			restored += len(v.Routes)
			assert.Equal(t, b.Views[i].Routes, v.Routes, d.Ref)
		}
	}
	return restored
}

func plansByRef(p *snapshot.Plan) map[snapshot.Ref]*snapshot.DestinationPlan {
	out := map[snapshot.Ref]*snapshot.DestinationPlan{}
	for d := range p.Destinations.All() {
		out[d.Ref] = d
	}
	return out
}

// checkTargets checks that routes lead to what their callers can reach, and divide
// requests.
func checkTargets(t *testing.T, d *snapshot.DestinationPlan, plans map[snapshot.Ref]*snapshot.DestinationPlan) {
	t.Helper()
	for _, v := range d.Views {
		for _, r := range v.Routes {
			at := fmt.Sprintf("%s from %s, %s", d.Ref, v.Mesh.Ref, r.Key)
			if m := r.Action.Mirror; m != nil {
				assert.NotEmpty(t, m.Value.Host, at)
			}
			if r.Action.Targets == nil {
				continue
			}
			targets, sum := r.Action.Targets.Value, 0
			assert.NotEmpty(t, targets, at)
			for _, target := range targets {
				sum += int(target.Weight)
				assert.NotEmpty(t, target.Host, at)
				assert.NotZero(t, target.Port, at)
				if to := plans[target.Destination]; to != nil {
					own := to.Destination.Spec.KubeService.Ref.ClusterName == v.Mesh.Cluster
					assert.True(t, own || slices.Contains(to.Federation.To, v.Mesh), "%s to %s", at, target.Destination)
				}
			}
			assert.True(t, sum > 0 || len(targets) == 1 && r.Action.Missing == nil, at)
		}
	}
}
