package demo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/helper"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
)

// upIn, when set in the environment, makes this test binary start a demo in that
// folder instead of running tests, so that it can be killed.
const upIn = "MESHCTL_TEST_DEMO_UP"

func TestMain(m *testing.M) {
	if dir := os.Getenv(upIn); dir != "" {
		// There is no such meshctl: the demo fails after it has started the clusters.
		_ = demo.Up(context.Background(), demo.Options{Dir: dir, Meshctl: filepath.Join(dir, "no-meshctl")})
		return
	}
	os.Exit(m.Run())
}

// processesOf returns the command lines that mention dir.
func processesOf(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Skipf("no /proc here: %v", err)
	}
	var found []string
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err == nil && bytes.Contains(line, []byte(dir)) {
			found = append(found, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func requireNoProcess(t *testing.T, dir string) {
	t.Helper()
	waittest.NoError(t, "no process is left", func() error {
		if processes := processesOf(t, dir); len(processes) > 0 {
			return fmt.Errorf("there are %q", processes)
		}
		return nil
	})
}

// waitForProcesses waits until both clusters are partly started.
func waitForProcesses(t *testing.T, dir string) {
	t.Helper()
	waittest.Until(t, "six processes run", func() bool { return len(processesOf(t, dir)) >= 6 })
}

func buildHelper(t *testing.T) {
	t.Helper()
	waittest.SkipIfShort(t, "starts whole clusters")
	_, err := helper.Build(t.Context(), helper.Progress{Report: func(s string) { t.Log(s) }})
	require.NoError(t, err)
}

// Not parallel: each starts two clusters.
func TestFailedUpLeavesNoProcess(t *testing.T) {
	shard.Only(t, shard.Demo)
	buildHelper(t)
	dir := filepath.Join(t.TempDir(), "demo")
	// It runs the applications of the pods, and fails after that.
	failing := filepath.Join(t.TempDir(), "meshctl")
	script := "#!/bin/sh\n[ \"$1\" = demo ] && exec '" + sandboxtest.Meshctl(t) + "' \"$@\"\nexit 1\n"
	require.NoError(t, os.WriteFile(failing, []byte(script), 0o700))
	opts := demo.Options{Dir: dir, Meshctl: failing}
	err := demo.Up(t.Context(), opts)
	require.ErrorContains(t, err, "cluster register cluster-1")
	requireNoProcess(t, dir)

	report, err := demo.Status(t.Context(), opts)
	require.NoError(t, err)
	assert.Equal(t, demo.Failed, report.Phase)
	assert.FileExists(t, filepath.Join(dir, "cluster-1", "logs", "istiod.log"), "the logs are kept")
	assert.NoDirExists(t, filepath.Join(dir, "cluster-1", "pki"), "the keys are not")
	_, err = demo.Kubeconfig(t.Context(), opts)
	require.ErrorIs(t, err, demo.ErrNotRunning)

	require.NoError(t, demo.Down(t.Context(), opts))
	assert.NoDirExists(t, dir)
}

// Not parallel: each starts two clusters.
func TestInterruptedUpLeavesNoProcess(t *testing.T) {
	shard.Only(t, shard.Demo)
	buildHelper(t)
	dir := filepath.Join(t.TempDir(), "demo")
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	ended := make(chan error, 1)
	go func() { ended <- demo.Up(ctx, demo.Options{Dir: dir}) }()
	waitForProcesses(t, dir)
	interrupt()
	require.ErrorIs(t, <-ended, context.Canceled)
	requireNoProcess(t, dir)
}

// Not parallel: each starts two clusters.
func TestKilledUpLeavesNoProcess(t *testing.T) {
	shard.Only(t, shard.Demo)
	buildHelper(t)
	dir := filepath.Join(t.TempDir(), "demo")
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), upIn+"="+dir)
	require.NoError(t, command.Start())
	waitForProcesses(t, dir)
	require.ErrorContains(t, demo.Up(t.Context(), demo.Options{Dir: dir}), "is starting a demo")
	require.ErrorContains(t, demo.Down(t.Context(), demo.Options{Dir: dir}), "interrupt that process")

	require.NoError(t, command.Process.Kill())
	_ = command.Wait()
	requireNoProcess(t, dir)
	require.NoError(t, demo.Down(t.Context(), demo.Options{Dir: dir}))
	assert.NoDirExists(t, dir)
}

