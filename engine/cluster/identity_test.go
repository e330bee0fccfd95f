package cluster_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// server is an API server that says which cluster it is, and counts other requests.
type server struct {
	*httptest.Server
	// uid is that of kube-system; empty to forbid it.
	uid   atomic.Pointer[string]
	other atomic.Int64
}

func newServer(t *testing.T, uid string) *server {
	t.Helper()
	s := &server{}
	s.uid.Store(&uid)
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch uid := *s.uid.Load(); {
		case r.URL.Path != "/api/v1/namespaces/kube-system":
			s.other.Add(1)
			_, _ = w.Write([]byte(`{"gitVersion":"v1.36.3"}`))
		case uid == "":
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"no"}`))
		default:
			_, _ = w.Write([]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"` + uid + `"}}`))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) kubeconfig(t *testing.T, name string) []byte {
	t.Helper()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	data, err := cluster.EncodeKubeconfig(name, &cluster.Credential{Server: s.URL, CA: ca, Token: "token"})
	require.NoError(t, err)
	return data
}

// enter registers a server by hand, in the namespace of a test.
func (s *server) enter(t *testing.T, config *rest.Config, namespace, name, uid string) {
	t.Helper()
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: cluster.SecretType,
		Data: map[string][]byte{cluster.SecretKey: s.kubeconfig(t, name)},
	}
	if uid != "" {
		secret.Annotations = map[string]string{cluster.UIDAnnotation: uid}
	}
	_, err := sandboxtest.Clientset(t, config).CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{})
	require.NoError(t, err)
	sandboxtest.Apply(t, config, kubernetesCluster(namespace, name))
}

// kubernetesCluster names the Secret of the same name.
func kubernetesCluster(namespace, name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion": "multicluster.solo.io/v1alpha1", "kind": "KubernetesCluster", "metadata": {"namespace": %q, "name": %q}}`, namespace, name)
}

// lead makes the Secret lead to the server.
func (s *server) lead(t *testing.T, config *rest.Config, namespace, name string) {
	t.Helper()
	secret := sandboxtest.Secret(t, config, namespace, name)
	secret.Data[cluster.SecretKey] = s.kubeconfig(t, name)
	_, err := sandboxtest.Clientset(t, config).CoreV1().Secrets(namespace).Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// management is the shared server, with a namespace for registrations.
func management(t *testing.T, namespace string) *rest.Config {
	t.Helper()
	config := registrationtest.APIServer(t)
	sandboxtest.MakeNamespace(t, config, namespace)
	return config
}

// request makes one request with a client of the registry.
func request(t *testing.T, config *rest.Config) error {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), waittest.Limit())
	defer cancel()
	_, err = client.RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	return err
}

const (
	uidA = "aaaaaaaa-0000-0000-0000-000000000001"
	uidB = "bbbbbbbb-0000-0000-0000-000000000002"
)

func TestAServerThatIsAnotherClusterIsNotUsed(t *testing.T) {
	t.Parallel()
	const namespace = "identity-other"
	config := management(t, namespace)
	a := newServer(t, uidA)
	a.enter(t, config, namespace, "east", uidB)
	_, r := run(t, config, namespace)
	members, _ := r.state()
	err := request(t, members["east"].Config)
	var other *cluster.OtherClusterError
	require.ErrorAs(t, err, &other)
	assert.ErrorContains(t, err, "has UID aaaaaaaa, that of the registered one bbbbbbbb")
	assert.Zero(t, a.other.Load(), "nothing but its identity was asked for")
}

func TestAChangedSecretIsCheckedBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	const namespace = "identity-changed"
	config := management(t, namespace)
	a, b, moved := newServer(t, uidA), newServer(t, uidB), newServer(t, uidA)
	a.enter(t, config, namespace, "east", "")
	_, r := run(t, config, namespace)
	members, _ := r.state()
	first := members["east"].Config
	require.NoError(t, request(t, first), "whichever cluster it is")

	b.lead(t, config, namespace, "east")
	refused := r.eventually(t, "it is refused", func(m map[string]cluster.Connection) bool { return m["east"].Refused != nil })
	assert.Same(t, first, refused["east"].Config)
	require.NoError(t, refused["east"].Err)
	assert.ErrorContains(t, refused["east"].Refused, "the previous connection stays in use: "+b.URL+" is another cluster")
	require.NoError(t, request(t, first))
	assert.Zero(t, b.other.Load())

	moved.lead(t, config, namespace, "east")
	now := r.eventually(t, "the same cluster has another address", func(m map[string]cluster.Connection) bool { return m["east"].Config != first })
	require.NoError(t, now["east"].Refused)
	require.NoError(t, request(t, now["east"].Config))
	assert.Positive(t, moved.other.Load())

	b.lead(t, config, namespace, "east")
	r.eventually(t, "it is refused", func(m map[string]cluster.Connection) bool { return m["east"].Refused != nil })
	moved.lead(t, config, namespace, "east")
	again := r.eventually(t, "it is restored", func(m map[string]cluster.Connection) bool { return m["east"].Refused == nil })
	assert.Same(t, now["east"].Config, again["east"].Config)
	assert.Zero(t, b.other.Load())
}

func TestAnAddressThatMovesToAnotherClusterIsNotUsed(t *testing.T) {
	t.Parallel()
	const namespace = "identity-moves"
	config := management(t, namespace)
	a := newServer(t, uidA)
	a.enter(t, config, namespace, "east", "")
	_, r := run(t, config, namespace)
	members, _ := r.state()
	require.NoError(t, request(t, members["east"].Config))
	served, to := a.other.Load(), uidB
	a.uid.Store(&to)
	require.NoError(t, request(t, members["east"].Config), "on the connection that was checked")
	a.CloseClientConnections()
	var other *cluster.OtherClusterError
	require.ErrorAs(t, request(t, members["east"].Config), &other)
	assert.Equal(t, served+1, a.other.Load())
	back := uidA
	a.uid.Store(&back)
	require.NoError(t, request(t, members["east"].Config))
}

func TestOneClusterUnderTwoNamesIsUsedUnderTheOlder(t *testing.T) {
	t.Parallel()
	const namespace = "identity-twice"
	config := management(t, namespace)
	a := newServer(t, uidA)
	a.enter(t, config, namespace, "west", "")
	_, r := run(t, config, namespace)
	members, _ := r.state()
	require.NoError(t, request(t, members["west"].Config))
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	clusters := client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace(namespace)
	require.Eventually(t, func() bool {
		west, err := clusters.Get(t.Context(), "west", metav1.GetOptions{})
		require.NoError(t, err)
		return time.Since(west.GetCreationTimestamp().Time) > 1100*time.Millisecond // timestamps have no fractions
	}, waittest.Limit(), 20*time.Millisecond)
	a.enter(t, config, namespace, "east", "")
	members = r.eventually(t, "the second name", func(m map[string]cluster.Connection) bool { return len(m) == 2 })
	served := a.other.Load()
	var same *cluster.SameClusterError
	require.ErrorAs(t, request(t, members["east"].Config), &same)
	assert.Equal(t, "west", same.Other)
	assert.Equal(t, served, a.other.Load())
	r.eventuallyErr(t, "east", "it is the cluster that is registered as west already; run `meshctl cluster deregister east`")
	members, _ = r.state()
	require.NoError(t, members["west"].Err)

	deleteRegistration(t, config, namespace, "west")
	members = r.eventually(t, "the first name is gone", func(m map[string]cluster.Connection) bool { return len(m) == 1 && m["east"].Err == nil })
	require.NoError(t, request(t, members["east"].Config))
}

func TestAClusterThatMayNotBeIdentifiedIsUsed(t *testing.T) {
	t.Parallel()
	const namespace = "identity-forbidden"
	config := management(t, namespace)
	a := newServer(t, "")
	a.enter(t, config, namespace, "east", uidA)
	_, r, log := runLogged(t, config, namespace)
	members, _ := r.state()
	require.NoError(t, request(t, members["east"].Config))
	assert.Contains(t, log.String(), "run `meshctl cluster register` again")
	assert.Equal(t, 1, strings.Count(log.String(), "kube-system"))
}
