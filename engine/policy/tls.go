package policy

import (
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

var mtlsMode = feature{
	field: "policy.mtls.istio.tlsMode",
	value: func(p *networkingv1.Policy) any {
		if p.Mtls == nil || p.Mtls.Istio == nil {
			return nil
		}
		return p.Mtls.Istio
	},
	check: func(s *setting) []snapshot.Issue { return wholeView(s, "policy.mtls.istio.tlsMode") },
	view: func(s *setting, origin snapshot.Origin, view *snapshot.View) {
		mode := s.spec.Policy.Mtls.Istio.TlsMode
		if mode == "" {
			mode = networkingv1.TLSModeDisable // the enum's zero
		}
		claim(&view.TLS, mode, origin)
	},
}
