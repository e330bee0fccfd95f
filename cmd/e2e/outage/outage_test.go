package outage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
)

// outage is something that goes wrong in a demo.
type outage struct {
	// name is that of the file with what is said of it.
	name          string
	begin, repair func(d *running)
	// requests says what is wrong with what requests of productpage-v1 to reviews get meanwhile.
	requests func(got traffic) error
	// counted has what is said read what proxies count, which no object tells.
	counted bool
}

// The names of the demo.
const (
	gateway   = "istio-eastwestgateway"
	ingress   = "istio-system"
	apiserver = "kube-apiserver"
)

func outages() []outage {
	remote := func(d *running) *kube.Client { return d.clients["cluster-2"] }
	return []outage{
		{name: "gateway-at-zero", requests: someFail, begin: func(d *running) { d.scale("cluster-2", gateway, 0) },
			repair: func(d *running) { d.scale("cluster-2", gateway, 1) }},
		{name: "gateway-service-deleted", requests: atHome, begin: func(d *running) { d.deleteService("cluster-2", gateway) },
			repair: func(d *running) { d.restoreService("cluster-2") }},
		{name: "api-server-dead", requests: asEver, begin: func(d *running) { d.kill("cluster-2", apiserver) }, repair: again},
		{name: "management-cluster-dead", requests: asEver, begin: func(d *running) { d.kill("cluster-1", apiserver) }, repair: again},
		{name: "credential-refused", requests: asEver, begin: func(d *running) {
			accounts := kube.Services().GroupVersion().WithResource("serviceaccounts")
			require.NoError(d.t, remote(d).Delete(d.t.Context(), accounts, "gloo-mesh", "cluster-2"))
		}, repair: func(d *running) { d.must("cluster", "register", "--renew") }},
		{name: "serve-dead", requests: asEver, begin: func(d *running) { d.killProcess(d.report().Serve) }, repair: again},
		{name: "target-unready", requests: someFail, begin: faulty(proxies.Fault{Unready: true}), repair: faulty(proxies.Fault{})},
		{name: "target-failing", requests: someFail, begin: faulty(proxies.Fault{Status: 503}), repair: faulty(proxies.Fault{}), counted: true},
	}
}

func faulty(fault proxies.Fault) func(d *running) {
	return func(d *running) {
		_, err := demo.Break(d.t.Context(), d.options, "reviews-v3", fault)
		require.NoError(d.t, err)
	}
}

// TestOutages: in an outage, the first lines of why, check and describe problems, and the first screen of the dashboard, are those of
// testdata, and requests get what the first one says. After it, all is as before.
func TestOutages(t *testing.T) {
	shard.Only(t, shard.Demo)
	sandboxtest.Proxies(t)
	d := start(t)
	d.well()
	for _, o := range outages() {
		passed := t.Run(o.name, func(t *testing.T) {
			d.t = t
			o.begin(d)
			waittest.NoError(t, "requests get what they should in this outage", func() error { return o.requests(d.call()) })
			d.says(filepath.Join("testdata", o.name+".txt"), o.counted)
			require.NoError(t, o.requests(d.call()), "after it was said")
			o.repair(d)
			d.well()
		})
		if !passed {
			t.FailNow() // each goes on where the one before ended
		}
	}
}

// traffic counts answers by the cluster that gave them, and those without one of an application.
type traffic struct {
	by     map[string]int
	failed int
}

func asEver(got traffic) error {
	if got.failed > 0 || got.by["cluster-2"] == 0 || got.by["cluster-1"] == 0 {
		return fmt.Errorf("there are %+v", got)
	}
	return nil
}

// atHome: none fails, and none leaves the cluster of the caller.
func atHome(got traffic) error {
	if got.failed > 0 || got.by["cluster-2"] > 0 || got.by["cluster-1"] == 0 {
		return fmt.Errorf("there are %+v", got)
	}
	return nil
}

func someFail(got traffic) error {
	if got.failed == 0 || got.by["cluster-1"] == 0 {
		return fmt.Errorf("there are %+v", got)
	}
	return nil
}

// running is the demo of the test.
type running struct {
	// t is the test that runs now.
	t       *testing.T
	options demo.Options
	clients map[string]*kube.Client
	// deleted is the Service that deleteService deleted.
	deleted *unstructured.Unstructured
}

func start(t *testing.T) *running {
	t.Helper()
	d := &running{t: t, clients: map[string]*kube.Client{}, options: demo.Options{
		Dir: filepath.Join(t.TempDir(), "demo"), Meshctl: sandboxtest.Meshctl(t), Out: &bytes.Buffer{},
	}}
	t.Cleanup(func() {
		if err := demo.Down(context.Background(), d.options); err != nil && !errors.Is(err, demo.ErrNotRunning) {
			t.Errorf("stopping the demo: %v", err)
		}
	})
	require.NoError(t, demo.Up(t.Context(), d.options))
	for _, name := range []string{"cluster-1", "cluster-2"} {
		config, err := d.config(name)
		require.NoError(t, err)
		d.clients[name], err = kube.New(name, config)
		require.NoError(t, err)
	}
	return d
}

// run runs the binary, and returns what it prints and its exit code.
func (d *running) run(args ...string) (stdout, stderr string, code int) {
	d.t.Helper()
	file, err := demo.Kubeconfig(d.t.Context(), d.options)
	require.NoError(d.t, err)
	ctx, cancel := context.WithTimeout(d.t.Context(), waittest.Limit())
	defer cancel()
	cmd := exec.CommandContext(ctx, d.options.Meshctl, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.Env = append(os.Environ(), "KUBECONFIG="+file)
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		require.NoError(d.t, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func (d *running) must(args ...string) {
	d.t.Helper()
	out, errs, code := d.run(args...)
	require.Zero(d.t, code, "meshctl %s\n%s%s", strings.Join(args, " "), out, errs)
}

// call sends requests from productpage-v1 to reviews.
func (d *running) call() traffic {
	d.t.Helper()
	got := traffic{by: map[string]int{}}
	require.NoError(d.t, demo.Send(d.t.Context(), d.options, "productpage-v1", app.Call{URL: "http://reviews:9080", Count: 60, Parallel: 4}, func(all demo.Traffic) {
		for _, a := range all.Answers {
			if a.Status == 200 {
				got.by[a.Cluster] += a.Count
			} else {
				got.failed += a.Count
			}
		}
	}))
	return got
}

// problems counts the errors and warnings that describe problems lists; without an answer, that is one.
func (d *running) problems(more ...string) int {
	d.t.Helper()
	out, _, code := d.run(append([]string{"describe", "problems", "-o", "json"}, more...)...)
	var all []struct {
		Severity string `json:"severity"`
	}
	if code != 0 || json.Unmarshal([]byte(out), &all) != nil {
		return 1
	}
	count := 0
	for _, p := range all {
		if p.Severity != "info" {
			count++
		}
	}
	return count
}

// well waits until nothing is wrong, and requests go to both clusters.
func (d *running) well() {
	d.t.Helper()
	waittest.NoError(d.t, "all is well", func() error {
		if !d.report().Healthy() {
			return errors.New("a process has ended")
		}
		if n := d.problems(); n > 0 {
			return fmt.Errorf("there are %d problems: %s", n, d.said(nil))
		}
		if out, _, code := d.run("check", "--strict", "-o", "short"); code != 0 {
			return fmt.Errorf("check exits with %d: %s", code, out)
		}
		return asEver(d.call())
	})
}
