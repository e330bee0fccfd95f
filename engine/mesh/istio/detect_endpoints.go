package istio

import (
	"slices"

	meshconfig "istio.io/api/mesh/v1alpha1"
	"sigs.k8s.io/yaml"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about settings by which a control plane gives proxies other endpoints than all that a service has.

// networksKey is the key of the ConfigMap with the settings that says which endpoints are in which network, and by which gateways others
// reach these (Istio, mesh.MeshNetworks).
const networksKey = "meshNetworks"

// localitySettings are those of a MeshConfig that give proxies the endpoints of some localities only. Failover is none: it needs endpoints
// that fail (Istio, ApplyLocalityLoadBalancer).
func localitySettings(config *meshconfig.MeshConfig) []string {
	l := config.GetLocalityLbSetting()
	if len(l.GetDistribute()) == 0 || l.GetEnabled() != nil && !l.GetEnabled().GetValue() {
		return nil
	}
	return []string{discoveryv1.EndpointsByLocality}
}

// endpointSettings are the settings of a control plane, and whether its networks are, ascending.
func endpointSettings(x *discovery.Index, config settings, namespace, revision string) []string {
	cm, _ := x.ConfigMap(namespace, settingsMapOf(revision))
	if cm == nil { // as it was last
		return sortedSet(config.endpoints)
	}
	out := slices.DeleteFunc(slices.Clone(config.endpoints), func(of string) bool { return of == discoveryv1.EndpointsByNetwork })
	var text struct {
		Networks map[string]any `json:"networks"`
	}
	if yaml.Unmarshal([]byte(cm.Data[networksKey]), &text) == nil && len(text.Networks) > 0 {
		out = append(out, discoveryv1.EndpointsByNetwork)
	}
	return sortedSet(out)
}

// endpointNotes say in sentences what endpoint settings do.
func endpointNotes(plan *snapshot.MeshPlan) (out []string) {
	for _, of := range plan.Mesh.Spec.Istio.EndpointSettings {
		switch of {
		case discoveryv1.EndpointsByLocality:
			out = append(out, "localityLbSetting in the meshConfig of mesh "+plan.Ref.Name+" sends requests to pods of the localities that it names for those of the callers only (distribute): where there are none, they are answered with status 503")
		case discoveryv1.EndpointsByNetwork:
			out = append(out, "meshNetworks of the control plane of mesh "+plan.Ref.Name+" says which endpoints are in other networks than the callers: proxies connect to the gateways of these instead")
		}
	}
	return out
}
