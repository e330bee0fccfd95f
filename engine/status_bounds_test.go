package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// largestStatus is the house's limit for any status, in bytes of JSON.
const largestStatus = 256 << 10

// TestStatusesStaySmall: a policy that selects ten thousand services, is in
// conflict on a few of them and wrong in many ways on all says so in few words,
// with the numbers right.
func TestStatusesStaySmall(t *testing.T) {
	t.Parallel()
	const services, conflicts, strangers = 5000, 30, 998 // and two members: as many as a VirtualMesh can name
	const destinations = 2*services + 2                  // with a gateway in each cluster
	in := enginetest.World(enginetest.Size{Services: services, Clusters: 2, FederateEvery: 1, Policies: conflicts})

	accepted := policyOnAll("younger-timeout")
	accepted.CreationTimestamp.Time = in.Management.TrafficPolicies[0].CreationTimestamp.AddDate(1, 0, 0)
	accepted.Spec.Policy = in.Management.TrafficPolicies[0].Spec.Policy.DeepCopy()
	accepted.Spec.Policy.TrafficShift = nil
	accepted.Spec.Policy.RequestTimeout.Duration *= 2

	wrong := policyOnAll("zz-wrong-everywhere")
	shift := &networkingv1.MultiDestination{}
	for i := range 10 {
		shift.Destinations = append(shift.Destinations, networkingv1.WeightedDestination{Weight: 1, KubeService: &networkingv1.KubeDestination{
			Name: fmt.Sprintf("%s-%d", strings.Repeat("long-name-", 24), i), Namespace: strings.Repeat("n", 63), ClusterName: "nowhere",
		}})
	}
	wrong.Spec.Policy = &networkingv1.Policy{TrafficShift: shift}
	in.Management.TrafficPolicies = append(in.Management.TrafficPolicies, accepted, wrong)
	for i := range strangers {
		in.Management.VirtualMeshes[0].Spec.Meshes = append(in.Management.VirtualMeshes[0].Spec.Meshes,
			commonv1.ObjectRef{Name: fmt.Sprintf("%s-%04d", strings.Repeat("m", 240), i), Namespace: "gloo-mesh"})
	}
	for i := range 1000 {
		in.Failures = append(in.Failures, snapshot.Failure{
			Ref:    snapshot.Ref{Kind: snapshot.VirtualService, Cluster: "cluster-01", Namespace: "default", Name: fmt.Sprint(i)},
			Reason: snapshot.Reason{Code: snapshot.WriteFailed, What: strings.Repeat("denied ", 200)}, Parents: []snapshot.Ref{snapshot.RefOf(snapshot.TrafficPolicy, wrong)},
		})
	}

	byRef := map[snapshot.Ref]any{}
	for s := range engine.Translate(in).Output.Statuses.All() {
		text, err := json.Marshal(s.Value)
		require.NoError(t, err)
		require.Less(t, len(text), largestStatus, "%s", s.Ref)
		byRef[s.Ref] = s.Value
	}

	status := byRef[snapshot.RefOf(snapshot.TrafficPolicy, accepted)].(*networkingv1.TrafficPolicyStatus)
	assert.Equal(t, commonv1.ApprovalStateInvalid, status.State)
	assert.EqualValues(t, destinations, status.Counts.Destinations)
	assert.EqualValues(t, conflicts, status.Counts.Problems)
	listed := 0
	for _, d := range status.Destinations {
		if d.State == commonv1.ApprovalStateInvalid {
			listed++
		}
	}
	assert.Equal(t, conflicts, listed, "problems come first, whatever their destinations are called")
	assert.Contains(t, strings.Join(status.Warnings, "\n"), fmt.Sprintf("destinations: %d more are not listed", destinations-len(status.Destinations)))

	status = byRef[snapshot.RefOf(snapshot.TrafficPolicy, wrong)].(*networkingv1.TrafficPolicyStatus)
	assert.Equal(t, commonv1.ApprovalStateFailed, status.State)
	assert.EqualValues(t, destinations, status.Counts.Problems)
	assert.NotEmpty(t, status.Destinations)

	mesh := byRef[snapshot.RefOf(snapshot.VirtualMesh, in.Management.VirtualMeshes[0])].(*networkingv1.VirtualMeshStatus)
	assert.Equal(t, commonv1.ApprovalStateInvalid, mesh.State)
	assert.EqualValues(t, 2, mesh.Counts.Meshes)
	assert.EqualValues(t, strangers, mesh.Counts.Problems)
}

// TestDiscoveredStatusesStaySmall: neither the number of meshes that see a service
// nor that of a gateway's nodes makes a status too large.
func TestDiscoveredStatusesStaySmall(t *testing.T) {
	t.Parallel()
	const clusters, nodes = 1000, 5000
	in := enginetest.World(enginetest.Size{Services: 1, Clusters: clusters, FederateEvery: 1})
	first := in.Clusters[0]
	for i := range in.Management.VirtualMeshes[0].Spec.Federation.Selectors {
		for _, s := range in.Management.VirtualMeshes[0].Spec.Federation.Selectors[i].DestinationSelectors {
			s.KubeServiceMatcher.Clusters = []string{first.Name}
		}
	}
	for _, s := range first.Services {
		for n := range nodes {
			if s.Name == "istio-eastwestgateway" {
				s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, fmt.Sprintf("2001:db8:ffff:ffff:ffff:ffff:ffff:%04x", n))
			}
		}
	}
	seen := map[snapshot.Kind]int{}
	for s := range engine.Translate(in).Output.Statuses.All() {
		text, err := json.Marshal(s.Value)
		require.NoError(t, err)
		require.Less(t, len(text), largestStatus, "%s", s.Ref)
		switch v := s.Value.(type) {
		case *discoveryv1.DestinationStatus:
			if v.AppliedFederation != nil && len(v.AppliedFederation.FederatedToMeshes) > 0 {
				seen[s.Ref.Kind]++
			}
		case *discoveryv1.MeshStatus:
			if len(v.AppliedEastWestIngressGateways) > 0 {
				seen[s.Ref.Kind]++
			}
		}
	}
	assert.Equal(t, map[snapshot.Kind]int{snapshot.Destination: 1, snapshot.Mesh: clusters}, seen)
}

// policyOnAll is a TrafficPolicy without a selector.
func policyOnAll(name string) *networkingv1.TrafficPolicy {
	p := &networkingv1.TrafficPolicy{}
	p.Name, p.Namespace, p.Generation = name, snapshot.DefaultNamespace, 1
	return p
}
