package istio

import (
	"fmt"
	"slices"

	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// selectingPods are the ServiceEntries that select pods, and may say for ports of these whether their proxies see requests: pods have one listener
// for a port, that of the oldest among the Services and ServiceEntries that lead to it (Istio, Proxy.SetServiceTargets and
// ListenerBuilder.getFilterChainsByServicePort).
func selectingPods(h *handWritten, of *snapshot.PodQuery) (out []snapshot.Intersection) {
	for _, o := range h.selecting {
		labels := o.Spec.GetWorkloadSelector().GetLabels()
		at := slices.IndexFunc(of.Pods, func(pod map[string]string) bool { return inventory.MatchLabels(labels, pod) })
		if o.Namespace != of.Namespace || at < 0 || !inRevision(of.Mesh, o) {
			continue
		}
		for _, p := range o.Spec.Ports {
			number := p.GetNumber()
			if p.GetTargetPort() != 0 {
				number = p.GetTargetPort()
			}
			if len(of.Ports) > 0 && !slices.Contains(of.Ports, number) || p.GetProtocol() == udp || !differs(h, o, p, number, of.Pods[at]) {
				continue
			}
			out = append(out, snapshot.Intersection{
				Ref:  snapshot.Ref{Kind: snapshot.ServiceEntry, Cluster: h.from.Name, Namespace: o.Namespace, Name: o.Name},
				What: fmt.Sprintf("names %s for port %d of them: whether their proxies see requests there, or only connections, is for the oldest of the Services and ServiceEntries that lead to it", p.GetProtocol(), number),
				Hint: "name the same protocol in the ServiceEntry and the Services",
			})
			break
		}
	}
	return out
}

// differs reports whether proxies of a pod take a port otherwise because of a ServiceEntry: no older Service leads there, and one leads there
// whose protocol they see otherwise.
func differs(h *handWritten, o *istionetworkingv1.ServiceEntry, p *networking.ServicePort, number uint32, pod map[string]string) bool {
	sees := dialect.IsHTTP(&discoveryv1.KubeServicePort{AppProtocol: p.GetProtocol()})
	differs := false
	for _, s := range h.from.Services {
		if s.Namespace != o.Namespace || len(s.Spec.Selector) == 0 || !inventory.MatchLabels(s.Spec.Selector, pod) {
			continue
		}
		for i := range s.Spec.Ports {
			port := &s.Spec.Ports[i]
			if mayLead := leadsTo(port, number); mayLead == leadsElsewhere {
				continue
			} else if mayLead == leadsThere && !s.CreationTimestamp.IsZero() && s.CreationTimestamp.Before(&o.CreationTimestamp) {
				return false
			}
			own := &discoveryv1.KubeServicePort{Name: port.Name, Protocol: string(port.Protocol)}
			if port.AppProtocol != nil {
				own.AppProtocol = *port.AppProtocol
			}
			differs = differs || dialect.IsHTTP(own) != sees
		}
	}
	return differs
}

type leads uint8

const (
	leadsElsewhere leads = iota
	// leadsMaybe: the port of the pod has a name.
	leadsMaybe
	leadsThere
)

// leadsTo is whether a port of a Service leads to a port of its pods.
func leadsTo(p *corev1.ServicePort, number uint32) leads {
	target := p.TargetPort
	switch {
	case p.Protocol == corev1.ProtocolUDP:
		return leadsElsewhere
	case target.Type == intstr.String && target.StrVal != "":
		return leadsMaybe
	case target.IntVal == 0 && uint32(p.Port) == number, target.IntVal > 0 && uint32(target.IntVal) == number:
		return leadsThere
	}
	return leadsElsewhere
}
