package check

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/cmd/cmdutil"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/serve"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// road leads to an API server, until it is closed, or blocked: then nothing comes through.
type road struct {
	listener net.Listener
	blocked  chan struct{}
	once     sync.Once
}

func newRoad(t *testing.T, config *rest.Config) *road {
	t.Helper()
	server, err := url.Parse(config.Host)
	require.NoError(t, err)
	r := &road{listener: sandboxtest.Listen(t, "127.0.0.1:0"), blocked: make(chan struct{})}
	go func() {
		for {
			in, err := r.listener.Accept()
			if err != nil {
				return
			}
			go r.carry(in, server.Host)
		}
	}()
	return r
}

func (r *road) carry(in net.Conn, to string) {
	defer func() { _ = in.Close() }()
	select {
	case <-r.blocked:
		_, _ = io.Copy(io.Discard, in) // no answer, ever
		return
	default:
	}
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	ended := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() { _, _ = io.Copy(pair[0], pair[1]); ended <- struct{}{} }()
	}
	select {
	case <-ended:
	case <-r.blocked:
	}
}

func (r *road) block() { r.once.Do(func() { close(r.blocked) }) }

func (r *road) address() string { return r.listener.Addr().String() }

// enough is time for a cluster that answers, also on a busy machine.
var enough = waittest.Soon().String()

// TestCauseFirst: of clusters that are away, slow, forbidden and half deregistered, the check says
// what is wrong, once, and leaves out what follows from it.
func TestCauseFirst(t *testing.T) {
	t.Parallel()
	var configs []*rest.Config
	for _, server := range sandboxtest.APIServers(t, 4) {
		config, err := server.Config()
		require.NoError(t, err)
		configs = append(configs, config)
	}
	management := configs[0]
	roads := map[string]*road{}
	for i, name := range []string{"away", "slow", "forbidden", "half"} {
		roads[name] = newRoad(t, configs[i])
		_, err := registration.Register(t.Context(), registration.Options{
			Name: name, RemoteConfig: configs[i], MgmtConfig: management, APIServerAddress: roads[name].address(),
		})
		require.NoError(t, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- serve.Run(ctx, serve.Options{Management: management, LeaderElect: true, Log: slog.New(slog.DiscardHandler)})
	}()
	stop := func() { cancel(); require.NoError(t, <-ended) }
	results := func(args ...string) (map[string]explain.Check, int) {
		t.Helper()
		began := time.Now()
		checkup, code := checkWith(t, management, args...)
		t.Logf("%v: %s in %s", args, checkup.Summary(), time.Since(began).Round(10*time.Millisecond))
		out := map[string]explain.Check{}
		for _, c := range checkup.Categories {
			for _, check := range c.Checks {
				require.NotContains(t, out, check.ID)
				if out[check.ID] = check; check.Result == explain.CheckFailure || check.Result == explain.CheckWarning {
					t.Logf("  %s %s: %s", check.Result, check.ID, check.Message)
				}
			}
		}
		return out, code
	}
	var found map[string]explain.Check
	var code int
	waittest.Until(t, "all is well", func() bool {
		found, code = results("--timeout", enough)
		return code == 0 && found["serve-leads"].Result == explain.CheckOK && found["cluster-served/half"].Result == explain.CheckOK
	})
	assert.Equal(t, explain.CheckWarning, found["mesh"].Result, "there is none")
	_, code = results("--timeout", enough, "--strict")
	assert.Equal(t, cmdutil.ExitFindings, code)

	require.NoError(t, roads["away"].listener.Close())
	roads["away"].block()
	roads["slow"].block()
	require.NoError(t, sandboxtest.Clientset(t, configs[2]).RbacV1().ClusterRoleBindings().DeleteCollection(t.Context(), metav1.DeleteOptions{},
		metav1.ListOptions{LabelSelector: cluster.ManagedByLabel + "=" + cluster.ManagedBy}))
	require.NoError(t, roads["half"].listener.Close())
	roads["half"].block()
	unreachable := &rest.Config{Host: "https://" + roads["half"].address()}
	_, err := registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "half", RemoteConfig: unreachable, MgmtConfig: management, Force: true})
	require.NoError(t, err)

	waittest.Until(t, "serve has noticed, too", func() bool {
		found, code = results("--timeout", enough)
		return found["cluster-answers/slow"].Result == explain.CheckFailure && found["cluster-usable/forbidden"].Result == explain.CheckFailure
	})
	assert.Equal(t, cmdutil.ExitFindings, code)
	away := found["cluster-answers/away"]
	assert.Equal(t, explain.CheckFailure, away.Result)
	assert.Contains(t, away.Message, "refuses connections")
	assert.Contains(t, found["cluster-answers/slow"].Message, "does not answer in time")
	for _, id := range []string{"cluster-credential/away", "cluster-usable/slow", "cluster-served/slow", "written/away"} {
		assert.Equal(t, explain.CheckSkipped, found[id].Result, id)
	}
	assert.Equal(t, "cluster-answers/slow", found["cluster-usable/slow"].Because)
	assert.Contains(t, found["cluster-usable/forbidden"].Message, "may not")
	assert.Equal(t, "cluster-usable/forbidden", found["cluster-served/forbidden"].Because)
	assert.Equal(t, explain.CheckWarning, found["leftovers/half"].Result)
	assert.Contains(t, found["leftovers/half"].Hint, "meshctl cluster deregister half")

	stop()
	found, code = results("--timeout", enough)
	assert.Equal(t, cmdutil.ExitFindings, code)
	assert.Equal(t, explain.CheckFailure, found["serve-leads"].Result)
	assert.Equal(t, explain.CheckSkipped, found["edits"].Result)
	assert.Equal(t, "cluster-usable/forbidden", found["written/forbidden"].Because)

	// Nothing is as bad as no management cluster: what depends on it is not listed.
	gone, code := checkWith(t, &rest.Config{Host: "https://" + roads["half"].address()}, "--timeout", "1s")
	assert.Equal(t, cmdutil.ExitUnreachable, code)
	assert.Equal(t, 1, gone.Failures)
	assert.Zero(t, gone.OK)
	assert.Contains(t, gone.Categories[0].Checks[0].Message, "refuses connections")

	// A cluster without a management plane says so.
	bare, code := checkWith(t, configs[3], "--timeout", enough, "-n", "elsewhere")
	assert.Equal(t, cmdutil.ExitUnreachable, code)
	assert.Contains(t, bare.Categories[0].Checks[0].Message, "there is no management plane in it")
}

