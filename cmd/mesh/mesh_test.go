package mesh

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/schematest"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/registration"
)

func TestNewCmdRestart(t *testing.T) {
	t.Parallel()
	streams, _, _, _ := cmdutil.TestStreams()
	f := cmdutil.NewFactory(streams)
	var got *RestartOptions
	run := func(args ...string) error {
		cmd := newCmdRestart(f, func(_ context.Context, o *RestartOptions) error { got = o; return nil })
		cmd.SetArgs(args)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return cmd.ExecuteContext(t.Context())
	}
	require.NoError(t, run("istiod", "--namespace", "a,b", "--control-plane-only", "--remote-context", "c2"))
	assert.Equal(t, "istiod", got.Mesh)
	assert.Equal(t, []string{"a", "b"}, got.Namespaces)
	assert.True(t, got.ControlPlaneOnly)
	assert.Equal(t, "gloo-mesh", got.MgmtNamespace)
	assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(run()))
	assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(run("istiod", "--at-once", "-1")))
}

// meshMade is what discovery would have found.
const meshMade = `
apiVersion: discovery.mesh.gloo.solo.io/v1
kind: Mesh
metadata: {name: istiod, namespace: gloo-mesh}
spec:
  istio:
    installation: {namespace: istio-system, cluster: cluster-1, podLabels: {app: istiod}}
`

func deploy(t *testing.T, api kubernetes.Interface, namespace, name string, containers ...corev1.Container) {
	t.Helper()
	labels, injected := map[string]string{"app": name}, map[string]string{}
	if len(containers) > 1 {
		injected["sidecar.istio.io/status"] = "{}" // as Istio's injector marks what it made
	}
	_, err := api.AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: injected}, Spec: corev1.PodSpec{Containers: containers}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	waittest.NoError(t, name+" is available", func() error {
		d, err := api.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas < 1 {
			err = assert.AnError
		}
		return err
	})
}

func TestRestartRun(t *testing.T) {
	shard.Only(t, shard.Clusters)
	t.Parallel()
	config, err := sandboxtest.Clusters(t, 1)[0].Config()
	require.NoError(t, err)
	api := sandboxtest.Clientset(t, config)
	_, err = registration.Register(t.Context(), registration.Options{Name: "cluster-1", RemoteConfig: config, MgmtConfig: config})
	require.NoError(t, err)
	sandboxtest.Apply(t, config, []byte(meshMade))
	for _, namespace := range []string{"istio-system", "shop", "bank"} {
		sandboxtest.MakeNamespace(t, config, namespace)
	}
	proxy := corev1.Container{Name: "istio-proxy", Image: "proxy", Env: []corev1.EnvVar{{Name: "CA_ADDR", Value: "istiod.istio-system.svc:15012"}}}
	app := corev1.Container{Name: "app", Image: "app"}
	deploy(t, api, "istio-system", "istiod", corev1.Container{Name: "discovery", Image: "pilot"})
	deploy(t, api, "istio-system", "gateway", proxy)
	deploy(t, api, "shop", "front", app, proxy)
	deploy(t, api, "bank", "ledger", app, proxy)
	deploy(t, api, "bank", "outside", app)

	streams, _, out, errs := cmdutil.TestStreams()
	f := cmdutil.NewFactory(streams)
	f.Config = func(_, name string) (*rest.Config, error) {
		if name == "typo" {
			return nil, cmdutil.UnreachableErrorf("has no context %q", name)
		}
		return config, nil
	}
	f.Contexts = func(string) ([]string, string, error) { return []string{"typo", "there"}, "there", nil }
	run := func(ctx context.Context, args ...string) error {
		out.Reset()
		errs.Reset()
		cmd := NewCmd(f)
		cmd.SetArgs(append([]string{"restart"}, args...))
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		return cmd.ExecuteContext(ctx)
	}

	// What cannot be, and what would be.
	assert.Equal(t, cmdutil.ExitUsage, cmdutil.ExitCode(run(t.Context(), "istiod")), "nobody to ask")
	assert.Equal(t, cmdutil.ExitNotFound, cmdutil.ExitCode(run(t.Context(), "nosuch", "--yes")))
	assert.Equal(t, cmdutil.ExitUnreachable, cmdutil.ExitCode(run(t.Context(), "istiod", "--yes", "--remote-context", "typo")))
	require.NoError(t, run(t.Context(), "istiod", "--dry-run"))
	assert.Regexp(t, `(?s)control plane +Deployment +istio-system +istiod +1.*gateway +Deployment +istio-system +gateway +1.*workload +Deployment +bank +ledger +1.*workload +Deployment +shop +front +1`, out.String())
	assert.NotContains(t, out.String(), "outside")
	require.NoError(t, run(t.Context(), "istiod", "--dry-run", "-o", "json", "--namespace", "bank"))
	schematest.Valid(t, "mesh restart", out.String())
	var rows []Controller
	require.NoError(t, json.Unmarshal(out.Bytes(), &rows))
	assert.Equal(t, []Controller{{"workload", "Deployment", "bank", "ledger", 1}}, rows)
	assert.Empty(t, restarted(t, api))

	// Interrupted as soon as something was restarted.
	ctx, cancel := context.WithCancel(t.Context())
	streams.Err = &trigger{errs, "restarts", cancel}
	err = run(ctx, "istiod", "--yes", "--remote-context", "there")
	streams.Err = errs
	assert.Equal(t, cmdutil.ExitInterrupted, cmdutil.ExitCode(err), "%v", err)
	assert.Equal(t, "restarted Deployment istio-system/istiod\n", out.String())
	assert.Contains(t, errs.String(), "Interrupted. Restarted: 1, of which some may still roll; left: 3. Run the command again")

	// Again: the rest, and then nothing.
	require.NoError(t, run(t.Context(), "istiod", "--yes"))
	assert.Equal(t, "restarted Deployment istio-system/gateway\nrestarted Deployment bank/ledger\nrestarted Deployment shop/front\n", out.String())
	first := restarted(t, api)
	assert.Len(t, first, 4)
	require.NoError(t, run(t.Context(), "istiod", "--yes"))
	assert.Empty(t, out.String())
	assert.Contains(t, errs.String(), "All has been restarted for what is in the Secret cacerts")
	assert.Equal(t, first, restarted(t, api))
	require.NoError(t, run(t.Context(), "istiod", "--yes", "--force", "--control-plane-only"))
	assert.Equal(t, "restarted Deployment istio-system/istiod\n", out.String())
}

// restarted are the causes by Deployment.
func restarted(t *testing.T, api kubernetes.Interface) map[string]string {
	t.Helper()
	list, err := api.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	out := map[string]string{}
	for _, d := range list.Items {
		if at := d.Spec.Template.Annotations["kubectl.kubernetes.io/restartedAt"]; at != "" {
			out[d.Namespace+"/"+d.Name] = d.Annotations["deployment.kubernetes.io/revision"]
		}
	}
	return out
}

// trigger calls do when a text is written.
type trigger struct {
	to   *bytes.Buffer
	text string
	do   func()
}

func (w *trigger) Write(p []byte) (int, error) {
	if strings.Contains(string(p), w.text) {
		w.do()
	}
	return w.to.Write(p)
}
