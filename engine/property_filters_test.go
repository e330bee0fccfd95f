package engine_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// fillFilters asks, now and then, for what proxies need filters for.
func (w *randomWorld) fillFilters(p *networkingv1.Policy) {
	if w.r.Intn(5) == 0 {
		p.Csrf = &networkingv1.CsrfPolicy{FilterEnabled: w.r.Intn(3) > 0}
	}
	switch w.r.Intn(12) {
	case 0:
		p.RateLimit = &networkingv1.RouteRateLimit{} // invalid
	case 1, 2:
		p.RateLimit = &networkingv1.RouteRateLimit{Basic: &networkingv1.BasicRateLimit{AnonymousLimits: &networkingv1.RateLimit{
			Unit: networkingv1.RateLimitUnitMinute, RequestsPerUnit: uint32(1 + w.r.Intn(2)),
		}}}
	}
}

// randomExternals is how many external services there may be.
const randomExternals = 3

func (w *randomWorld) external() *commonv1.ObjectRef {
	return &commonv1.ObjectRef{Name: fmt.Sprintf("external-%d", w.r.Intn(randomExternals)), Namespace: "gloo-mesh"}
}

// changeExternals makes, changes or removes external services.
func (w *randomWorld) changeExternals() {
	w.externals = nil
	for i := range randomExternals {
		if w.r.Intn(4) == 0 {
			continue
		}
		w.externals = append(w.externals, &discoveryv1.Destination{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("external-%d", i), Namespace: "gloo-mesh"},
			Spec: discoveryv1.DestinationSpec{ExternalService: &discoveryv1.ExternalService{
				Hosts: []string{fmt.Sprintf("h%d.example.com", w.r.Intn(3))},
				Ports: []discoveryv1.ExternalServicePort{{Number: 80, Name: "http", Protocol: "HTTP"}},
			}},
		})
	}
}
