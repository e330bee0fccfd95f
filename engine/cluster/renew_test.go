package cluster_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRenewerStoresNoTokenThatDoesNotWork puts a proxy before an API server, which answers
// requests for tokens with a token that nobody accepts.
func TestRenewerStoresNoTokenThatDoesNotWork(t *testing.T) {
	t.Parallel()
	const name = "unproven"
	config := registerSelf(t, name)
	good, _, err := cluster.ParseSecret(sandboxtest.Secret(t, config, name, name))
	require.NoError(t, err)
	target, err := url.Parse(config.Host)
	require.NoError(t, err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
	require.NoError(t, err)
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Set("Accept", "application/json")
		},
		Transport:      transport,
		ModifyResponse: spoilTokens,
	})
	t.Cleanup(proxy.Close)
	good.Server, good.ServerName = proxy.URL, ""
	good.CA = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: proxy.Certificate().Raw})
	data, err := cluster.EncodeKubeconfig(name, good)
	require.NoError(t, err)
	setKubeconfig(t, config, name, data)

	registry, _ := run(t, config, name)
	clock := clocktesting.NewFakeClock(time.Now())
	renewer, err := cluster.NewRenewer(registry, cluster.RenewerOptions{Management: config, Clock: clock})
	require.NoError(t, err)
	before := sandboxtest.Secret(t, config, name, name)
	start(t, renewer)
	waitForSleep(t, clock)
	clock.SetTime(renewer.Status()[0].RenewAt.Add(time.Second))
	require.Eventually(t, func() bool { return len(renewer.Failing()) == 1 }, waittest.Limit(), 20*time.Millisecond)
	assert.ErrorContains(t, renewer.Failing()[0].Err, "Unauthorized")
	assert.Equal(t, before.ResourceVersion, sandboxtest.Secret(t, config, name, name).ResourceVersion)
	assert.Equal(t, before.Data, sandboxtest.Secret(t, config, name, name).Data)
}

// spoilTokens replaces the tokens that a server issues.
func spoilTokens(response *http.Response) error {
	if !strings.HasSuffix(response.Request.URL.Path, "/token") {
		return nil
	}
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	var request authenticationv1.TokenRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return err
	}
	request.Status.Token = "spoiled"
	if body, err = json.Marshal(&request); err != nil {
		return err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	response.Header.Set("Content-Length", strconv.Itoa(len(body)))
	response.ContentLength = int64(len(body))
	return nil
}

// TestRenewerAsksForTheLifetimeOfTheRegistration changes the annotation of a cluster, and
// sees which requests pass the guard.
func TestRenewerAsksForTheLifetimeOfTheRegistration(t *testing.T) {
	t.Parallel()
	const name = "lifetime"
	config := registerSelf(t, name)
	options := registration.Options{Name: name, RemoteConfig: config, MgmtConfig: config, MgmtNamespace: name, RemoteNamespace: remoteNamespace(name)}
	again := options
	again.TokenTTL = 8 * 24 * time.Hour
	_, err := registration.Register(t.Context(), again)
	require.NoError(t, err)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	clusters := client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace(name)
	kc, err := clusters.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, again.TokenTTL.String(), kc.GetAnnotations()[cluster.LifetimeAnnotation])
	_, err = clusters.Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+cluster.LifetimeAnnotation+`":"168h"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)

	registry, _ := run(t, config, name)
	clock := clocktesting.NewFakeClock(time.Now())
	guard := &passed{}
	renewer, err := cluster.NewRenewer(registry, cluster.RenewerOptions{Management: config, Clock: clock, Guard: guard.guard})
	require.NoError(t, err)
	start(t, renewer)
	waitForSleep(t, clock)
	clock.SetTime(renewer.Status()[0].RenewAt.Add(time.Second))
	require.Eventually(t, func() bool { return renewer.Status()[0].Granted() == 7*24*time.Hour }, waittest.Limit(), 20*time.Millisecond)
	_, life, err := cluster.ParseSecret(sandboxtest.Secret(t, config, name, name))
	require.NoError(t, err)
	assert.Equal(t, 7*24*time.Hour, life.Granted())
	assert.Regexp(t, "POST /api/v1/namespaces/lifetime-agent/serviceaccounts/lifetime-...../token\n", strings.Join(guard.list(), "\n")+"\n")

	// Only a registration gives a longer life.
	_, err = clusters.Patch(t.Context(), name, types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+cluster.LifetimeAnnotation+`":"9000h"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		clock.Step(10 * time.Second) // the clock is where the token is due
		failing := renewer.Failing()
		if assert.NotEmpty(c, failing) {
			assert.ErrorContains(c, failing[0].Err, "register the cluster again with --token-ttl")
		}
	}, waittest.Limit(), 20*time.Millisecond)
}

// passed remembers the requests of the configurations that it returns.
type passed struct {
	mu       sync.Mutex
	requests []string
}

func (p *passed) guard(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(base http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			p.mu.Lock()
			p.requests = append(p.requests, r.Method+" "+r.URL.Path)
			p.mu.Unlock()
			return base.RoundTrip(r)
		})
	})
	return config
}

func (p *passed) list() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.requests
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestLifetimesOutOfBoundsAreNone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 0, "a week": 0, "1m": 0, "2000000h": 0, "10m": 10 * time.Minute, "168h": 168 * time.Hour} {
		assert.Equal(t, want, cluster.ParseLifetime(text), text)
	}
}
