package cluster

import (
	"bytes"
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/engine/registration"
)

// testFactory knows the contexts of the map.
func testFactory(contexts map[string]*rest.Config) (f *cmdutil.Factory, out, errs *bytes.Buffer) {
	streams, _, out, errs := cmdutil.TestStreams()
	f = cmdutil.NewFactory(streams)
	f.Now = time.Now
	f.Config = func(_, name string) (*rest.Config, error) {
		if config := contexts[name]; config != nil {
			return config, nil
		}
		return nil, cmdutil.UnreachableErrorf("has no context %q", name)
	}
	return f, out, errs
}

// execute runs a command with arguments.
func execute(t *testing.T, cmd *cobra.Command, args ...string) error {
	t.Helper()
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	return cmd.ExecuteContext(t.Context())
}

func TestNewCmdRegister(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		args    []string
		want    RegisterOptions
		wantErr string
	}{
		"defaults": {
			args: []string{"cluster-2", "--remote-context", "c2"},
			want: RegisterOptions{Name: "cluster-2", RemoteContext: "c2", ClusterDomain: "cluster.local",
				management: management{namespace: "gloo-mesh"}},
		},
		"everything": {
			args: []string{"cluster-2", "--kubeconfig", "k", "--mgmt-kubeconfig", "m", "--remote-context", "c2", "--mgmt-context", "c1", "--mgmt-namespace", "mn",
				"--remote-namespace", "rn", "--cluster-domain", "corp", "--api-server-address", "1.2.3.4", "--token-ttl", "1h", "-o", "json"},
			want: RegisterOptions{Name: "cluster-2", RemoteContext: "c2", RemoteNamespace: "rn", ClusterDomain: "corp", APIServerAddress: "1.2.3.4",
				TokenTTL: time.Hour, management: management{kubeconfig: "k", mgmtKubeconfig: "m", context: "c1", namespace: "mn"}},
		},
		"vaults": {
			args: []string{"cluster-2", "--remote-context", "c2", "--vault-server", "HTTPS://Vault.example.com:443/", "--vault-audience", "a"},
			want: RegisterOptions{Name: "cluster-2", RemoteContext: "c2", ClusterDomain: "cluster.local",
				VaultServers: []string{"https://vault.example.com"}, VaultAudience: "a", management: management{namespace: "gloo-mesh"}},
		},
		"no vault": {
			args: []string{"cluster-2", "--remote-context", "c2", "--vault-server="},
			want: RegisterOptions{Name: "cluster-2", RemoteContext: "c2", ClusterDomain: "cluster.local",
				VaultServers: []string{}, management: management{namespace: "gloo-mesh"}},
		},
		"relay": {
			args: []string{"cluster-2", "--remote-context", "c2", "--relay", "--relay-server", "relay.example.com:9900", "--timeout", "1m"},
			want: RegisterOptions{Name: "cluster-2", RemoteContext: "c2", ClusterDomain: "cluster.local", Relay: true, RelayServer: "relay.example.com:9900",
				Wait: time.Minute, management: management{namespace: "gloo-mesh"}},
		},
		"an address of no relay": {args: []string{"cluster-2", "--remote-context", "c2", "--relay-server", "a:1"}, wantErr: "--relay-server needs --relay"},
		"a token of a relay":     {args: []string{"cluster-2", "--remote-context", "c2", "--relay", "--token-ttl", "1h"}, wantErr: "--token-ttl is about a credential"},
		"renew a relay":          {args: []string{"--renew", "--relay"}, wantErr: "does not go with --relay"},
		"renew a vault":          {args: []string{"--renew", "--vault-server", "https://v"}, wantErr: "does not go with --vault-server"},
		"no URL":                 {args: []string{"cluster-2", "--remote-context", "c2", "--vault-server", "vault:8200"}, wantErr: "is not the URL of a Vault"},
		"no name":                {args: []string{"--remote-context", "c2"}, wantErr: "NAME is required"},
		"neither":                {wantErr: "NAME and --remote-context are required"},
		"no context":             {args: []string{"cluster-2"}, wantErr: "--remote-context is required"},
		"renew": {
			args: []string{"--renew", "--mgmt-context", "c1"},
			want: RegisterOptions{Renew: true, ClusterDomain: "cluster.local", management: management{context: "c1", namespace: "gloo-mesh"}},
		},
		"renew one":     {args: []string{"--renew", "cluster-2"}, wantErr: "does not go with NAME"},
		"renew another": {args: []string{"--renew", "--token-ttl", "1h"}, wantErr: "does not go with --token-ttl"},
		"a dot":         {args: []string{"a.b", "--remote-context", "c2"}, wantErr: "lower-case letters, digits and hyphens"},
		"two names":     {args: []string{"a", "b", "--remote-context", "c2"}, wantErr: `unexpected argument "b"`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, _ := testFactory(nil)
			var got *RegisterOptions
			err := execute(t, newCmdRegister(f, func(_ context.Context, o *RegisterOptions) error { got = o; return nil }), c.args...)
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(err))
				assert.Nil(t, got)
				return
			}
			require.NoError(t, err)
			plain := *got
			plain.Streams, plain.Output, plain.factory = nil, cmdutil.OutputFlag{}, nil
			c.want.Wait = cmp.Or(c.want.Wait, registration.DefaultRelayWait)
			assert.Equal(t, c.want, plain)
		})
	}
}

