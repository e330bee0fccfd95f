package relay

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	networkingv1 "istio.io/api/networking/v1"
	istiov1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/mirror"
	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestKindsHaveOneName(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, k := range snapshot.Kinds(snapshot.ManagedSide, snapshot.Watch|snapshot.Write) {
		name := KindName(k)
		assert.False(t, names[name], name)
		names[name] = true
		back, known := KindNamed(name)
		assert.True(t, known, name)
		assert.Equal(t, k, back)
		back, known = WrittenNamed(WrittenName(k))
		assert.True(t, known)
		assert.Equal(t, k, back)
		_, known = KindNamed(WrittenName(k))
		assert.False(t, known)
	}
	assert.True(t, names["core/v1/Pod"])
	for _, wrong := range []string{"", "Pod", "core/v2/Pod", "core/v1/Pod/x", "/v1/Pod", "written:core/v1/Pod"} {
		_, known := KindNamed(wrong)
		assert.False(t, known, wrong)
	}
}

// TestObjectsOfAllKinds: each kind that an Input has of a cluster passes through the wire, and the same object has the same bytes.
func TestObjectsOfAllKinds(t *testing.T) {
	t.Parallel()
	for k := range (&snapshot.Cluster{}).Lists {
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			o := k.New()
			o.SetNamespace("ns")
			o.SetName("name")
			o.SetLabels(map[string]string{"a": "1", "b": "2", "c": "3", "d": "4"})
			raw, err := Encode(o)
			require.NoError(t, err)
			for range 20 {
				again, err := Encode(o)
				require.NoError(t, err)
				require.Equal(t, raw, again)
			}
			back, err := Decode(k, Key{"ns", "name"}, raw)
			require.NoError(t, err)
			assert.Equal(t, o.GetLabels(), back.GetLabels())
			assert.IsType(t, o, back)
			_, err = Decode(k, Key{"other", "name"}, raw)
			require.ErrorContains(t, err, "it was sent as other/name and is ns/name")
			_, err = Decode(k, Key{"ns", "name"}, []byte("\xff"))
			require.Error(t, err)
		})
	}
}

func TestObjectsKeepTheirFields(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Status: corev1.PodStatus{PodIP: "10.0.0.1"}}
	raw, err := Encode(pod)
	require.NoError(t, err)
	back, err := Decode(snapshot.Pod, Key{"ns", "p"}, raw)
	require.NoError(t, err)
	assert.Equal(t, pod, back)

	gateway := &istiov1.Gateway{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "g"}}
	gateway.Spec.Servers = []*networkingv1.Server{{Hosts: []string{"*"}}}
	raw, err = Encode(gateway)
	require.NoError(t, err)
	back, err = Decode(snapshot.Gateway, Key{"ns", "g"}, raw)
	require.NoError(t, err)
	assert.Equal(t, []string{"*"}, back.(*istiov1.Gateway).Spec.Servers[0].Hosts)
}

func TestWritten(t *testing.T) {
	t.Parallel()
	full := mirror.Object{
		Version: 7, Spec: mirror.Digest{1}, Status: mirror.Digest{2}, Created: 3, Source: "s", Other: snapshot.Plane{Namespace: "n", ID: "i"},
		Owner: mirror.Marked, Here: true, Going: true, Protects: true,
	}
	for _, o := range []mirror.Object{full, {}} {
		raw, err := EncodeWritten(o)
		require.NoError(t, err)
		back, err := DecodeWritten(raw)
		require.NoError(t, err)
		assert.Equal(t, o, back)
	}
	for _, raw := range [][]byte{nil, []byte("\xff"), {8, 1}} {
		_, err := DecodeWritten(raw)
		require.Error(t, err)
	}
}