// TestUpUpDown: up, up again after a crash, down; a second demo is not affected.
// Not parallel: it starts four clusters.
func TestUpUpDown(t *testing.T) {
	shard.Only(t, shard.Demo)
	buildHelper(t)
	ctx := t.Context()
	meshctl := sandboxtest.Meshctl(t)
	var out bytes.Buffer
	opts := demo.Options{Dir: filepath.Join(t.TempDir(), "demo"), Meshctl: meshctl, Out: &out}
	var outOfOther bytes.Buffer
	other := demo.Options{Dir: filepath.Join(t.TempDir(), "other"), Meshctl: meshctl, Out: &outOfOther, Proxies: demo.ProxiesOff}
	t.Cleanup(func() {
		for _, o := range []demo.Options{opts, other} {
			if err := demo.Down(context.Background(), o); err != nil && !errors.Is(err, demo.ErrNotRunning) {
				t.Errorf("stopping the demo in %s: %v", o.Dir, err)
			}
		}
	})
	require.NoError(t, demo.Up(ctx, opts))
	assert.Regexp(t, `(?m)^  meshes +1 +1$`, out.String())
	assert.Regexp(t, `(?m)^  virtual services +1 +\d+$`, out.String())
	assert.Contains(t, out.String(), "describe destination reviews-bookinfo-cluster-1")
	before, err := demo.Status(ctx, opts)
	require.NoError(t, err)
	require.True(t, before.Healthy(), "%+v", before)
	sendsRequests(t, opts, out.String())
	warns(t, opts)
	require.NoError(t, demo.Up(ctx, other))
	assert.Contains(t, outOfOther.String(), "no requests can be sent: proxies are off")
	require.ErrorIs(t, demo.Send(ctx, other, "productpage-v1", app.Call{}, nil), demo.ErrNoProxies)

	crashServe(t, opts)
	taken, err := net.Listen("tcp", before.Metrics)
	require.NoError(t, err)
	defer func() { _ = taken.Close() }()
	out.Reset()
	require.NoError(t, demo.Up(ctx, opts))
	assert.Contains(t, out.String(), "The demo that was started at ")
	after, err := demo.Status(ctx, opts)
	require.NoError(t, err)
	assert.True(t, after.Healthy(), "%+v", after)
	assert.NotEqual(t, before.Serve.PID, after.Serve.PID)
	assert.NotEqual(t, before.Metrics, after.Metrics, "another program listens there now")
	assert.Equal(t, before.Clusters, after.Clusters, "running processes are not restarted")

	require.NoError(t, demo.Down(ctx, opts))
	requireNoProcess(t, opts.Dir)
	assert.NoDirExists(t, opts.Dir)
	beside, err := demo.Status(ctx, other)
	require.NoError(t, err)
	assert.True(t, beside.Healthy(), "%+v", beside)
	require.NoError(t, demo.Down(ctx, other))
	requireNoProcess(t, other.Dir)
}

// warnings are those of an API server, which kubectl prints.
type warnings struct{ all []string }

// HandleWarningHeader implements rest.WarningHandler.
func (w *warnings) HandleWarningHeader(_ int, _, text string) { w.all = append(w.all, text) }

// warns checks that who deletes a policy is told what that does.
func warns(t *testing.T, opts demo.Options) {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(opts.Dir, "kubeconfig"))
	require.NoError(t, err)
	waittest.NoError(t, "the API server warns", func() error {
		said := &warnings{}
		config.WarningHandler = said
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return err
		}
		err = client.Resource(kube.Policies("accesspolicies")).Namespace("gloo-mesh").Delete(t.Context(), "productpage", metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
		if !strings.Contains(strings.Join(said.all, "\n"), "productpage-v1 in cluster-1 may no longer call") {
			return errors.Join(err, fmt.Errorf("it says %q", said.all))
		}
		return err
	})
}

// sendsRequests checks what Up printed about requests, and what a broken workload
// answers. It needs nothing where proxies cannot run.
func sendsRequests(t *testing.T, opts demo.Options, printed string) {
	t.Helper()
	ctx := t.Context()
	if _, err := proxies.Prepare(ctx, helper.Progress{}); errors.Is(err, proxies.ErrUnavailable) && os.Getenv("CI") != "true" {
		t.Logf("not tested: %v", err)
		return
	}
	assert.Regexp(t, `(?m)^  200 requests productpage-v1 to reviews: 1\d\d cluster-2 reviews-v3, \d+ cluster-1 reviews-v\d, \d+ cluster-1 reviews-v\d$`, printed)
	assert.Contains(t, printed, "\n  200 requests productpage-v1 to details: 200 cluster-1 details-v1\n")
	assert.Contains(t, printed, "\n  200 requests details-v1 to ratings: 200 refused\n")
	assert.Regexp(t, `Envoy \d+\.\d+\.\d+`, printed)

	call := app.Call{URL: "http://details:9080", Count: 20, Parallel: 2}
	answers := func() (all []demo.Answer) {
		require.NoError(t, demo.Send(ctx, opts, "productpage-v1", call, func(traffic demo.Traffic) { all = traffic.Answers }))
		return all
	}
	names, err := demo.Break(ctx, opts, "details", proxies.Fault{Status: http.StatusTeapot})
	require.NoError(t, err)
	assert.Equal(t, []string{"details-v1-bookinfo-cluster-1-deployment"}, names)
	if broken := answers(); assert.Len(t, broken, 1) {
		assert.Equal(t, http.StatusTeapot, broken[0].Status)
		assert.Equal(t, 20, broken[0].Count)
	}
	_, err = demo.Break(ctx, opts, "", proxies.Fault{})
	require.NoError(t, err)
	if repaired := answers(); assert.Len(t, repaired, 1) {
		assert.Equal(t, http.StatusOK, repaired[0].Status)
	}
	_, err = demo.Break(ctx, opts, "nobody", proxies.Fault{})
	require.ErrorIs(t, err, demo.ErrNoWorkload)
	err = demo.Send(ctx, opts, "reviews-v1", call, nil)
	require.ErrorContains(t, err, "name one of reviews-v1-bookinfo-cluster-1-deployment, reviews-v1-bookinfo-cluster-2-deployment")
}

// crashServe kills the management plane of a demo.
func crashServe(t *testing.T, opts demo.Options) {
	t.Helper()
	report, err := demo.Status(t.Context(), opts)
	require.NoError(t, err)
	process, err := os.FindProcess(report.Serve.PID)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
	waittest.Until(t, "serve has ended", func() bool {
		report, err := demo.Status(t.Context(), opts)
		require.NoError(t, err)
		return !report.Serve.Alive
	})
}
