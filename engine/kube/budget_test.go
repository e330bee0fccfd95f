package kube

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	"github.com/meshctl/meshctl/engine/api/scheme"
)

// bodies is a transport whose answers have so many bytes.
type bodies int

func (b bodies) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", int(b))))}, nil
}

func read(t *testing.T, transport http.RoundTripper) error {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://west:6443/api", http.NoBody)
	require.NoError(t, err)
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, response.Body)
	require.NoError(t, response.Body.Close())
	return err
}

func TestAServerIsAskedAgainAfterAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		budget := NewBudget(Bounds{Answers: 1 << 20, Pause: time.Second, PauseMost: 4 * time.Second})
		well, ill := Metered(bodies(1<<20), "https://west:6443/", budget), Metered(bodies(1<<20+1), "https://west:6443/", budget)
		for range 3 {
			require.NoError(t, read(t, well), "what was read is counted no longer")
		}
		for _, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 4 * time.Second} {
			const want = "https://west:6443 sends too much: its answers take more than 1 MiB of memory at once; " +
				"find out what is so large there, or raise the memory limit of meshctl; it is asked again after a pause"
			require.EqualError(t, read(t, ill), want)
			time.Sleep(pause - time.Nanosecond)
			err := read(t, well)
			require.EqualError(t, err, want)
			require.Equal(t, want, Reason("https://west:6443", fmt.Errorf("get: %w", err)))
			time.Sleep(time.Nanosecond)
			require.NoError(t, read(t, well))
		}
		time.Sleep(5 * time.Second)
		require.Error(t, read(t, ill))
		time.Sleep(time.Second)
		require.NoError(t, read(t, well), "after a long time, the first pause is short again")
	})
}

func TestEventsOfAnEarlierPeriodDoNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &meter{Budget: NewBudget(Bounds{Events: 10}), server: "https://west"}
		for range 5 {
			for range 10 {
				m.event()
			}
			require.NoError(t, m.check())
			time.Sleep(EventsPeriod + 1)
		}
		for range 11 {
			m.event()
		}
		require.ErrorContains(t, m.check(), "more than 10 changes within 1m0s")
	})
}

// TestWeightIsBoundedByWhatIsDecoded: a document that takes much memory is not light, and a Pod as
// clusters have them is not heavy, in either encoding.
func TestWeightIsBoundedByWhatIsDecoded(t *testing.T) {
	t.Parallel()
	s := scheme.New()
	encoder := protobuf.NewSerializer(s, s)
	encode := func(o runtime.Object) []byte {
		data, err := runtime.Encode(encoder, o)
		require.NoError(t, err)
		return data
	}
	hostile := &corev1.Pod{TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, Spec: corev1.PodSpec{Containers: make([]corev1.Container, 10_000)}}
	assert.GreaterOrEqual(t, 3*weigh(encode(hostile)), SizeOf(hostile))
	json := []byte(`{"kind":"Pod","apiVersion":"v1","spec":{"containers":[` + strings.Repeat("null,", 9_999) + `{}]}}`)
	assert.GreaterOrEqual(t, 3*weigh(json), SizeOf(hostile))

	usual := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{Name: "reviews-v1-6f4b", Namespace: "bookinfo", Labels: map[string]string{"app": "reviews", "version": "v1"}},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{
			{Name: "reviews", Image: "docker.io/istio/examples-bookinfo-reviews-v1:1.20.2", Env: []corev1.EnvVar{{Name: "LOG_DIR", Value: "/tmp/logs"}}},
			{Name: "istio-proxy", Image: "docker.io/istio/proxyv2:1.28.0", Args: []string{"proxy", "sidecar", "--domain"}},
		}},
	}
	assert.Less(t, weigh(encode(usual))*pageSize, DefaultBounds().Answers/8)
	assert.EqualValues(t, 100, weigh([]byte(strings.Repeat("x", 100))), "text that is no object")
	assert.Zero(t, weigh(nil))
}

func FuzzWeigh(f *testing.F) {
	f.Add([]byte("k8s\x00\x0a\x02\x0a\x00"))
	f.Add([]byte(`{"a":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		require.GreaterOrEqual(t, weigh(data), int64(len(data)))
	})
}

func TestSizeOf(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", DeletionTimestamp: &now}}
	small := SizeOf(pod)
	assert.Greater(t, small, int64(500))
	pod.Labels = map[string]string{"a": strings.Repeat("x", 1000)}
	assert.InDelta(t, small+1000, SizeOf(pod), 100)
	pod.Spec.Containers = make([]corev1.Container, 10)
	assert.Greater(t, SizeOf(pod), small+1000+10*400)
	assert.Zero(t, SizeOf(nil))
	assert.Positive(t, SizeOf((*corev1.Pod)(nil)))
}
