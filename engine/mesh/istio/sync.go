package istio

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// proxySync is istiod's page about its proxies (pilot/pkg/xds, DiscoveryServer.Syncz). It answers without a token on the loopback
// interface of its pod only.
var proxySync = &snapshot.ProxySync{Port: 15014, Path: syncPath, Parse: parseSync}

const syncPath = "debug/syncz"

// parseSync reads what istiod sent to each proxy, and what it acknowledged, by nonces. Older ones have no map of resources, and no errors.
func parseSync(data []byte) ([]snapshot.SyncedProxy, error) {
	var list []struct {
		Proxy string `json:"proxy"`

		ClusterSent    string `json:"cluster_sent"`
		ClusterAcked   string `json:"cluster_acked"`
		ListenerSent   string `json:"listener_sent"`
		ListenerAcked  string `json:"listener_acked"`
		RouteSent      string `json:"route_sent"`
		RouteAcked     string `json:"route_acked"`
		EndpointSent   string `json:"endpoint_sent"`
		EndpointAcked  string `json:"endpoint_acked"`
		ExtensionSent  string `json:"extensionconfig_sent"`
		ExtensionAcked string `json:"extensionconfig_acked"`

		Resources map[string]struct {
			LastError string `json:"lastError"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("istiod: reading /%s: %w; its version may be too old", syncPath, err)
	}
	out := make([]snapshot.SyncedProxy, 0, len(list))
	for i := range list {
		p := &list[i]
		found := snapshot.SyncedProxy{Pod: p.Proxy}
		if at := strings.LastIndexByte(p.Proxy, '.'); at >= 0 {
			found.Namespace, found.Pod = p.Proxy[at+1:], p.Proxy[:at]
		}
		for _, kind := range []struct{ name, sent, acked string }{
			{"clusters", p.ClusterSent, p.ClusterAcked}, {"listeners", p.ListenerSent, p.ListenerAcked}, {"routes", p.RouteSent, p.RouteAcked},
			{"endpoints", p.EndpointSent, p.EndpointAcked}, {"extensions", p.ExtensionSent, p.ExtensionAcked},
		} {
			if kind.sent != kind.acked {
				found.Waits = append(found.Waits, kind.name)
			}
		}
		for _, kind := range slices.Sorted(maps.Keys(p.Resources)) {
			if text := p.Resources[kind].LastError; text != "" && len(found.Waits) > 0 {
				found.Refused = text
				break
			}
		}
		out = append(out, found)
	}
	return out, nil
}
