package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// send asks the proxy of the callers what it does; the reason says why it cannot be asked.
func (t *trace) send(config *envoy.Config, caller *ProxyPod, request envoy.Request) (sent envoy.Sent, reason string) {
	switch {
	case caller.Gateway:
		return t.enter(config, request)
	case !t.connection:
		return config.Send(t.why.Host, t.why.Request.Port, request), ""
	}
	isTLS := t.traffic() == snapshot.TLSConnections
	sent, known := config.SendConnection(envoy.Outgoing{
		Addresses: t.addresses(), Port: t.why.Request.Port, TLS: isTLS, SNI: nameIf(isTLS, t.why.Host),
		Leads: func(cluster string) bool {
			target, _ := t.names.Target(cluster)
			return target.Host == t.why.Host && target.Port == t.why.Request.Port
		},
	})
	if !known {
		return sent, fmt.Sprintf("which listener of the caller's proxy takes connections to %s is not known: ask without --no-clusters", t.why.Host)
	}
	return sent, ""
}

func nameIf(is bool, name string) string {
	if !is {
		return ""
	}
	return name
}

// traffic is what the proxies see on the port that is asked for.
func (t *trace) traffic() snapshot.Traffic {
	switch protocol := strings.ToUpper(t.why.Protocol); {
	case snapshot.IsHTTPProtocol(protocol):
		return snapshot.Requests
	case protocol == "TLS" || protocol == "HTTPS":
		return snapshot.TLSConnections
	}
	return snapshot.Connections
}

// addresses are those that the called host has for the callers: of a service of their own cluster those of its Service, or of its pods if
// that has none, and of a federated one its virtual address. None if the objects of the cluster were not read.
func (t *trace) addresses() (out []string) {
	if v := t.virtualDestinations[t.why.To]; v != nil {
		return []string{v.Address}
	}
	d := t.destinations[t.why.To]
	if d == nil || d.Destination.Spec.KubeService == nil {
		return nil
	}
	if d.Mesh.Ref != t.mesh.Ref {
		if d.Federation == nil {
			return nil
		}
		return []string{d.Federation.Address}
	}
	k, c := d.Destination.Spec.KubeService, t.clusters[t.mesh.Cluster]
	if c == nil {
		return nil
	}
	for _, s := range c.Services {
		if s.Namespace != k.Ref.Namespace || s.Name != k.Ref.Name {
			continue
		}
		for _, ip := range append([]string{s.Spec.ClusterIP}, s.Spec.ClusterIPs...) {
			if ip != "" && ip != "None" && !slices.Contains(out, ip) {
				out = append(out, ip)
			}
		}
	}
	return out
}

// enter asks the proxy of a gateway what it does with what enters there by the way that the answer is about.
func (t *trace) enter(config *envoy.Config, request envoy.Request) (sent envoy.Sent, reason string) {
	w := t.why.way
	if w == nil {
		return sent, "where such requests enter at the gateway is not known, so there is nothing to ask its proxy for: ask with the header host as NAME:PORT"
	}
	listens, err := strconv.ParseUint(w.Listens, 10, 16)
	if err != nil {
		return sent, "the port of the gateway is called " + w.Listens + " by its Service: which number that is, is not looked up"
	}
	asked, _ := askedAt(t.why.Request.Headers["host"])
	name := cmp.Or(asked, w.host.Name)
	if rest, isPattern := strings.CutPrefix(name, "*"); isPattern {
		name = "any" + rest
	}
	request.Host = name
	t.connection = w.Traffic != snapshot.Requests
	in := envoy.Entering{Port: uint32(listens), TLS: w.Names != nil, Connection: t.connection}
	if in.TLS {
		in.SNI = name
	}
	t.note(fmt.Sprintf("of the gateway, requests for %s to port %d of its pods are evaluated", name, listens))
	return config.Enter(in, request), ""
}

// servicePort is the port of a service that leads to the one of its pods which a target has; that of the request if it is one of several.
// Where no port is known to lead there, it is that of the pods.
func (t *trace) servicePort(target snapshot.ProxyTarget) uint32 {
	out := target.Port
	for _, ref := range t.hosts(t.mesh, nil, target.Host) {
		d := t.destinations[ref]
		if d == nil || d.Destination.Spec.KubeService == nil {
			continue
		}
		for _, p := range d.Destination.Spec.KubeService.Ports {
			if p.TargetPortName != "" || cmp.Or(p.TargetPortNumber, p.Port) == target.Port {
				if out = p.Port; out == t.why.Request.Port {
					return out
				}
			}
		}
	}
	return out
}
