package webhook

import (
	"context"
	"crypto/tls"
	"net/http"
	"time"
)

// Running is a Webhook that is served step by step.
type Running struct{ r *running }

// KeepSoon and KeepAgain are after what time Publish is called again, where something was written and where nothing was.
const KeepSoon, KeepAgain = keepSoon, keepAgain

// NewRunning returns one that has read its certificate.
func NewRunning(ctx context.Context, w *Webhook, o ServeOptions) (Running, error) {
	r := &running{webhook: w, ServeOptions: o}
	return Running{r}, r.load(ctx)
}

// Publish makes the certificate of the moment known.
func (r Running) Publish(ctx context.Context) time.Duration { return r.r.publish(ctx) }

// Server shows what is Shown.
func (r Running) Server() *http.Server { return r.r.server() }

// Shown is what API servers see.
func (r Running) Shown() *tls.Certificate { return r.r.shown.Load() }
