package check

import (
	"context"
	"fmt"
	"slices"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/kube"
)

// maxAskedInCluster is how many proxies of a cluster are asked how gateways are: they connect alike.
const maxAskedInCluster = 2

// askAboutGateways asks proxies of callers how the gateways of other clusters are, and notes it. What cannot be asked stays unknown:
// the sample says which proxies could not be read.
func (p *Proxies) askAboutGateways(index *explain.Index, answers []*explain.Why, gateways []explain.CheckedGateway) {
	if len(gateways) == 0 {
		return
	}
	asked, perCluster := map[string]bool{}, map[string]int{}
	for _, why := range answers {
		if why.Proxies == nil || why.Proxies.Caller == nil {
			continue
		}
		pod := *why.Proxies.Caller
		name := pod.Cluster + "/" + pod.Namespace + "/" + pod.Name
		if asked[name] || perCluster[pod.Cluster] == maxAskedInCluster {
			continue
		}
		asked[name] = true
		perCluster[pod.Cluster]++
		if hosts, err := p.hosts(pod, explain.AdminPortOf(index, why.From)); err == nil {
			noteHosts(gateways, pod.Cluster, name, hosts)
		}
	}
}

// hosts reads how the proxy of a pod finds what it connects to.
func (p *Proxies) hosts(pod explain.ProxyPod, port uint32) ([]envoy.Host, error) {
	config, err := p.config(pod.Cluster)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.timeout)
	defer cancel()
	data, err := kube.GetFromPod(ctx, config, pod.Namespace, pod.Name, port, "clusters?format=json", maxDump)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", &pod, err)
	}
	return envoy.ParseHosts(data)
}

// noteHosts adds what one proxy says to the gateways of other clusters than its own.
func noteHosts(gateways []explain.CheckedGateway, cluster, pod string, hosts []envoy.Host) {
	for i := range gateways {
		g := &gateways[i]
		if g.Cluster == cluster {
			continue
		}
		for _, host := range hosts {
			if host.Address != g.Address {
				continue
			}
			if g.ByProxies == nil {
				g.ByProxies = &explain.GatewayByProxies{}
			}
			if !slices.Contains(g.ByProxies.Asked, pod) {
				g.ByProxies.Asked = append(g.ByProxies.Asked, pod)
			}
			g.ByProxies.Connections += host.Connections
			g.ByProxies.Failed += host.Failed
			g.ByProxies.Excluded = g.ByProxies.Excluded || host.Excluded
		}
	}
}
