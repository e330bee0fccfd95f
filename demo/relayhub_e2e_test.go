package demo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
)

// TestRelayHub: of two replicas of the management plane the leader is killed, twice, while users edit the routes of requests that are under
// way: no request fails, nothing is deleted, and each edit arrives. Then the management plane is away for a minute: the agent repairs what
// is damaged, and nothing else changes, also when the management plane is back.
// Not parallel: it starts two clusters.
func TestRelayHub(t *testing.T) {
	shard.Only(t, shard.Demo)
	d := startRelayDemo(t)
	ended := d.load()
	edits := d.edits()
	edits.arrive("the first edit")

	t.Log("the leader is killed, and the other replica takes over")
	second := d.second()
	crashServe(t, d.opts)
	second.leads()
	require.NoError(t, demo.Up(t.Context(), d.opts)) // it stands by, and passes the agent on
	edits.arrive("an edit, through the replica that stands by")

	t.Log("the leader behind the one that stands by is killed")
	second.kill()
	edits.make() // nobody leads now
	edits.arrive("an edit, after the other one has taken over")
	edits.stop()
	edits.arrive("the last edit")

	t.Log("the management plane is away for a minute")
	waittest.Until(t, "the agent is connected", func() bool { return d.state() == "connected" })
	before := d.objects()
	require.Greater(t, len(before), 15)
	crashServe(t, d.opts)
	minute := time.NewTimer(time.Minute)
	d.damage()
	d.detours()
	<-minute.C
	after := d.objects()
	repaired := []string{"destinationrules bookinfo/reviews", "virtualservices bookinfo/reviews"}
	for _, name := range repaired {
		assert.Equal(t, before[name].content, after[name].content, "%s is as before", name)
	}
	d.same(before, after, func(name string) bool { return slices.Contains(repaired, name) })

	t.Log("it is back")
	require.NoError(t, demo.Up(t.Context(), d.opts))
	edits.make()
	edits.arrive("an edit")
	d.meshctl("cluster", "verify", "cluster-2")
	d.same(after, d.objects(), func(name string) bool { // the edit is about these
		return strings.HasPrefix(name, "virtualservices ") && strings.Contains(name, "/reviews")
	})
	ended()
	d.ends()
}

// replica is another process of the management plane.
type replica struct {
	t       *testing.T
	cmd     *exec.Cmd
	metrics string
}

// second starts another replica of the management plane, which takes agents, too, and waits until it stands by.
func (d *relayDemo) second() *replica {
	d.t.Helper()
	r := &replica{t: d.t, metrics: sandboxtest.Address(d.t)}
	hub := sandboxtest.Address(d.t)
	log := &sandboxtest.Buffer{}
	r.cmd = exec.Command(d.opts.Meshctl, "serve", "--kubeconfig", filepath.Join(d.opts.Dir, "kubeconfig"), "--context", "cluster-1",
		"--metrics-bind", r.metrics, "--debug-bind=", "--lease-duration=20s", "--relay-bind", hub, "--relay-advertise", hub)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(d.t, r.cmd.Start())
	d.t.Cleanup(func() {
		_ = r.cmd.Process.Kill() // it may have ended
		_ = r.cmd.Wait()
		if d.t.Failed() {
			d.t.Logf("the other replica:\n%s", log.String())
		}
	})
	waittest.NoError(d.t, "the other replica stands by", func() error { return r.says("ok: standing by") })
	return r
}

// leads waits until the replica is the leader, and ready.
func (r *replica) leads() {
	r.t.Helper()
	waittest.NoError(r.t, "the other replica leads", func() error { return r.says("ok\n") })
}

// says returns an error unless the replica is ready, and says so.
func (r *replica) says(want string) error {
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.metrics+"/readyz", nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && (len(body) < len(want) || string(body[:len(want)]) != want) {
		err = fmt.Errorf("it says %q, not %q", body, want)
	}
	return err
}

func (r *replica) kill() {
	r.t.Helper()
	require.NoError(r.t, r.cmd.Process.Kill())
}

// edited is the policy that is edited: both its routes are those of requests that are under way.
const edited = `apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: edited, namespace: gloo-mesh}
spec:
  destinationSelector:
  - kubeServiceRefs:
      services: [{name: reviews, namespace: bookinfo, clusterName: cluster-1}, {name: reviews, namespace: bookinfo, clusterName: cluster-2}]
  policy: {requestTimeout: %s}
`

// edits are those of a user, one after the other.
type edits struct {
	d    *relayDemo
	stop func()
	// turn holds the number of the last edit.
	turn chan int
}

// pace is the time between two edits.
const pace = 300 * time.Millisecond

// edits begins to edit, until it is stopped.
func (d *relayDemo) edits() *edits {
	d.t.Helper()
	e := &edits{d: d, turn: make(chan int, 1)}
	e.turn <- 100
	e.make()
	ctx, cancel := context.WithCancel(d.t.Context())
	ended := make(chan error, 1)
	go func() {
		ticker := time.NewTicker(pace)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				ended <- nil
				return
			case <-ticker.C:
			}
			if err := e.next(); err != nil {
				ended <- err
				return
			}
		}
	}()
	e.stop = func() {
		cancel()
		require.NoError(d.t, <-ended)
		n := <-e.turn
		e.turn <- n
		d.t.Logf("%d edits", n-100)
	}
	return e
}

