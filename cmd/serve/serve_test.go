package serve

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
)

func TestNewCmd(t *testing.T) {
	t.Parallel()
	defaults := Options{Version: "dev", Namespace: "gloo-mesh", MetricsBind: "127.0.0.1:9091", DebugBind: "127.0.0.1:9092", LeaderElect: true,
		LeaseDuration: 3500 * time.Millisecond, Webhook: Webhook{Roles: "off"}, Log: cmdutil.LogFlags{Level: "info", Format: "auto"}}
	cases := map[string]struct {
		change      func(*Options)
		wantContext string
		wantErr     string
	}{
		"":                           {},
		"--kubeconfig k --context c": {wantContext: "k c"},
		"-n other --metrics-bind= --debug-bind= --leader-elect=false": {change: func(o *Options) { o.Namespace, o.MetricsBind, o.DebugBind, o.LeaderElect = "other", "", "", false }},
		"--log-level debug --log-format json":                         {change: func(o *Options) { o.Log.Level, o.Log.Format = "debug", "json" }},
		"--webhook-bind :9443 --webhook-address 10.0.0.1 --roles enforce": {change: func(o *Options) {
			o.Webhook = Webhook{Bind: ":9443", Address: "10.0.0.1", Roles: "enforce"}
		}},
		"--webhook-bind :9443 --webhook-url https://host:9443 --roles enforce --webhook-failure-policy Ignore": {change: func(o *Options) {
			o.Webhook = Webhook{Bind: ":9443", URL: "https://host:9443", Roles: "enforce", FailurePolicy: "Ignore"}
		}},
		"--roles enforce":                                                               {wantErr: "give --webhook-bind, too"},
		"--webhook-bind :9443 --roles maybe":                                            {wantErr: "want one of off, warn, enforce"},
		"--webhook-bind :9443 --webhook-url http://host:9443":                           {wantErr: "want https://NAME:PORT"},
		"--webhook-bind :9443 --webhook-url https://127.0.0.1:9443":                     {wantErr: "with a DNS name"},
		"--webhook-bind :9443 --webhook-failure-policy Fail":                            {wantErr: "set it with `meshctl install`"},
		"--webhook-bind :9443 --webhook-url https://host --webhook-address 10.0.0.1":    {wantErr: "exclude each other"},
		"--webhook-bind :9443 --webhook-url https://host --webhook-failure-policy Fail": {wantErr: "for Roles that are enforced"},
		"x": {wantErr: "x"},
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
			want.Streams, got.Config = streams, nil
			assert.Equal(t, want, *got)
		})
	}
}

func TestRunNamesWrongFlags(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	var flag *cmdutil.FlagError
	require.ErrorAs(t, serveRun(t.Context(), &Options{Streams: streams, Log: cmdutil.LogFlags{Level: "loud"}}), &flag)
	require.ErrorContains(t, flag, "debug, info, warn, error")
	require.ErrorAs(t, serveRun(t.Context(), &Options{Streams: streams, Log: cmdutil.LogFlags{Level: "info", Format: "xml"}}), &flag)
	require.ErrorContains(t, flag, "auto, text, json")
	wrong := errors.New("no such context")
	opts := &Options{Streams: streams, Log: cmdutil.LogFlags{Level: "info", Format: "auto"}, Config: func() (*rest.Config, error) { return nil, wrong }}
	require.ErrorIs(t, serveRun(t.Context(), opts), wrong)
}
