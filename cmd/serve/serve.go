// Package serve is the command `meshctl serve`: the management plane itself.
package serve

import (
	"context"
	"net/http"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/enroll"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/serve"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/telemetry"
)

// Options of the command.
type Options struct {
	Streams     *cmdutil.Streams
	Config      func() (*rest.Config, error)
	Version     string
	Namespace   string
	MetricsBind string
	DebugBind   string
	LeaderElect bool
	// LeaseDuration is how long a leader keeps the Lease without renewing it.
	LeaseDuration time.Duration
	// DisallowIntersecting refuses policies that users' own objects intersect with.
	DisallowIntersecting bool
	// RelayBind is the address that agents dial; none can if it is empty. RelayAdvertise is HOST:PORT of it for other replicas, and
	// RelayNames are the DNS names by which agents know it.
	RelayBind, RelayAdvertise string
	RelayNames                []string
	Webhook                   Webhook
	Log                       cmdutil.LogFlags
}

const long = `Runs the management plane until it is interrupted. It watches the management
cluster and every registered cluster, discovers meshes, workloads and
destinations, translates policies, and writes the result to all clusters.

A cluster that cannot be read is left unchanged and does not delay the others.
You can register and deregister clusters while meshctl serve runs. If several
instances run against one management cluster, one of them works and the others
stand by.

The address of --metrics-bind serves /metrics, /healthz and /readyz to everyone
who can reach it, and /traffic: what the proxies of workloads count, where the
account of meshctl serve may read them; see meshctl top. What /metrics says is
also sent by OTLP, over HTTP, to whom OTEL_EXPORTER_OTLP_ENDPOINT in the
environment names; see "meshctl help monitoring".

Agents of clusters whose API server cannot be reached dial the address of
--relay-bind; see meshctl agent --relay-server. All instances accept them, and
pass them on to the one that works, by its --relay-advertise.

API servers ask the admission webhook at the address of --webhook-bind about
each policy that is written, dry runs included, and kubectl prints its warnings:
which calls the policy ends, what conflicts with it. Nothing is rejected for
that. With --roles enforce, what no Role allows is rejected; see "meshctl help
roles". In a cluster, "meshctl install --webhook" sets all of this up.

The address of --debug-bind serves /debug/snapshot with the latest translation,
and answers the questions of the REST API of Gloo Mesh 1.x, which are sent by
POST: /v0/observability/metrics/node, metrics/edge and logs beside it. A request
needs a bearer token of the management cluster whose user has the verb get, or
post, on its path, as from the ClusterRole in the examples. For that, the
identity of meshctl serve needs the ClusterRole system:auth-delegator. The
address has no TLS: keep it on this machine, and reach it with kubectl
port-forward from others.`

