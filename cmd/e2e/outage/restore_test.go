package outage

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/meshctl/meshctl/demo"
	"github.com/meshctl/meshctl/demo/app"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// shift is a TrafficPolicy of the demo.
const shift = "reviews-shift"

// TestTheManagementPlaneMoves: it is restored from its backup in an empty cluster, and the serve of the former one is gone for good. No
// request fails meanwhile, and the new serve finds everything in the meshes as it is to be: it writes none of it again, and issues nobody
// another certificate.
func TestTheManagementPlaneMoves(t *testing.T) {
	shard.Only(t, shard.Demo)
	sandboxtest.Proxies(t)
	d := start(t)
	d.well()
	file, kubeconfig := filepath.Join(t.TempDir(), "meshctl.backup"), sandboxtest.APIServers(t, 1)[0].Kubeconfig()

	stopped := d.load()
	d.must("backup", file, "--with-secrets")
	before := d.written()
	require.Greater(t, len(before), 10)
	d.killProcess(d.report().Serve)
	d.must("restore", file, "--kubeconfig", kubeconfig)
	d.serve(kubeconfig)
	waittest.NoError(t, "what was restored is in force", func() error {
		out, _, code := d.run("check", "-o", "short", "--kubeconfig", kubeconfig)
		if code != 0 {
			return fmt.Errorf("check exits with %d: %s", code, out)
		}
		return nil
	})
	assert.Equal(t, before, d.written())
	sent := stopped()
	require.NoError(t, asEver(sent))
	require.NoError(t, asEver(d.call()))

	t.Log("an edit there is written in the meshes")
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	policies := client.Resource(snapshot.TrafficPolicy.GroupVersionResource()).Namespace(snapshot.DefaultNamespace)
	_, err = policies.Patch(t.Context(), shift, types.MergePatchType, []byte(`{"spec":{"policy":{"requestTimeout":"33s"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	d.must("wait", "tp/"+shift, "--for", "in-force", "--kubeconfig", kubeconfig)
	after := d.written()
	assert.Len(t, after, len(before))
	changed := slices.DeleteFunc(slices.Sorted(maps.Keys(after)), func(name string) bool { return after[name] == before[name] })
	require.NotEmpty(t, changed)
	for _, name := range changed {
		// Callers in the other cluster have routes of their own, beside the host that they call.
		assert.Regexp(t, "^cluster-[12] VirtualService (bookinfo/reviews|istio-system/reviews-bookinfo-cluster-1)$", name, "the edit is about nothing else")
	}
}

// load sends requests from productpage-v1 to reviews until it is stopped.
func (d *running) load() (stop func() traffic) {
	ctx, cancel := context.WithCancel(d.t.Context())
	done := make(chan error, 1)
	sent := traffic{by: map[string]int{}}
	go func() {
		done <- demo.Send(ctx, d.options, "productpage-v1", app.Call{URL: "http://reviews:9080", Parallel: 2, Rate: 50, EveryMs: 1000}, func(all demo.Traffic) {
			for _, a := range all.Answers {
				if a.Status == 200 {
					sent.by[a.Cluster] += a.Count
				} else {
					sent.failed += a.Count
				}
			}
		})
	}()
	return func() traffic {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			require.NoError(d.t, err)
		}
		return sent
	}
}

// written are the resource versions of what meshctl writes for the meshes, and of the certificates of their control planes.
func (d *running) written() map[string]string {
	d.t.Helper()
	all := map[string]string{}
	for cluster := range maps.Keys(d.clients) {
		config, err := d.config(cluster)
		require.NoError(d.t, err)
		client, err := dynamic.NewForConfig(config)
		require.NoError(d.t, err)
		for _, kind := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Write) {
			if !strings.HasSuffix(kind.Info().Group, "istio.io") {
				continue // what agents say in the others goes on
			}
			list, err := client.Resource(kind.GroupVersionResource()).List(d.t.Context(), metav1.ListOptions{LabelSelector: snapshot.NetworkingOwnerLabel})
			if apierrors.IsNotFound(err) {
				continue
			}
			require.NoError(d.t, err)
			for _, o := range list.Items {
				all[fmt.Sprintf("%s %s %s/%s", cluster, kind, o.GetNamespace(), o.GetName())] = o.GetResourceVersion()
			}
		}
		certificates, err := client.Resource(snapshot.Secret.GroupVersionResource()).Namespace("istio-system").Get(d.t.Context(), "cacerts", metav1.GetOptions{})
		require.NoError(d.t, err)
		all[cluster+" cacerts"] = certificates.GetResourceVersion()
	}
	return all
}

// serve starts the management plane of a cluster, until the test ends.
func (d *running) serve(kubeconfig string) {
	d.t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(d.t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(d.t, err)
	metrics := listener.Addr().String()
	require.NoError(d.t, listener.Close())
	ctx, cancel := context.WithCancel(context.WithoutCancel(d.t.Context()))
	cmd := exec.CommandContext(ctx, d.options.Meshctl, "serve", "--kubeconfig", kubeconfig, "--metrics-bind", metrics, "--debug-bind=")
	log, err := os.Create(filepath.Join(d.t.TempDir(), "serve.log"))
	require.NoError(d.t, err)
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(d.t, cmd.Start())
	d.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
		_ = log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && d.t.Failed() {
			d.t.Logf("serve said:\n%s", text)
		}
	})
}
