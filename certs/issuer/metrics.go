package issuer

import "github.com/prometheus/client_golang/prometheus"

type metrics struct {
	signed  prometheus.Counter
	refused *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	m := &metrics{
		signed: prometheus.NewCounter(prometheus.CounterOpts{
			Namespace: "meshctl", Name: "certificates_signed_total", Help: "Intermediate certificates that were signed for meshes.",
		}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "meshctl", Name: "certificate_requests_refused_total", Help: "Requests for certificates that were refused, by reason.",
		}, []string{"reason"}),
	}
	if r != nil {
		r.MustRegister(m.signed, m.refused)
	}
	return m
}