const example = `  # Use the current context of the kubeconfig
  meshctl serve

  # Stand by on a laptop, beside an instance that uses the default addresses
  meshctl serve --context kind-mgmt --metrics-bind 127.0.0.1:9191 --debug-bind 127.0.0.1:9192 --log-level debug

  # Send metrics to an OpenTelemetry collector, too
  OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318 meshctl serve

  # Allow a ServiceAccount to read the latest translation, and read it
  kubectl create serviceaccount meshctl-debug -n gloo-mesh
  kubectl create clusterrole meshctl-debug --verb get,post \
    --non-resource-url '/debug/snapshot,/v0/observability/*'
  kubectl create clusterrolebinding meshctl-debug \
    --clusterrole meshctl-debug --serviceaccount gloo-mesh:meshctl-debug
  TOKEN=$(kubectl create token meshctl-debug -n gloo-mesh)
  curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:9092/debug/snapshot

  # Ask what the workloads of a namespace sent and got in the last minutes
  curl -H "Authorization: Bearer $TOKEN" \
    http://127.0.0.1:9092/v0/observability/metrics/node?pretty \
    -d '{"nodeSelectors":[{"workloadSelector":{"kubeWorkloadMatcher":
         {"namespaces":["bookinfo"]}}}],"window":"300s","step":"60s"}'`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Version: f.Version.Version}
	kube := &cmdutil.KubeFlags{}
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Run the management plane",
		Long:    long,
		Example: example,
		Args:    cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.Config = func() (*rest.Config, error) { return kube.Config(f) }
			if opts.LeaseDuration < time.Second {
				return cmdutil.FlagErrorf("--lease-duration must be at least 1s")
			}
			if err := opts.Webhook.check(); err != nil {
				return err
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return serveRun(cmd.Context(), opts)
		},
	}
	kube.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&opts.Namespace, "namespace", "n", snapshot.DefaultNamespace, "`namespace` of the management plane")
	flags.StringVar(&opts.MetricsBind, "metrics-bind", serve.DefaultMetricsBind, "`address` of the metrics and health endpoints; empty disables them")
	flags.StringVar(&opts.DebugBind, "debug-bind", serve.DefaultDebugBind, "`address` of the debug endpoints, which need a token; empty disables them")
	flags.BoolVar(&opts.LeaderElect, "leader-elect", true, "elect one instance with a Lease; the others stand by")
	flags.DurationVar(&opts.LeaseDuration, "lease-duration", serve.DefaultLeaseDuration, "how long a leader that does not renew the Lease keeps it; longer survives longer stalls of the API server")
	flags.BoolVar(&opts.DisallowIntersecting, "disallow-intersecting-config", false, "reject TrafficPolicies and AccessPolicies that intersect with hand-written objects in the namespace of the service or the root namespace of the mesh, instead of warning")
	flags.StringVar(&opts.RelayBind, "relay-bind", "", "`address` that agents dial, such as :9900; empty lets none come in")
	flags.StringVar(&opts.RelayAdvertise, "relay-advertise", "", "`HOST:PORT` of --relay-bind for the other instances, such as $(POD_IP):9900")
	flags.StringSliceVar(&opts.RelayNames, "relay-name", nil, "DNS `name` in the certificate that agents are shown (default: gloo-mesh-mgmt-server.NAMESPACE, also with .svc)")
	opts.Webhook.addFlags(cmd)
	opts.Log.AddFlags(cmd)
	return cmd
}

func serveRun(ctx context.Context, opts *Options) error {
	log, err := opts.Log.Logger(opts.Streams)
	if err != nil {
		return err
	}
	cmdutil.LimitMemory(log)
	config, err := opts.Config()
	if err != nil {
		return err
	}
	export, err := exporter(ctx, opts.Version, log)
	if err != nil {
		return err
	}
	var proxies telemetry.Telemetry
	var relay *serve.Relay
	if opts.RelayBind != "" {
		names := opts.RelayNames
		if len(names) == 0 {
			names = []string{enroll.ServerName(opts.Namespace), enroll.ServerName(opts.Namespace) + ".svc"}
		}
		relay = &serve.Relay{Bind: opts.RelayBind, Advertise: opts.RelayAdvertise, Identify: agents(names, log), Readings: &proxies}
	}
	runnables := []serve.Runnable{
		{Name: "certificates", Run: certificates},
		{Name: "telemetry", Run: func(ctx context.Context, t serve.LeaderContext) error {
			return proxies.Run(ctx, telemetry.Options{
				State: t.State, Clusters: t.Clusters, Secret: secretOf(t.Management, t.Namespace), Metrics: t.Metrics, Log: t.Log,
				Logging: t.SetLogging,
			})
		}},
	}
	if opts.Webhook.Bind != "" {
		runnables = append(runnables, serve.Runnable{Name: "webhook", Run: opts.Webhook.run})
	}
	return serve.Run(ctx, serve.Options{
		Relay:      relay,
		Management: config, Namespace: opts.Namespace, MetricsBind: opts.MetricsBind, DebugBind: opts.DebugBind,
		LeaderElect: opts.LeaderElect, LeaseDuration: opts.LeaseDuration, RefuseIntersecting: opts.DisallowIntersecting,
		Log: log, UserAgent: "meshctl/" + opts.Version, Version: opts.Version,
		Pages:     map[string]http.Handler{telemetry.Path: &proxies, telemetry.LogsPath: telemetry.LogsPage{Of: &proxies}},
		Guarded:   proxies.REST(),
		Runnables: runnables,
		Export:    export,
	})
}
