package watch

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/meshctl/meshctl/engine/api/scheme"
)

func decode(t *testing.T, contentType, data string) (runtime.Object, error) {
	t.Helper()
	codecs := lenient{serializer.NewCodecFactory(scheme.New()).WithoutConversion()}
	info, ok := runtime.SerializerInfoForMediaType(codecs.SupportedMediaTypes(), contentType)
	require.True(t, ok)
	out, _, err := codecs.DecoderToVersion(info.Serializer, nil).Decode([]byte(data), nil, nil)
	return out, err
}

func TestObjectsAreDecodedOneByOne(t *testing.T) {
	t.Parallel()
	const (
		good = `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"good","namespace":"x"},"spec":{"hosts":["a"],"resolution":"DNS","unknown":1}}`
		bad  = `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","metadata":{"name":"bad","namespace":"x","resourceVersion":"7"},"spec":{"resolution":"TELEPATHY"}}`
		list = `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntryList","metadata":{"resourceVersion":"9","continue":"next"},"items":[` + good + "," + bad + `]}`
	)
	one, err := decode(t, runtime.ContentTypeJSON, bad)
	require.NoError(t, err)
	broken, ok := one.(*brokenObject)
	require.True(t, ok)
	assert.Equal(t, key{"x", "bad"}, keyOf(broken))
	assert.Equal(t, "7", broken.GetResourceVersion())
	require.ErrorContains(t, broken.err, "TELEPATHY")

	all, err := decode(t, runtime.ContentTypeJSON, list)
	require.NoError(t, err)
	items, ok := all.(*internalversion.List)
	require.True(t, ok)
	assert.Equal(t, "9", items.ResourceVersion)
	assert.Equal(t, "next", items.Continue)
	require.Len(t, items.Items, 2)
	entry, ok := items.Items[0].(*istionetworkingv1.ServiceEntry)
	require.True(t, ok)
	assert.Equal(t, []string{"a"}, entry.Spec.Hosts)
	assert.IsType(t, &brokenObject{}, items.Items[1])

	for name, data := range map[string]string{
		"no JSON": `{`, "no object": `[]`, "nobody's": `{"apiVersion":"networking.istio.io/v1","kind":"ServiceEntry","spec":7}`,
	} {
		_, err := decode(t, runtime.ContentTypeJSON, data)
		require.Error(t, err, name)
	}
	_, err = decode(t, runtime.ContentTypeProtobuf, "k8s\x00rubbish")
	require.Error(t, err)
}
