package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/manifests"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/registration"
)

// environment has clusters with a mesh and an application, and the binary under
// test.
type environment struct {
	t          testing.TB
	binary     string
	kubeconfig string
	clusters   []*local.Cluster
	clients    map[string]*kube.Client
	dynamic    map[string]dynamic.Interface
	serve      *server
	// flags are further ones of meshctl serve, at each start.
	flags []string
	// account is a kubeconfig with the account that meshctl serve gets; made when it is needed.
	account string
	// debugger is a token that may read the debug endpoints; made when it is needed.
	debugger string
}

func newEnvironment(t testing.TB, populate func(context.Context, *local.Cluster) error) *environment {
	t.Helper()
	return newEnvironmentOf(t, 2, populate)
}

func newEnvironmentOf(t testing.TB, clusters int, populate func(context.Context, *local.Cluster) error) *environment {
	t.Helper()
	waittest.SkipIfShort(t, "starts whole clusters")
	ctx := t.Context()
	w := &environment{t: t, clients: map[string]*kube.Client{}, dynamic: map[string]dynamic.Interface{}}

	w.binary = sandboxtest.Meshctl(t)
	var group errgroup.Group
	w.clusters = sandboxtest.Clusters(t, clusters)
	for _, c := range w.clusters {
		group.Go(func() error { return populate(ctx, c) })
	}
	require.NoError(t, group.Wait())

	w.kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	var kubeconfigs []string
	for _, c := range w.clusters {
		kubeconfigs = append(kubeconfigs, c.Kubeconfig())
		client, err := c.Client()
		require.NoError(t, err)
		w.clients[c.Name()] = client
		config, err := c.Config()
		require.NoError(t, err)
		w.dynamic[c.Name()], err = dynamic.NewForConfig(config)
		require.NoError(t, err)
	}
	require.NoError(t, kube.MergeKubeconfigs(w.kubeconfig, kubeconfigs...))
	return w
}

// withBookinfo installs Istio and bookinfo.
func withBookinfo(ctx context.Context, c *local.Cluster) error {
	if err := c.InstallIstio(ctx, local.IstioOptions{}); err != nil {
		return err
	}
	client, err := c.Client()
	if err != nil {
		return err
	}
	return manifests.InstallBookinfo(ctx, client, c.Name())
}

// result is that of a run of the binary.
type result struct {
	stdout, stderr string
	code           int
}

// run runs the binary and waits until it exits.
func (w *environment) run(args ...string) result {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waittest.Limit())
	defer cancel()
	cmd := exec.CommandContext(ctx, w.binary, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig)
	err := cmd.Run()
	if err != nil && cmd.ProcessState == nil {
		require.NoError(w.t, err)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}

// must runs the binary, and fails the test if the binary fails.
func (w *environment) must(args ...string) result {
	w.t.Helper()
	r := w.run(args...)
	require.Zero(w.t, r.code, "meshctl %s\n%s%s", strings.Join(args, " "), r.stdout, r.stderr)
	return r
}

// process is a running `meshctl serve` or `meshctl agent`.
type process struct {
	cmd    *exec.Cmd
	log    *sandboxtest.Buffer
	exited chan error
}

// start starts the binary in the background, until the test ends. If that fails, it logs what the process said, which is called name.
func (w *environment) start(name string, args ...string) *process {
	w.t.Helper()
	p := &process{cmd: exec.Command(w.binary, args...), log: &sandboxtest.Buffer{}, exited: make(chan error, 1)}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(w.t, p.cmd.Start())
	go func() { p.exited <- p.cmd.Wait() }()
	w.t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // it may have exited
		if w.t.Failed() {
			w.t.Logf("%s:\n%s", name, p.log.String())
		}
	})
	return p
}

// server is a running `meshctl serve`.
type server struct {
	*process
	// metrics and debug are URLs.
	metrics, debug string
}

// serveAccount is a kubeconfig with the account that installing meshctl gives serve, which runs outside of the cluster
// here, and may do what it may do inside. Unless meshctl is installed, it is now.
func (w *environment) serveAccount() string {
	w.t.Helper()
	if w.account != "" {
		return w.account
	}
	if _, err := w.object("cluster-1", kube.Deployments(), mgmt, registration.ServeName); apierrors.IsNotFound(err) {
		w.must("install", "--context", "cluster-1", "--image", "meshctl/meshctl:tested")
	}
	w.scaleServe(0) // it does not run inside
	config, err := w.cluster("cluster-1").Config()
	require.NoError(w.t, err)
	raw, err := clientcmd.LoadFromFile(w.cluster("cluster-1").Kubeconfig())
	require.NoError(w.t, err)
	raw.AuthInfos = map[string]*clientcmdapi.AuthInfo{raw.Contexts[raw.CurrentContext].AuthInfo: {Token: sandboxtest.As(w.t, config, mgmt, registration.ServeName).BearerToken}}
	w.account = filepath.Join(w.t.TempDir(), "kubeconfig")
	require.NoError(w.t, clientcmd.WriteToFile(*raw, w.account))
	return w.account
}

