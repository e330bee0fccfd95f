package cluster

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/demo/waittest"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// registered has cluster-2 reached through its agent, and returns how to stop that.
func (w *relayWorld) registered(log *sandboxtest.Buffer) (stop func()) {
	w.t.Helper()
	err := w.meshctl("register", "cluster-2", "--remote-context", "cluster-2", "--relay", "--relay-server", w.address, "--timeout", "1ms")
	if err != nil { // it does not wait for the agent, which starts now
		require.ErrorContains(w.t, err, "its agent is not connected")
	}
	stop = w.agent(log)
	w.listed(string(multiclusterv1alpha1.ConnectionStateConnected))
	return stop
}

// listed waits until cluster-2 is listed with a connection or a health.
func (w *relayWorld) listed(word string) {
	w.t.Helper()
	waittest.NoError(w.t, "cluster-2 is "+word, func() error { return w.listedIn("cluster-1", word) })
}

// listedIn returns an error unless a management cluster lists cluster-2 with a connection or a health. Sentences say "connected", too, of
// a cluster that is not.
func (w *relayWorld) listedIn(management, word string) error {
	w.t.Helper()
	w.reset()
	if err := execute(w.t, NewCmd(w.factory), "list", "-o", "json", "--mgmt-context", management); err != nil {
		return fmt.Errorf("%w: %s", err, w.stderr())
	}
	var all []registration.ClusterStatus
	if err := json.Unmarshal([]byte(w.stdout()), &all); err != nil {
		return err
	}
	for i := range all {
		if s := &all[i]; s.Name == "cluster-2" && (string(s.Health) == word || s.Connection != nil && string(s.Connection.State) == word) {
			return nil
		}
	}
	return errors.New(w.stdout())
}

// left waits until the agent has deleted what takes it with it, and checks that it has deleted nothing else of what registration made.
func (w *relayWorld) left(log *sandboxtest.Buffer) {
	w.t.Helper()
	remote := sandboxtest.Clientset(w.t, w.remote)
	waittest.Until(w.t, "the agent has removed itself", func() bool {
		_, err := remote.RbacV1().ClusterRoles().Get(w.t.Context(), w.agentName()+"-leave", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	deleted := []string{"delete clusterroles", "delete secrets", "delete configmaps"} // of the token, and of what it stores
	for use, codes := range w.asked("system:serviceaccount:gloo-mesh:" + w.agentName()) {
		if !strings.HasPrefix(use, "create selfsubject") {
			assert.NotContains(w.t, codes, http.StatusForbidden, use)
		}
		assert.False(w.t, strings.HasPrefix(use, "delete ") && !slices.Contains(deleted, use), use)
	}
	waittest.Until(w.t, "it says so", func() bool { return strings.Contains(log.String(), "nothing of meshctl is in it any more") })
}

// TestLeave: a cluster is deregistered without access to it, and its agent needs no more rights for that than it has.
func TestLeave(t *testing.T) {
	t.Parallel()
	w := newRelayWorld(t)
	log := &sandboxtest.Buffer{}
	w.registered(log)
	require.NoError(t, w.meshctl("deregister", "cluster-2", "--yes"), "%s\n%s", log, w.serveLog)
	assert.Contains(t, w.stderr(), "nothing remains on it")
	assert.Contains(t, w.stderr(), "kubectl delete namespace gloo-mesh")
	w.left(log)
	require.NoError(t, w.meshctl("list"))
	assert.NotContains(t, w.stdout(), "cluster-2")
}

// TestLeaveLater: the agent of a cluster that was deregistered by force comes back with its certificate, and pays the debt.
func TestLeaveLater(t *testing.T) {
	t.Parallel()
	w := newRelayWorld(t)
	log := &sandboxtest.Buffer{}
	stop := w.registered(log)
	stop()
	w.listed(string(multiclusterv1alpha1.ConnectionStateLost))
	err := w.meshctl("deregister", "cluster-2", "--yes")
	require.ErrorContains(t, err, "nothing was changed, because its agent is away for ")
	require.ErrorContains(t, err, "--force")
	require.NoError(t, w.meshctl("deregister", "cluster-2", "--yes", "--force"))
	assert.Contains(t, w.stderr(), "its agent does it when it comes back")
	w.listed(string(snapshot.HealthLeftover))

	w.startAgent(log)
	w.left(log)
	waittest.Until(t, "nothing is known of it any more", func() bool {
		_, err := sandboxtest.Clientset(t, w.management).CoreV1().Secrets("gloo-mesh").Get(t.Context(), snapshot.RelayRecordPrefix+"cluster-2", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

// TestLeaveInvited: the agent of a cluster that was invited removes itself, too: nothing is left that gives anybody a right.
func TestLeaveInvited(t *testing.T) {
	t.Parallel()
	w := newRelayWorld(t)
	sandboxtest.MakeNamespace(t, w.remote, "istio-system")
	require.NoError(t, w.meshctl("invite", "cluster-2", "--relay-server", w.address, "--agent-image", "meshctl:1"))
	sandboxtest.Apply(t, w.remote, []byte(w.stdout()))
	log := &sandboxtest.Buffer{}
	w.agent(log)
	w.listed(string(multiclusterv1alpha1.ConnectionStateConnected))
	require.NoError(t, w.meshctl("deregister", "cluster-2", "--yes"), "%s\n%s", log, w.serveLog)
	assert.Contains(t, w.stderr(), "nothing remains on it")
	waittest.Until(t, "it says so", func() bool { return strings.Contains(log.String(), "nothing of meshctl is in it any more") })
	remote, name := sandboxtest.Clientset(t, w.remote), w.agentName()
	for use, codes := range w.asked("system:serviceaccount:gloo-mesh:" + name) {
		if strings.HasPrefix(use, "delete ") {
			assert.NotContains(t, codes, http.StatusForbidden, use)
		}
	}
	rest := map[string]bool{}
	note := func(kind string, o metav1.Object) {
		if strings.HasPrefix(o.GetName(), name) {
			rest[kind+" "+strings.TrimPrefix(o.GetName(), name)] = true
		}
	}
	deployments, err := remote.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range deployments.Items {
		note("Deployment", &deployments.Items[i])
	}
	roles, err := remote.RbacV1().Roles("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range roles.Items {
		note("Role", &roles.Items[i])
	}
	bindings, err := remote.RbacV1().RoleBindings("").List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range bindings.Items {
		note("RoleBinding", &bindings.Items[i])
	}
	clusterRoles, err := remote.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range clusterRoles.Items {
		note("ClusterRole", &clusterRoles.Items[i])
	}
	clusterBindings, err := remote.RbacV1().ClusterRoleBindings().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for i := range clusterBindings.Items {
		note("ClusterRoleBinding", &clusterBindings.Items[i])
	}
	assert.Equal(t, map[string]bool{"ClusterRoleBinding -leave": true}, rest, "it binds what is not there")
	assert.Contains(t, w.stderr(), "kubectl delete clusterrolebinding "+name+"-leave --ignore-not-found")
	assert.Contains(t, w.stderr(), "kubectl delete validatingadmissionpolicy "+name+" --ignore-not-found")
}
