package virtualmesh

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// TestAddressesOfServices: Gloo Mesh 1.x gave services these addresses, and
// callers may have written them down.
func TestAddressesOfServices(t *testing.T) {
	t.Parallel()
	one := &commonv1.ClusterObjectRef{Name: "some-svc", Namespace: "some-ns", ClusterName: "cluster"}
	two := &commonv1.ClusterObjectRef{Name: "reviews", Namespace: "bookinfo", ClusterName: "cluster-2"}
	assert.Equal(t, []string{"243.21.204.125", "255.51.210.11"},
		assignAddresses([]*commonv1.ClusterObjectRef{one, two}, map[netip.Addr]bool{}))
	assert.Equal(t, []string{"243.21.204.125", "255.51.210.11", "", "243.21.204.126", "243.21.204.127"},
		assignAddresses([]*commonv1.ClusterObjectRef{one, two, nil, one, one}, map[netip.Addr]bool{}), "the first one has it")
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

// TestAddressesStay: whatever services come and go, one keeps its address unless
// another asks for the same.
func TestAddressesStay(t *testing.T) {
	t.Parallel()
	const services = 60_000 // so many that some ask for one address
	all := make([]*commonv1.ClusterObjectRef, services)
	asking := map[netip.Addr][]int{}
	for i := range all {
		all[i] = &commonv1.ClusterObjectRef{Name: fmt.Sprintf("service-%05d", i), Namespace: "team", ClusterName: "cluster-1"}
		at := preferredAddress(serviceParts(all[i])...)
		asking[at] = append(asking[at], i)
	}
	full := assignAddresses(all, map[netip.Addr]bool{})
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
		rivals := asking[preferredAddress(serviceParts(all[gone])...)]
		for i, address := range assignAddresses(without, map[netip.Addr]bool{}) {
			if i != gone && full[i] != address && !slices.Contains(rivals, i) {
				t.Fatalf("service %d: %s, and %s without service %d", i, full[i], address, gone)
			}
		}
	}
}
