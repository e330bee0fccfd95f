package virtualmesh

import (
	"encoding/binary"
	"hash/fnv"
	"net/netip"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// assignAddresses assigns a virtual address to each service, by its index in the
// list, and adds it to taken; nil services have none. Of services that prefer the
// same address the first one gets it, and the others get theirs after all others. So
// a service keeps its address whatever comes and goes, unless one before it prefers
// the same.
func assignAddresses(services []*commonv1.ClusterObjectRef, taken map[netip.Addr]bool) []string {
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
		addr := freeFrom(preferredAddress(serviceParts(services[i])...), inUse)
		taken[addr], out[i] = true, addr.String()
	}
	return out
}

func serviceParts(s *commonv1.ClusterObjectRef) []string {
	return []string{s.Name, s.Namespace, s.ClusterName, "kube-service"}
}

// FreeAddress returns an address for what is not a service: the preferred one for its
// name, or else the next free one. It does not reserve it.
func (t *Topology) FreeAddress(taken map[netip.Addr]bool, parts ...string) netip.Addr {
	return freeFrom(preferredAddress(parts...), func(a netip.Addr) bool { return t.addresses[a] || taken[a] })
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
	b[0] |= 0xF0
	return netip.AddrFrom4(b)
}

// reserved reports whether an address is the broadcast address or in 240.240.0.0/16,
// from which Istio assigns addresses to ServiceEntries that have none
// (PILOT_IP_AUTOALLOCATE_IPV4_PREFIX).
func reserved(addr netip.Addr) bool {
	b := addr.As4()
	return b == [4]byte{255, 255, 255, 255} || (b[0] == 240 && b[1] == 240)
}
