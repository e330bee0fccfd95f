package cluster_test

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// recorder is a handler that remembers.
type recorder struct {
	mu      sync.Mutex
	members map[string]cluster.Connection
	events  []string
	judged  map[string]string
}

func (r *recorder) Set(m cluster.Connection) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.members[m.Name] = m
	event := "set " + m.Name
	if m.Err != nil {
		event += ": " + m.Err.Error()
	}
	if m.Refused != nil {
		event += ": " + m.Refused.Error()
	}
	r.events = append(r.events, event)
}

func (r *recorder) Renewed(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, "renewed "+name)
}

func (r *recorder) CredentialObserved(name, fingerprint string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.judged == nil {
		r.judged = map[string]string{}
	}
	r.judged[name] = fingerprint
}

func (r *recorder) observedOf(name string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.judged[name]
}

func (r *recorder) Remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.members, name)
	r.events = append(r.events, "remove "+name)
}

func (r *recorder) state() (members map[string]cluster.Connection, events []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.members), slices.Clone(r.events)
}

// eventually waits until the members are as wanted.
func (r *recorder) eventually(t *testing.T, why string, want func(map[string]cluster.Connection) bool) map[string]cluster.Connection {
	t.Helper()
	require.Eventually(t, func() bool { members, _ := r.state(); return want(members) }, waittest.Limit(), 10*time.Millisecond, why)
	members, _ := r.state()
	return members
}

func (r *recorder) eventuallyErr(t *testing.T, name, want string) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		members, _ := r.state()
		assert.Contains(c, members, name)
		assert.ErrorContains(c, members[name].Err, want)
		assert.Nil(c, members[name].Config)
	}, waittest.Limit(), 10*time.Millisecond)
}

// run starts a registry and waits until it is synced.
func run(t *testing.T, config *rest.Config, namespace string) (*cluster.Registry, *recorder) {
	t.Helper()
	registry, r, _ := runLogged(t, config, namespace)
	return registry, r
}

// runLogged is run, with the log of the registry.
func runLogged(t *testing.T, config *rest.Config, namespace string) (*cluster.Registry, *recorder, *sandboxtest.Buffer) {
	t.Helper()
	log := &sandboxtest.Buffer{}
	registry, err := cluster.NewRegistry(config, namespace, "meshctl/test", slog.New(slog.NewTextHandler(log, nil)), nil)
	require.NoError(t, err)
	r := &recorder{members: map[string]cluster.Connection{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- registry.Run(ctx, r) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-done) })
	select {
	case <-registry.Synced():
	case <-time.After(waittest.Limit()):
		t.Fatal("the registry does not sync")
	}
	return registry, r, log
}

// remoteNamespace is where registerSelf puts the accounts of a registration.
func remoteNamespace(name string) string { return name + "-agent" }

// registerSelf registers the shared server under a name of the test's own.
func registerSelf(t *testing.T, name string) *rest.Config {
	t.Helper()
	config := sandboxtest.APIServer(t)
	_, err := registration.Register(t.Context(), registration.Options{Name: name, RemoteConfig: config, MgmtConfig: config,
		MgmtNamespace: name, RemoteNamespace: remoteNamespace(name), TokenTTL: registration.MinTokenTTL})
	require.NoError(t, err)
	return config
}

func setKubeconfig(t *testing.T, config *rest.Config, name string, kubeconfig []byte) {
	t.Helper()
	secret := sandboxtest.Secret(t, config, name, name)
	secret.Data = map[string][]byte{"kubeconfig": kubeconfig}
	_, err := sandboxtest.Clientset(t, config).CoreV1().Secrets(name).Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
}

