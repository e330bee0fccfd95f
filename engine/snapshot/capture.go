package snapshot

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// Escape is a connection of callers that their proxies do not see, or may not.
type Escape struct {
	// By says in a clause because of what; empty if they see it.
	By string
	// Sure: they do not see it. Else they may.
	Sure bool
}

// Escapes says whether the proxies of a workload see connections to a port of some addresses, which are not known if there are none.
func Escapes(workload *discoveryv1.Workload, port uint32, addresses []string) Escape {
	k := workload.Spec.Kubernetes
	if k == nil || k.Capture == nil {
		return Escape{}
	}
	c, whose := k.Capture, "the pods of "+workload.Name
	switch {
	case c.Unclear:
		return Escape{By: "annotations of " + whose + ", or settings of their injector, which cannot be read or name interfaces, take connections out of their proxies"}
	case c.None:
		return Escape{By: whose + " have interception mode NONE: their proxies see only what the application sends to them"}
	case slices.Contains(c.ExcludePorts, port):
		return Escape{By: fmt.Sprintf("excludeOutboundPorts of %s takes port %d out of their proxies", whose, port), Sure: true}
	}
	excluded := rangesHold(c.ExcludeRanges, addresses)
	included := rangesHold(c.IncludeRanges, addresses)
	ranges := Escape{By: "excludeOutboundIPRanges of " + whose + " takes the address of the service out of their proxies", Sure: true}
	left := Escape{By: "includeOutboundIPRanges of " + whose + " leaves the address of the service out of their proxies", Sure: true}
	switch {
	case excluded == inRanges:
		return ranges
	case excluded == mayBeInRanges:
		ranges.By, ranges.Sure = "excludeOutboundIPRanges of "+whose+" may take the address of the service, which is not known, out of their proxies", false
		return ranges
	case !c.OnlyIncluded, slices.Contains(c.IncludePorts, port), included == inRanges:
		return Escape{}
	case included == mayBeInRanges:
		left.By, left.Sure = "includeOutboundIPRanges of "+whose+" may leave the address of the service, which is not known, out of their proxies", false
	}
	return left
}

// held is whether addresses are in ranges.
type held uint8

const (
	outOfRanges held = iota
	mayBeInRanges
	inRanges
)

// rangesHold reports whether ranges hold all of some addresses, or none. Without ranges, they hold none.
func rangesHold(ranges, addresses []string) held {
	if len(ranges) == 0 {
		return outOfRanges
	}
	in := 0
	for _, text := range addresses {
		address, err := netip.ParseAddr(text)
		if err == nil && slices.ContainsFunc(ranges, func(r string) bool {
			prefix, err := netip.ParsePrefix(r)
			return err == nil && prefix.Contains(address)
		}) {
			in++
		}
	}
	switch {
	case len(addresses) > 0 && in == len(addresses):
		return inRanges
	case len(addresses) > 0 && in == 0:
		return outOfRanges
	}
	return mayBeInRanges
}

// CalledAt are the addresses to which applications in the cluster of a service connect: those of its Service, which is among those of the
// cluster, or, of a headless one, those of its pods. None if they are not known.
func CalledAt(k *discoveryv1.KubeService, services []*corev1.Service) (out []string) {
	if k == nil {
		return nil
	}
	if k.Headless {
		for i := range k.EndpointSubsets {
			for _, e := range k.EndpointSubsets[i].Endpoints {
				out = append(append(out, e.IpAddress), e.OtherAddresses...)
			}
		}
		return out
	}
	service := FindService(services, k.Ref.Namespace, k.Ref.Name)
	if service == nil {
		return nil
	}
	addresses := service.Spec.ClusterIPs
	if len(addresses) == 0 {
		addresses = []string{service.Spec.ClusterIP}
	}
	return slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return a == "" })
}

// FindService is the Service of a name among those of a cluster, which are ascending by namespace and name; nil if there is none.
func FindService(services []*corev1.Service, namespace, name string) *corev1.Service {
	at, found := slices.BinarySearchFunc(services, namespace, func(s *corev1.Service, namespace string) int {
		if by := strings.Compare(s.Namespace, namespace); by != 0 {
			return by
		}
		return strings.Compare(s.Name, name)
	})
	if !found {
		return nil
	}
	return services[at]
}
