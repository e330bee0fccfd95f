package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/agent"
	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/cmd/serve"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// relayWorld is a management cluster with a serve that takes agents, and another cluster.
type relayWorld struct {
	t          *testing.T
	servers    []*local.Cluster
	configs    map[string]*rest.Config
	management *rest.Config
	remote     *rest.Config
	address    string
	factory    *cmdutil.Factory
	stdout     func() string
	stderr     func() string
	reset      func()
	serveLog   *sandboxtest.Buffer
	// agentSaid is the log of the last agent that was started.
	agentSaid *sandboxtest.Buffer
}

func newRelayWorld(t *testing.T) *relayWorld {
	t.Helper()
	w := newRelayClusters(t, 2)
	w.serve()
	return w
}

// newRelayClusters is a world of n clusters in which nothing serves yet.
func newRelayClusters(t *testing.T, n int) *relayWorld {
	t.Helper()
	w := &relayWorld{t: t, servers: sandboxtest.APIServers(t, n), configs: map[string]*rest.Config{}, address: sandboxtest.Address(t), serveLog: &sandboxtest.Buffer{}, agentSaid: &sandboxtest.Buffer{}}
	for _, server := range w.servers {
		config, err := server.Config()
		require.NoError(t, err)
		w.configs[server.Name()] = config
	}
	w.management, w.remote = w.configs["cluster-1"], w.configs["cluster-2"]
	f, out, errs := testFactory(w.configs)
	w.factory, w.stdout, w.stderr, w.reset = f, out.String, errs.String, func() { out.Reset(); errs.Reset() }
	_, err := registration.InstallCRDs(t.Context(), w.management)
	require.NoError(t, err)
	sandboxtest.MakeNamespace(t, w.management, "gloo-mesh")
	t.Cleanup(func() {
		if t.Failed() {
			w.explain()
		}
	})
	return w
}

// explain prints what may be why the test failed.
func (w *relayWorld) explain() {
	w.reset()
	list := NewCmd(w.factory)
	list.SetArgs([]string{"list", "--mgmt-context", "cluster-1"})
	err := list.ExecuteContext(context.WithoutCancel(w.t.Context()))
	w.t.Logf("cluster list: %v\n%s%s", err, w.stdout(), w.stderr())
	for name, log := range map[string]*sandboxtest.Buffer{"serve": w.serveLog, "the agent": w.agentSaid} {
		text := log.String()
		w.t.Logf("the end of what %s said:\n%s", name, text[max(0, len(text)-4000):])
	}
}

// serve starts the management plane.
func (w *relayWorld) serve() (stop func()) {
	w.t.Helper()
	stop = w.start(serve.NewCmd, w.management, w.serveLog, "--relay-bind", w.address, "--metrics-bind=", "--debug-bind=")
	waittest.Until(w.t, "serve leads", func() bool { return regexp.MustCompile("lead").MatchString(w.serveLog.String()) })
	return stop
}

// start runs a command until the test ends, or stop is called.
func (w *relayWorld) start(of func(*cmdutil.Factory, func(context.Context, *serve.Options) error) *cobra.Command, config *rest.Config, log io.Writer, args ...string) (stop func()) {
	return w.run(of(w.commandFactory(config, log), nil), args...)
}

func (w *relayWorld) commandFactory(config *rest.Config, log io.Writer) *cmdutil.Factory {
	streams, _, _, _ := cmdutil.TestStreams()
	streams.Err = log
	f := cmdutil.NewFactory(streams)
	f.Now = time.Now
	f.Config = func(string, string) (*rest.Config, error) { return config, nil }
	return f
}

func (w *relayWorld) run(cmd *cobra.Command, args ...string) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	done := make(chan struct{})
	cmd.SetArgs(args)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	go func() {
		defer close(done)
		assert.NoError(w.t, cmd.ExecuteContext(ctx))
	}()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	w.t.Cleanup(stop)
	return stop
}

func (w *relayWorld) agentName() string {
	w.t.Helper()
	list, err := sandboxtest.Clientset(w.t, w.remote).CoreV1().ServiceAccounts("gloo-mesh").List(w.t.Context(), metav1.ListOptions{})
	require.NoError(w.t, err)
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].Name, "meshctl-agent-") {
			return list.Items[i].Name
		}
	}
	return ""
}

// agent starts the agent with the account of its registration, and with the arguments that the command names.
func (w *relayWorld) agent(log *sandboxtest.Buffer, args ...string) (stop func()) {
	w.t.Helper()
	waittest.NoError(w.t, "the agent has a token", func() error {
		_, err := sandboxtest.Clientset(w.t, w.remote).CoreV1().Secrets("gloo-mesh").Get(w.t.Context(), snapshot.RelayTokenSecret, metav1.GetOptions{})
		return err
	})
	return w.startAgent(log, args...)
}

