package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/certs/agent"
	"github.com/meshctl/meshctl/cmd/cmdutil"
)

func TestNewCmd(t *testing.T) {
	t.Parallel()
	defaults := Options{Version: "dev", Namespace: "gloo-mesh", HealthBind: "127.0.0.1:9093", TokenFile: DefaultTokenFile, VaultServers: []string{}, VaultAudience: "vault", PushBind: ":9977", IstiodNamespace: "istio-system", RelayName: "gloo-mesh-mgmt-server.gloo-mesh",
		Log: cmdutil.LogFlags{Level: "info", Format: "auto"}}
	cases := map[string]struct {
		change      func(*Options)
		wantContext string
		wantErr     string
	}{
		"":                           {},
		"--kubeconfig k --context c": {wantContext: "k c"},
		"-n other --health-bind= --istiod-address h:1 --token-file f": {change: func(o *Options) {
			o.Namespace, o.HealthBind, o.IstiodAddress, o.TokenFile, o.RelayName = "other", "", "h:1", "f", "gloo-mesh-mgmt-server.other"
		}},
		"--log-level debug --log-format json": {change: func(o *Options) { o.Log = cmdutil.LogFlags{Level: "debug", Format: "json"} }},
		"--vault-server HTTPS://Vault:443/,http://b:8200 --vault-audience a": {change: func(o *Options) {
			o.VaultServers, o.VaultAudience = []string{"http://b:8200", "https://vault"}, "a"
		}},
		"--vault-server vault:8200": {wantErr: "is not the URL of a Vault"},
		"--vault-audience=":         {wantErr: "--vault-audience must not be empty"},
		"--namespace=":              {wantErr: "--namespace must not be empty"},
		"x":                         {wantErr: "x"},
	}
	for line, c := range cases {
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			streams, _, _, _ := cmdutil.TestStreams()
			f := cmdutil.NewFactory(streams)
			f.Version.Version = "dev"
			asked := ""
			f.Config = func(kubeconfig, context string) (*rest.Config, error) {
				asked = strings.TrimSpace(kubeconfig + " " + context)
				return &rest.Config{}, nil
			}
			var got *Options
			cmd := NewCmd(f, func(_ context.Context, o *Options) error { got = o; return nil })
			cmd.SilenceErrors, cmd.SilenceUsage = true, true
			cmd.SetArgs(strings.Fields(line))
			err := cmd.Execute()
			if c.wantErr != "" {
				require.ErrorContains(t, err, c.wantErr)
				return
			}
			require.NoError(t, err)
			want := defaults
			if c.change != nil {
				c.change(&want)
			}
			_, err = got.Config()
			require.NoError(t, err)
			assert.Equal(t, c.wantContext, asked)
			want.RelayName, want.PlaneNamespace = "gloo-mesh-mgmt-server.gloo-mesh", "gloo-mesh"
			want.Streams, got.Config, got.Parts = streams, nil, nil
			assert.Equal(t, want, *got)
		})
	}
}

func TestRunNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	var flag *cmdutil.FlagError
	require.ErrorAs(t, agentRun(t.Context(), &Options{Streams: streams, Log: cmdutil.LogFlags{Level: "loud"}}), &flag)
	wrong := errors.New("no such context")
	opts := &Options{Streams: streams, Log: cmdutil.LogFlags{Level: "info", Format: "auto"}, Config: func() (*rest.Config, error) { return nil, wrong }}
	require.ErrorIs(t, agentRun(t.Context(), opts), wrong)
	opts.Config = func() (*rest.Config, error) { return &rest.Config{Host: "https://127.0.0.1:1"}, nil }
	opts.Parts = func(*rest.Config, *Options) (agent.Verifier, agent.Restarter, error) { return nil, nil, wrong }
	require.ErrorIs(t, agentRun(t.Context(), opts), wrong)
	opts.Parts, opts.HealthBind, opts.Namespace = parts, "nowhere:-1", "gloo-mesh"
	require.ErrorContains(t, agentRun(t.Context(), opts), "--health-bind")
}
