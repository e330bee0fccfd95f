package cluster

import (
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
	w.listed("connected")
	return stop
}

// listed waits until cluster-2 is listed with a word.
func (w *relayWorld) listed(word string) {
	w.t.Helper()
	waittest.Until(w.t, "cluster-2 is "+word, func() bool {
		require.NoError(w.t, w.meshctl("list"))
		return strings.Contains(w.stdout(), word) && !strings.Contains(w.stdout(), "not "+word)
	})
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
	w.listed("lost")
	err := w.meshctl("deregister", "cluster-2", "--yes")
	require.ErrorContains(t, err, "nothing was changed, because its agent is away for ")
	require.ErrorContains(t, err, "--force")
	require.NoError(t, w.meshctl("deregister", "cluster-2", "--yes", "--force"))
	assert.Contains(t, w.stderr(), "its agent does it when it comes back")
	w.listed("leftover")

	w.startAgent(log)
	w.left(log)
	waittest.Until(t, "nothing is known of it any more", func() bool {
		_, err := sandboxtest.Clientset(t, w.management).CoreV1().Secrets("gloo-mesh").Get(t.Context(), snapshot.RelayRecordPrefix+"cluster-2", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