// startAgent starts the agent again, which has its certificate.
func (w *relayWorld) startAgent(log *sandboxtest.Buffer, args ...string) (stop func()) {
	w.t.Helper()
	w.agentSaid = log
	cmd := agent.NewCmd(w.commandFactory(sandboxtest.As(w.t, w.remote, "gloo-mesh", w.agentName()), log), nil)
	return w.run(cmd, append([]string{"--namespace", "gloo-mesh", "--health-bind=", "--relay-server", w.address, "--relay-name", "gloo-mesh-mgmt-server.gloo-mesh", "--mgmt-namespace", "gloo-mesh"}, args...)...)
}

func (w *relayWorld) meshctl(args ...string) error {
	w.t.Helper()
	w.reset()
	return execute(w.t, NewCmd(w.factory), append(args, "--mgmt-context", "cluster-1")...)
}

// asked are the requests of an account in the audit log of its cluster, as verb and resource, with the status of the answers.
func (w *relayWorld) asked(account string) map[string][]int {
	w.t.Helper()
	text, err := os.ReadFile(w.servers[1].AuditLog())
	require.NoError(w.t, err)
	out := map[string][]int{}
	for line := range strings.Lines(string(text)) {
		var event struct {
			Verb           string
			User           struct{ Username string }
			ObjectRef      struct{ Namespace, Resource, Subresource, Name string }
			ResponseStatus struct{ Code int }
		}
		if json.Unmarshal([]byte(line), &event) != nil || event.User.Username != account || event.ObjectRef.Resource == "" {
			continue
		}
		key := strings.TrimSuffix(fmt.Sprintf("%s %s/%s", event.Verb, event.ObjectRef.Resource, event.ObjectRef.Subresource), "/")
		out[key] = append(out[key], event.ResponseStatus.Code)
	}
	return out
}

