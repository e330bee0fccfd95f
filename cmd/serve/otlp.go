package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	semconv "go.opentelemetry.io/otel/semconv/v1.39.0"
)

// The variables of OpenTelemetry that are looked at here; its library reads these and others (opentelemetry.io: OTLP Exporter Configuration).
const (
	otlpEndpoint, otlpMetricsEndpoint = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	otlpProtocol, otlpMetricsProtocol = "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"
	otlpDisabled                      = "OTEL_SDK_DISABLED"
)

// lastExport is how long the last values may take to be sent when the process ends.
const lastExport = time.Second

// exporter sends the metrics of this process to whom the environment names; see serve.Options. It is nil if the environment names nobody, and
// an error if it names somebody who cannot be meant.
func exporter(ctx context.Context, version string, log *slog.Logger) (func(ctx context.Context, identity string, metrics prometheus.Gatherer), error) {
	to, err := receiver(os.Getenv)
	if to == "" || err != nil {
		return nil, err
	}
	otel.SetLogger(logr.FromSlogHandler(log.Handler())) // which says what else is wrong in the environment
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		log.Warn("metrics were not sent by OTLP; trying again", "to", to, "error", err)
	}))
	out, err := otlpmetrichttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("metrics to %s: %w", to, err)
	}
	return func(ctx context.Context, identity string, metrics prometheus.Gatherer) {
		// What the environment says of this process (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES) goes first.
		of, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName("meshctl"), semconv.ServiceVersion(version), semconv.ServiceInstanceID(identity)), resource.WithFromEnv())
		if err != nil {
			log.Warn("attributes of what is sent by OTLP were not read", "error", err)
		}
		reader := metric.NewPeriodicReader(out, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(metrics))))
		provider := metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(of))
		log.Info("sending metrics by OTLP", "to", to)
		<-ctx.Done()
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastExport)
		defer cancel()
		if err := provider.Shutdown(last); err != nil {
			log.Warn("the last metrics were not sent by OTLP", "to", to, "error", err)
		}
	}, nil
}

// receiver is the URL in the environment to which metrics are sent; empty if there is none.
func receiver(getenv func(string) string) (string, error) {
	if strings.EqualFold(strings.TrimSpace(getenv(otlpDisabled)), "true") {
		return "", nil
	}
	first := func(names ...string) (name, value string) {
		for _, name = range names {
			if value = strings.TrimSpace(getenv(name)); value != "" {
				return name, value
			}
		}
		return "", ""
	}
	name, text := first(otlpMetricsEndpoint, otlpEndpoint)
	if text == "" {
		return "", nil
	}
	to, err := url.Parse(text)
	switch {
	case err != nil: // its text has all of the URL
		err = errors.New("it is no URL")
	case to.Scheme != "http" && to.Scheme != "https" || to.Host == "":
		err = errors.New("want http://HOST:PORT or https://HOST:PORT")
	case to.User != nil:
		err = errors.New("it has a user; credentials belong into OTEL_EXPORTER_OTLP_HEADERS")
	case to.RawQuery != "" || to.Fragment != "":
		err = errors.New("it must not have a query or fragment")
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if name, protocol := first(otlpMetricsProtocol, otlpProtocol); protocol != "" && protocol != "http/protobuf" {
		return "", fmt.Errorf("%s is %q: metrics are sent by http/protobuf only; set %s to that, and %s to the port for HTTP, mostly 4318", name, protocol, otlpMetricsProtocol, otlpMetricsEndpoint)
	}
	return to.String(), nil
}
