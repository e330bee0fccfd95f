package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	admissionv1ac "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Certificate is what the webhooks show, and the bundle (PEM) of the CAs that API servers are to trust for it. The bundle has
// the CA of the certificate before, too, as long as that is in use.
type Certificate struct {
	TLS    tls.Certificate
	Bundle []byte
}

// ServeOptions say how a Webhook is served. All but URL, Address, FailurePolicy and OnListen are required.
type ServeOptions struct {
	// Bind is the address to listen at.
	Bind string
	// URL is where API servers reach it, without a path. If empty, they use the Service; who installed meshctl has written
	// the configurations then, and only the CA is set.
	URL string
	// Address is that of this process, to which the Service is to lead; nothing is written if it is empty.
	Address string
	// FailurePolicy is that of Configuration.
	FailurePolicy string
	// Client and Dynamic reach the management cluster.
	Client  kube.Clientset
	Dynamic dynamic.Interface
	// Certificate returns what to show now. It is asked again and again, and renews in time.
	Certificate func(context.Context) (Certificate, error)
	// Changed is signalled after translations.
	Changed <-chan struct{}
	// OnListen, if set, is called with the address.
	OnListen func(net.Addr)
}

const (
	// keepAgain is how often certificate and configuration are looked at; keepSoon is after a failure, or after a new CA was
	// made known: API servers need a moment to learn of it.
	keepAgain, keepSoon = time.Minute, 5 * time.Second
	// followShare is how much of the time is spent at most with following translations: one part of so many.
	followShare = 20
	// caManager owns the CA in a configuration of which somebody else owns the rest.
	caManager = "meshctl-webhook"
	// requestTimeout bounds what one review takes.
	requestTimeout = 10 * time.Second
)

// Run serves until ctx ends.
func (w *Webhook) Run(ctx context.Context, o ServeOptions) error {
	r := &running{ServeOptions: o, webhook: w}
	if err := r.load(ctx); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", o.Bind)
	if err != nil {
		return fmt.Errorf("the admission webhook cannot be served at %s: %w; choose another address with --webhook-bind", o.Bind, err)
	}
	server := r.server()
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, "", "") }()
	w.Log.Info("serving the admission webhook", "address", "https://"+listener.Addr().String(), "roles", string(w.Mode))
	if o.OnListen != nil {
		o.OnListen(listener.Addr())
	}
	defer func() {
		r.withdraw(context.WithoutCancel(ctx))
		_ = server.Close()
	}()
	return r.keep(ctx, ended)
}

// running is a Webhook that is served.
type running struct {
	ServeOptions
	webhook *Webhook
	// shown is what is served, and next what was read last.
	shown atomic.Pointer[tls.Certificate]
	next  Certificate
}

// server shows the certificate of the moment.
func (r *running) server() *http.Server {
	w := r.webhook
	return &http.Server{
		Handler: w.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: time.Minute,
		ErrorLog:  slog.NewLogLogger(w.Log.Handler(), slog.LevelDebug),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.shown.Load(), nil }},
	}
}

// load reads the certificate.
func (r *running) load(ctx context.Context) error {
	next, err := r.Certificate(ctx)
	if err != nil {
		return fmt.Errorf("the admission webhook: its certificate: %w", err)
	}
	r.next = next
	if r.shown.Load() == nil {
		r.shown.Store(&next.TLS)
	}
	return nil
}

// keep keeps certificate, configuration and translation up to date until ctx ends or the server does.
func (r *running) keep(ctx context.Context, ended <-chan error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var followed <-chan time.Time
	changed := r.Changed
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return fmt.Errorf("the admission webhook is no longer served: %w", err)
		case <-timer.C:
			timer.Reset(r.publish(ctx))
		case <-followed:
			changed = r.Changed
		case <-changed:
			began := time.Now()
			if state := r.webhook.State(); state != nil {
				if err := r.webhook.previews.follow(ctx, state.Input); err != nil && ctx.Err() == nil {
					r.webhook.Log.Error("the translation for warnings failed; edits are admitted without them until it succeeds", "error", err)
				}
			}
			// Of translations that come faster, several count as one.
			followed, changed = time.After(min(followShare*time.Since(began), keepAgain)), nil
		}
	}
}

// publish makes the certificate known, and returns when to do so again. One that is renewed is shown only when API servers
// know its CA, unless the one before has expired.
func (r *running) publish(ctx context.Context) time.Duration {
	err := r.load(ctx)
	written := false
	if err == nil {
		written, err = r.configure(ctx)
	}
	if err == nil && r.Address != "" {
		err = r.lead(ctx)
	}
	if err != nil && ctx.Err() == nil {
		r.webhook.Log.Warn("the admission webhook is not fully set up; it is tried again", "error", kube.Message(err))
	}
	if !written || r.expired() {
		shown := r.next.TLS // a copy: what is read next must not show before its CA is known
		r.shown.Store(&shown)
	}
	if written || err != nil {
		return keepSoon
	}
	return keepAgain
}

