package watch_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/watch"
)

// watched is a Source that runs, and what it logged.
type watched struct {
	*watch.Source
	t   *testing.T
	log *logged
}

// logged collects log lines from many goroutines.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// start runs a Source against a management cluster until the test ends.
func start(t *testing.T, management *rest.Config, options watch.Options) *watched {
	t.Helper()
	log := &logged{}
	options.Management = management
	options.Log = slog.New(slog.NewTextHandler(log, nil))
	// A server on a busy machine may be slow; one that is silent is found out later.
	options.ProbeInterval, options.ProbeTimeout = time.Second, 10*time.Second
	source, err := watch.New(options)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			assert.NoError(t, err)
		case <-time.After(waittest.Limit()):
			t.Error("the source does not stop")
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return &watched{Source: source, t: t, log: log}
}

// until takes Inputs as they change until one satisfies a condition.
func (w *watched) until(what string, condition func(*snapshot.Input) bool) *snapshot.Input {
	w.t.Helper()
	deadline := time.After(waittest.Limit())
	for {
		if input := w.Input(); input != nil && condition(input) {
			return input
		}
		select {
		case <-w.Changed():
		case <-deadline:
			require.FailNow(w.t, "never came: "+what, "%s", w.log)
		}
	}
}

// named finds a cluster in an Input, or an empty one.
func named(input *snapshot.Input, name string) *snapshot.Cluster {
	for _, c := range input.Clusters {
		if c.Name == name {
			return c
		}
	}
	return &snapshot.Cluster{}
}

// is waits for a state of a cluster.
func (w *watched) is(name string, sync snapshot.Sync) *snapshot.Cluster {
	w.t.Helper()
	return named(w.until(name+" "+sync.String(), func(i *snapshot.Input) bool {
		c := named(i, name)
		return c.Name == name && c.Sync == sync
	}), name)
}

// hasService waits until a cluster's lists hold a Service, and returns them.
func (w *watched) hasService(name, service string) *snapshot.Cluster {
	w.t.Helper()
	return named(w.until("service "+service, func(i *snapshot.Input) bool { return serviceIn(named(i, name), service) != nil }), name)
}

func serviceIn(c *snapshot.Cluster, name string) *corev1.Service {
	for _, s := range c.Services {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// createService makes a Service in the namespace default.
func createService(t *testing.T, config *rest.Config, name string) *corev1.Service {
	t.Helper()
	s, err := client(t, config).CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80}}, Selector: map[string]string{"app": name}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	return s
}

// createSettings makes the ConfigMap of a control plane, with a trust domain.
func createSettings(t *testing.T, config *rest.Config, namespace, name, domain string) {
	t.Helper()
	_, err := client(t, config).CoreV1().ConfigMaps(namespace).Create(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"mesh": "trustDomain: " + domain},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// createIstiod makes the Deployment of a control plane with a revision, or without one if
// that is empty.
func createIstiod(t *testing.T, config *rest.Config, namespace, revision string) {
	t.Helper()
	name, labels := "istiod", map[string]string{"app": "istiod"}
	if revision != "" {
		name, labels["istio.io/rev"] = name+"-"+revision, revision
	}
	_, err := client(t, config).AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "discovery", Image: "docker.io/istio/pilot:1.31.1"}}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func client(t *testing.T, config *rest.Config) *kubernetes.Clientset {
	t.Helper()
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1
	c, err := kubernetes.NewForConfig(unlimited)
	require.NoError(t, err)
	return c
}

// installed returns an API server that has our CRDs and that all tests share.
func installed(t *testing.T) *rest.Config {
	t.Helper()
	return registrationtest.APIServer(t)
}

// namespace makes a namespace that only this test uses.
func namespace(t *testing.T, config *rest.Config) string {
	t.Helper()
	name := strings.ToLower(fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), time.Now().UnixNano()))
	name = name[max(0, len(name)-60):]
	name = strings.TrimLeft(name, "-")
	_, err := client(t, config).CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return name
}

func contains(l *logged, text string) bool { return strings.Contains(l.String(), text) }

// wire counts the watches that are open over a configuration.
type wire struct {
	open, ever atomic.Int32
}

// tap returns a copy of config whose watches are counted.
func (w *wire) tap(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &tapped{wire: w, next: next} })
	return config
}

type tapped struct {
	wire *wire
	next http.RoundTripper
}

func (t *tapped) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil && request.URL.Query().Get("watch") != "" {
		t.wire.open.Add(1)
		t.wire.ever.Add(1)
		response.Body = &tappedBody{ReadCloser: response.Body, wire: t.wire}
	}
	return response, err
}

func (t *tapped) WrappedRoundTripper() http.RoundTripper { return t.next }

type tappedBody struct {
	io.ReadCloser
	wire *wire
	once sync.Once
}

func (b *tappedBody) Close() error {
	b.once.Do(func() { b.wire.open.Add(-1) })
	return b.ReadCloser.Close()
}
