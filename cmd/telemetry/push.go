package telemetry

// pushSteps are what makes proxies send numbers to the agent, in their order.
var pushSteps = []string{
	"Apply the Service below, in the namespace of the agent, if that is not gloo-mesh.",
	"Merge the settings below into meshConfig of Istio, with the tool that installed it; TRUST-DOMAIN is that of the mesh.",
	"Restart the pods with a proxy, which read these settings when they start: kubectl rollout restart, one workload after the other; gateways, too.",
	`See who sends, within two minutes: "meshctl top workloads" says of each other workload that its proxy sends nothing.`,
}

// pushPlan are the Service of the agent, and what Istio has to be told, with AGENT for its ServiceAccount. The names of statistics are as in Istio's own names, before tags.
const pushPlan = `---
apiVersion: v1
kind: Service
metadata:
  name: gloo-mesh-agent
  namespace: gloo-mesh
spec:
  selector:
    app.kubernetes.io/name: meshctl-agent
  ports:
  - name: tls-metrics
    port: 9977
# Settings of Istio, not for kubectl apply:
#
# meshConfig:
#   defaultConfig:
#     envoyMetricsService:
#       address: gloo-mesh-agent.gloo-mesh:9977
#       tlsSettings:
#         mode: ISTIO_MUTUAL
#         subjectAltNames:
#         - spiffe://TRUST-DOMAIN/ns/gloo-mesh/sa/AGENT
#     proxyStatsMatcher:
#       inclusionRegexps:
#       - cluster\.(outbound|inbound|PassthroughCluster|BlackHoleCluster).*;\.(upstream_rq_([1-5]xx|403|time|timeout|per_try_timeout|rx_reset|pending_overflow|retry)|upstream_cx_(total|connect_fail|none_healthy|destroy_remote_with_active_rq|rx_bytes_total|tx_bytes_total)|ssl\.(handshake|connection_error|fail_verify_error|fail_verify_san))
#       - http\..*\.(no_cluster|no_route|rbac\..*)
`
