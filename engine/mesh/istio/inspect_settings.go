package istio

import (
	"strings"

	networking "istio.io/api/networking/v1alpha3"
)

// clientSettings are what a DestinationRule has proxies of callers do, beside TLS.
type clientSettings struct {
	balancer *networking.LoadBalancerSettings
	pool     *networking.ConnectionPoolSettings
	outlier  *networking.OutlierDetection
	tunnel   *networking.TrafficPolicy_TunnelSettings
	header   *networking.TrafficPolicy_ProxyProtocol
}

// settingsFor are those of a policy for a port: what is for the port alone inherits nothing (Istio, util.GetPortLevelTrafficPolicy).
func settingsFor(p *networking.TrafficPolicy, port uint32) (s clientSettings, whole bool) {
	for _, l := range p.GetPortLevelSettings() {
		if l.GetPort().GetNumber() == port && port != 0 {
			return clientSettings{balancer: l.GetLoadBalancer(), pool: l.GetConnectionPool(), outlier: l.GetOutlierDetection()}, true
		}
	}
	return clientSettings{p.GetLoadBalancer(), p.GetConnectionPool(), p.GetOutlierDetection(), p.GetTunnel(), p.GetProxyProtocol()}, false
}

// over is what holds for a subset that has settings of its own: each of them stands for that of all pods, and those for a port alone stand
// for all (Istio, model.MergeTrafficPolicy).
func (s clientSettings) over(all clientSettings, whole bool) clientSettings {
	if whole {
		return s
	}
	if s.balancer != nil {
		all.balancer = s.balancer
	}
	if s.pool != nil {
		all.pool = s.pool
	}
	if s.outlier != nil {
		all.outlier = s.outlier
	}
	if s.tunnel != nil {
		all.tunnel = s.tunnel
	}
	if s.header != nil {
		all.header = s.header
	}
	return all
}

// astray says in a clause why requests may not reach the pods for which they are; empty if nothing of that is set (Istio,
// applyLoadBalancer).
func (s clientSettings) astray() string {
	if s.balancer.GetSimple() == networking.LoadBalancerSettings_PASSTHROUGH {
		return "sets load balancer PASSTHROUGH: proxies connect to the address that the connection was for, whatever service and subset a route chooses"
	}
	return ""
}

// prefix says in a clause what sidecars send before requests; empty if it is nothing (Istio, applyUpstreamProxyProtocol).
func (s clientSettings) prefix() string {
	if s.header != nil {
		return "sets proxyProtocol: whether the pods take its header, which proxies of the mesh do not, is not known"
	}
	return ""
}

// named says in a clause what else is set that may keep requests from pods; empty if there is nothing.
func (s clientSettings) named() string {
	var parts []string
	tcp, http := s.pool.GetTcp(), s.pool.GetHttp()
	if tcp.GetMaxConnections() > 0 || http.GetHttp1MaxPendingRequests() > 0 || http.GetHttp2MaxRequests() > 0 {
		parts = append(parts, "refuses requests above its limits (connectionPool)")
	}
	if s.outlier != nil {
		parts = append(parts, "sends none to pods that fail, for a while (outlierDetection)")
	}
	if l := s.balancer.GetLocalityLbSetting(); len(l.GetDistribute()) > 0 && (l.GetEnabled() == nil || l.GetEnabled().GetValue()) {
		parts = append(parts, "sends them to pods of the localities that it names only, if there are any (localityLbSetting)")
	}
	if s.tunnel != nil {
		parts = append(parts, "sends connections that are no HTTP through another proxy (tunnel)")
	}
	return strings.Join(parts, ", and ")
}