func TestNewCmdDeregister(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		args    []string
		want    DeregisterOptions
		wantErr string
	}{
		"defaults": {args: []string{"cluster-2", "--yes"}, want: DeregisterOptions{Name: "cluster-2", Yes: true, management: management{namespace: "gloo-mesh"}}},
		"everything": {
			args: []string{"cluster-2", "--force", "--yes", "--remote-context", "c2", "--remote-namespace", "rn", "--mgmt-context", "c1", "--mgmt-namespace", "mn", "--kubeconfig", "k"},
			want: DeregisterOptions{Name: "cluster-2", Force: true, Yes: true, RemoteContext: "c2", RemoteNamespace: "rn",
				management: management{kubeconfig: "k", context: "c1", namespace: "mn"}},
		},
		"a dot":         {args: []string{"a.b"}, wantErr: "lower-case letters, digits and hyphens"},
		"no name":       {wantErr: "NAME is required"},
		"nobody to ask": {args: []string{"cluster-2"}, wantErr: "set --yes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, _ := testFactory(nil)
			var got *DeregisterOptions
			err := execute(t, newCmdDeregister(f, func(_ context.Context, o *DeregisterOptions) error { got = o; return nil }), c.args...)
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				return
			}
			require.NoError(t, err)
			plain := *got
			plain.Streams, plain.Output, plain.factory = nil, cmdutil.OutputFlag{}, nil
			assert.Equal(t, c.want, plain)
		})
	}
}

func TestNewCmdRelease(t *testing.T) {
	t.Parallel()
	f, _, _ := testFactory(nil)
	var got *ReleaseOptions
	run := func(_ context.Context, o *ReleaseOptions) error { got = o; return nil }
	require.NoError(t, execute(t, newCmdRelease(f, run), "cluster-2", "--code", "ab", "--mgmt-context", "c1"))
	assert.Equal(t, "cluster-2", got.Name)
	assert.Equal(t, "ab", got.Code)
	assert.Equal(t, "c1", got.context)
	require.ErrorContains(t, execute(t, newCmdRelease(f, run)), "NAME is required")
	require.ErrorContains(t, execute(t, newCmdRelease(f, run), "a.b"), "lower-case letters")
}

func TestNewCmdList(t *testing.T) {
	t.Parallel()
	f, _, _ := testFactory(nil)
	var got *ListOptions
	run := func(_ context.Context, o *ListOptions) error { got = o; return nil }
	require.NoError(t, execute(t, newCmdList(f, run), "--timeout", "1s", "-o", "yaml", "--mgmt-context", "c1"))
	assert.Equal(t, time.Second, got.Timeout)
	assert.Equal(t, cmdutil.FormatYAML, got.Output.Format)
	assert.Equal(t, "c1", got.context)
	assert.Equal(t, "gloo-mesh", got.namespace)

	require.ErrorContains(t, execute(t, newCmdList(f, run), "name"), "takes no arguments")
	require.ErrorContains(t, execute(t, newCmdList(f, run), "-o", "xml"), "must be one of table, wide, json, yaml, name, jsonpath=")
	require.ErrorContains(t, execute(t, newCmdList(f, run), "--timeout", "0s"), "--timeout")
}
