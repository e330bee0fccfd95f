package apply_test

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// mute is an address that takes connections and never answers.
func mute(t *testing.T) *rest.Config {
	t.Helper()
	listener := sandboxtest.Listen(t, "127.0.0.1:0")
	return &rest.Config{Host: "https://" + listener.Addr().String(), TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

func TestDeadClustersDelayNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set("closed", &rest.Config{Host: "https://127.0.0.1:1"})
	sink.Set("mute", mute(t))
	sink.Set("unusable", &rest.Config{Host: "https://127.0.0.1:1", TLSClientConfig: rest.TLSClientConfig{CAData: []byte("no PEM")}})
	sink.Set(one, w.config)
	sink.Apply(output([]string{"closed", one, "mute", "unusable"},
		w.object(snapshot.VirtualService, "closed", "a", hosts("a")), w.object(snapshot.VirtualService, "closed", "b", hosts("a")),
		w.object(snapshot.VirtualService, "mute", "a", hosts("a")), w.object(snapshot.VirtualService, "unusable", "a", hosts("a")),
		w.object(snapshot.VirtualService, one, "a", hosts("a"))))
	w.eventually("the living cluster is served", func() bool { return w.exists(snapshot.VirtualService, "a") })

	// The silent one becomes a failure, too, but only after half a minute.
	refused := func() []snapshot.Failure {
		return slices.DeleteFunc(sink.Failures(), func(f snapshot.Failure) bool { return f.Ref.Name == "mute" })
	}
	w.eventually("the dead ones are known", func() bool { return len(refused()) == 2 })
	failures := refused()
	assert.Equal(t, snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: w.namespace, Name: "closed"}, failures[0].Ref, "one failure a cluster, not one an object")
	assert.Equal(t, "the API server refuses connections; nothing is written there until it answers", failures[0].What, "the same however often it is tried")
	assert.Equal(t, "unusable", failures[1].Ref.Name)

	sink.Remove("closed")
	sink.Remove("unusable")
	w.eventually("they are forgotten", func() bool { return len(refused()) == 0 })
}

func TestRestartAndRotationAndOrderAndMissingKind(t *testing.T) {
	t.Parallel()
	server := sandboxtest.APIServers(t, 1)[0]
	config, err := server.Config()
	require.NoError(t, err)
	w := worldOn(t, config)
	w.install(snapshot.ServiceEntry, snapshot.DestinationRule, snapshot.Gateway, snapshot.VirtualService)
	sink, _ := w.run()
	sink.Set(one, config)

	wanted := []*snapshot.Object{
		w.object(snapshot.VirtualService, one, "a", hosts("a")), w.object(snapshot.VirtualService, one, "b", hosts("b")),
		w.object(snapshot.DestinationRule, one, "a", hosts("a")), w.object(snapshot.ServiceEntry, one, "a", hosts("a")),
		w.object(snapshot.AuthorizationPolicy, one, "a", map[string]any{}),
	}
	sink.apply(output([]string{one}, wanted...))
	t.Run("a kind that is not served is a failure, until it is", func(t *testing.T) {
		require.Len(t, sink.Failures(), 1)
		assert.Contains(t, sink.Failures()[0].What, "authorizationpolicies.security.istio.io")
		assert.Contains(t, sink.Failures()[0].What, "install")
		w.install(snapshot.AuthorizationPolicy)
		w.eventually("it is written", func() bool { return len(sink.Failures()) == 0 })
		assert.True(t, w.exists(snapshot.AuthorizationPolicy, "a"))
	})
	t.Run("what others refer to is written first and deleted last", func(t *testing.T) {
		sink.apply(output([]string{one}))
		order := slices.Collect(slices.Values(auditedWrites(t, server)))
		assert.Equal(t, []string{
			"patch serviceentries", "patch destinationrules", "patch virtualservices", "patch virtualservices",
			"patch authorizationpolicies",
			"delete authorizationpolicies", "delete virtualservices", "delete virtualservices", "delete destinationrules", "delete serviceentries",
		}, order)
	})
	t.Run("after a crash and a restart, everything is written", func(t *testing.T) {
		require.NoError(t, server.Kill(t.Context(), local.APIServer))
		sink.Apply(output([]string{one}, wanted...))
		w.eventually("the cluster is a failure", func() bool { return len(sink.Failures()) == 1 })
		assert.Equal(t, snapshot.KubernetesCluster, sink.Failures()[0].Ref.Kind)
		sink.settle()
		require.NoError(t, server.Restart(t.Context(), local.APIServer))
		w.eventually("it recovers", func() bool { return len(sink.Failures()) == 0 })
		// A deletion just before the crash may reach the sink only when it watches again.
		for _, o := range wanted {
			w.eventually(o.Ref.String()+" is written", func() bool { return w.exists(o.Ref.Kind, o.Ref.Name) })
		}
	})
	t.Run("a new connection that does not work leaves the old in use", func(t *testing.T) {
		bad := rest.CopyConfig(config)
		bad.Host = "https://127.0.0.1:1"
		sink.Set(one, bad)
		sink.apply(output([]string{one}, append(wanted[1:], w.object(snapshot.VirtualService, one, "c", hosts("c")))...))
		assert.True(t, w.exists(snapshot.VirtualService, "c"))
		sink.Set(one, rest.CopyConfig(config))
		sink.apply(output([]string{one}, wanted[1:]...))
		assert.False(t, w.exists(snapshot.VirtualService, "c"))
		assert.Empty(t, sink.Failures())
	})
	t.Run("a kind that is taken away is a failure again", func(t *testing.T) {
		client := apiextensions.NewForConfigOrDie(config).ApiextensionsV1().CustomResourceDefinitions()
		require.NoError(t, client.Delete(t.Context(), "authorizationpolicies.security.istio.io", metav1.DeleteOptions{}))
		w.eventually("it is a failure", func() bool { return len(sink.Failures()) == 1 })
		w.install(snapshot.AuthorizationPolicy)
		w.eventually("it is written again", func() bool { return len(sink.Failures()) == 0 })
		assert.True(t, w.exists(snapshot.AuthorizationPolicy, "a"))
	})
}

// auditedWrites lists what the sink asked the API server to write, in order.
func auditedWrites(t *testing.T, server *local.Cluster) []string {
	t.Helper()
	raw, err := os.ReadFile(server.AuditLog())
	require.NoError(t, err)
	var out []string
	for line := range strings.Lines(string(raw)) {
		var e struct {
			Stage, Verb, UserAgent string
			ObjectRef              struct{ Resource, APIGroup string }
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.Stage == "ResponseComplete" && strings.HasSuffix(e.ObjectRef.APIGroup, "istio.io") && (e.Verb == "patch" || e.Verb == "delete") {
			out = append(out, e.Verb+" "+e.ObjectRef.Resource)
		}
	}
	return out
}

func TestSettledGivesUpWithItsContext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sink, _ := w.run()
	sink.Set("mute", mute(t))
	sink.Apply(output([]string{"mute"}, w.object(snapshot.VirtualService, "mute", "a", hosts("a"))))
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, sink.Settled(ctx), context.DeadlineExceeded)
}
