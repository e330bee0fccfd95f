package discovery_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	endpointv1 "k8s.io/api/discovery/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/discovery/clustertest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestServicesWithoutSelector: EndpointSlices say what answers for them, also while its pods are replaced.
func TestServicesWithoutSelector(t *testing.T) {
	t.Parallel()
	b, _, s := oneService()
	s.Spec.Selector = nil
	slice := b.Slice(s, "s-1", endpointv1.AddressTypeIPv4, clustertest.Endpoint("10.0.0.1", "a-v1-1", "node-1"))
	found := discovery.Discover(b.Cluster, options())
	require.Len(t, found.Destinations, 1)
	assert.Len(t, given(found.Destinations[0].Spec.KubeService), 1)

	after := options()
	after.Stored = &snapshot.Management{Destinations: found.Destinations}
	slice.Endpoints[0].TargetRef.Name = "a-v1-2" // which is not seen yet
	kept := discovery.Discover(b.Cluster, after)
	require.Len(t, kept.Destinations, 1)
	assert.False(t, kept.Destinations[0].Spec.KubeService.NoProxies)
	assert.Empty(t, discovery.Discover(b.Cluster, options()).Destinations, "nothing was stored of it")

	slice.Endpoints[0].TargetRef, slice.Endpoints[0].Addresses = nil, []string{"192.0.2.1"}
	assert.Empty(t, discovery.Discover(b.Cluster, after).Destinations, "something else answers now")

	s.Annotations = map[string]string{snapshot.DiscoverServiceAnnotation: "true"}
	asked := discovery.Discover(b.Cluster, options())
	require.Len(t, asked.Destinations, 1)
	assert.True(t, asked.Destinations[0].Spec.KubeService.NoProxies)
	after.Stored = &snapshot.Management{Destinations: asked.Destinations}
	s.Annotations, slice.Endpoints = nil, nil
	assert.Empty(t, discovery.Discover(b.Cluster, after).Destinations, "it was there for its annotation only")
}

// TestSelectorOfNothing: a Service whose selector matches nothing any more stays what it was, also after that was stored: its EndpointSlices
// follow later, and say nothing about it until then.
func TestSelectorOfNothing(t *testing.T) {
	t.Parallel()
	b, _, s := oneService()
	b.Slice(s, "s-1", endpointv1.AddressTypeIPv4, clustertest.Endpoint("10.0.0.1", "a-v1-1", "node-1"))
	stored := discovery.Discover(b.Cluster, options()).Destinations
	require.Len(t, stored, 1)
	s.Spec.Selector = map[string]string{"app": "nothing"}
	for range 3 {
		after := options()
		after.Stored = &snapshot.Management{Destinations: stored}
		stored = discovery.Discover(b.Cluster, after).Destinations
		require.Len(t, stored, 1)
		assert.False(t, stored[0].Spec.KubeService.NoProxies)
	}
}

// TestPodsWithoutProxy are apart from others, and others do not get them.
func TestPodsWithoutProxy(t *testing.T) {
	t.Parallel()
	b, d, s := oneService()
	bare := b.Pod(d, "a-v1-2", "node-1")
	outside(bare)
	b.Slice(s, "s-1", endpointv1.AddressTypeIPv4, clustertest.Endpoint("10.0.0.1", "a-v1-1", "node-1"), clustertest.Endpoint("10.0.0.2", "a-v1-2", "node-1"))
	k := destination(t, b)
	require.Len(t, k.EndpointSubsets, 2)
	assert.Equal(t, []string{"10.0.0.1"}, addressesOf(given(k)))
	all, without := snapshot.EndpointCounts(k)
	assert.Equal(t, []int{2, 1}, []int{all, without})
	issues := discovery.Discover(b.Cluster, options()).Issues
	require.Len(t, issues, 1)
	assert.Equal(t, snapshot.ProxyMissing, issues[0].Code)
}

func addressesOf(subsets []discoveryv1.EndpointSubset) (out []string) {
	for _, s := range subsets {
		for _, e := range s.Endpoints {
			out = append(out, e.IpAddress)
		}
	}
	return out
}

// TestFamilyNotKnown: an address of a family of which the status of its pod says nothing is neither another endpoint nor a foreign one.
func TestFamilyNotKnown(t *testing.T) {
	t.Parallel()
	b, _, s := oneService()
	b.Slice(s, "s-1", endpointv1.AddressTypeIPv4, clustertest.Endpoint("10.0.0.1", "a-v1-1", "node-1"))
	b.Slice(s, "s-2", endpointv1.AddressTypeIPv6, clustertest.Endpoint("fd00::1", "a-v1-1", "node-1"))
	found := discovery.Discover(b.Cluster, options())
	require.Len(t, found.Destinations, 1)
	k := found.Destinations[0].Spec.KubeService
	assert.Equal(t, []string{"10.0.0.1"}, addressesOf(given(k)))
	all, _ := snapshot.EndpointCounts(k)
	assert.Equal(t, 1, all)
	assert.Empty(t, found.Issues)
}
