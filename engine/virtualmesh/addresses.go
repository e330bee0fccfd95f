package virtualmesh

import (
	"encoding/binary"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// firstByte is set in the first byte of every virtual address.
const firstByte = 0xF0

// Addresses are the virtual addresses that stored objects have, by their statuses. Both
// lists are of the management cluster, ascending by namespace and name.
type Addresses struct {
	Destinations        []*discoveryv1.Destination
	VirtualDestinations []*enterprisev1beta1.VirtualDestination
	// InClusters are those of VirtualDestinations that users of registered clusters wrote. They keep nothing from others: whoever
	// may write such a status could take any address.
	InClusters map[snapshot.Ref]string
}

// Same reports whether the same objects have the same addresses.
func (a Addresses) Same(b Addresses) bool {
	return sameAddresses(a.Destinations, b.Destinations, addressOfDestination) &&
		sameAddresses(a.VirtualDestinations, b.VirtualDestinations, addressOfVirtualDestination) && maps.Equal(a.InClusters, b.InClusters)
}

func sameAddresses[T interface {
	comparable
	metav1.Object
}](a, b []T, address func(T) string) bool {
	return snapshot.SameSlice(a, b) || slices.EqualFunc(a, b, func(a, b T) bool {
		return a == b || snapshot.CompareNames(a, b) == 0 && address(a) == address(b)
	})
}

func addressOfDestination(d *discoveryv1.Destination) string {
	if d.Status.AppliedFederation == nil {
		return ""
	}
	return d.Status.AppliedFederation.Address
}

func addressOfVirtualDestination(v *enterprisev1beta1.VirtualDestination) string {
	return v.Status.Address
}

// ofDestination is the stored address of a Destination; not valid if it has none.
func (a Addresses) ofDestination(d *discoveryv1.Destination) netip.Addr {
	return storedAddress(a.Destinations, d, addressOfDestination)
}

// OfVirtualDestination is the stored address of a VirtualDestination; not valid if it has none.
func (a Addresses) OfVirtualDestination(v *enterprisev1beta1.VirtualDestination) netip.Addr {
	if v.InCluster != "" {
		return assignable(a.InClusters[snapshot.RefOf(snapshot.VirtualDestination, v)])
	}
	return storedAddress(a.VirtualDestinations, v, addressOfVirtualDestination)
}

// storedAddress is the address of the stored object of the same name, if that is one
// that could be assigned.
func storedAddress[T metav1.Object](list []T, of T, address func(T) string) netip.Addr {
	at, found := slices.BinarySearchFunc(list, of, snapshot.CompareNames)
	if !found {
		return netip.Addr{}
	}
	return assignable(address(list[at]))
}

// assignable reads an address; it is not valid if it is none that could be assigned.
func assignable(text string) netip.Addr {
	addr, err := netip.ParseAddr(text)
	if err != nil || !addr.Is4() || addr.As4()[0] < firstByte || reserved(addr) {
		return netip.Addr{}
	}
	return addr
}

// service is a service that needs an address.
type service struct {
	ref *commonv1.ClusterObjectRef
	// stored is the address that it has; not valid if it has none.
	stored netip.Addr
}

// assignAddresses assigns a virtual address to each service, by its index in the list,
// and adds it to taken; nil services have none. A service keeps the one that it has: a
// new one moves no other. Of new services that prefer the same address the first one
// gets it, and the others get theirs after all others. Held are the addresses of what
// is no service, which new services leave alone.
func assignAddresses(services []*service, held, taken map[netip.Addr]bool) []string {
	out := make([]string, len(services))
	inUse := func(a netip.Addr) bool { return taken[a] || held[a] }
	give := func(i int, addr netip.Addr) { taken[addr], out[i] = true, addr.String() }
	var added, late []int
	for i, s := range services {
		switch {
		case s == nil:
		case s.stored.IsValid() && !taken[s.stored]:
			give(i, s.stored)
		default:
			added = append(added, i)
		}
	}
	for _, i := range added {
		if addr := preferredAddress(serviceParts(services[i].ref)...); inUse(addr) || reserved(addr) {
			late = append(late, i)
		} else {
			give(i, addr)
		}
	}
	for _, i := range late {
		give(i, freeFrom(preferredAddress(serviceParts(services[i].ref)...), inUse))
	}
	return out
}

func serviceParts(s *commonv1.ClusterObjectRef) []string {
	return []string{s.Name, s.Namespace, s.ClusterName, "kube-service"}
}

// addressesOf are the addresses of the federated services, by index of the Destination,
// and as a set.
func (t *Topology) addressesOf(stored Addresses) ([]string, map[netip.Addr]bool) {
	services := make([]*service, len(t.federations))
	for i, f := range t.federations {
		if f != nil {
			d := t.inv.Destinations[i]
			services[i] = &service{&d.Spec.KubeService.Ref, stored.ofDestination(d)}
		}
	}
	held, taken := map[netip.Addr]bool{}, map[netip.Addr]bool{}
	for _, v := range stored.VirtualDestinations {
		held[stored.OfVirtualDestination(v)] = true
	}
	return assignAddresses(services, held, taken), taken
}

// Keeps reports whether the federated services, and their addresses, are those that follow
// from what is stored.
func (t *Topology) Keeps(stored Addresses) bool {
	if !t.keepsToLimits(stored) {
		return false
	}
	now, _ := t.addressesOf(stored)
	for i, f := range t.federations {
		if f != nil && f.Address != now[i] {
			return false
		}
	}
	return true
}

// AddressTaken reports whether a federated service has an address.
func (t *Topology) AddressTaken(addr netip.Addr) bool { return t.addresses[addr] }

// FreeAddress returns an address for what is not a service: the preferred one for its
// name, or else the next free one. It does not reserve it.
func (t *Topology) FreeAddress(taken func(netip.Addr) bool, parts ...string) netip.Addr {
	return freeFrom(preferredAddress(parts...), func(a netip.Addr) bool { return t.addresses[a] || taken(a) })
}

// freeFrom returns the first address from addr that is neither taken nor reserved.
func freeFrom(addr netip.Addr, taken func(netip.Addr) bool) netip.Addr {
	for taken(addr) || reserved(addr) {
		b := addr.As4()
		binary.BigEndian.PutUint32(b[:], (binary.BigEndian.Uint32(b[:])+1)|0xF0000000)
		addr = netip.AddrFrom4(b)
	}
	return addr
}

// preferredAddress is in 240.0.0.0/4: the FNV-1 hash of the parts in little-endian
// order, with the first byte raised into the range.
func preferredAddress(parts ...string) netip.Addr {
	h := fnv.New32()
	for _, part := range parts {
		_, _ = h.Write([]byte(part)) // a hash never fails
	}
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], h.Sum32())
	b[0] |= firstByte
	return netip.AddrFrom4(b)
}

// reserved reports whether an address is the broadcast address or in 240.240.0.0/16,
// from which Istio assigns addresses to ServiceEntries that have none
// (PILOT_IP_AUTOALLOCATE_IPV4_PREFIX).
func reserved(addr netip.Addr) bool {
	b := addr.As4()
	return b == [4]byte{255, 255, 255, 255} || (b[0] == 240 && b[1] == 240)
}
