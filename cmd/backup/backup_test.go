package backup

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/serve"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// command runs `meshctl backup` or `meshctl restore` against a cluster.
func command(t *testing.T, config *rest.Config, args ...string) (out, errs string, err error) {
	t.Helper()
	streams, _, stdout, stderr := cmdutil.TestStreams()
	f := cmdutil.NewFactory(streams)
	f.Config = func(string, string) (*rest.Config, error) { return config, nil }
	cmd := NewCmd(f, nil)
	if args[0] == "restore" {
		cmd = NewRestoreCmd(f, nil)
	}
	cmd.SetArgs(args[1:])
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// plane is a management cluster.
type plane struct {
	*testing.T
	config *rest.Config
	client *kube.Client
}

func newPlane(t *testing.T, config *rest.Config) *plane {
	t.Helper()
	client, err := kube.New("management", config)
	require.NoError(t, err)
	return &plane{t, config, client}
}

// serve runs a serve until stop is called. It returns when it is ready.
func (p *plane) serve() (stop func()) {
	p.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	listening, ended, log := make(chan string, 1), make(chan error, 1), &sandboxtest.Buffer{}
	go func() {
		ended <- serve.Run(ctx, serve.Options{
			Management: p.config, MetricsBind: "127.0.0.1:0", LeaderElect: true, LeaseDuration: time.Minute, Log: slog.New(slog.NewTextHandler(log, nil)),
			OnListen: func(metrics, _ net.Addr) { listening <- "http://" + metrics.String() + "/readyz" },
		})
	}()
	stop = sync.OnceFunc(func() {
		p.Helper()
		cancel()
		assert.NoError(p, <-ended, log.String())
	})
	p.Cleanup(stop)
	ready := <-listening
	waittest.Until(p.T, "serve is ready", func() bool {
		request, err := http.NewRequestWithContext(p.Context(), http.MethodGet, ready, http.NoBody)
		require.NoError(p, err)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false
		}
		require.NoError(p, response.Body.Close())
		return response.StatusCode == http.StatusOK
	})
	return stop
}

// policy applies a TrafficPolicy for one service.
func (p *plane) policy(name, spec string) {
	p.Helper()
	require.NoError(p, p.client.ApplyYAML(p.Context(), fmt.Appendf(nil, `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: %s, namespace: gloo-mesh}
spec:
  destinationSelector: [{kubeServiceRefs: {services: [{name: reviews, namespace: bookinfo, clusterName: cluster-1}]}}]
  policy: {%s}
`, name, spec)))
}

// state is the state that serve gave to the present generation of a policy; empty if it has not.
func (p *plane) state(name string) string {
	p.Helper()
	o, err := p.client.Get(p.Context(), snapshot.TrafficPolicy.GroupVersionResource(), "gloo-mesh", name)
	require.NoError(p, err)
	state, _, _ := unstructured.NestedString(o.Object, "status", "state")
	if observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration"); observed != o.GetGeneration() {
		return ""
	}
	return state
}

// routes are the generated VirtualServices of a cluster, each with its UID and, if that is asked for, its version.
func routes(t *testing.T, client *kube.Client, versions bool) (list []string, spec string) {
	t.Helper()
	objects, err := client.List(t.Context(), snapshot.VirtualService.GroupVersionResource(), "")
	require.NoError(t, err)
	for i := range objects {
		o := &objects[i]
		text := o.GetNamespace() + "/" + o.GetName() + " " + string(o.GetUID())
		if versions {
			text += " " + o.GetResourceVersion()
		}
		list = append(list, text)
		spec += fmt.Sprint(o.Object["spec"])
	}
	return list, spec
}

