package policy

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// mtlsMode is how callers encrypt. Between clusters it is always mutual TLS:
// gateways find the service by what the caller's sidecar writes into it.
var mtlsMode = feature{
	field: "policy.mtls.istio.tlsMode",
	value: func(p *networkingv1.Policy) any {
		if p.Mtls == nil || p.Mtls.Istio == nil {
			return nil
		}
		return p.Mtls.Istio
	},
	check: func(s *setting) []snapshot.Issue {
		issues := wholeView(s, "policy.mtls.istio.tlsMode")
		if mode := tlsModeOf(s.spec.Policy); mode != networkingv1.TLSModeIstioMutual && s.world.topology.ThroughGateways(s.self, s.viewer) {
			issues = append(issues, snapshot.Warnf(snapshot.FieldUnsupported, "use ISTIO_MUTUAL, or restrict sourceSelector to the service's own cluster",
				"policy.mtls.istio.tlsMode %s has no effect on callers in other clusters: gateways pass on mutual TLS only", mode))
		}
		return issues
	},
	view: func(s *setting, origin snapshot.Origin, view *snapshot.View) {
		if mode := tlsModeOf(s.spec.Policy); s.world.canUse(mode, s.self, s.viewer) {
			claim(&view.TLS, mode, origin)
		}
	},
}

func tlsModeOf(p *networkingv1.Policy) networkingv1.TLSMode {
	if p.Mtls.Istio.TlsMode == "" {
		return networkingv1.TLSModeDisable // the enum's zero
	}
	return p.Mtls.Istio.TlsMode
}

// canUse reports whether a mesh can reach a Destination with a TLS mode.
func (w *world) canUse(mode networkingv1.TLSMode, self int, viewer *snapshot.MeshPlan) bool {
	return mode == networkingv1.TLSModeIstioMutual || !w.topology.ThroughGateways(self, viewer)
}
