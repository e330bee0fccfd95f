package help

// accessLogsIntro is the recipe for access logs.
const accessLogsIntro = `An AccessLogRecord has the proxies of workloads log requests, one by one:

  meshctl create accesslogrecord books --workload-namespaces bookinfo \
    --filter 'status>=500' --apply
  meshctl accesslogs books --watch

"meshctl tap WORKLOAD" makes one for a while, shows what comes, and removes it.

Proxies send what they log to the agent of their cluster, which keeps what a
record wants, in memory, until meshctl serve has it. That takes three things.

1. The cluster is reached through its agent, and that takes what proxies send.
   This prints the Service gloo-mesh-agent, too; apply it:

     meshctl cluster register cluster-1 --relay --remote-context cluster-1
     meshctl telemetry enable cluster-1 --door push

   Numbers for "meshctl top" come in through the same door then, and need the
   settings that this command prints.

2. Istio sends access logs. Merge this into its meshConfig, with the tool that
   installed it; AGENT is the ServiceAccount of the agent:

     enableEnvoyAccessLogService: true
     defaultConfig:
       envoyAccessLogService:
         address: gloo-mesh-agent.gloo-mesh:9977
         tlsSettings:
           mode: ISTIO_MUTUAL
           subjectAltNames:
           - spiffe://TRUST-DOMAIN/ns/gloo-mesh/sa/AGENT

   Proxies read it when they start: restart each workload, and gateways, with
   kubectl rollout restart. All requests go to the agent, which filters them.
   Where a Telemetry resource of Istio sets accessLogging, Istio does not look
   at enableEnvoyAccessLogService; add a provider there.

3. Requests. A proxy connects to the agent with its first one.

A record is PENDING until a proxy that it selects was seen to send its log, and
ACCEPTED from then on; its status says what is missing. Connections of TCP are
not logged.

In this way proxies send no headers but user-agent, referer, x-forwarded-for,
x-request-id and the pseudo headers: a filter by another header finds it absent,
and there is nothing to include. For more headers, have Istio send by an
extension provider of type envoyHttpAls with additionalRequestHeadersToLog and
additionalResponseHeadersToLog, to a Service port of the agent whose name begins
with grpc-, with a DestinationRule of mode ISTIO_MUTUAL for it, and a Telemetry
resource that names the provider. That needs no restart.

The agent takes from a pod only its own requests: address, certificate and ID of
the proxy have to be of one pod. It knows the first two before it reads
anything. A pod may have 64 streams, and send 4 MiB a second; messages beyond
that are dropped unread, and counted as one request each.

Users of a registered cluster may write AccessLogRecords in their namespaces
there, where Settings name these in workloadClusterPolicies. Such a record logs
requests of workloads of its own namespace in its own cluster; what it selects
elsewhere is left out, and its status there says so. It is called
NAME.NAMESPACE.CLUSTER. At most 10 of a namespace count, the oldest first, and
an agent knows of 100: those of the management cluster come first. The log goes
to the management plane as before, and who may read it stays the same.

What may be secret is never kept: credentials, cookies and tokens in headers,
and all values in queries of URLs. A record that includes or filters by such a
header is INVALID. At most 200 entries of a pod, and 16 MiB, wait in an agent;
meshctl serve keeps as many of each workload, takes 1000 a second from a
cluster, and counts what is lost. Of what only records in the cluster want, it
takes 100 a second from a namespace, and 500 in all.`
