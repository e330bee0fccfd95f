package istio

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// This file is about connections that pass proxies by. Annotations of pods, settings of the injector and the users of containers say
// which these are; the first two end up in the arguments of the container that sets the rules, or checks those of the CNI plugin (Istio's chart istiod,
// injection-template.yaml; tools/istio-iptables, IptablesConfigurator.Run).

const (
	rulesCommand = "istio-iptables"
	// interceptionEnv is the mode of interception, as the injector writes it into the proxy's container.
	interceptionEnv = "ISTIO_META_INTERCEPTION_MODE"
	interceptionKey = "sidecar.istio.io/interceptionMode"
	noInterception  = "NONE"
	// everything as a list of ports or ranges.
	everything = "*"
)

// captureRule is one setting: an annotation, and the flag of the command.
type captureRule struct {
	annotation, flag string
	// usual is what holds without it.
	usual string
}

var (
	includeInbound  = captureRule{"traffic.sidecar.istio.io/includeInboundPorts", "-b", everything}
	excludeInbound  = captureRule{"traffic.sidecar.istio.io/excludeInboundPorts", "-d", ""}
	includeOutbound = captureRule{"traffic.sidecar.istio.io/includeOutboundPorts", "-q", ""}
	excludeOutbound = captureRule{"traffic.sidecar.istio.io/excludeOutboundPorts", "-o", ""}
	includeRanges   = captureRule{"traffic.sidecar.istio.io/includeOutboundIPRanges", "-i", everything}
	excludeRanges   = captureRule{"traffic.sidecar.istio.io/excludeOutboundIPRanges", "-x", ""}
	// excludeInterfaces takes out all that comes and goes through some interfaces, before anything else is looked at
	// (shortCircuitExcludeInterfaces).
	excludeInterfaces = captureRule{"traffic.sidecar.istio.io/excludeInterfaces", "-c", ""}
)

// podInterface is that of the address of a pod (Kubernetes, pkg/kubelet/stats, defaultNetworkInterfaceName).
const podInterface = "eth0"

var captureRules = []captureRule{includeInbound, excludeInbound, includeOutbound, excludeOutbound, includeRanges, excludeRanges, excludeInterfaces}

// captureAnnotations are those of some annotations that say what proxies see. An empty value says something, too.
func captureAnnotations(annotations map[string]string) (names []string) {
	if annotations[interceptionKey] != "" {
		names = append(names, interceptionKey)
	}
	for _, r := range captureRules {
		if _, says := annotations[r.annotation]; says {
			names = append(names, r.annotation)
		}
	}
	return names
}

// captureArgs are the arguments of a container that say what proxies see.
func captureArgs(c *corev1.Container) (out []string) {
	if len(c.Args) == 0 || c.Args[0] != rulesCommand {
		return nil
	}
	out = []string{rulesCommand}
	for i := 1; i+1 < len(c.Args); i++ {
		if slices.ContainsFunc(captureRules, func(r captureRule) bool { return r.flag == c.Args[i] }) {
			out = append(out, c.Args[i], c.Args[i+1])
			i++
		}
	}
	return out
}

// proxyUser is the user of proxies, and their group, unless their containers say otherwise (Istio, constants.DefaultProxyUID).
const proxyUser = 1337

// staying are the containers of a pod that do not end before others start.
func staying(pod *corev1.PodSpec) (out []*corev1.Container) {
	for i := range pod.Containers {
		out = append(out, &pod.Containers[i])
	}
	for i := range pod.InitContainers {
		if policy := pod.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			out = append(out, &pod.InitContainers[i])
		}
	}
	return out
}

// asProxy says which containers of a pod run as its proxy, as Capture.AsProxy has it: the rules lead nothing that the user or the group of
// the proxy sends to it (IptablesConfigurator.Run; for the CNI plugin sidecar_redirect.go, NewRedirect). As whom an image runs by itself is
// not known.
func asProxy(pod *corev1.PodSpec) string {
	user, group := int64(proxyUser), int64(proxyUser)
	containers := staying(pod)
	for _, c := range containers {
		if s := c.SecurityContext; s != nil && isProxy(c) {
			user, group = orOf(s.RunAsUser, user), orOf(s.RunAsGroup, group)
		}
	}
	all, some := true, false
	for _, c := range containers {
		if isProxy(c) {
			continue
		}
		asUser, asGroup := runsAs(pod, c)
		is := asUser != nil && *asUser == user || asGroup != nil && *asGroup == group
		all, some = all && is, some || is
	}
	switch {
	case !some:
		return ""
	case all:
		return discoveryv1.AsProxyAll
	}
	return discoveryv1.AsProxySome
}

// orOf is an identity that is set, and not root; else another.
func orOf(id *int64, other int64) int64 {
	if id == nil || *id == 0 {
		return other
	}
	return *id
}

