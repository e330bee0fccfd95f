package istio

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// proxyNames are those of Istio's sidecars (istio.io: Debugging Envoy and Istiod).
var proxyNames = &snapshot.ProxyNames{
	Container: "istio-proxy", AdminPort: 15000, Target: proxyTarget, Origin: proxyOrigin, Policy: proxyPolicy, Stats: proxyStats, Sync: proxySync,
	Patches: []snapshot.ProxyPatch{
		{Kind: "EnvoyFilter", Group: "networking.istio.io", Version: "v1alpha3", Resource: "envoyfilters", Selector: "workloadSelector"},
		{Kind: "WasmPlugin", Group: "extensions.istio.io", Version: "v1alpha1", Resource: "wasmplugins", Selector: "selector"},
	},
}

// proxyTarget reads outbound|PORT|SUBSET|HOST (pilot/pkg/model, BuildSubsetKey).
func proxyTarget(cluster string) (target snapshot.ProxyTarget, passes bool) {
	if cluster == "PassthroughCluster" {
		return snapshot.ProxyTarget{}, true
	}
	parts := strings.SplitN(cluster, "|", 4)
	if len(parts) != 4 || parts[0] != "outbound" {
		// At gateways that pass connections on: outbound_.PORT_.SUBSET_.HOST (BuildDNSSrvSubsetKey).
		if parts = strings.SplitN(cluster, "_.", 4); len(parts) != 4 || parts[0] != "outbound" {
			return snapshot.ProxyTarget{}, false
		}
	}
	port, err := strconv.ParseUint(parts[1], 10, 16)
	if err != nil {
		return snapshot.ProxyTarget{}, false
	}
	return snapshot.ProxyTarget{Host: parts[3], Port: uint32(port), Subset: strings.TrimSuffix(parts[2], "_")}, false
}

// proxyOrigin reads istio.config (pilot/pkg/networking/util, BuildConfigInfoMetadata): /apis/GROUP/VERSION/namespaces/NAMESPACE/KIND/NAME.
func proxyOrigin(metadata map[string]json.RawMessage) snapshot.Ref {
	var istio struct{ Config string }
	if err := json.Unmarshal(metadata["istio"], &istio); err != nil {
		return snapshot.Ref{}
	}
	parts := strings.Split(strings.TrimPrefix(istio.Config, "/"), "/")
	if len(parts) != 7 || parts[3] != "namespaces" {
		return snapshot.Ref{}
	}
	kinds := map[string]snapshot.Kind{"virtual-service": snapshot.VirtualService, "destination-rule": snapshot.DestinationRule}
	kind, known := kinds[parts[5]]
	if !known {
		return snapshot.Ref{}
	}
	return snapshot.Ref{Kind: kind, Namespace: parts[4], Name: parts[6]}
}

// policyName is that of a rule of an AuthorizationPolicy (pilot/pkg/security/authz/builder).
var policyName = regexp.MustCompile(`ns\[([^\]]*)\]-policy\[([^\]]*)\]-`)

func proxyPolicy(name string) snapshot.Ref {
	m := policyName.FindStringSubmatch(name)
	if m == nil {
		return snapshot.Ref{}
	}
	return snapshot.Ref{Kind: snapshot.AuthorizationPolicy, Namespace: m[1], Name: m[2]}
}
