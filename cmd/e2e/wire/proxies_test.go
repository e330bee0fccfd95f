package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/tools/remotecommand"

	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/proxies"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/explain"
	enginekube "github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// notAllowed is the exit code of why for requests that are not all known to be allowed.
const notAllowed = 5

// proxiesHeld asks the proxies what they hold, through the demo's kubelet, and compares that with the objects and with requests.
func proxiesHeld(t *testing.T, e *environment) {
	t.Helper()
	page := e.pod(t, "cluster-1", "productpage-v1")
	t.Run("port-forward, exec and logs", func(t *testing.T) { servesStreams(t, e, page) })

	const reviews, details = "reviews.bookinfo.svc.cluster.local", "details.bookinfo.svc.cluster.local"
	waittest.NoError(t, "the proxies hold what follows from the objects", func() error {
		why, code, err := e.whyProxy(t.Context(), reviews)
		if err == nil && (code != 0 || why.Proxies.Verdict != explain.Allowed || !why.Proxies.Agrees) {
			err = fmt.Errorf("exit code %d: %+v", code, why.Proxies)
		}
		return err
	})
	why, _, err := e.whyProxy(t.Context(), reviews)
	require.NoError(t, err)
	for _, o := range why.Proxies.Outcomes {
		assert.Equal(t, strings.HasSuffix(o.Host, ".global"), o.Gateway != nil, "requests for another cluster pass its gateway: %+v", o)
	}

	t.Run("a policy by hand", func(t *testing.T) {
		e.byHand(t, `apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata: {name: no-reading, namespace: bookinfo}
spec:
  selector: {matchLabels: {app: details}}
  action: DENY
  rules: [{to: [{operation: {ports: ["9080"], methods: [GET]}}]}]
`)
		by := []snapshot.Ref{{Kind: snapshot.AuthorizationPolicy, Cluster: "cluster-1", Namespace: "bookinfo", Name: "no-reading"}}
		e.differs(t, details, explain.Refused, "access", func(d explain.ProxyDifference) bool { return slices.Equal(d.By, by) }, "--no-clusters")
		waittest.NoError(t, "the wire agrees", func() error {
			return target{e, page, "http://details:9080"}.want(t.Context(), 403, app.Call{})
		})
		why, code, err := e.whyProxy(t.Context(), details)
		require.NoError(t, err)
		assert.Equal(t, notAllowed, code)
		assert.Equal(t, explain.Refused, why.Verdict, why.Reason)
		assert.True(t, why.Proxies.Agrees, "with the objects of the clusters, it follows: %+v", why.Proxies)
	})
	t.Run("a filter by hand", func(t *testing.T) {
		e.byHand(t, `apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {name: teapot, namespace: bookinfo}
spec:
  workloadSelector: {labels: {app: productpage}}
  configPatches:
  - applyTo: HTTP_ROUTE
    match: {context: SIDECAR_OUTBOUND, routeConfiguration: {vhost: {name: "details.bookinfo.svc.cluster.local:9080"}}}
    patch: {operation: INSERT_FIRST, value: {match: {prefix: /}, direct_response: {status: 418}}}
`)
		e.differs(t, details, explain.Unreachable, "verdict", func(d explain.ProxyDifference) bool {
			return slices.Contains(d.Perhaps, "EnvoyFilter cluster-1/bookinfo/teapot")
		})
		waittest.NoError(t, "the wire agrees", func() error {
			return target{e, page, "http://details:9080"}.want(t.Context(), 418, app.Call{})
		})
	})
	t.Run("no right", func(t *testing.T) { noRight(t, e) })
	t.Run("a sample", func(t *testing.T) {
		waittest.NoError(t, "no proxy of a sample differs", func() error {
			out, err := exec.CommandContext(t.Context(), e.options.Meshctl, "check", "--proxies", "40", "--seed", "1", "-o", "json", "--kubeconfig", e.kubeconfig()).Output()
			var checkup explain.Checkup
			if err := errors.Join(ignoreExit(err), json.Unmarshal(out, &checkup)); err != nil {
				return err
			}
			for _, c := range checkup.Categories {
				if c.Title == "Proxies" && len(c.Checks) == 1 && c.Checks[0].Result == explain.CheckOK {
					return nil
				}
			}
			return fmt.Errorf("%s", out)
		})
	})
}

