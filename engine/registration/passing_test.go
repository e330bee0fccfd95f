package registration_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/demo/sandboxtest"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestDeregisterWaitsForPods: the pod of the agent needs a moment to end, and the namespace goes then;
// not if it cannot be seen whether the pod has ended.
func TestDeregisterWaitsForPods(t *testing.T) {
	t.Parallel()
	for name, unseen := range map[string]bool{"it ends": false, "it is not seen any more": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waitsForPods(t, unseen)
		})
	}
}

func waitsForPods(t *testing.T, unseen bool) {
	t.Helper()
	management, remote := pair(t)
	_, err := registration.Register(t.Context(), registration.Options{Name: "there", RemoteConfig: remote, MgmtConfig: management, Agent: anAgent("meshctl:1")})
	require.NoError(t, err)
	clientset := sandboxtest.Clientset(t, remote)
	deployments := clientset.AppsV1().Deployments(snapshot.DefaultNamespace)
	all, err := deployments.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)
	agent := &all.Items[0]
	pods := clientset.CoreV1().Pods(snapshot.DefaultNamespace)
	// The ReplicaSet between the two goes at once.
	pod, err := pods.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "agent-1", OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "apps/v1", Kind: "Deployment", Name: agent.Name, UID: agent.UID, Controller: ptr.To(true),
		}}},
		Spec: corev1.PodSpec{AutomountServiceAccountToken: ptr.To(false), ServiceAccountName: agent.Spec.Template.Spec.ServiceAccountName, Containers: []corev1.Container{{Name: "agent", Image: "meshctl:1"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)

	seen := rest.CopyConfig(remote)
	var once sync.Once
	var looks atomic.Int32
	seen.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			asked := r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/namespaces/"+snapshot.DefaultNamespace+"/pods")
			if asked && unseen && looks.Add(1) > 1 {
				return nil, errors.New("nobody answers")
			}
			response, err := next.RoundTrip(r)
			if asked {
				once.Do(func() { // it was seen
					assert.NoError(t, pods.Delete(context.WithoutCancel(t.Context()), pod.Name, metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}))
				})
			}
			return response, err
		})
	})
	report, err := registration.Deregister(t.Context(), registration.DeregisterOptions{Name: "there", RemoteConfig: seen, MgmtConfig: management})
	require.NoError(t, err)
	finishNamespaces(t, remote)
	_, err = clientset.CoreV1().Namespaces().Get(t.Context(), snapshot.DefaultNamespace, metav1.GetOptions{})
	if unseen {
		require.NoError(t, err)
		assert.Contains(t, strings.Join(report.Notes, " "), "is kept: cannot check whether it is empty: listing pods")
		return
	}
	assert.True(t, apierrors.IsNotFound(err), "%v", report.Notes)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
