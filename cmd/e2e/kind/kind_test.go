package kind

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
)

// versionBefore runs at first.
const versionBefore = "v0.1.0"

// TestKind follows a demo from its start to its end, at first with cluster-2 reached through its agent. Each case goes on where the one before
// ended.
func TestKind(t *testing.T) {
	shard.Only(t, shard.Kind)
	d := newDemo(t)
	for _, stage := range []struct {
		name string
		run  func(t *testing.T, d *running)
	}{
		{"an interrupted start leaves nothing", interrupted},
		{"it starts", starts},
		{"status, call and names that are taken", looksAt},
		{"the pod of the leader is deleted", leaderDies},
		{"upgrade", upgrades},
		{"a node restarts", nodeRestarts},
		{"cluster-2 is dialled instead of dialling", leavesRelay},
		{"uninstall", uninstalls},
		{"down", goesDown},
	} {
		if !t.Run(stage.name, func(t *testing.T) { stage.run(t, d) }) {
			d.explain(t)
			t.FailNow()
		}
	}
}

// running is the demo of a test.
type running struct {
	options demo.Options
	// before and binary are two versions of meshctl.
	before, binary string
	// image is that of binary.
	image string
}

func newDemo(t *testing.T) *running {
	t.Helper()
	node := os.Getenv("MESHCTL_NODE_IMAGE")
	if node == "" {
		t.Skip("no kind clusters: run `make test-kind`")
	}
	d := &running{binary: sandboxtest.Meshctl(t), before: build(t, versionBefore)}
	d.options = demo.Options{
		Dir: filepath.Join(t.TempDir(), "demo"), Runtime: demo.RuntimeKind, Relay: true,
		NodeImage: node, Meshctl: d.before, Progress: progress{t},
	}
	t.Cleanup(func() {
		if err := demo.Down(context.Background(), d.options); err != nil && !errors.Is(err, demo.ErrNotRunning) {
			t.Errorf("stopping the demo: %v", err)
		}
	})
	return d
}

// build builds meshctl as a version.
func build(t *testing.T, version string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "meshctl")
	command := exec.CommandContext(t.Context(), "go", "build", "-trimpath",
		"-ldflags", "-s -w -X github.com/meshctl/meshctl/cmd/cmdutil.version="+version, "-o", path, "github.com/meshctl/meshctl")
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	require.NoError(t, err, "building meshctl: %s", out)
	return path
}

// progress logs the steps of a demo.
type progress struct{ t *testing.T }

func (p progress) Start(step string)               { p.t.Log(step) }
func (p progress) Note(format string, args ...any) { p.t.Logf("  "+format, args...) }
func (p progress) End(err error) {
	if err != nil {
		p.t.Log(err)
	}
}

// explain logs what may say why a case failed.
func (d *running) explain(t *testing.T) {
	t.Helper()
	for _, args := range [][]string{{"describe", "problems"}, {"cluster", "list"}, {"demo", "status", "--dir", d.options.Dir}} {
		out, errs, _ := d.run(t, args...)
		t.Logf("meshctl %s:\n%s%s", strings.Join(args, " "), out, errs)
	}
	for _, name := range clusters {
		for _, args := range [][]string{{"get", "pods,services", "-A", "-o", "wide"}, {"logs", "-n", "gloo-mesh", "-l", "app.kubernetes.io/managed-by=meshctl", "--tail=40", "--prefix"}} {
			out, _ := exec.Command("docker", append([]string{"exec", node(name), "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"}, args...)...).CombinedOutput()
			t.Logf("%s: kubectl %s:\n%s", name, strings.Join(args, " "), out)
		}
	}
}

var clusters = []string{"cluster-1", "cluster-2"}

// What kind calls them.
func node(cluster string) string      { return "meshctl-" + cluster + "-control-plane" }
func contextOf(cluster string) string { return "kind-meshctl-" + cluster }
func (d *running) kubeconfig() string { return filepath.Join(d.options.Dir, "kubeconfig") }
func (d *running) environment() []string {
	return append(os.Environ(), "KUBECONFIG="+d.kubeconfig())
}

// run runs the newer meshctl with the contexts of the demo.
func (d *running) run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waittest.Limit())
	defer cancel()
	command := exec.CommandContext(ctx, d.binary, args...)
	command.Env = d.environment()
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, io.MultiWriter(&errs, &words{t, time.Now()})
	err := command.Run()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	return out.String(), errs.String(), command.ProcessState.ExitCode()
}

// words logs what a command says, and when.
type words struct {
	t     *testing.T
	begin time.Time
}