// kubeconfig has the contexts of both clusters.
func (e *environment) kubeconfig() string { return filepath.Join(e.options.Dir, "kubeconfig") }

// whyProxy asks why, with the proxies, of GET requests of productpage to a host.
func (e *environment) whyProxy(ctx context.Context, host string, more ...string) (*explain.Why, int, error) {
	command := exec.CommandContext(ctx, e.options.Meshctl, append([]string{"why", "productpage-v1", host, "--proxy", "-o", "json", "--kubeconfig", e.kubeconfig()}, more...)...)
	var out, errs bytes.Buffer
	command.Stdout, command.Stderr = &out, &errs
	err := command.Run()
	why := &explain.Why{}
	if err := errors.Join(ignoreExit(err), json.Unmarshal(out.Bytes(), why)); err != nil {
		return nil, 0, fmt.Errorf("%w: %s", err, errs.String())
	}
	return why, command.ProcessState.ExitCode(), nil
}

// ignoreExit is nil for a program that says what it found by its exit code.
func ignoreExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == notAllowed {
		return nil
	}
	return err
}

// differs waits until the proxies hold something else than follows from the objects that are read.
func (e *environment) differs(t *testing.T, host string, verdict explain.Verdict, what string, named func(explain.ProxyDifference) bool, more ...string) {
	t.Helper()
	waittest.NoError(t, "why --proxy names who makes the difference", func() error {
		why, code, err := e.whyProxy(t.Context(), host, more...)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(why.Proxies.Differences, func(d explain.ProxyDifference) bool { return d.What == what })
		if why.Verdict != explain.Allowed || code != notAllowed || why.Proxies.Verdict != verdict || at < 0 || !named(why.Proxies.Differences[at]) {
			return fmt.Errorf("exit code %d: %s, %+v", code, why.Verdict, why.Proxies)
		}
		return nil
	})
}

// byHand writes an object to cluster-1 for the time of the test.
func (e *environment) byHand(t *testing.T, document string) {
	t.Helper()
	client, err := e.clusters["cluster-1"].Client()
	require.NoError(t, err)
	require.NoError(t, client.ApplyYAML(t.Context(), []byte(document)))
	t.Cleanup(func() { require.NoError(t, client.DeleteYAML(context.WithoutCancel(t.Context()), []byte(document))) })
}

