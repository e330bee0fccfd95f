// Package agent is the command `meshctl agent`: the part of the management plane that runs on a managed cluster.
package agent

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/agent"
	"github.com/meshctl/meshctl/certs/enroll"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/telemetry"
)

// DefaultTokenFile is where a Pod has its token for istiod: a projected volume with the audience istio-ca.
const DefaultTokenFile = "/var/run/secrets/tokens/istio-token"

// Options of the command.
type Options struct {
	Streams    *cmdutil.Streams
	Config     func() (*rest.Config, error)
	Version    string
	Namespace  string
	HealthBind string
	// IstiodAddress is where istiod is asked for certificates, if not at its Service; TokenFile has the token for it.
	IstiodAddress string
	TokenFile     string
	// VaultServers are the Vaults that VirtualMeshes may name, and VaultAudience is that of the tokens for them.
	VaultServers  []string
	VaultAudience string
	// ClusterID is the name by which istiod knows the cluster.
	ClusterID string
	// PushBind is where proxies may send numbers; IstiodNamespace is that of the istiod which proxies trust.
	PushBind, IstiodNamespace string
	// RelayServer is HOST:PORT of the hub to dial; nobody is dialled if it is empty. RelayName is the DNS name in its certificate.
	RelayServer, RelayName string
	// RelayCluster is the name for which an agent asks that has the token which all agents share.
	RelayCluster string
	// RelayPlane is the UID of the management plane, for certificates of the user's own PKI that do not name it.
	RelayPlane string
	// PlaneNamespace is the namespace of the management plane in its own cluster.
	PlaneNamespace string
	Log            cmdutil.LogFlags
	// Parts look at the mesh and restart its pods.
	Parts func(config *rest.Config, o *Options) (agent.Verifier, agent.Restarter, error)
}

const long = `Runs the agent of a managed cluster until it is interrupted. It gives the meshes
of its cluster the common trust of their VirtualMesh.

For each IssuedCertificate in its namespace it makes a private key, which never
leaves the cluster, has meshctl serve or a HashiCorp Vault sign a certificate
for it, and writes it with the roots that the workloads are to trust to istiod's
Secret cacerts. A certificate of a new root is put to use only when all
workloads trust that root, and a root is dropped only when nobody presents a
certificate of it. What the agent waits for is in the status of the
IssuedCertificate:

  kubectl get issuedcertificates -A -o wide

A Secret cacerts that a user made is left alone, unless the VirtualMesh allows
to replace it. When a mesh leaves its VirtualMesh, the agent goes back to what
was there before, in the same way.

Of several agents in a namespace, one works and the others stand by.

A VirtualMesh may only name a Vault that --vault-server names, and one without
TLS only if its URL here says http. The agent logs in with a token that has the
audience --vault-audience and no other, never with that for the API server. It
is enough to say so to "meshctl cluster register", whose Deployment has these
flags then.

With --relay-server, it also speaks for its cluster: it reports what is there to
meshctl serve, carries out what that writes, and keeps what stands while it is
away. Its first certificate it gets for the token in Secret
relay-identity-token-secret, which meshctl cluster invite makes. With a token
that all agents share, as in Gloo Mesh, it asks for the name of --relay-cluster,
knows the hub by ca.crt in Secret relay-root-tls-secret, and waits until an
administrator approves it. A certificate of your own PKI in Secret
relay-client-tls-secret is used as it is, and read again when it changes.

While the hub wants it (meshctl telemetry enable --door push), the agent takes
at --push-bind what proxies send by Envoy's metrics service. It has a
certificate of istiod in --istiod-namespace, asks each proxy for one, and takes
only numbers that the pod at the other end reports of itself. With the same
certificate, it reads proxies that serve their numbers by mutual TLS.

The address of --health-bind serves /metrics, /healthz and /readyz to everyone
who can reach it.`

const example = `  # In a Pod of the managed cluster
  meshctl agent --health-bind :9093

  # From this machine, with an istiod that runs outside of its cluster
  meshctl agent --context cluster-1 --istiod-address 127.0.0.1:15012 --token-file ./token`

