package serve

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/kube"
	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
)

// cable is between one replica and the management cluster, and can be cut: no request
// goes through it then.
type cable struct {
	base http.RoundTripper
	cut  *atomic.Bool
}

var errCut = errors.New("the cable is cut")

// RoundTrip implements http.RoundTripper.
func (c cable) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.cut.Load() {
		return nil, errCut
	}
	return c.base.RoundTrip(r)
}

// WrappedRoundTripper lets client-go find the transport.
func (c cable) WrappedRoundTripper() http.RoundTripper { return c.base }

// behind returns a configuration whose requests go through a cable.
func behind(config *rest.Config) (*rest.Config, *atomic.Bool) {
	cut := &atomic.Bool{}
	config = rest.CopyConfig(config)
	config.Wrap(func(base http.RoundTripper) http.RoundTripper { return cable{base, cut} })
	return config, cut
}

// homeCluster is a management cluster without meshes: what is written there are statuses.
type homeCluster struct {
	*local.Cluster
	t      *testing.T
	config *rest.Config
	client *kube.Client
	edits  int
}

func newHomeCluster(t *testing.T) *homeCluster {
	t.Helper()
	h := &homeCluster{Cluster: registrationtest.APIServers(t, 1)[0], t: t}
	h.config, h.client = configOf(t, h.Cluster), clientOf(t, h.Cluster)
	sandboxtest.MakeNamespace(t, h.config, "gloo-mesh")
	return h
}

// edit changes a TrafficPolicy; it returns its generation.
func (h *homeCluster) edit() int64 {
	h.t.Helper()
	h.edits++
	require.NoError(h.t, h.client.ApplyYAML(h.t.Context(), fmt.Appendf(nil, `
apiVersion: networking.mesh.gloo.solo.io/v1
kind: TrafficPolicy
metadata: {name: edited, namespace: gloo-mesh}
spec: {policy: {requestTimeout: %ds}}
`, h.edits)))
	return h.policy().GetGeneration()
}

func (h *homeCluster) policy() *unstructured.Unstructured {
	h.t.Helper()
	o, err := h.client.Get(h.t.Context(), kube.Policies("trafficpolicies"), "gloo-mesh", "edited")
	require.NoError(h.t, err)
	return o
}

// observed is the generation that the status is about.
func (h *homeCluster) observed() int64 {
	h.t.Helper()
	n, _, err := unstructured.NestedInt64(h.policy().Object, "status", "observedGeneration")
	require.NoError(h.t, err)
	return n
}

// works makes an edit and waits until it is carried out.
func (h *homeCluster) works() {
	h.t.Helper()
	generation := h.edit()
	until(h.t, "the edit is carried out", func() bool { return h.observed() == generation })
}

func (r *replica) ready(text string) bool {
	r.t.Helper()
	_, now := r.get("/readyz")
	return strings.HasPrefix(now, text)
}

// prompt is the Lease as it is by default.
func prompt(o *Options) { o.lease = leaseFor(DefaultLeaseDuration) }

const leads, standsBy = "ok\n", "ok: standing by"

func TestTheNextReplicaTakesOver(t *testing.T) {
	t.Parallel()
	home := newHomeCluster(t)
	config, cut := behind(home.config)
	first := start(t, config, "first", prompt)
	until(t, "first leads", func() bool { return first.ready(leads) })
	home.works()
	second := start(t, home.config, "second", prompt)
	until(t, "second stands by", func() bool { return second.ready(standsBy) })

	t.Log("a leader that is killed releases nothing")
	cut.Store(true)
	_, err := first.stop()
	require.NoError(t, err)
	began := time.Now()
	home.works()
	took := time.Since(began)
	t.Logf("from the death of the leader to the first write of the next one: %s", took)
	assert.Less(t, took, waittest.Soon())

	t.Log("a leader that ends releases the Lease")
	third := start(t, home.config, "third", prompt)
	until(t, "third stands by", func() bool { return third.ready(standsBy) })
	began = time.Now()
	ended, err := second.stop()
	require.NoError(t, err)
	until(t, "third leads", func() bool { return third.ready(leads) })
	took = time.Since(began)
	t.Logf("from SIGTERM to the end: %s; until the next one is ready: %s", ended, took)
	assert.Less(t, took, waittest.Soon())
	home.works()
}

func TestServeOutlivesTheManagementAPIServer(t *testing.T) {
	t.Parallel()
	for name, elect := range map[string]bool{"elected": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			home := newHomeCluster(t)
			r := start(t, home.config, "only", prompt, func(o *Options) { o.LeaderElect = elect })
			until(t, "it leads", func() bool { return r.ready(leads) })
			home.works()

			began := time.Now()
			require.NoError(t, home.Kill(t.Context(), local.APIServer))
			until(t, "it is not ready", func() bool {
				code, _ := r.get("/readyz")
				return code == http.StatusServiceUnavailable
			})
			t.Logf("not ready after %s", time.Since(began))
			// The outage lasts until all pauses between retries are long.
			until(t, "15 s", func() bool { return time.Since(began) > 15*time.Second })
			_, text := r.get("/readyz")
			t.Log(text)
			assert.Contains(t, text, "refuses connections")
			require.NoError(t, home.Restart(t.Context(), local.APIServer))
			began = time.Now()
			home.works()
			t.Logf("from the return of the API server to the first write: %s", time.Since(began))
			until(t, "it is ready", func() bool { return r.ready(leads) })
			select {
			case err := <-r.ended:
				require.FailNow(t, "it ended", "%v", err)
			default:
			}
		})
	}
}

func TestWhoLosesTheLeaseStandsBy(t *testing.T) {
	t.Parallel()
	home := newHomeCluster(t)
	r := start(t, home.config, "robbed", prompt)
	until(t, "it leads", func() bool { return r.ready(leads) })
	home.works()
	steal(t, home.config)
	until(t, "it stands by", func() bool { return r.ready(standsBy + "; the leader is thief") })
	generation := home.edit()
	until(t, "the Lease expires", func() bool { return !r.ready(standsBy) || home.observed() == generation })
	until(t, "it leads again", func() bool { return r.ready(leads) })
	until(t, "the edit is carried out", func() bool { return home.observed() == generation })
}
