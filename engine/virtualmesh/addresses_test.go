package virtualmesh

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAddressesOfServices: Gloo Mesh 1.x gave services these addresses, and
// callers may have written them down.
func TestAddressesOfServices(t *testing.T) {
	t.Parallel()
	one := &commonv1.ClusterObjectRef{Name: "some-svc", Namespace: "some-ns", ClusterName: "cluster"}
	two := &commonv1.ClusterObjectRef{Name: "reviews", Namespace: "bookinfo", ClusterName: "cluster-2"}
	assert.Equal(t, []string{"243.21.204.125", "255.51.210.11"}, assigned(&service{ref: one}, &service{ref: two}))
	assert.Equal(t, []string{"243.21.204.125", "255.51.210.11", "", "243.21.204.126", "243.21.204.127"},
		assigned(&service{ref: one}, &service{ref: two}, nil, &service{ref: one}, &service{ref: one}), "the first one has it")
}

// assigned are the addresses of services, where nothing else has one.
func assigned(services ...*service) []string {
	return assignAddresses(services, nil, map[netip.Addr]bool{})
}

// TestStoredAddressesStick: a new service moves no other, whatever comes first.
func TestStoredAddressesStick(t *testing.T) {
	t.Parallel()
	ref := &commonv1.ClusterObjectRef{Name: "some-svc", Namespace: "some-ns", ClusterName: "cluster"}
	at := func(s string) *service { return &service{ref, netip.MustParseAddr(s)} }
	added := &service{ref: ref}
	assert.Equal(t, []string{"243.21.204.126", "243.21.204.125"}, assigned(added, at("243.21.204.125")))
	assert.Equal(t, []string{"243.21.204.125", "243.21.204.126"}, assigned(added, at("243.21.204.126")), "what is not preferred sticks, too")
	assert.Equal(t, []string{"250.0.0.1", "243.21.204.125"}, assigned(at("250.0.0.1"), at("250.0.0.1")), "one of two")
	held := map[netip.Addr]bool{netip.MustParseAddr("243.21.204.125"): true}
	assert.Equal(t, []string{"243.21.204.126"}, assignAddresses([]*service{added}, held, map[netip.Addr]bool{}), "what is no service keeps it")

	for address, want := range map[string]bool{
		"243.21.204.125": true, "240.0.0.0": true, "255.255.255.255": false, "240.240.1.1": false, "10.0.0.1": false, "::1": false, "": false, "x": false,
	} {
		d := &discoveryv1.Destination{Status: discoveryv1.DestinationStatus{AppliedFederation: &discoveryv1.AppliedFederation{Address: address}}}
		assert.Equal(t, want, Addresses{Destinations: []*discoveryv1.Destination{d}}.ofDestination(d).IsValid(), address)
	}
}

// TestSameAddresses: other statuses, and other lists of the same, are no change.
func TestSameAddresses(t *testing.T) {
	t.Parallel()
	stored := func(name, address string) Addresses {
		d := &discoveryv1.Destination{Status: discoveryv1.DestinationStatus{LocalFqdn: address, AppliedFederation: &discoveryv1.AppliedFederation{Address: "243.21.204.125"}}}
		v := &enterprisev1beta1.VirtualDestination{Status: enterprisev1beta1.VirtualDestinationStatus{Address: address}}
		v.Name = name
		return Addresses{[]*discoveryv1.Destination{d}, []*enterprisev1beta1.VirtualDestination{v}, map[snapshot.Ref]string{{Kind: snapshot.VirtualDestination, Cluster: "east", Name: name}: address}}
	}
	a := stored("a", "250.0.0.1")
	other := stored("a", "250.0.0.1")
	other.Destinations[0].Status.LocalFqdn = "other"
	assert.True(t, a.Same(other))
	assert.False(t, a.Same(stored("b", "250.0.0.1")))
	assert.False(t, a.Same(stored("a", "250.0.0.2")))
	assert.False(t, a.Same(Addresses{VirtualDestinations: a.VirtualDestinations}))
	assert.False(t, a.Same(Addresses{Destinations: a.Destinations, VirtualDestinations: a.VirtualDestinations}))
	other.Destinations[0].Status.AppliedFederation = nil
	assert.False(t, a.Same(other))
}

// TestAddressesAtTheEnd: the range goes round, and never gives out what is reserved.
func TestAddressesAtTheEnd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ taken, next string }{
		{"243.21.204.255", "243.21.205.0"},
		{"255.255.255.254", "240.0.0.0"},
		{"240.239.255.255", "240.241.0.0"},
	} {
		taken := netip.MustParseAddr(tt.taken)
		assert.Equal(t, tt.next, freeFrom(taken, func(a netip.Addr) bool { return a == taken }).String())
	}
	nothing := func(netip.Addr) bool { return false }
	assert.Equal(t, "240.241.0.0", freeFrom(netip.MustParseAddr("240.240.7.1"), nothing).String())
	assert.Equal(t, "240.0.0.0", freeFrom(netip.MustParseAddr("255.255.255.255"), nothing).String())
}

// TestAddressesStay: whatever services come and go, one keeps its address, even where
// nothing is stored, unless another asks for the same.
func TestAddressesStay(t *testing.T) {
	t.Parallel()
	const services = 60_000 // so many that some ask for one address
	all := make([]*service, services)
	asking := map[netip.Addr][]int{}
	for i := range all {
		all[i] = &service{ref: &commonv1.ClusterObjectRef{Name: fmt.Sprintf("service-%05d", i), Namespace: "team", ClusterName: "cluster-1"}}
		at := preferredAddress(serviceParts(all[i].ref)...)
		asking[at] = append(asking[at], i)
	}
	full := assigned(all...)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(full))), services, "no two have one address")

	var leaving []int
	for _, rivals := range asking {
		if len(rivals) > 1 {
			leaving = append(leaving, rivals...)
		}
	}
	require.NotEmpty(t, leaving)
	slices.Sort(leaving)
	for _, gone := range append(leaving[:min(len(leaving), 6)], 0, services-1) {
		without := slices.Clone(all)
		without[gone] = nil
		rivals := asking[preferredAddress(serviceParts(all[gone].ref)...)]
		for i, address := range assigned(without...) {
			if i != gone && full[i] != address && !slices.Contains(rivals, i) {
				t.Fatalf("service %d: %s, and %s without service %d", i, full[i], address, gone)
			}
		}
	}
}