func (r *running) expired() bool {
	leaf := r.shown.Load().Leaf
	return leaf == nil || r.webhook.Now().After(leaf.NotAfter)
}

func (r *running) configuration() *Configuration {
	return &Configuration{Namespace: r.webhook.Namespace, URL: r.URL, Mode: r.webhook.Mode, FailurePolicy: r.FailurePolicy}
}

// configure has API servers trust the CA. It reports whether something was written.
func (r *running) configure(ctx context.Context) (written bool, err error) {
	client := r.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	var errs []error
	for _, want := range r.configuration().Objects() {
		is, err := client.Get(ctx, *want.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && r.URL == "":
			errs = append(errs, fmt.Errorf("ValidatingWebhookConfiguration %s does not exist; run `meshctl install --webhook` with the same --roles", *want.Name))
			continue
		case err != nil && !apierrors.IsNotFound(err):
			errs = append(errs, fmt.Errorf("ValidatingWebhookConfiguration %s: %w", *want.Name, err))
			continue
		case err == nil && r.trusted(is) && (r.URL == "" || asWanted(is, want)):
			continue
		}
		manager, hook := snapshot.FieldManager, &want.Webhooks[0]
		if r.URL == "" {
			manager = caManager
			own := admissionv1ac.ValidatingWebhook().WithName(*hook.Name).WithClientConfig(admissionv1ac.WebhookClientConfig())
			want = admissionv1ac.ValidatingWebhookConfiguration(*want.Name).WithWebhooks(own)
			hook = &want.Webhooks[0]
		}
		hook.ClientConfig.WithCABundle(r.next.Bundle...)
		if _, err := client.Apply(ctx, want, metav1.ApplyOptions{FieldManager: manager, Force: true}); err != nil {
			errs = append(errs, fmt.Errorf("ValidatingWebhookConfiguration %s: %w", *want.Name, err))
			continue
		}
		written = true
	}
	return written, errors.Join(errs...)
}

// trusted reports whether a configuration has the CA.
func (r *running) trusted(c *admissionv1.ValidatingWebhookConfiguration) bool {
	for i := range c.Webhooks {
		if !bytes.Equal(c.Webhooks[i].ClientConfig.CABundle, r.next.Bundle) {
			return false
		}
	}
	return len(c.Webhooks) > 0
}

// asWanted reports whether a configuration leads here, with the same failure policy.
func asWanted(is *admissionv1.ValidatingWebhookConfiguration, want *admissionv1ac.ValidatingWebhookConfigurationApplyConfiguration) bool {
	hook, wanted := &is.Webhooks[0], &want.Webhooks[0]
	return hook.ClientConfig.URL != nil && *hook.ClientConfig.URL == *wanted.ClientConfig.URL &&
		hook.FailurePolicy != nil && *hook.FailurePolicy == *wanted.FailurePolicy
}

// lead has the Service lead to this process.
func (r *running) lead(ctx context.Context) error {
	address, err := netip.ParseAddr(r.Address)
	if err != nil {
		return fmt.Errorf("address %q of this process: %w; give it by --webhook-address, as $(POD_IP)", r.Address, err)
	}
	family := discoveryv1.AddressTypeIPv4
	if address.Is6() {
		family = discoveryv1.AddressTypeIPv6
	}
	slice := &unstructured.Unstructured{Object: map[string]any{
		"addressType": string(family),
		"endpoints":   []any{map[string]any{"addresses": []any{r.Address}, "conditions": map[string]any{"ready": true}}},
		"ports":       []any{map[string]any{"name": PortName, "port": int64(Port), "protocol": "TCP"}},
	}}
	slice.SetGroupVersionKind(discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"))
	slice.SetName(Service)
	slice.SetLabels(map[string]string{
		discoveryv1.LabelServiceName: Service, discoveryv1.LabelManagedBy: "meshctl.io", snapshot.ManagedByLabel: snapshot.ManagedBy,
	})
	_, err = r.Dynamic.Resource(discoveryv1.SchemeGroupVersion.WithResource("endpointslices")).Namespace(r.webhook.Namespace).
		Apply(ctx, Service, slice, metav1.ApplyOptions{FieldManager: snapshot.FieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("EndpointSlice %s/%s: %w", r.webhook.Namespace, Service, err)
	}
	return nil
}

// withdraw removes the configurations that lead to a URL: nobody answers there from now on.
func (r *running) withdraw(ctx context.Context) {
	if r.URL == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for _, c := range r.configuration().Objects() {
		err := r.Client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, *c.Name, metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			r.webhook.Log.Warn("the configuration of the admission webhook stays, and leads nowhere; delete it", "name", *c.Name, "error", kube.Message(err))
		}
	}
}
