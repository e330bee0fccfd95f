package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
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
