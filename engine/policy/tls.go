package policy

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// mtlsMode is how callers encrypt. Between clusters it is always mutual TLS: gateways
// route by the SNI that the caller's sidecar sets.
var mtlsMode = feature{
	field: "policy.mtls.istio.tlsMode",
	value: func(p *networkingv1.Policy) any {
		if p.Mtls == nil || p.Mtls.Istio == nil {
			return nil
		}
		return p.Mtls.Istio
	},
	check: func(c *fieldContext) []snapshot.Issue {
		issues := narrowIssues(c, "policy.mtls.istio.tlsMode")
		if mode := tlsModeOf(c.spec.Policy); mode != networkingv1.TLSModeIstioMutual && c.env.topology.ThroughGateways(c.index, c.viewer) {
			issues = append(issues, snapshot.Warnf(snapshot.FieldUnsupported, "use ISTIO_MUTUAL, or restrict sourceSelector to the service's own cluster",
				"policy.mtls.istio.tlsMode %s has no effect on callers in other clusters: gateways forward only mutual TLS", mode).At("policy.mtls.istio.tlsMode"))
		}
		return issues
	},
	view: func(c *fieldContext, origin snapshot.Origin, view *snapshot.View) {
		if mode := tlsModeOf(c.spec.Policy); c.env.canUse(mode, c.index, c.viewer) {
			setIfUnset(&view.TLS, mode, origin)
		}
	},
}

func tlsModeOf(p *networkingv1.Policy) networkingv1.TLSMode {
	if p.Mtls.Istio.TlsMode == "" {
		return networkingv1.TLSModeDisable // the default of the enum
	}
	return p.Mtls.Istio.TlsMode
}

// canUse reports whether a mesh can reach a Destination with a TLS mode.
func (env *environment) canUse(mode networkingv1.TLSMode, self int, viewer *snapshot.MeshPlan) bool {
	return mode == networkingv1.TLSModeIstioMutual || !env.topology.ThroughGateways(self, viewer)
}