// deleteRegistration deletes a KubernetesCluster, and leaves its Secret.
func deleteRegistration(t *testing.T, config *rest.Config, namespace, name string) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	require.NoError(t, client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

func deleteSecret(t *testing.T, config *rest.Config, name string) {
	t.Helper()
	require.NoError(t, sandboxtest.Clientset(t, config).CoreV1().Secrets(name).Delete(t.Context(), name, metav1.DeleteOptions{}))
}

func TestRegistryKeepsAClusterWhateverItsSecretSays(t *testing.T) {
	t.Parallel()
	const name = "keeps"
	config := registerSelf(t, name)
	_, r := run(t, config, name)
	members, _ := r.state()
	require.NoError(t, members[name].Err)
	assert.Equal(t, "cluster.local", members[name].Domain)
	assert.Equal(t, "system:serviceaccount:keeps-agent:keeps", sandboxtest.UserInfo(t, members[name].Config).Username)
	first := members[name].Config
	good := sandboxtest.Secret(t, config, name, name)

	deleteSecret(t, config, name)
	r.eventuallyErr(t, name, cluster.ErrNoSecret.Error())
	kubeconfig := good.Data["kubeconfig"]
	good.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: name}
	good.Data["kubeconfig"] = []byte("users: [{user: {exec: {command: sh}}}]")
	_, err := sandboxtest.Clientset(t, config).CoreV1().Secrets(name).Create(t.Context(), good, metav1.CreateOptions{})
	require.NoError(t, err)
	r.eventuallyErr(t, name, "it runs a program (exec)")
	setKubeconfig(t, config, name, []byte{0})
	r.eventuallyErr(t, name, "not valid YAML")
	setKubeconfig(t, config, name, kubeconfig)
	members = r.eventually(t, "repaired at once", func(m map[string]cluster.Connection) bool { return m[name].Err == nil })
	assert.Same(t, first, members[name].Config, "the same server: whoever holds the client goes on")

	deleteRegistration(t, config, name, name)
	r.eventually(t, "a Secret registers nothing", func(m map[string]cluster.Connection) bool { return len(m) == 0 })
	_, events := r.state()
	assert.Equal(t, "remove "+name, events[len(events)-1])
	assert.Equal(t, 1, countPrefix(events, "remove"))
}

func TestRegistryReactsOnlyToWhatChanges(t *testing.T) {
	t.Parallel()
	const name = "reacts"
	config := registerSelf(t, name)
	_, r := run(t, config, name)
	before, _ := r.state()
	old := credentialID(t, before[name].Config)
	r.eventually(t, "it is known which cluster it is", func(m map[string]cluster.Connection) bool { return m[name].UID != "" })
	_, eventsBefore := r.state()

	// A new token alone is taken up, and is no event.
	reissue(t, config, name)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NotEqual(c, old, credentialID(t, before[name].Config))
	}, waittest.Limit(), 20*time.Millisecond)
	after, eventsAfter := r.state()
	assert.Equal(t, eventsBefore, withoutRenewals(eventsAfter))
	assert.Same(t, before[name].Config, after[name].Config)
	r.eventually(t, "the handler knows of the token", func(map[string]cluster.Connection) bool {
		_, events := r.state()
		return slices.Contains(events, "renewed "+name)
	})

	// Secrets of other types and namespaces are nobody's clusters.
	sandboxtest.MakeNamespace(t, config, "reacts-not")
	createIn(t, config, "reacts-not", "other", cluster.SecretType)
	createIn(t, config, name, "opaque", corev1.SecretTypeOpaque)
	createIn(t, config, name, "unnamed", cluster.SecretType) // no KubernetesCluster names it

	// Another server is another client.
	c, err := cluster.ParseKubeconfig(sandboxtest.Secret(t, config, name, name).Data["kubeconfig"])
	require.NoError(t, err)
	c.Server = "https://localhost" + c.Server[len("https://127.0.0.1"):]
	data, err := cluster.EncodeKubeconfig(name, c)
	require.NoError(t, err)
	setKubeconfig(t, config, name, data)
	moved := r.eventually(t, "a new client", func(m map[string]cluster.Connection) bool { return m[name].Config != before[name].Config })
	assert.Equal(t, c.Server, moved[name].Config.Host)
	assert.Len(t, moved, 1)
	sandboxtest.UserInfo(t, moved[name].Config)
	sandboxtest.UserInfo(t, before[name].Config)
	_, events := r.state()
	assert.Len(t, withoutRenewals(events), len(eventsBefore)+1)
}