// scaleServe says how many pods serve is to have in the cluster. None of them really runs.
func (w *environment) scaleServe(replicas int) {
	w.t.Helper()
	_, err := w.dynamic["cluster-1"].Resource(kube.Deployments()).Namespace(mgmt).Patch(w.t.Context(), registration.ServeName,
		types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// startServe starts the management plane, with more flags, and waits until it is ready.
func (w *environment) startServe(flags ...string) {
	w.t.Helper()
	metrics, debug := sandboxtest.Address(w.t), sandboxtest.Address(w.t)
	arguments := []string{"serve", "--kubeconfig", w.serveAccount(), "--metrics-bind", metrics, "--debug-bind", debug, "--lease-duration", "20s"}
	w.serve = &server{w.start("meshctl serve", slices.Concat(arguments, w.flags, flags)...), "http://" + metrics, "http://" + debug}
	w.t.Cleanup(w.explain)
	w.until("meshctl serve is ready", func(ctx context.Context) error {
		_, err := w.get("/readyz")
		return err
	})
}

// explain logs, if the test failed, what meshctl says is wrong, and what it waits for.
func (w *environment) explain() {
	if !w.t.Failed() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), waittest.Soon())
	defer cancel()
	check := exec.CommandContext(ctx, w.binary, "check", "--kubeconfig", w.kubeconfig, "--context", "cluster-1")
	out, err := check.CombinedOutput() // the exit code says whether something is wrong
	w.t.Logf("meshctl check: %v\n%s", err, out)
}

// stopServe stops the management plane.
func (w *environment) stopServe() {
	w.t.Helper()
	w.stop(w.serve.process)
}

// stop sends SIGTERM to a process, which must exit soon and without an error.
func (w *environment) stop(p *process) {
	w.t.Helper()
	require.NoError(w.t, p.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-p.exited:
		require.NoError(w.t, err, "%s", p.log.String())
	case <-time.After(2 * waittest.Soon()):
		w.t.Fatalf("it did not exit: Kubernetes would kill it:\n%s", p.log.String())
	}
}

// get reads metrics or health of the management plane; inspect a debug endpoint, with
// a token of cluster-1.
func (w *environment) get(path string) (string, error) { return w.read(w.serve.metrics+path, "") }

func (w *environment) inspect(path string) (string, error) {
	w.t.Helper()
	if w.debugger == "" {
		config, err := w.cluster("cluster-1").Config()
		require.NoError(w.t, err)
		w.debugger = sandboxtest.Token(w.t, config, sandboxtest.MayGet("/debug/snapshot"))
	}
	return w.read(w.serve.debug+path, w.debugger)
}

// read reads a URL; token may be empty.
func (w *environment) read(url, token string) (string, error) {
	ctx, cancel := context.WithTimeout(w.t.Context(), waittest.Limit())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return "", err
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", url, response.Status, body)
	}
	return string(body), nil
}

// until waits for a condition.
func (w *environment) until(what string, condition func(context.Context) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waittest.Limit())
	defer cancel()
	require.NoError(w.t, kube.Until(ctx, what, condition))
}

// object reads one object, which must exist.
func (w *environment) object(cluster string, kind schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	return w.clients[cluster].Get(w.t.Context(), kind, namespace, name)
}

// names lists the objects of a kind that meshctl owns.
func (w *environment) names(cluster string, kind schema.GroupVersionResource) []string {
	w.t.Helper()
	objects, err := w.clients[cluster].List(w.t.Context(), kind, "")
	require.NoError(w.t, err)
	var out []string
	for _, o := range objects {
		if o.GetLabels()["owner.networking.mesh.gloo.solo.io"] != "" || o.GetLabels()["owner.discovery.mesh.gloo.solo.io"] != "" {
			out = append(out, o.GetNamespace()+"/"+o.GetName())
		}
	}
	return out
}

// apply applies manifests like a user.
func (w *environment) apply(cluster string, documents []byte) {
	w.t.Helper()
	require.NoError(w.t, w.clients[cluster].ApplyYAML(w.t.Context(), documents))
}

// delete deletes one object.
func (w *environment) delete(cluster string, kind schema.GroupVersionResource, namespace, name string) {
	w.t.Helper()
	require.NoError(w.t, w.dynamic[cluster].Resource(kind).Namespace(namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}))
}

// field is a field of an object; nil if it is not set.
func field(o *unstructured.Unstructured, path ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil {
		return nil
	}
	return value
}

// routes formats the first HTTP route of a VirtualService: "host/subset=weight".
func routes(vs *unstructured.Unstructured) []string {
	text, err := json.Marshal(field(vs, "spec", "http"))
	if err != nil {
		return nil
	}
	var http []struct {
		Timeout string
		Route   []struct {
			Weight      int
			Destination struct{ Host, Subset string }
		}
	}
	if json.Unmarshal(text, &http) != nil || len(http) == 0 {
		return nil
	}
	var out []string
	for _, r := range http[0].Route {
		out = append(out, fmt.Sprintf("%s/%s=%d", r.Destination.Host, r.Destination.Subset, r.Weight))
	}
	return out
}