// NewCmd returns the command; runF replaces the run in tests.
func NewCmd(f *cmdutil.Factory, runF func(context.Context, *Options) error) *cobra.Command {
	opts := &Options{Streams: f.Streams, Version: f.Version.Version, Parts: parts}
	kube := &cmdutil.KubeFlags{}
	cmd := &cobra.Command{
		Use:     "agent",
		Short:   "Run the agent of a managed cluster",
		Long:    long,
		Example: example,
		Args:    cmdutil.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts.Config = func() (*rest.Config, error) { return kube.Config(f) }
			var err error
			if opts.VaultServers, err = VaultServers(opts.VaultServers); err != nil {
				return err
			}
			if opts.VaultAudience == "" {
				return cmdutil.FlagErrorf("--vault-audience must not be empty")
			}
			if opts.Namespace == "" {
				return cmdutil.FlagErrorf("--namespace must not be empty")
			}
			if opts.RelayName == "" {
				opts.RelayName = enroll.ServerName(opts.PlaneNamespace)
			}
			if runF != nil {
				return runF(cmd.Context(), opts)
			}
			return agentRun(cmd.Context(), opts)
		},
	}
	kube.AddFlags(cmd)
	flags := cmd.Flags()
	flags.StringVarP(&opts.Namespace, "namespace", "n", snapshot.DefaultNamespace, "`namespace` of the agent, in which the cluster was registered")
	flags.StringVar(&opts.HealthBind, "health-bind", agent.DefaultHealthBind, "`address` of the metrics and health endpoints; empty disables them")
	flags.StringVar(&opts.IstiodAddress, "istiod-address", "", "`address` of istiod's CA, for a control plane outside of the cluster")
	flags.StringVar(&opts.TokenFile, "token-file", DefaultTokenFile, "`file` with the token for istiod's CA")
	flags.StringVar(&opts.PushBind, "push-bind", fmt.Sprintf(":%d", telemetry.AgentPort), "`address` to which proxies send numbers, with --door push; empty for none")
	flags.StringVar(&opts.IstiodNamespace, "istiod-namespace", "istio-system", "`namespace` of the istiod that certifies the agent for --push-bind")
	flags.StringVar(&opts.ClusterID, "cluster-id", "", "`name` by which istiod knows the cluster (default: CLUSTER_ID in istiod's pod, else Kubernetes)")
	flags.StringSliceVar(&opts.VaultServers, "vault-server", nil, "`URL` of a HashiCorp Vault that VirtualMeshes may name")
	flags.StringVar(&opts.VaultAudience, "vault-audience", snapshot.VaultAudience, "`audience` of the tokens that log in to Vault")
	flags.StringVar(&opts.RelayServer, "relay-server", "", "`HOST:PORT` of meshctl serve, to speak for a cluster whose API server it does not reach")
	flags.StringVar(&opts.RelayName, "relay-name", "", "DNS `name` in the certificate of --relay-server (default gloo-mesh-mgmt-server. and --mgmt-namespace)")
	flags.StringVar(&opts.RelayCluster, "relay-cluster", "", "`name` of the cluster, with a token that all agents share or a certificate of your own PKI")
	flags.StringVar(&opts.RelayPlane, "relay-plane", "", "`UID` of the management plane, with a certificate of your own PKI that does not name it")
	flags.StringVar(&opts.PlaneNamespace, "mgmt-namespace", snapshot.DefaultNamespace, "`namespace` of the management plane in its cluster, with --relay-server")
	opts.Log.AddFlags(cmd)
	return cmd
}

// parts are those of a cluster.
func parts(config *rest.Config, o *Options) (agent.Verifier, agent.Restarter, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1 // API servers limit requests with priority and fairness
	client, err := kube.NewClientset(config)
	if err != nil {
		return nil, nil, fmt.Errorf("the agent's API server: %w", err)
	}
	p := &agent.Parts{Client: client, Address: o.IstiodAddress, TokenFile: o.TokenFile, ClusterID: o.ClusterID}
	return p, p, nil
}

func agentRun(ctx context.Context, opts *Options) error {
	log, err := opts.Log.Logger(opts.Streams)
	if err != nil {
		return err
	}
	cmdutil.LimitMemory(log)
	config, err := opts.Config()
	if err != nil {
		return err
	}
	config = rest.CopyConfig(config)
	config.UserAgent = "meshctl-agent/" + opts.Version
	verifier, restarter, err := opts.Parts(config, opts)
	if err != nil {
		return err
	}
	watched := &relayed{}
	options := agent.Options{
		Config: config, Namespace: opts.Namespace, HealthBind: opts.HealthBind, Verifier: verifier,
		VaultServers: opts.VaultServers, VaultAudience: opts.VaultAudience,
		Restarter: restarter, Log: log, Unready: watched.unready, Collector: watched.collector(),
		OnListen: func(address string) { log.Info("serving metrics and health", "address", "http://"+address) },
	}
	if opts.RelayServer != "" { // two processes must not speak for one cluster
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		options.Leading = func(ctx context.Context) error {
			left, err := relayRun(ctx, config, opts, log, watched)
			if left {
				end()
			}
			return err
		}
	}
	return agent.Run(ctx, options)
}