func TestRegistryFollowsTheSecretName(t *testing.T) {
	t.Parallel()
	const name = "follows"
	config := registerSelf(t, name)
	_, r := run(t, config, name)
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	clusters := client.Resource(snapshot.KubernetesCluster.GroupVersionResource()).Namespace(name)
	kc, err := clusters.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, clusters.Delete(t.Context(), name, metav1.DeleteOptions{}))
	kc.SetName("renamed")
	kc.SetResourceVersion("")
	kc.SetUID("")
	_, err = clusters.Create(t.Context(), kc, metav1.CreateOptions{})
	require.NoError(t, err)
	r.eventually(t, "one cluster, by the KubernetesCluster's name", func(m map[string]cluster.Connection) bool {
		return len(m) == 1 && m["renamed"].Config != nil
	})
}

func TestRenewerRotatesBeforeExpiry(t *testing.T) {
	t.Parallel()
	const name = "renews"
	config := registerSelf(t, name)
	registry, r := run(t, config, name)
	members, _ := r.state()
	oldSecret := sandboxtest.Secret(t, config, name, name)
	credential, _, err := cluster.ParseSecret(oldSecret)
	require.NoError(t, err)
	oldClient, err := cluster.NewClient(credential, "")
	require.NoError(t, err)
	defer oldClient.Close()
	old := credentialID(t, oldClient.Config)
	require.Equal(t, old, credentialID(t, members[name].Config))
	r.eventually(t, "it is known which cluster it is", func(m map[string]cluster.Connection) bool { return m[name].UID != "" })
	_, events := r.state()

	clock := clocktesting.NewFakeClock(time.Now())
	renewer, err := cluster.NewRenewer(registry, cluster.RenewerOptions{Management: config, Clock: clock})
	require.NoError(t, err)
	status := renewer.Status()
	require.Len(t, status, 1)
	assert.Equal(t, registration.MinTokenTTL, status[0].Expires.Sub(status[0].Issued))
	due := status[0].RenewAt.Sub(status[0].Issued)
	assert.Greater(t, due, registration.MinTokenTTL*2/10)
	assert.LessOrEqual(t, due, registration.MinTokenTTL/3)
	start(t, renewer)

	waitForSleep(t, clock)
	assert.Equal(t, oldSecret.ResourceVersion, sandboxtest.Secret(t, config, name, name).ResourceVersion, "not before it is due")
	clock.SetTime(status[0].RenewAt.Add(time.Second))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NotEqual(c, old, credentialID(t, members[name].Config), "the client in use shows the new token")
	}, waittest.Limit(), 20*time.Millisecond)
	assert.Equal(t, old, credentialID(t, oldClient.Config), "the old token is still good")
	fresh := sandboxtest.Secret(t, config, name, name)
	assert.Equal(t, oldSecret.Annotations[cluster.UIDAnnotation], fresh.Annotations[cluster.UIDAnnotation])
	assert.NotEmpty(t, fresh.Annotations[cluster.ExpiresAnnotation])
	after, eventsAfter := r.state()
	assert.Equal(t, events, withoutRenewals(eventsAfter), "no event: informers go on")
	assert.Same(t, members[name].Config, after[name].Config)
}