// TestRelay is the life of a cluster that is reached through its agent: it moves there from a credential, is revoked and comes back, moves
// back, and is deregistered. Its agent has all rights that it needs, of those for the relay none that it does not use, and nothing of users
// or of the mesh is deleted on the way.
func TestRelay(t *testing.T) {
	t.Parallel()
	w := newRelayWorld(t)
	remote := sandboxtest.Clientset(t, w.remote)
	require.NoError(t, w.meshctl("register", "cluster-2", "--remote-context", "cluster-2"))
	assert.Contains(t, w.stderr(), "meshctl serve reaches it")

	moved := make(chan error, 1)
	w.reset()
	go func() {
		cmd := NewCmd(w.factory)
		cmd.SetArgs([]string{"register", "cluster-2", "--remote-context", "cluster-2", "--mgmt-context", "cluster-1", "--relay", "--relay-server", w.address, "--timeout", "25s"})
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		moved <- cmd.ExecuteContext(t.Context())
	}()
	log := &sandboxtest.Buffer{}
	stop := w.agent(log)
	require.NoError(t, <-moved, "%s\n%s", log, w.serveLog)
	assert.Contains(t, w.stderr(), "Cluster cluster-2 is reached through its agent")
	_, err := sandboxtest.Clientset(t, w.management).CoreV1().Secrets("gloo-mesh").Get(t.Context(), "cluster-2", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "no credential of it is stored: %v", err)
	_, err = remote.CoreV1().ServiceAccounts("gloo-mesh").Get(t.Context(), "cluster-2", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "nor is there an account for one: %v", err)
	_, err = remote.CoreV1().Secrets("gloo-mesh").Get(t.Context(), snapshot.RelayTokenSecret, metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "the token is used: %v", err)

	began := time.Now()
	require.NoError(t, w.meshctl("revoke", "cluster-2"))
	waittest.Until(t, "the agent is disconnected", func() bool { return strings.Contains(log.String(), "the certificate of the agent was revoked") })
	assert.Less(t, time.Since(began), waittest.Soon(), "at once, and not when the connection ends")
	require.NoError(t, w.meshctl("register", "cluster-2", "--remote-context", "cluster-2", "--relay", "--relay-server", w.address), "%s", log.String())
	assert.Contains(t, w.stderr(), "Cluster cluster-2 is reached through its agent")

	account := "system:serviceaccount:gloo-mesh:" + w.agentName()
	granted := []string{"create secrets", "get secrets", "update secrets", "delete secrets"}
	waittest.NoError(t, "all rights of the relay were used", func() error {
		asked := w.asked(account)
		unused := slices.DeleteFunc(slices.Clone(granted), func(use string) bool { return len(asked[use]) > 0 })
		if len(unused) > 0 {
			return fmt.Errorf("not used: %v", unused)
		}
		return nil
	})
	for use, codes := range w.asked(account) {
		if !strings.HasPrefix(use, "create selfsubject") {
			assert.NotContains(t, codes, http.StatusForbidden, use)
		}
		assert.False(t, strings.HasPrefix(use, "delete ") && !slices.Contains(granted, use), use)
	}

	require.NoError(t, w.meshctl("register", "cluster-2", "--remote-context", "cluster-2"))
	assert.Contains(t, w.stderr(), "meshctl serve reaches it")
	stop()
	_, err = remote.RbacV1().ClusterRoleBindings().Get(t.Context(), w.agentName()+"-relay", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	require.NoError(t, w.meshctl("deregister", "cluster-2", "--remote-context", "cluster-2", "--yes"))
	assert.Contains(t, w.stderr(), "nothing remains on it")
}

// TestApprove: an agent with the token that all share is listed as pending and has nothing read; the one whose key is approved is connected.
func TestApprove(t *testing.T) {
	t.Parallel()
	w := newRelayWorld(t)
	sandboxtest.MakeNamespace(t, w.remote, "istio-system")
	require.NoError(t, w.meshctl("invite", "cluster-2", "--relay-server", w.address, "--agent-image", "meshctl:1"))
	sandboxtest.Apply(t, w.remote, []byte(w.stdout()))
	// Nobody has registered it: the manifests came another way.
	management, remote := sandboxtest.Clientset(t, w.management), sandboxtest.Clientset(t, w.remote)
	client, err := dynamic.NewForConfig(w.management)
	require.NoError(t, err)
	require.NoError(t, client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace("gloo-mesh").Delete(t.Context(), "cluster-2", metav1.DeleteOptions{}))
	const shared = "Xk2pQ9vTz7LmN4aB"
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: snapshot.RelayTokenSecret}, Data: map[string][]byte{snapshot.RelayTokenKey: []byte(shared)}}
	_, err = management.CoreV1().Secrets("gloo-mesh").Create(t.Context(), secret, metav1.CreateOptions{})
	require.NoError(t, err)
	require.NoError(t, remote.CoreV1().Secrets("gloo-mesh").Delete(t.Context(), snapshot.RelayTokenSecret, metav1.DeleteOptions{}))
	_, err = remote.CoreV1().Secrets("gloo-mesh").Create(t.Context(), secret, metav1.CreateOptions{})
	require.NoError(t, err)
	log := &sandboxtest.Buffer{}
	w.agent(log, "--relay-cluster", "cluster-2")

	var key []string
	waittest.Until(t, "the agent is pending", func() bool {
		require.NoError(t, w.meshctl("list"))
		key = regexp.MustCompile(`(?m)^cluster-2 +relay +pending .*its agent waits for approval: cluster UID \S+, key SHA-256 ([0-9a-f]{64}), from 127.0.0.1; if you know it, run .meshctl cluster approve cluster-2.`).FindStringSubmatch(w.stdout())
		return key != nil
	})
	waittest.Until(t, "the agent's log has the key to compare", func() bool { return strings.Contains(log.String(), key[1]) })
	require.Error(t, w.meshctl("approve", "cluster-2", "--yes", "--key", "nobody"))
	require.NoError(t, w.meshctl("approve", "cluster-2", "--yes", "--key", key[1][:8]), "%s", log)
	assert.Contains(t, w.stderr(), key[1])
	w.listed(string(multiclusterv1alpha1.ConnectionStateConnected))
	assert.NotContains(t, w.serveLog.String()+log.String(), shared)
}

// TestInvite: the manifests alone make a cluster known, and the first agent with the token is its agent.
func TestInvite(t *testing.T) {
	t.Parallel()
	w := newRelayWorld(t)
	sandboxtest.MakeNamespace(t, w.remote, "istio-system")
	require.NoError(t, w.meshctl("invite", "cluster-2", "--relay-server", w.address, "--agent-image", "meshctl:1"))
	manifests := w.stdout()
	assert.Contains(t, w.stderr(), "Have these manifests applied there until")
	token := regexp.MustCompile(`(?m)^  token: (\S+)$`).FindStringSubmatch(manifests)
	require.NotNil(t, token)
	assert.NotContains(t, w.stderr(), token[1])
	sandboxtest.Apply(t, w.remote, []byte(manifests))
	log := &sandboxtest.Buffer{}
	w.agent(log)
	waittest.Until(t, "the agent is connected", func() bool { return strings.Contains(w.serveLog.String(), "the agent of a cluster has connected") })
	require.NoError(t, w.meshctl("register", "cluster-2", "--remote-context", "cluster-2", "--relay", "--relay-server", w.address), "%s", log.String())
	assert.Contains(t, w.stderr(), "Cluster cluster-2 is reached through its agent")
	assert.NotContains(t, w.serveLog.String()+log.String(), token[1])
	require.NoError(t, w.meshctl("deregister", "cluster-2", "--remote-context", "cluster-2", "--yes"))
}