// checkWith runs the command against a management cluster.
func checkWith(t *testing.T, config *rest.Config, args ...string) (*explain.Checkup, int) {
	t.Helper()
	return checkBy(t, func(string, string) (*rest.Config, error) { return rest.CopyConfig(config), nil }, args...)
}

// checkBy runs the command with a way to find the configuration of a context.
func checkBy(t *testing.T, configOf func(kubeconfig, context string) (*rest.Config, error), args ...string) (*explain.Checkup, int) {
	t.Helper()
	streams, _, out, _ := cmdutil.TestStreams()
	factory := cmdutil.NewFactory(streams)
	factory.Config = configOf
	factory.Contexts = nil
	cmd := NewCmd(factory, nil)
	cmd.SetArgs(append(args, "-o", "json"))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err := cmd.ExecuteContext(t.Context())
	var checkup explain.Checkup
	require.NoError(t, json.NewDecoder(bytes.NewReader(out.Bytes())).Decode(&checkup), "%v", err)
	return &checkup, cmdutil.ExitCode(err)
}

// TestPre: what install and register would refuse is said before.
func TestPre(t *testing.T) {
	t.Parallel()
	config := sandboxtest.APIServer(t)
	checkup, code := checkWith(t, config, "--pre", "-n", "pre-"+snapshot.DefaultNamespace)
	assert.Zero(t, code, "%+v", checkup)
	assert.Equal(t, explain.CheckOK, checkup.Result)

	nobody := rest.CopyConfig(config)
	nobody.Impersonate = rest.ImpersonationConfig{UserName: "nobody"}
	checkup, code = checkWith(t, nobody, "--pre", "--remote-context", "any")
	assert.Equal(t, cmdutil.ExitFindings, code)
	assert.GreaterOrEqual(t, checkup.Failures, 2, "%+v", checkup)
	assert.Contains(t, checkup.Categories[0].Checks[1].Message, "you may not")
}

// TestPreUnreachable: a cluster that is away is reported once, as what it is.
func TestPreUnreachable(t *testing.T) {
	t.Parallel()
	up := sandboxtest.APIServer(t)
	gone := newRoad(t, up)
	require.NoError(t, gone.listener.Close())
	down := &rest.Config{Host: "https://" + gone.address()}
	results := func(management, remote *rest.Config) (map[string]explain.Check, int) {
		t.Helper()
		checkup, code := checkPre(t, management, remote)
		out := map[string]explain.Check{}
		for _, c := range checkup.Categories {
			for _, check := range c.Checks {
				out[check.ID] = check
			}
		}
		return out, code
	}
	found, code := results(down, up)
	assert.Equal(t, cmdutil.ExitFindings, code, "%+v", found)
	assert.Contains(t, found["install/answers"].Message, "refuses connections")
	assert.Equal(t, explain.CheckOK, found["register/remote/answers"].Result)
	assert.Equal(t, explain.CheckSkipped, found["register/remote"].Result)
	assert.Equal(t, "install/answers", found["register/remote"].Because)

	found, code = results(down, down)
	assert.Equal(t, cmdutil.ExitUnreachable, code, "%+v", found)
	assert.Contains(t, found["install/answers"].Message, "management cluster")
	assert.Contains(t, found["register/remote/answers"].Message, "remote cluster")
	assert.NotContains(t, found["register/remote/answers"].Message, "management cluster")
	assert.Equal(t, "register/remote/answers", found["register/remote"].Because)

	found, code = results(up, down)
	assert.Equal(t, cmdutil.ExitFindings, code, "%+v", found)
	assert.Equal(t, explain.CheckOK, found["install"].Result)
	assert.Contains(t, found["register/remote/answers"].Message, "refuses connections")
}

// checkPre runs the command with --pre against a management cluster and one to register.
func checkPre(t *testing.T, management, remote *rest.Config) (*explain.Checkup, int) {
	t.Helper()
	return checkBy(t, func(_, context string) (*rest.Config, error) {
		if context == "remote" {
			return rest.CopyConfig(remote), nil
		}
		return rest.CopyConfig(management), nil
	}, "--pre", "--remote-context", "remote", "-n", "pre-unreachable", "--timeout", enough)
}
