package help

import "embed"

// monitoringIntro is about Prometheus, Grafana and OpenTelemetry.
const monitoringIntro = `"meshctl serve" serves metrics at port 9091, path /metrics: what it does, the
state of clusters, policies and roots, and what requests do, as "meshctl top"
shows it. "meshctl install --service-monitor" makes a ServiceMonitor, by which
the Prometheus operator finds them.

Files to start from, which nothing installs: rules and dashboards belong to who
runs Prometheus, and often into Git.

%s
Print one with "meshctl help monitoring NAME", and change names and thresholds:

  meshctl help monitoring rules.yaml | kubectl apply -f -

The same metrics are sent by OTLP over HTTP, once a minute, where the
environment of "meshctl serve" names a receiver, by the variables of
OpenTelemetry:

  OTEL_EXPORTER_OTLP_ENDPOINT      http://collector:4318, or https:
  OTEL_EXPORTER_OTLP_HEADERS       such as authorization=Bearer%%20TOKEN
  OTEL_EXPORTER_OTLP_CERTIFICATE   file with the CA of the receiver
  OTEL_METRIC_EXPORT_INTERVAL      in milliseconds

  kubectl set env -n gloo-mesh deployment/meshctl \
    OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318

"meshctl install" and "meshctl upgrade" leave them as they are.

What requests do is counted only where serve may read proxies; "meshctl top
--help" says what that takes. Only the instance that leads counts, so that a
change of the leader looks to Prometheus as the restart of a counter.`

// monitoringFiles are the files that the topic names.
//
//go:embed monitoring
var monitoringFiles embed.FS

// monitoringShort says what each of them is.
var monitoringShort = map[string]string{
	"dashboard.json": "a dashboard for Grafana: import it, and choose the data source",
	"rules.yaml":     "alerts: clusters, roots, policies, shifts and failures, as a PrometheusRule",
}

func monitoringTopic() topic {
	return topicWithFiles("monitoring", "Prometheus, Grafana, OTLP: metrics, alerts and a dashboard", monitoringIntro, monitoringFiles, monitoringShort)
}
