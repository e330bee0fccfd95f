package kube

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestAsksFirst: a kind is listed if the server says that it may be, or knows no such question.
func TestAsksFirst(t *testing.T) {
	t.Parallel()
	var lists atomic.Int32
	var answer atomic.Pointer[string]
	var code atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			assert.Equal(t, "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", r.URL.Path)
			w.WriteHeader(int(code.Load()))
			_, _ = w.Write([]byte(*answer.Load()))
			return
		}
		lists.Add(1)
		_, _ = w.Write([]byte(`{"apiVersion": "v1", "kind": "PodList", "items": []}`))
	}))
	t.Cleanup(server.Close)
	for given, c := range map[string]struct {
		code           int
		may, forbidden bool
	}{
		`{"status": {"allowed": true}}`: {201, true, false}, `{"status": {"allowed": false}}`: {201, false, true}, `{}`: {201, false, true}, `no answer`: {201, false, false},
		`{"kind": "Status", "reason": "Forbidden", "code": 403}`: {403, false, true}, `{"kind": "Status", "reason": "NotFound", "code": 404}`: {404, true, false},
	} {
		lister, may := asking(t, server.URL), c.may
		answer.Store(&given)
		code.Store(int32(c.code))
		before := lists.Load()
		_, err := lister.ListWithContext(t.Context(), metav1.ListOptions{})
		assert.Equal(t, may, err == nil, "%s: %v", given, err)
		assert.Equal(t, c.forbidden, apierrors.IsForbidden(err), given)
		assert.Equal(t, may, lists.Load() > before, given)
		stream := true
		_, err = lister.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: &stream})
		require.ErrorIs(t, err, errUnstreamed)
	}
}

// asking is a Lister of pods that asks first.
func asking(t *testing.T, url string) *Lister {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	client, err := NewClient(&rest.Config{Host: url}, ClientOptions{Serializer: serializer.NewCodecFactory(scheme).WithoutConversion()})
	require.NoError(t, err)
	return &Lister{Client: client, Kind: snapshot.Pod, Asks: true}
}