// servesStreams uses the kubelet of a pod as kubectl does, and kubectl itself if it is there.
func servesStreams(t *testing.T, e *environment, page proxies.Pod) {
	t.Helper()
	config, err := e.clusters["cluster-1"].Config()
	require.NoError(t, err)
	data, err := enginekube.GetFromPod(t.Context(), config, page.Namespace, page.Pod, 15000, "server_info", 1<<20)
	require.NoError(t, err)
	assert.Contains(t, string(data), `"state": "LIVE"`)
	_, err = enginekube.GetFromPod(t.Context(), config, page.Namespace, page.Pod, 15000, "config_dump", 100)
	var big *enginekube.TooBigError
	require.ErrorAs(t, err, &big)
	_, err = enginekube.GetFromPod(t.Context(), config, page.Namespace, page.Pod, 1, "", 100)
	require.ErrorContains(t, err, "connection refused")

	pods := sandboxtest.Clientset(t, config).CoreV1()
	run := func(command ...string) (stdout, stderr string, err error) {
		url := pods.RESTClient().Post().Resource("pods").Namespace(page.Namespace).Name(page.Pod).SubResource("exec").
			VersionedParams(&corev1.PodExecOptions{Container: "istio-proxy", Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec).URL()
		executor, err := remotecommand.NewSPDYExecutor(config, "POST", url)
		require.NoError(t, err)
		var out, errs bytes.Buffer
		err = executor.StreamWithContext(t.Context(), remotecommand.StreamOptions{Stdout: &out, Stderr: &errs})
		return out.String(), errs.String(), err
	}
	out, errs, err := run("sh", "-c", "echo said; echo failed >&2; exit 7")
	require.ErrorContains(t, err, "exit code 7")
	assert.Equal(t, "said\n", out)
	assert.Equal(t, "failed\n", errs)
	out, _, err = run("pilot-agent", "request", "GET", "server_info")
	require.NoError(t, err)
	assert.Contains(t, out, `"state": "LIVE"`)

	lines := int64(3)
	logs, err := pods.Pods(page.Namespace).GetLogs(page.Pod, &corev1.PodLogOptions{Container: "istio-proxy", TailLines: &lines}).DoRaw(t.Context())
	require.NoError(t, err)
	assert.Equal(t, 3, strings.Count(string(logs), "\n"), "%s", logs)
	_, err = pods.Pods(page.Namespace).GetLogs(page.Pod, &corev1.PodLogOptions{Container: "nobody"}).DoRaw(t.Context())
	assert.True(t, apierrors.IsBadRequest(err), "%v", err)

	path, err := exec.LookPath("kubectl")
	if err != nil {
		t.Log("not tested with kubectl, which is not on the PATH")
		return
	}
	for _, arguments := range [][]string{
		{"exec", page.Pod, "-c", "istio-proxy", "--", "pilot-agent", "request", "GET", "server_info"},
		{"logs", page.Pod, "-c", "istio-proxy", "--tail", "1"},
	} {
		out, err := exec.CommandContext(t.Context(), path, append([]string{"--kubeconfig", e.kubeconfig(), "--context", "cluster-1", "-n", page.Namespace}, arguments...)...).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.NotEmpty(t, out)
	}
	// Without the API server, nobody gets in, not even its administrator.
	direct := *config
	direct.Host = "https://" + fmt.Sprintf("localhost:%d", kubeletPort(t, e))
	_, err = sandboxtest.Clientset(t, &direct).CoreV1().RESTClient().Get().AbsPath("containerLogs", page.Namespace, page.Pod, "istio-proxy").DoRaw(t.Context())
	assert.True(t, apierrors.IsForbidden(err), "%v", err)
}

// kubeletPort is the port that the nodes of cluster-1 name.
func kubeletPort(t *testing.T, e *environment) int64 {
	t.Helper()
	client, err := e.clusters["cluster-1"].Client()
	require.NoError(t, err)
	nodes, err := client.List(t.Context(), kube.Nodes(), "")
	require.NoError(t, err)
	require.NotEmpty(t, nodes)
	status, _ := nodes[0].Object["status"].(map[string]any)
	data, err := json.Marshal(status)
	require.NoError(t, err)
	var named corev1.NodeStatus
	require.NoError(t, json.Unmarshal(data, &named))
	return int64(named.DaemonEndpoints.KubeletEndpoint.Port)
}

// noRight: who may read everything but forward no ports is told so.
func noRight(t *testing.T, e *environment) {
	t.Helper()
	raw, err := clientcmd.LoadFromFile(e.kubeconfig())
	require.NoError(t, err)
	for name, c := range e.clusters {
		config, err := c.Config()
		require.NoError(t, err)
		token := sandboxtest.Token(t, config,
			rbacv1.PolicyRule{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		)
		raw.AuthInfos["reader-"+name] = &clientcmdapi.AuthInfo{Token: token}
		raw.Contexts[name].AuthInfo = "reader-" + name
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*raw, file))
	waittest.NoError(t, "the right that is missing is named", func() error {
		out, err := exec.CommandContext(t.Context(), e.options.Meshctl, "why", "productpage-v1", "details.bookinfo.svc.cluster.local", "--proxy", "--kubeconfig", file).CombinedOutput()
		if err := ignoreExit(err); err != nil || !strings.Contains(string(out), "you may not create pods/portforward there: ask its administrator") {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	})
}
