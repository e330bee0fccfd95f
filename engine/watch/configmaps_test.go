package watch

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

func istiod(namespace string) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "istiod", Labels: map[string]string{"app": "istiod"}},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "discovery"}}}}},
	}
}

func newConfigMaps(t *testing.T) (*clusterCache[snapshot.Cluster], *configMaps) {
	t.Helper()
	cache := managedCache(t, snapshot.Plane{Namespace: "mgmt"}, "west", func() {})
	return cache, cache.configMaps
}

// feedsOf are all feeds of a cluster with a control plane.
func feedsOf(cache *clusterCache[snapshot.Cluster]) []feeder {
	cache.configMaps.copyTo(&snapshot.Cluster{Deployments: []*appsv1.Deployment{istiod("mesh")}})
	return cache.allFeeds()
}

// TestADeniedConfigMapStaysAsItWas, and is no reason to freeze the cluster; another error
// is one.
func TestADeniedConfigMapStaysAsItWas(t *testing.T) {
	t.Parallel()
	cache, m := newConfigMaps(t)
	ref := func(name string) snapshot.Ref {
		return snapshot.Ref{Kind: snapshot.ConfigMap, Cluster: "west", Namespace: "mesh", Name: name}
	}
	view := &snapshot.Cluster{Deployments: []*appsv1.Deployment{istiod("mesh")}}
	require.True(t, m.copyTo(view))
	assert.Equal(t, []snapshot.Unread{{Ref: ref("istio"), Reason: notReadYet}, {Ref: ref("istio-ca-root-cert"), Reason: notReadYet}}, view.Unread)
	assert.False(t, m.isFilled())
	assert.False(t, m.copyTo(view), "nothing is new")

	settings := m.feeds[ref("istio")]
	settings.done(nil)
	require.NoError(t, settings.Replace([]any{&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "mesh", Name: "istio"}, Data: map[string]string{"mesh": "trustDomain: td"},
	}}, ""))
	denied := apierrors.NewForbidden(corev1.Resource("configmaps"), "", errors.New("no"))
	for range 2 * maxFailedRequests {
		m.feeds[ref("istio-ca-root-cert")].done(denied)
		settings.done(denied)
	}
	require.True(t, m.copyTo(view))
	assert.True(t, m.isFilled(), "the cluster does not wait for what it may not read")
	require.Len(t, view.ConfigMaps, 1)
	assert.Equal(t, map[string]string{"mesh": "trustDomain: td"}, view.ConfigMaps[0].Data)
	assert.Equal(t, []snapshot.Unread{
		{Ref: ref("istio"), Reason: notAllowed, Denied: true}, {Ref: ref("istio-ca-root-cert"), Reason: notAllowed, Denied: true},
	}, view.Unread)
	_, err := cache.unreadable()
	require.NoError(t, err)

	for range maxFailedRequests {
		settings.done(errors.New("broken pipe"))
	}
	kind, err := cache.unreadable()
	require.EqualError(t, err, "broken pipe")
	assert.Equal(t, snapshot.ConfigMap, kind)
	settings.done(nil)
	require.True(t, m.copyTo(view))
	assert.Len(t, view.Unread, 1, "it is read again")

	view.Deployments = nil
	require.True(t, m.copyTo(view))
	assert.Empty(t, view.ConfigMaps)
	assert.Empty(t, view.Unread)
}

// TestTooManyControlPlanes: what nobody believes to be one does not keep meshctl busy.
func TestTooManyControlPlanes(t *testing.T) {
	t.Parallel()
	_, m := newConfigMaps(t)
	view := &snapshot.Cluster{}
	for i := range maxConfigMaps {
		view.Deployments = append(view.Deployments, istiod(fmt.Sprintf("tenant-%03d", i)))
	}
	require.True(t, m.copyTo(view))
	assert.Len(t, m.feeds, maxConfigMaps)
	tooMany := 0
	for _, u := range view.Unread {
		if u.Reason == tooManyToAsk {
			tooMany++
		}
	}
	assert.Equal(t, maxConfigMaps, tooMany, "two of each control plane are wanted")
}
