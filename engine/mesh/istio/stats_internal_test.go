package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// TestStatsKept has what proxies say of their settings, and whether they keep the numbers of clusters then.
func TestStatsKept(t *testing.T) {
	t.Parallel()
	type fields = map[string]any
	settings := func(matcher fields) fields { return fields{"PROXY_CONFIG": fields{"proxyStatsMatcher": matcher}} }
	for name, tt := range map[string]struct {
		says fields
		want bool
	}{
		"nothing":         {fields{}, false},
		"no matcher":      {fields{"PROXY_CONFIG": fields{"concurrency": 2.0}}, false},
		"a prefix":        {settings(fields{"inclusionPrefixes": []any{"http", "cluster.outbound"}}), true},
		"another prefix":  {settings(fields{"inclusionPrefixes": []any{"cluster.xds-grpc", ""}}), false},
		"a suffix":        {settings(fields{"inclusionSuffixes": []any{"upstream_rq_2xx"}}), true},
		"a regexp":        {settings(fields{"inclusionRegexps": []any{`cluster\.(outbound|inbound).*;\.(upstream_rq_([1-5]xx|403)|x)`}}), true},
		"half a regexp":   {settings(fields{"inclusionRegexps": []any{`cluster\.outbound`, `(`}}), false},
		"an annotation":   {fields{"ANNOTATIONS": fields{"sidecar.istio.io/statsInclusionRegexps": `http.*,cluster\.outbound.*`}}, true},
		"in the place of": {fields{"PROXY_CONFIG": fields{"proxyStatsMatcher": fields{"inclusionPrefixes": []any{"cluster"}}}, "ANNOTATIONS": fields{"sidecar.istio.io/statsInclusionPrefixes": "http"}}, false},
		"other kinds":     {fields{"PROXY_CONFIG": "x", "ANNOTATIONS": []any{1.0}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := structpb.NewStruct(tt.says)
			require.NoError(t, err)
			text, err := proto.Marshal(s)
			require.NoError(t, err)
			assert.Equal(t, tt.want, statsKept(text))
		})
	}
	assert.False(t, statsKept([]byte("\xff")))
}

// TestSecureStats: the container of the proxy says where it is read by mutual TLS, and no other one does.
func TestSecureStats(t *testing.T) {
	t.Parallel()
	type variables = []corev1.EnvVar
	says := func(value string) variables {
		return variables{{Name: "OTHER", Value: "1"}, {Name: "ENVOY_SECURE_METRICS_PORT", Value: value}}
	}
	for name, c := range map[string]struct {
		container string
		env       variables
		want      uint16
	}{
		"a port":                    {"istio-proxy", says("15091"), 15091},
		"said twice":                {"istio-proxy", append(says("15091"), says("15095")...), 15095},
		"nothing":                   {"istio-proxy", nil, 0},
		"none":                      {"istio-proxy", says("0"), 0},
		"too large":                 {"istio-proxy", says("65536"), 0},
		"negative":                  {"istio-proxy", says("-1"), 0},
		"a word":                    {"istio-proxy", says("metrics"), 0},
		"of the application":        {"app", says("15091"), 0},
		"of something not read yet": {"istio-proxy", variables{{Name: "ENVOY_SECURE_METRICS_PORT", ValueFrom: &corev1.EnvVarSource{}}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			container := corev1.Container{Name: c.container, Env: c.env}
			assert.Equal(t, c.want, secureStats(&corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}, container}}}))
			container.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
			assert.Equal(t, c.want, secureStats(&corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{container}}}), "a native sidecar")
		})
	}
}