func (w *words) Write(text []byte) (int, error) {
	w.t.Logf("  %4.0fs %s", time.Since(w.begin).Seconds(), bytes.TrimSpace(text))
	return len(text), nil
}

func (d *running) must(t *testing.T, args ...string) string {
	t.Helper()
	out, errs, code := d.run(t, args...)
	require.Zero(t, code, "meshctl %s: %s%s", strings.Join(args, " "), out, errs)
	return out
}

func (d *running) client(t *testing.T, cluster string) *kube.Client {
	t.Helper()
	client, err := kube.New(cluster, d.config(t, cluster))
	require.NoError(t, err)
	return client
}

// until waits for a condition.
func until(t *testing.T, what string, condition func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit())
	defer cancel()
	require.NoError(t, kube.Until(ctx, what, condition))
}

// docker runs a command of the engine.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command("docker", args...).CombinedOutput()
	require.NoError(t, err, "docker %s: %s", strings.Join(args, " "), out)
	return strings.TrimSpace(string(out))
}

func nodes(t *testing.T) []string {
	t.Helper()
	return strings.Fields(docker(t, "ps", "--all", "--format", "{{.Names}}", "--filter", "name=meshctl-cluster-"))
}

func interrupted(t *testing.T, d *running) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	command := exec.Command(d.binary, "demo", "up", "--runtime", "kind", "--image", d.options.NodeImage, "--dir", dir)
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	require.NoError(t, command.Start())
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	until(t, "a node", func(context.Context) error {
		select {
		case err := <-ended:
			return kube.Final(fmt.Errorf("it ended: %w: %s", err, out.String()))
		default:
		}
		if len(nodes(t)) == 0 {
			return errors.New("there is none yet")
		}
		return nil
	})
	require.NoError(t, command.Process.Signal(syscall.SIGINT))
	require.Error(t, <-ended)
	assert.Equal(t, 130, command.ProcessState.ExitCode(), out.String())
	assert.Empty(t, nodes(t), out.String())
}

func starts(t *testing.T, d *running) {
	t.Helper()
	var out bytes.Buffer
	o := d.options
	o.Out, o.Progress = &out, progress{t}
	begin := time.Now()
	require.NoError(t, demo.Up(t.Context(), o))
	t.Logf("up in %s:\n%s", time.Since(begin).Round(time.Second), out.String())
	assert.Contains(t, out.String(), "200 requests details-v1 to ratings: 200 refused")
	assert.Contains(t, d.must(t, "cluster", "list"), "cluster-2")
	d.shifted(t)
}

// shifted sends requests, of which as many go to each version of reviews as the policy says.
func (d *running) shifted(t *testing.T) {
	t.Helper()
	const requests = 400
	shares := map[string]int{}
	call := app.Call{URL: "http://reviews:9080/reviews/1", Count: requests, Parallel: 10}
	require.NoError(t, demo.Send(t.Context(), d.options, "productpage-v1", call, func(traffic demo.Traffic) {
		for _, a := range traffic.Answers {
			assert.Equal(t, 200, a.Status, a.Error)
			shares[a.Cluster+" "+a.Workload] += a.Count
		}
	}))
	// Five standard deviations of the binomial distribution.
	assert.InDelta(t, 0.75*requests, shares["cluster-2 reviews-v3"], 44)
	assert.InDelta(t, 0.15*requests, shares["cluster-1 reviews-v1"], 36)
	assert.InDelta(t, 0.10*requests, shares["cluster-1 reviews-v2"], 30)
	assert.Len(t, shares, 3)
	t.Logf("%d requests: %v", requests, shares)
}

func looksAt(t *testing.T, d *running) {
	t.Helper()
	var report demo.Report
	require.NoError(t, json.Unmarshal([]byte(d.must(t, "demo", "status", "--dir", d.options.Dir, "-o", "json")), &report))
	assert.True(t, report.Healthy())
	assert.Contains(t, d.must(t, "demo", "call", "productpage-v1", "http://details:9080/details/1", "-n", "20", "--dir", d.options.Dir), "details-v1")
	out, errs, code := d.run(t, "demo", "break", "productpage-v1", "--fail", "--dir", d.options.Dir)
	assert.Equal(t, 1, code, out)
	assert.Contains(t, errs, "use kubectl")

	before := nodes(t)
	_, errs, code = d.run(t, "demo", "up", "--runtime", "kind", "--image", d.options.NodeImage, "--dir", filepath.Join(t.TempDir(), "second"))
	assert.Equal(t, 1, code)
	assert.Contains(t, errs, "there is a kind cluster meshctl-cluster-1 already")
	assert.Equal(t, before, nodes(t), "what is another's stays")
}
