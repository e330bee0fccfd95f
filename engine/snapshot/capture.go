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
	// Hint says how they see it.
	Hint string
}

const (
	annotationsHint = "leave the ports and addresses to the proxies in the traffic annotations of the callers' pods and the settings of their injector"
	asProxyHint     = "have the containers of the callers' pods run as another user and group than their proxies (runAsUser, runAsGroup)"
)

// Escapes says whether the proxies of a workload see connections to a port of some addresses, which are any of some ranges. Without any,
// nothing is known of them.
func Escapes(workload *discoveryv1.Workload, port uint32, addresses []netip.Prefix) Escape {
	k := workload.Spec.Kubernetes
	if k == nil || k.Capture == nil {
		return Escape{}
	}
	c, whose := k.Capture, "the pods of "+workload.Name
	settings := ofSettings(c, whose, port, addresses)
	settings.Hint = annotationsHint
	switch {
	case c.Unclear || c.None || settings.Sure || c.AsProxy == "" && settings.By != "":
		return settings
	case c.AsProxy == discoveryv1.AsProxyAll:
		return Escape{By: whose + " run as the user or group of their proxies, which do not see what these send", Sure: true, Hint: asProxyHint}
	case c.AsProxy == discoveryv1.AsProxySome:
		return Escape{By: "some containers of " + whose + " run as the user or group of their proxies, which do not see what these send", Hint: asProxyHint}
	}
	return Escape{}
}

// ofSettings is what annotations of pods and settings of their injector take out.
func ofSettings(c *discoveryv1.Capture, whose string, port uint32, addresses []netip.Prefix) Escape {
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

// rangesHold reports whether ranges hold all of the addresses that are called, or none. Without ranges, they hold none.
func rangesHold(ranges []string, called []netip.Prefix) held {
	if len(ranges) == 0 {
		return outOfRanges
	}
	if len(called) == 0 {
		called = allAddresses
	}
	in, touched := 0, 0
	for _, c := range called {
		isIn, isTouched := false, false
		for _, text := range ranges {
			if r, err := netip.ParsePrefix(text); err == nil && r.Overlaps(c) {
				isTouched = true
				isIn = isIn || r.Bits() <= c.Bits()
			}
		}
		if isIn {
			in++
		}
		if isTouched {
			touched++
		}
	}
	switch {
	case in == len(called):
		return inRanges
	case touched == 0:
		return outOfRanges
	}
	return mayBeInRanges
}

// allAddresses are those of both families. It is read-only.
var allAddresses = []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}

// CalledAt are the addresses to which applications in the cluster of a service connect: those of its Service, which is among those of the
// cluster, or, of a headless one, those of its pods. Where they are not known, they are all of the families that its pods have, as those of
// its Service are of the same; none if these are not known either.
func CalledAt(k *discoveryv1.KubeService, services []*corev1.Service) (out []netip.Prefix) {
	if k == nil {
		return nil
	}
	var ofPods []netip.Prefix
	for i := range k.EndpointSubsets {
		for _, e := range k.EndpointSubsets[i].Endpoints {
			for _, text := range append([]string{e.IpAddress}, e.OtherAddresses...) {
				ofPods = appendAddress(ofPods, text)
			}
		}
	}
	if k.Headless {
		return ofPods
	}
	if service := FindService(services, k.Ref.Namespace, k.Ref.Name); service != nil {
		for _, text := range append([]string{service.Spec.ClusterIP}, service.Spec.ClusterIPs...) {
			out = appendAddress(out, text)
		}
	}
	if len(out) > 0 {
		return out
	}
	for _, all := range allAddresses {
		if slices.ContainsFunc(ofPods, all.Overlaps) {
			out = append(out, all)
		}
	}
	return out
}

// AddressList is a list of one address; empty if it is none.
func AddressList(text string) []netip.Prefix { return appendAddress(nil, text) }

// appendAddress adds an address, if it is one.
func appendAddress(list []netip.Prefix, text string) []netip.Prefix {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return list
	}
	return append(list, netip.PrefixFrom(address, address.BitLen()))
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
