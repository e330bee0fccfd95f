package istio

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestProxyTarget(t *testing.T) {
	t.Parallel()
	for cluster, want := range map[string]snapshot.ProxyTarget{
		"outbound|9080||reviews.bookinfo.svc.cluster.local":            {Host: "reviews.bookinfo.svc.cluster.local", Port: 9080},
		"outbound|80|v1|a.b.svc.cluster.local":                         {Host: "a.b.svc.cluster.local", Port: 80, Subset: "v1"},
		"outbound_.9080_.version-v3_.reviews.bookinfo.svc.east.global": {Host: "reviews.bookinfo.svc.east.global", Port: 9080, Subset: "version-v3"},
		"outbound_.9080_._.reviews.bookinfo.svc.east.global":           {Host: "reviews.bookinfo.svc.east.global", Port: 9080},
		"inbound|9080||": {}, "BlackHoleCluster": {}, "outbound|x||a": {}, "outbound|1": {}, "": {},
	} {
		got, passes := proxyTarget(cluster)
		assert.Equal(t, want, got, cluster)
		assert.False(t, passes, cluster)
	}
	_, passes := proxyTarget("PassthroughCluster")
	assert.True(t, passes)
}

func TestProxyOrigin(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]snapshot.Ref{
		"/apis/networking.istio.io/v1/namespaces/bookinfo/virtual-service/reviews":          {Kind: snapshot.VirtualService, Namespace: "bookinfo", Name: "reviews"},
		"/apis/networking.istio.io/v1alpha3/namespaces/istio-system/destination-rule/a.b.c": {Kind: snapshot.DestinationRule, Namespace: "istio-system", Name: "a.b.c"},
		"/apis/networking.istio.io/v1/namespaces/bookinfo/gateway/other":                    {},
		"/apis/virtual-service/reviews":                                                     {}, "": {},
	} {
		data, err := json.Marshal(map[string]string{"config": config})
		assert.NoError(t, err)
		assert.Equal(t, want, proxyOrigin(map[string]json.RawMessage{"istio": data}), config)
	}
	assert.Equal(t, snapshot.Ref{}, proxyOrigin(nil))
	assert.Equal(t, snapshot.Ref{}, proxyOrigin(map[string]json.RawMessage{"istio": json.RawMessage(`7`)}))
}

func TestProxyPolicy(t *testing.T) {
	t.Parallel()
	assert.Equal(t, snapshot.Ref{Kind: snapshot.AuthorizationPolicy, Namespace: "a", Name: "b.c"}, proxyPolicy("ns[a]-policy[b.c]-rule[12]"))
	for _, other := range []string{"", "p", "ns[a]", "ns[a]-policy[b"} {
		assert.Equal(t, snapshot.Ref{}, proxyPolicy(other), other)
	}
}
