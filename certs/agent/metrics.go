package agent

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
)

// metrics of an agent. They have no fingerprints or names but those of meshes.
type metrics struct {
	registry        *prometheus.Registry
	meshes          prometheus.Gauge
	passes, writes  prometheus.Counter
	failures        prometheus.Counter
	state, notAfter *prometheus.GaugeVec
	// ended is when the last pass ended, bad why it failed; nil if it did not.
	ended atomic.Pointer[time.Time]
	bad   atomic.Pointer[string]
}

func newMetrics() *metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "meshctl", Subsystem: "agent", Name: name, Help: help})
	}
	gauges := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "meshctl", Subsystem: "agent", Name: name, Help: help}, labels)
	}
	m := &metrics{
		registry: prometheus.NewRegistry(),
		meshes:   prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "meshctl", Subsystem: "agent", Name: "meshes", Help: "Meshes whose certificates the agent looks after."}),
		passes:   counter("passes_total", "Looks at all meshes."),
		failures: counter("failures_total", "Looks at all meshes that failed for at least one of them."),
		writes:   counter("writes_total", "Writes of Secrets and CertificateRequests."),
		state:    gauges("certificate_state", "1 for the state of the IssuedCertificate of a mesh.", "mesh", "state"),
		notAfter: gauges("certificate_expiry_timestamp_seconds", "When the certificate in the Secret of a mesh expires.", "mesh"),
	}
	m.registry.MustRegister(m.meshes, m.passes, m.failures, m.writes, m.state, m.notAfter)
	return m
}

func (m *metrics) passed(now time.Time, err error) {
	m.passes.Inc()
	m.ended.Store(&now)
	if err != nil {
		text := err.Error()
		m.failures.Inc()
		m.bad.Store(&text)
		return
	}
	m.bad.Store(nil)
}

func (m *metrics) observe(mesh string, status *certificatesv1.IssuedCertificateStatus) {
	m.state.DeletePartialMatch(prometheus.Labels{"mesh": mesh})
	m.state.WithLabelValues(mesh, string(status.State)).Set(1)
	if status.Trust != nil && status.Trust.Issuer != nil && status.Trust.Issuer.NotAfter != nil {
		m.notAfter.WithLabelValues(mesh).Set(float64(status.Trust.Issuer.NotAfter.Unix()))
	}
}

func (m *metrics) forget(mesh string) {
	m.state.DeletePartialMatch(prometheus.Labels{"mesh": mesh})
	m.notAfter.DeleteLabelValues(mesh)
}
