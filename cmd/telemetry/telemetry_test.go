package telemetry

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/registration"
)

// TestWant: flags become what the KubernetesCluster is to say.
func TestWant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want multiclusterv1alpha1.Telemetry
	}{
		{[]string{"a"}, multiclusterv1alpha1.Telemetry{}},
		{[]string{"a", "--door", "agent"}, multiclusterv1alpha1.Telemetry{Door: "agent"}},
		{[]string{"a", "--door", "push"}, multiclusterv1alpha1.Telemetry{Door: "push"}},
		{[]string{"a", "--prometheus-url", "https://p", "--prometheus-secret", "s", "--match-label", "cluster=a"}, multiclusterv1alpha1.Telemetry{
			Door:       "prometheus",
			Prometheus: &multiclusterv1alpha1.PrometheusSource{Url: "https://p", SecretName: "s", MatchLabels: map[string]multiclusterv1alpha1.MatchedLabel{"cluster": "a"}},
		}},
	} {
		streams, _, _, _ := cmdutil.TestStreams()
		var got *Options
		cmd := newCmdEnable(&cmdutil.Factory{Streams: streams}, func(_ context.Context, o *Options) error { got = o; return nil })
		cmd.SetArgs(c.args)
		require.NoError(t, cmd.ExecuteContext(t.Context()))
		assert.Equal(t, c.want, got.want())
	}
	assert.Equal(t, multiclusterv1alpha1.Telemetry{Door: "none"}, (&Options{Disable: true}).want())
}

// TestPrint: words go to the one stream, and manifests for kubectl to the other.
func TestPrint(t *testing.T) {
	t.Parallel()
	report := &registration.TelemetryReport{
		Report: registration.Report{Cluster: "west", Changes: []registration.Change{
			{Action: registration.Created, Server: "remote", Kind: "ClusterRole", Name: "r"}, {Action: registration.Unchanged, Server: "management", Kind: "KubernetesCluster", Namespace: "gloo-mesh", Name: "west"},
		}},
		After: &multiclusterv1alpha1.Telemetry{Door: "scrape"}, Rights: []map[string]any{{"kind": "ClusterRole"}},
	}
	for dry, want := range map[bool]string{
		false: "Created ClusterRole r (remote).\nUnchanged: KubernetesCluster gloo-mesh/west (management).\n", true: "Would create ClusterRole r (remote).\n",
	} {
		streams, _, out, errs := cmdutil.TestStreams()
		require.NoError(t, (&Options{Streams: streams, DryRun: dry}).print(report))
		assert.Equal(t, "---\nkind: ClusterRole\n", out.String())
		assert.Contains(t, errs.String(), "Cluster west: door scrape; before: not said.")
		assert.Contains(t, errs.String(), want)
		assert.Equal(t, dry, strings.Contains(errs.String(), "Nothing was changed."))
	}
}

// TestPrintPush: the plan names the identity of the agent; what is for kubectl can be applied as it is.
func TestPrintPush(t *testing.T) {
	t.Parallel()
	report := &registration.TelemetryReport{Report: registration.Report{Cluster: "west"}, After: &multiclusterv1alpha1.Telemetry{Door: "push"}, Agent: "agent-of-a-plane"}
	streams, _, out, errs := cmdutil.TestStreams()
	require.NoError(t, (&Options{Streams: streams}).print(report))
	assert.Contains(t, out.String(), "spiffe://TRUST-DOMAIN/ns/gloo-mesh/sa/agent-of-a-plane\n")
	assert.Contains(t, errs.String(), "  3. Restart the pods with a proxy")
	var service corev1.Service
	require.NoError(t, yaml.UnmarshalStrict(out.Bytes(), &service))
	assert.Equal(t, int32(9977), service.Spec.Ports[0].Port)
}
