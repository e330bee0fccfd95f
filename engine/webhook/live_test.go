package webhook_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/certs/serving"
	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/registration/registrationtest"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/webhook"
)

// live is a webhook beside a real API server, whose policies nobody translates: the state is that of bookinfo.
type live struct {
	t      *testing.T
	config *rest.Config
	client kube.Clientset
	state  *snapshot.State
	// stalled, if set, is closed when the webhook is to answer again.
	stalled atomic.Pointer[chan struct{}]
	// port is always the same one, as the configurations have it.
	address string
}

// everybodyWrites is what Kubernetes allows.
const everybodyWrites = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: writers}
rules: [{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: writers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: writers}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: Group, name: "system:authenticated"}]
`

func newLive(t *testing.T) *live {
	t.Helper()
	config := registrationtest.APIServer(t)
	sandboxtest.MakeNamespace(t, config, home)
	client, err := kube.NewClientset(kube.Unlimited(config))
	require.NoError(t, err)
	l := &live{t: t, config: config, client: client, state: bookinfo(t, role(), binding()), address: sandboxtest.Address(t)}
	// Everybody may write by Kubernetes: the test is about Roles.
	sandboxtest.Apply(t, config, []byte(everybodyWrites))
	return l
}

// store keeps the certificate, by a clock.
func (l *live) store(now func() time.Time) *serving.Store {
	return &serving.Store{Client: l.client, Namespace: home, Name: webhook.Secret, Hosts: []string{"localhost"}, Now: now}
}

// serve serves the webhook until stop is called.
func (l *live) serve(mode webhook.Mode, failurePolicy string) (stop func()) {
	l.t.Helper()
	_, port, err := net.SplitHostPort(l.address)
	require.NoError(l.t, err)
	store := l.store(time.Now)
	hook := webhook.New(webhook.Options{
		Namespace: home, State: l.read, Mode: mode, Budget: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	dynamicClient, err := dynamic.NewForConfig(l.config)
	require.NoError(l.t, err)
	ctx, cancel := context.WithCancel(l.t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- hook.Run(ctx, webhook.ServeOptions{
			Bind: l.address, URL: "https://localhost:" + port, FailurePolicy: failurePolicy, Client: l.client, Dynamic: dynamicClient,
			Certificate: l.certificate(store),
		})
	}()
	return func() {
		cancel()
		require.NoError(l.t, <-ended)
	}
}

// read is the state, once the webhook is not stalled.
func (l *live) read() *snapshot.State {
	if until := l.stalled.Load(); until != nil {
		<-*until
	}
	return l.state
}

// stall has the webhook answer nothing until resume is called.
func (l *live) stall() (resume func()) {
	until := make(chan struct{})
	l.stalled.Store(&until)
	return func() {
		l.stalled.Store(nil)
		close(until)
	}
}

// slow is a webhook that takes longer than API servers wait: the failure policy decides, as if it were away, and users wait a bounded time.
func (l *live) slow(ada, bob, masters *user) {
	l.t.Helper()
	for _, policy := range []string{"Fail", "Ignore"} {
		stop := l.serve(webhook.Enforce, policy)
		l.fails(policy)
		waittest.NoError(l.t, "it answers", func() error {
			if err := l.create(bob, closing); !apierrors.IsForbidden(err) {
				return fmt.Errorf("not rejected: %w", err)
			}
			return nil
		})
		masters.take()
		resume := l.stall()
		began := time.Now()
		err := l.create(bob, closing)
		if policy == "Fail" {
			require.ErrorContains(l.t, err, `failed calling webhook "roles.meshctl.io"`)
			require.ErrorContains(l.t, err, "deadline exceeded")
		} else {
			require.NoError(l.t, err, "writes go on")
		}
		require.NoError(l.t, l.create(masters, closingAll), "nobody is locked out")
		assert.Empty(l.t, masters.take(), "no warning comes too late")
		assert.Less(l.t, time.Since(began), waittest.Soon())
		resume()
		waittest.NoError(l.t, "it answers in time again", func() error {
			if err := l.create(ada, closing); err != nil {
				return err
			}
			if err := l.create(bob, closing); !apierrors.IsForbidden(err) {
				return fmt.Errorf("not rejected: %w", err)
			}
			return nil
		})
		stop()
	}
}

// fails waits until the failure policy for Roles is this one.
func (l *live) fails(policy string) {
	l.t.Helper()
	waittest.NoError(l.t, "the failure policy is "+policy, func() error {
		c, err := l.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(l.t.Context(), webhook.RolesConfiguration(home), metav1.GetOptions{})
		if err == nil && string(*c.Webhooks[0].FailurePolicy) != policy {
			err = fmt.Errorf("it is %s", *c.Webhooks[0].FailurePolicy)
		}
		return err
	})
}

// user is a client that writes as somebody, and collects the warnings that kubectl would print.
type user struct {
	dynamic.Interface
	mu       sync.Mutex
	warnings []string
}

// HandleWarningHeader implements rest.WarningHandler.
func (u *user) HandleWarningHeader(_ int, _, text string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.warnings = append(u.warnings, text)
}

func (u *user) take() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := u.warnings
	u.warnings = nil
	return out
}

func (l *live) as(name string, groups ...string) *user {
	l.t.Helper()
	u := &user{}
	config := rest.CopyConfig(l.config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name, Groups: append(groups, "system:authenticated")}
	config.WarningHandler = u
	var err error
	u.Interface, err = dynamic.NewForConfig(config)
	require.NoError(l.t, err)
	return u
}

// create is kubectl create --dry-run=server.
func (l *live) create(u *user, manifest string) error {
	l.t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(l.t, yaml.Unmarshal([]byte(manifest), &object.Object))
	kind, ok := snapshot.KindOf(object.GroupVersionKind().GroupKind())
	require.True(l.t, ok)
	_, err := u.Resource(kind.GroupVersionResource()).Namespace(home).Create(l.t.Context(), object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

const closingAll = policy + "AccessPolicy\nmetadata: {name: nobody, namespace: gloo-mesh}\nspec: {action: DENY, destinationSelector: [{kubeServiceRefs: {services: [{name: ratings, namespace: bookinfo, clusterName: cluster-1}]}}]}\n"

// TestLive: a client of a real API server gets warnings, and rejections by Roles; and what becomes of writes when nobody
// answers is as the failure policy says.
func TestLive(t *testing.T) {
	waittest.SkipIfShort(t, "starts an API server")
	t.Parallel()
	l := newLive(t)
	ada, bob := l.as("ada"), l.as("bob")
	masters := l.as("root", "system:masters")

	// The certificate that is there has expired: another one is made, and API servers trust that.
	_, expired, err := l.store(func() time.Time { return time.Now().Add(-serving.Life - time.Hour) }).Certificate(t.Context())
	require.NoError(t, err)
	stop := l.serve(webhook.Enforce, "Fail")
	waittest.NoError(t, "the webhook warns", func() error {
		err := l.create(ada, closingAll)
		if warnings := ada.take(); len(warnings) == 0 {
			return fmt.Errorf("no warnings; %w", err)
		}
		return nil
	})
	waittest.NoError(t, "Roles are enforced", func() error {
		if err := l.create(bob, closing); !apierrors.IsForbidden(err) {
			return fmt.Errorf("not rejected: %w", err)
		}
		return nil
	})
	require.NoError(t, l.create(ada, closing), "her Role allows it")
	ada.take()

	assert.NotContains(t, l.bundle(), string(expired))
	err = l.create(ada, closingAll)
	require.True(t, apierrors.IsForbidden(err), err)
	assert.Contains(t, err.Error(), `admission webhook "roles.meshctl.io" denied the request: User ada may not create AccessPolicy nobody: accessPolicyScopes[0] of Role details-owner: `)
	assert.Contains(t, strings.Join(ada.take(), "\n"), "reviews-v1 in cluster-1 and 4 other workloads may no longer call ratings")
	require.NoError(t, l.create(masters, closingAll), "administrators are not asked")
	assert.NotEmpty(t, masters.take(), "and are warned, too")
	require.NoError(t, l.create(l.as("system:serviceaccount:gloo-mesh:meshctl"), closingAll))

	// It is killed: the configurations stay.
	l.orphan(stop)
	require.ErrorContains(t, l.create(ada, closing), `failed calling webhook "roles.meshctl.io"`, "what protects does not fail open")
	require.NoError(t, l.create(masters, closing), "nobody is locked out")

	stop = l.serve(webhook.Enforce, "Ignore")
	waittest.NoError(t, "it answers again", func() error {
		if err := l.create(bob, closing); !apierrors.IsForbidden(err) {
			return fmt.Errorf("not rejected: %w", err)
		}
		return nil
	})
	l.fails("Ignore")
	l.orphan(stop)
	waittest.NoError(t, "writes go on", func() error { return l.create(bob, closing) })

	stop = l.serve(webhook.Enforce, "Fail")
	waittest.NoError(t, "it is served once more", func() error {
		if err := l.create(bob, closing); !apierrors.IsForbidden(err) {
			return fmt.Errorf("not rejected: %w", err)
		}
		return nil
	})
	stop()
	list, err := l.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range list.Items {
		assert.False(t, slices.Contains([]string{webhook.RolesConfiguration(home), webhook.WarningsConfiguration(home)}, list.Items[i].Name), "what leads nowhere is removed")
	}
	l.slow(ada, bob, masters)
	l.inside()
}

// inside is a webhook in a cluster: who installed meshctl has written the configuration, in which only the CA is set, and the
// Service leads to this process.
func (l *live) inside() {
	l.t.Helper()
	client := l.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	installed := webhook.Configuration{Namespace: home, Mode: webhook.Off}
	for _, c := range installed.Objects() {
		_, err := client.Apply(l.t.Context(), c, metav1.ApplyOptions{FieldManager: "installer"})
		require.NoError(l.t, err)
	}
	ctx, cancel := context.WithCancel(l.t.Context())
	dynamicClient, err := dynamic.NewForConfig(l.config)
	require.NoError(l.t, err)
	ended := make(chan error, 1)
	go func() {
		ended <- webhook.New(webhook.Options{Namespace: home, State: func() *snapshot.State { return l.state }, Log: slog.New(slog.DiscardHandler)}).Run(ctx, webhook.ServeOptions{
			Bind: l.address, Address: "10.1.2.3", Client: l.client, Dynamic: dynamicClient, Certificate: l.certificate(l.store(time.Now)),
		})
	}()
	name := webhook.WarningsConfiguration(home)
	waittest.NoError(l.t, "API servers trust it", func() error {
		c, err := client.Get(l.t.Context(), name, metav1.GetOptions{})
		if err == nil && len(c.Webhooks[0].ClientConfig.CABundle) == 0 {
			err = fmt.Errorf("%s has no CA", name)
		}
		return err
	})
	slices := dynamicClient.Resource(schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}).Namespace(home)
	waittest.NoError(l.t, "the Service leads to it", func() error {
		slice, err := slices.Get(l.t.Context(), webhook.Service, metav1.GetOptions{})
		if err == nil && fmt.Sprint(slice.Object["endpoints"]) != "[map[addresses:[10.1.2.3] conditions:map[ready:true]]]" {
			err = fmt.Errorf("endpoints are %v", slice.Object["endpoints"])
		}
		return err
	})
	cancel()
	require.NoError(l.t, <-ended)
	// Installing once more keeps the CA.
	for _, c := range installed.Objects() {
		is, err := client.Apply(l.t.Context(), c, metav1.ApplyOptions{FieldManager: "installer"})
		require.NoError(l.t, err)
		assert.NotEmpty(l.t, is.Webhooks[0].ClientConfig.CABundle)
	}
	require.NoError(l.t, client.Delete(l.t.Context(), name, metav1.DeleteOptions{}))
}

// certificate is what a store has, as the webhook asks for it.
func (l *live) certificate(store *serving.Store) func(context.Context) (webhook.Certificate, error) {
	return func(ctx context.Context) (webhook.Certificate, error) {
		shown, bundle, err := store.Certificate(ctx)
		return webhook.Certificate{TLS: shown, Bundle: bundle}, err
	}
}

// orphan stops a webhook, and puts its configurations back.
func (l *live) orphan(stop func()) {
	l.t.Helper()
	client := l.client.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	names := []string{webhook.RolesConfiguration(home), webhook.WarningsConfiguration(home)}
	for _, name := range names {
		c, err := client.Get(l.t.Context(), name, metav1.GetOptions{})
		require.NoError(l.t, err)
		c.ResourceVersion, c.UID, c.ManagedFields = "", "", nil
		defer func() {
			_, err := client.Create(l.t.Context(), c, metav1.CreateOptions{})
			require.NoError(l.t, err)
		}()
	}
	stop()
}

func (l *live) bundle() string {
	l.t.Helper()
	c, err := l.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(l.t.Context(), webhook.RolesConfiguration(home), metav1.GetOptions{})
	require.NoError(l.t, err)
	return string(c.Webhooks[0].ClientConfig.CABundle)
}