// make makes one edit.
func (e *edits) make() {
	e.d.t.Helper()
	require.NoError(e.d.t, e.next())
}

// timeout is what the n-th edit sets, which no other one does.
func timeout(n int) time.Duration { return time.Duration(n) * time.Second }

func (e *edits) next() error {
	n := <-e.turn
	defer func() { e.turn <- n }()
	objects, err := kube.Decode(fmt.Appendf(nil, edited, timeout(n+1)))
	if err != nil {
		return err
	}
	body, err := json.Marshal(objects[0])
	if err != nil {
		return err
	}
	// The test may have ended, and the edit has been made then all the same.
	_, err = e.d.here.Resource(kube.Policies("trafficpolicies")).Namespace("gloo-mesh").
		Patch(context.WithoutCancel(e.d.t.Context()), "edited", types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "user"})
	if err == nil {
		n++
	}
	return err
}

// arrive waits until the last edit until now, or a later one, is in force in cluster-2.
func (e *edits) arrive(what string) {
	t := e.d.t
	t.Helper()
	n := <-e.turn
	e.turn <- n
	began := time.Now()
	waittest.NoError(t, what+" arrives in cluster-2", func() error {
		route, err := e.d.there.Resource(kube.Networking("virtualservices")).Namespace("bookinfo").Get(t.Context(), "reviews", metav1.GetOptions{})
		if err != nil {
			return err
		}
		raw, err := json.Marshal(route.Object["spec"])
		if err != nil {
			return err
		}
		var spec struct{ HTTP []struct{ Timeout string } }
		if err := json.Unmarshal(raw, &spec); err != nil {
			return err
		}
		if len(spec.HTTP) == 0 {
			return errors.New("it has no route")
		}
		set, err := time.ParseDuration(spec.HTTP[0].Timeout)
		if err == nil && set < timeout(n) {
			err = fmt.Errorf("the timeout is %s, want %s or more", set, timeout(n))
		}
		return err
	})
	t.Logf("%s has arrived after %s", what, time.Since(began).Round(time.Millisecond))
}

// detours changes a route of meshctl in cluster-2 like somebody who may, and waits until it is as before.
func (d *relayDemo) detours() {
	d.t.Helper()
	routes := d.there.Resource(kube.Networking("virtualservices")).Namespace("bookinfo")
	before, err := routes.Get(d.t.Context(), "reviews", metav1.GetOptions{})
	require.NoError(d.t, err)
	_, err = routes.Patch(d.t.Context(), "reviews", types.JSONPatchType,
		[]byte(`[{"op":"replace","path":"/spec/http/0/timeout","value":"7s"}]`), metav1.PatchOptions{FieldManager: "somebody-else"})
	require.NoError(d.t, err)
	waittest.NoError(d.t, "it is as before", func() error {
		now, err := routes.Get(d.t.Context(), "reviews", metav1.GetOptions{})
		if err == nil && !assert.ObjectsAreEqual(before.Object["spec"], now.Object["spec"]) {
			err = fmt.Errorf("%v, was %v", now.Object["spec"], before.Object["spec"])
		}
		return err
	})
}

// standing is which version of an object is in cluster-2, and what it says.
type standing struct{ version, content string }

// objects are those of cluster-2 of the kinds that meshctl writes, whoever wrote them, by "kind namespace/name".
func (d *relayDemo) objects() map[string]standing {
	d.t.Helper()
	out := map[string]standing{}
	for _, kind := range writtenKinds() {
		list, err := d.there.Resource(kind).List(d.t.Context(), metav1.ListOptions{})
		require.NoError(d.t, err)
		for i := range list.Items {
			o := &list.Items[i]
			content, err := json.Marshal([]any{o.GetLabels(), o.GetAnnotations(), o.Object["spec"]})
			require.NoError(d.t, err)
			version := o.GetResourceVersion()
			if kind.Group == "certificates.mesh.gloo.solo.io" { // agents write their status
				version = strconv.FormatInt(o.GetGeneration(), 10)
			}
			out[kind.Resource+" "+o.GetNamespace()+"/"+o.GetName()] = standing{string(o.GetUID()) + " " + version, string(content)}
		}
	}
	return out
}

// same checks that the same objects were there at two times, and that nobody wrote any in between but those that may be written.
func (d *relayDemo) same(before, after map[string]standing, written func(name string) bool) {
	d.t.Helper()
	for name, was := range before {
		is, there := after[name]
		assert.True(d.t, there, "%s is gone", name)
		if !written(name) {
			assert.Equal(d.t, was, is, "%s was written", name)
		}
	}
	for name := range after {
		assert.Contains(d.t, before, name, "it is new")
	}
}
