package istio

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// listeners are the Sidecars because of which proxies of pods take a port in another way than its Service says it: by the protocol of
// the listener in spec.ingress, and on to its defaultEndpoint. Of a port without such a listener, proxies detect the protocol, whatever its
// Service says, and pass it on to where callers connect to: it stays as it is where they can detect it (Istio, buildInboundChainConfigs,
// buildInboundPassthroughChains and buildInboundClustersFromSidecar).
func (h *handWritten) listeners(of *snapshot.PodQuery) (out []snapshot.Intersection) {
	if !h.listens {
		return nil
	}
	for _, labels := range of.Pods {
		o := h.sidecarOf(of, labels)
		if o == nil {
			continue
		}
		ref := sidecarRef(h.from, o)
		if what := listensText(o, of.Ports, of.Mesh.Undetected); what != "" && !slices.ContainsFunc(out, func(x snapshot.Intersection) bool { return x.Ref == ref }) {
			out = append(out, snapshot.Intersection{Ref: ref, What: what})
		}
	}
	return out
}

// listensText says how the proxies under a Sidecar take ports; empty if it says nothing about these. Without ports, all count. Undetected
// says because of what they do not detect requests; empty if they do.
func listensText(o *istionetworkingv1.Sidecar, ports []uint32, undetected string) string {
	const few = 3
	var parts []string
	for _, port := range ports {
		listed := slices.ContainsFunc(o.Spec.Ingress, func(l *networking.IstioIngressListener) bool { return l.GetPort().GetNumber() == port })
		if text := fmt.Sprintf("port %d as connections, as %s", port, undetected); len(o.Spec.Ingress) > 0 && !listed && undetected != "" && !slices.Contains(parts, text) {
			parts = append(parts, text)
		}
	}
	for _, l := range o.Spec.Ingress {
		if len(ports) > 0 && !slices.Contains(ports, l.GetPort().GetNumber()) {
			continue
		}
		to := "the address that callers connect to"
		if l.DefaultEndpoint != "" {
			to = l.DefaultEndpoint
		}
		parts = append(parts, fmt.Sprintf("port %d as %s, on to %s", l.GetPort().GetNumber(), strings.ToUpper(cmp.Or(l.GetPort().GetProtocol(), "detected")), to))
	}
	if len(parts) == 0 {
		return ""
	}
	more := ""
	if len(parts) > few {
		more = fmt.Sprintf(" and %d more", len(parts)-few)
		parts = parts[:few]
	}
	return "has their proxies take " + strings.Join(parts, "; ") + more + ", whatever the Service says"
}

// hasListeners reports whether a Sidecar has listeners of its own.
func hasListeners(s *networking.Sidecar) bool {
	return len(s.GetIngress()) > 0 || slices.ContainsFunc(s.GetEgress(), isSender)
}

// senders are the Sidecars because of which proxies of pods take what is for some hosts only where the application sends it to a listener
// of theirs by itself: one with a bind, or with captureMode NONE, whose bind is that of the pod itself unless it is set (Istio,
// buildSidecarOutboundListeners).
func (h *handWritten) senders(of *snapshot.PodQuery) (out []snapshot.Intersection) {
	if !h.listens {
		return nil
	}
	for _, labels := range of.Pods {
		o := h.sidecarOf(of, labels)
		if o == nil {
			continue
		}
		at := slices.IndexFunc(o.Spec.Egress, isSender)
		if ref := sidecarRef(h.from, o); at >= 0 && !slices.ContainsFunc(out, func(x snapshot.Intersection) bool { return x.Ref == ref }) {
			l := o.Spec.Egress[at]
			where := cmp.Or(l.Bind, "127.0.0.1")
			if port := l.GetPort().GetNumber(); port != 0 {
				where = fmt.Sprintf("%s, port %d", where, port)
			}
			out = append(out, snapshot.Intersection{Ref: ref, What: "has their proxies take what is for " + strings.Join(l.Hosts, ", ") + " at " + where + " only, where the application sends it there"})
		}
	}
	return out
}

func isSender(l *networking.IstioEgressListener) bool {
	return l.Bind != "" || l.CaptureMode == networking.CaptureMode_NONE
}