// TestNothingChangesOnTheWire moves a management plane to another cluster. Its serve there writes nothing to the registered cluster, decides a
// conflict as before although all policies are new, and keeps the last good spec of a policy in force.
func TestNothingChangesOnTheWire(t *testing.T) {
	t.Parallel()
	servers := sandboxtest.APIServers(t, 3)
	configs := make([]*rest.Config, len(servers))
	for i, s := range servers {
		var err error
		configs[i], err = s.Config()
		require.NoError(t, err)
	}
	from, workload, to := newPlane(t, configs[0]), newPlane(t, configs[1]), newPlane(t, configs[2])
	script, err := txtar.ParseFile("../../testdata/script/live/support.txtar")
	require.NoError(t, err)
	for _, file := range script.Files {
		if file.Name == "mesh.yaml" {
			require.NoError(t, workload.client.ApplyYAML(t.Context(), file.Data))
		}
	}
	_, err = registration.Register(t.Context(), registration.Options{Name: "cluster-1", RemoteConfig: workload.config, MgmtConfig: from.config})
	require.NoError(t, err)
	stop := from.serve()
	from.policy("zeta", "requestTimeout: 1s")
	waittest.Until(t, "the older policy is in force", func() bool { return from.state("zeta") == "ACCEPTED" })
	from.policy("lasting", "retries: {attempts: 3}")
	waittest.Until(t, "the retries are in force", func() bool { return from.state("lasting") == "ACCEPTED" })
	// A second later at least, or names would decide.
	waittest.Until(t, "a younger policy in conflict is rejected", func() bool {
		from.policy("alpha", "requestTimeout: 9s")
		if from.state("alpha") == "ACCEPTED" {
			require.NoError(t, from.client.Delete(t.Context(), snapshot.TrafficPolicy.GroupVersionResource(), "gloo-mesh", "alpha"))
			return false
		}
		return from.state("zeta") == "ACCEPTED" && from.state("alpha") == "INVALID"
	})
	from.policy("lasting", "retries: {attempts: 7}, trafficShift: {destinations: [{kubeService: {name: nowhere, namespace: bookinfo, clusterName: cluster-1}}]}")
	waittest.Until(t, "the edit is rejected", func() bool { return from.state("lasting") == "INVALID" })
	stop()
	before, spec := routes(t, workload.client, true)
	require.NotEmpty(t, before)
	for _, want := range []string{"timeout:1s", "attempts:3"} {
		require.Contains(t, spec, want)
	}

	file := filepath.Join(t.TempDir(), "meshctl.backup")
	out, errs, err := command(t, from.config, "backup", file, "--with-secrets")
	require.NoError(t, err)
	assert.Empty(t, out)
	assert.Contains(t, errs, "meshctl restore "+file)
	assert.Contains(t, errs, "credentials and private keys")
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	out, errs, err = command(t, to.config, "restore", file)
	require.NoError(t, err)
	assert.Contains(t, out, "TrafficPolicy")
	assert.Contains(t, errs, "Restored.")
	_, errs, err = command(t, to.config, "restore", file)
	require.NoError(t, err)
	assert.Contains(t, errs, "Nothing changed: all of it is there.")

	to.serve()
	waittest.Until(t, "the new serve has decided", func() bool {
		return to.state("lasting") == "INVALID" && to.state("alpha") == "INVALID" && to.state("zeta") == "ACCEPTED"
	})
	after, _ := routes(t, workload.client, true)
	assert.Equal(t, before, after, "nothing was written")

	to.policy("zeta", "requestTimeout: 2s")
	waittest.Until(t, "an edit arrives in the same object", func() bool {
		_, spec := routes(t, workload.client, false)
		return strings.Contains(spec, "timeout:2s") && strings.Contains(spec, "attempts:3")
	})
	is, _ := routes(t, workload.client, false)
	for i := range before {
		assert.Contains(t, before[i], is[i], "it was not created again")
	}
	_, errs, err = command(t, to.config, "restore", file)
	require.ErrorContains(t, err, "a meshctl serve works in namespace gloo-mesh")
	assert.NotContains(t, errs, "Restored")
}

// TestMistakes: what is wrong is said before a cluster is asked.
func TestMistakes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte("apiVersion: v1\n"), 0o600))
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"backup"}, cmdutil.ExitUsage, "FILE is required"},
		{[]string{"backup", garbage}, cmdutil.ExitFailure, "a backup replaces no file"},
		{[]string{"backup", "a", "b"}, cmdutil.ExitUsage, "unexpected argument"},
		{[]string{"restore"}, cmdutil.ExitUsage, "FILE is required"},
		{[]string{"restore", garbage}, cmdutil.ExitFailure, "it is no backup of meshctl"},
		{[]string{"restore", filepath.Join(dir, "absent")}, cmdutil.ExitNotFound, "absent"},
		{[]string{"restore", "-"}, cmdutil.ExitFailure, "it is no backup of meshctl"},
	} {
		out, _, err := command(t, &rest.Config{Host: "https://127.0.0.1:1"}, c.args...)
		require.ErrorContains(t, err, c.want)
		assert.Equal(t, c.code, cmdutil.ExitCode(err), "%v: %v", c.args, err)
		assert.Empty(t, out)
	}
}
