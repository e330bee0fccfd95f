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
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/golden"
)

// outage is something that goes wrong in a demo.
type outage struct {
	// name is that of the file with what is said of it.
	name          string
	begin, repair func(d *running)
	// requests says what is wrong with what requests of productpage-v1 to reviews get meanwhile.
	requests func(got traffic) error
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
		{"gateway-at-zero", func(d *running) { d.scale("cluster-2", gateway, 0) },
			func(d *running) { d.scale("cluster-2", gateway, 1) }, someFail},
		{"api-server-dead", func(d *running) { d.kill("cluster-2", apiserver) }, again, asEver},
		{"management-cluster-dead", func(d *running) { d.kill("cluster-1", apiserver) }, again, asEver},
		{"credential-refused", func(d *running) {
			accounts := kube.Services().GroupVersion().WithResource("serviceaccounts")
			require.NoError(d.t, remote(d).Delete(d.t.Context(), accounts, "gloo-mesh", "cluster-2"))
		}, func(d *running) { d.must("cluster", "register", "--renew") }, asEver},
		{"serve-dead", func(d *running) { d.killProcess(d.report().Serve) }, again, asEver},
		{"target-unready", faulty(proxies.Fault{Unready: true}), faulty(proxies.Fault{}), someFail},
	}
}

func faulty(fault proxies.Fault) func(d *running) {
	return func(d *running) {
		_, err := demo.Break(d.t.Context(), d.options, "reviews-v3", fault)
		require.NoError(d.t, err)
	}
}

// TestOutages: in an outage, the first lines of why, check and describe problems are those of testdata, and requests get what the
// first one says. After it, all is as before.
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
			d.says(filepath.Join("testdata", o.name+".txt"))
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

// passing is what differs from run to run.
var passing = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(Z| \S+)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d\b`), "TIME"},
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?m?s\b|\b\d+(\.\d+)? (milli)?seconds?\b`), "AGE"},
	{regexp.MustCompile(`\b127\.\d+\.\d+\.\d+:\d+\b`), "ADDRESS"},
	{regexp.MustCompile(`-[0-9a-f]{8,10}-[a-z0-9]{5}\b`), "-POD"},
}

// said are the first lines of what the commands print, and their exit codes.
func (d *running) said() string {
	d.t.Helper()
	var b strings.Builder
	for _, command := range [][]string{{"why", "productpage-v1", "reviews"}, {"check", "-o", "short"}, {"describe", "problems"}} {
		out, errs, code := d.run(command...)
		lines := strings.SplitN(strings.TrimSpace(out), "\n", 4)
		if out == "" {
			lines = strings.SplitN(strings.TrimSpace(errs), "\n", 2)
		}
		text := strings.Join(lines[:min(len(lines), 3)], "\n")
		for _, p := range passing {
			text = p.pattern.ReplaceAllString(text, p.word)
		}
		fmt.Fprintf(&b, "$ meshctl %s    # exit code %d\n%s\n\n", strings.Join(command, " "), code, text)
	}
	return b.String()
}

// says waits until the commands say what the file has.
func (d *running) says(file string) {
	d.t.Helper()
	if golden.Update() {
		waittest.Until(d.t, "something is said of it", func() bool { return d.problems() > 0 })
		golden.File(d.t, file, d.said())
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(d.t, err)
	waittest.NoError(d.t, "it is said what "+file+" has", func() error {
		if got := d.said(); got != string(want) {
			return fmt.Errorf("it is said:\n%s", got)
		}
		return nil
	})
}

// problems counts the errors and warnings that describe problems lists; without an answer, that is one.
func (d *running) problems() int {
	d.t.Helper()
	out, _, code := d.run("describe", "problems", "-o", "json")
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
			return fmt.Errorf("there are %d problems: %s", n, d.said())
		}
		if out, _, code := d.run("check", "--strict", "-o", "short"); code != 0 {
			return fmt.Errorf("check exits with %d: %s", code, out)
		}
		return asEver(d.call())
	})
}