func TestRenewerKeepsTryingAndSaysSo(t *testing.T) {
	t.Parallel()
	const name = "tries"
	config := registerSelf(t, name)
	registry, _ := run(t, config, name)
	clientset := sandboxtest.Clientset(t, config)
	binding, err := clientset.RbacV1().RoleBindings(remoteNamespace(name)).Get(t.Context(), registration.TokenRoleName(name), metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, clientset.RbacV1().RoleBindings(remoteNamespace(name)).Delete(t.Context(), binding.Name, metav1.DeleteOptions{}))

	clock := clocktesting.NewFakeClock(time.Now())
	renewer, err := cluster.NewRenewer(registry, cluster.RenewerOptions{Management: config, Clock: clock})
	require.NoError(t, err)
	before := sandboxtest.Secret(t, config, name, name)
	start(t, renewer)
	waitForSleep(t, clock)
	clock.SetTime(renewer.Status()[0].RenewAt.Add(time.Second))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.ErrorContains(c, renewer.Status()[0].Err, "forbidden")
	}, waittest.Limit(), 20*time.Millisecond)
	assert.WithinRange(t, renewer.Status()[0].RenewAt, clock.Now().Add(10*time.Second), clock.Now().Add(12500*time.Millisecond), "the next try")
	failing := renewer.Failing()
	require.Len(t, failing, 1)
	assert.Equal(t, 1, failing[0].Failures)
	assert.Regexp(t, "^its token cannot be renewed: .* forbidden: .*; the one in use expires at .*; if the cause cannot be removed before, run `meshctl cluster register --renew`$",
		failing[0].Err.Error())
	select {
	case <-renewer.Changed():
	case <-time.After(waittest.Limit()):
		t.Fatal("nobody is told")
	}
	assert.Equal(t, before.ResourceVersion, sandboxtest.Secret(t, config, name, name).ResourceVersion)

	binding.ResourceVersion, binding.UID = "", ""
	_, err = clientset.RbacV1().RoleBindings(remoteNamespace(name)).Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		if clock.HasWaiters() {
			clock.Step(13 * time.Second)
		}
		assert.NotEqual(c, before.ResourceVersion, sandboxtest.Secret(t, config, name, name).ResourceVersion)
	}, waittest.Limit(), 50*time.Millisecond)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NoError(c, renewer.Status()[0].Err)
		assert.Empty(c, renewer.Failing())
	}, waittest.Limit(), 20*time.Millisecond)
}

func TestRenewerCannotRenewWhatHasExpired(t *testing.T) {
	t.Parallel()
	const name = "expired"
	config := registerSelf(t, name)
	registry, _ := run(t, config, name)
	clock := clocktesting.NewFakeClock(time.Now().Add(24 * time.Hour))
	renewer, err := cluster.NewRenewer(registry, cluster.RenewerOptions{Management: config, Clock: clock})
	require.NoError(t, err)
	start(t, renewer)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		var expired *cluster.ExpiredError
		assert.ErrorAs(c, renewer.Status()[0].Err, &expired)
	}, waittest.Limit(), 20*time.Millisecond)
}

// start runs a renewer until the test ends.
func start(t *testing.T, renewer *cluster.Renewer) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- renewer.Run(ctx) }()
	t.Cleanup(func() { cancel(); assert.NoError(t, <-done) })
}

// waitForSleep waits until the renewer has checked once and waits for the clock.
func waitForSleep(t *testing.T, clock *clocktesting.FakeClock) {
	t.Helper()
	require.Eventually(t, clock.HasWaiters, waittest.Limit(), 5*time.Millisecond)
}

// reissue stores another token for the same account.
func reissue(t *testing.T, config *rest.Config, name string) {
	t.Helper()
	secret := sandboxtest.Secret(t, config, name, name)
	c, err := cluster.ParseKubeconfig(secret.Data["kubeconfig"])
	require.NoError(t, err)
	c.Token = newToken(t, config, remoteNamespace(name), name)
	data, err := cluster.EncodeKubeconfig(name, c)
	require.NoError(t, err)
	setKubeconfig(t, config, name, data)
}

func newToken(t *testing.T, config *rest.Config, namespace, name string) string {
	t.Helper()
	token, _, err := cluster.RequestToken(t.Context(), sandboxtest.Clientset(t, config), namespace, name, registration.MinTokenTTL)
	require.NoError(t, err)
	return token
}

// credentialID identifies a token among those of one ServiceAccount.
func credentialID(t *testing.T, config *rest.Config) string {
	t.Helper()
	ids := sandboxtest.UserInfo(t, config).Extra["authentication.kubernetes.io/credential-id"]
	require.Len(t, ids, 1)
	return ids[0]
}

func createIn(t *testing.T, config *rest.Config, namespace, name string, kind corev1.SecretType) {
	t.Helper()
	_, err := sandboxtest.Clientset(t, config).CoreV1().Secrets(namespace).Create(t.Context(),
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: kind}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// withoutRenewals are the events that are not about another token.
func withoutRenewals(events []string) []string {
	return slices.DeleteFunc(slices.Clone(events), func(e string) bool { return strings.HasPrefix(e, "renewed ") })
}

func countPrefix(events []string, prefix string) int {
	n := 0
	for _, event := range events {
		if len(event) >= len(prefix) && event[:len(prefix)] == prefix {
			n++
		}
	}
	return n
}