// runsAs are the user and the group of a container; nil where its image says it.
func runsAs(pod *corev1.PodSpec, c *corev1.Container) (user, group *int64) {
	of, own := cmp.Or(pod.SecurityContext, &corev1.PodSecurityContext{}), cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
	return cmp.Or(own.RunAsUser, of.RunAsUser), cmp.Or(own.RunAsGroup, of.RunAsGroup)
}

// of is what a setting is for a pod.
func (r captureRule) of(pod *corev1.Pod) string {
	for i := range pod.Spec.InitContainers {
		args := captureArgs(&pod.Spec.InitContainers[i])
		for j := 1; j+1 < len(args); j += 2 {
			if args[j] == r.flag {
				return strings.TrimSpace(args[j+1])
			}
		}
		if args != nil {
			return r.usual
		}
	}
	if text, says := pod.Annotations[r.annotation]; says {
		return strings.TrimSpace(text)
	}
	return r.usual
}

// intercepts reports whether a pod has connections led to its proxy.
func intercepts(pod *corev1.Pod) bool {
	mode := pod.Annotations[interceptionKey]
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for _, e := range list[i].Env {
				if e.Name == interceptionEnv && isProxy(&list[i]) {
					mode = cmp.Or(e.Value, mode)
				}
			}
		}
	}
	return mode != noInterception
}

// proxyDNS implements Detector.ProxyDNS. The injector writes proxyMetadata into the containers of proxies, whether meshConfig, a
// ProxyConfig or the annotation proxy.istio.io/config has it (Istio, inject.mergeMetadata; DNSCaptureByAgent).
func proxyDNS(pod *corev1.Pod) (says string) {
	if isGateway(&pod.Spec) {
		return ""
	}
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			for _, e := range list[i].Env {
				switch {
				case e.Name != dnsCapture || !isProxy(&list[i]) || e.ValueFrom != nil:
				case isTrue(e.Value):
					says = discoveryv1.ProxyDNSOn
				default:
					says = discoveryv1.ProxyDNSOff
				}
			}
		}
	}
	return says
}

// inboundPast implements Detector.Inbound. Of ports that are included one by one, none is excluded (handleInboundPortsInclude).
func inboundPast(pod *corev1.Pod, port uint32) string {
	if isGateway(&pod.Spec) { // its proxies listen by themselves
		return ""
	}
	if !intercepts(pod) {
		return discoveryv1.PastProxyUncaptured
	}
	number := strconv.FormatUint(uint64(port), 10)
	included := includeInbound.of(pod)
	isPast := !slices.Contains(splitList(included), number)
	if included == everything {
		isPast = slices.Contains(splitList(excludeInbound.of(pod)), number)
	}
	if isPast || slices.Contains(splitList(excludeInterfaces.of(pod)), podInterface) {
		return discoveryv1.PastProxyExcluded
	}
	return ""
}

// outboundCapture implements Detector.Outbound.
func outboundCapture(pod *corev1.Pod) *discoveryv1.Capture {
	if isGateway(&pod.Spec) {
		return nil
	}
	if !intercepts(pod) {
		return &discoveryv1.Capture{None: true}
	}
	out := &discoveryv1.Capture{AsProxy: asProxy(&pod.Spec)}
	out.ExcludePorts = portsOf(excludeOutbound.of(pod), out)
	out.ExcludeRanges = rangesOf(excludeRanges.of(pod), out)
	if ranges := includeRanges.of(pod); ranges != everything {
		out.OnlyIncluded, out.IncludeRanges = true, rangesOf(ranges, out)
	}
	out.IncludePorts = portsOf(includeOutbound.of(pod), out)
	switch {
	case out.Unclear || len(splitList(excludeInterfaces.of(pod))) > 0: // which interface a connection takes, is not known
		return &discoveryv1.Capture{Unclear: true}
	case !out.OnlyIncluded && out.AsProxy == "" && len(out.ExcludePorts)+len(out.ExcludeRanges) == 0:
		return nil
	}
	return out
}

// mostRules is how many ports or ranges are looked at, as the API has it.
const mostRules = 64

func splitList(text string) (out []string) {
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// portsOf reads a list of ports; it notes one that cannot be read.
func portsOf(text string, in *discoveryv1.Capture) (out []uint32) {
	list := splitList(text)
	in.Unclear = in.Unclear || len(list) > mostRules
	for _, part := range list[:min(len(list), mostRules)] {
		n, err := strconv.ParseUint(part, 10, 16)
		in.Unclear = in.Unclear || err != nil
		out = append(out, uint32(n))
	}
	slices.Sort(out)
	return out
}

// rangesOf reads a list of ranges of addresses; it notes one that cannot be read.
func rangesOf(text string, in *discoveryv1.Capture) (out []string) {
	list := splitList(text)
	in.Unclear = in.Unclear || len(list) > mostRules
	for _, part := range list[:min(len(list), mostRules)] {
		prefix, err := netip.ParsePrefix(part)
		if addr, single := netip.ParseAddr(part); err != nil && single == nil {
			prefix, err = addr.Prefix(addr.BitLen())
		}
		in.Unclear = in.Unclear || err != nil
		out = append(out, prefix.String())
	}
	return out
}
