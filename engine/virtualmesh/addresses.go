package virtualmesh

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// giveAddresses gives each service a virtual address, the same in every mesh, by
// its place in the list, and marks it as taken. Those that ask for one address
// are served in the order of the list, and what is left to those that come later
// is looked for when all others have theirs: so a service keeps its address
// whatever comes and goes, unless one before it asks for the same.
func giveAddresses(services []*commonv1.ClusterObjectRef, taken map[netip.Addr]bool) []string {
	out := make([]string, len(services))
	inUse := func(a netip.Addr) bool { return taken[a] }
	var late []int
	for i, service := range services {
		if service == nil {
			continue
		}
		addr := preferredAddress(serviceParts(service)...)
		if taken[addr] || reserved(addr) {
			late = append(late, i)
			continue
		}
		taken[addr], out[i] = true, addr.String()
	}
	for _, i := range late {
		addr := freeAddress(inUse, serviceParts(services[i])...)
		taken[addr], out[i] = true, addr.String()
	}
	return out
}

func serviceParts(s *commonv1.ClusterObjectRef) []string {
	return []string{s.Name, s.Namespace, s.ClusterName, "kube-service"}
}

// FreeAddress gives what has a name of its own an address: the preferred one for
// its parts, or else the next that is neither among taken nor a service's. It
// is not marked as taken.
func (t *Topology) FreeAddress(taken map[netip.Addr]bool, parts ...string) netip.Addr {
	return freeAddress(func(a netip.Addr) bool { return t.addresses[a] || taken[a] }, parts...)
}

// freeAddress gives the preferred address, or else the next free one.
func freeAddress(taken func(netip.Addr) bool, parts ...string) netip.Addr {
	return freeFrom(preferredAddress(parts...), taken)
}

// freeFrom gives the first address from addr on that is neither taken nor reserved.
func freeFrom(addr netip.Addr, taken func(netip.Addr) bool) netip.Addr {
	for taken(addr) || reserved(addr) {
		b := addr.As4()
		binary.BigEndian.PutUint32(b[:], (binary.BigEndian.Uint32(b[:])+1)|0xF0000000)
		addr = netip.AddrFrom4(b)
	}
	return addr
}

// preferredAddress is one in 240.0.0.0/4: FNV-1 over the parts, the hash's bytes
// in little-endian order, the first one raised into the range.
func preferredAddress(parts ...string) netip.Addr {
	h := fnv.New32()
	for _, part := range parts {
		_, _ = h.Write([]byte(part)) // a hash never fails
	}
	var b [4]byte
	binary.LittleEndian.PutUint32(b[:], h.Sum32())
	b[0] |= 0xF0
	return netip.AddrFrom4(b)
}

// reserved are broadcast and 240.240.0.0/16, from which Istio gives addresses to
// ServiceEntries that have none (PILOT_IP_AUTOALLOCATE_IPV4_PREFIX): it would not
// know of ours there.
func reserved(addr netip.Addr) bool {
	b := addr.As4()
	return b == [4]byte{255, 255, 255, 255} || (b[0] == 240 && b[1] == 240)
}
