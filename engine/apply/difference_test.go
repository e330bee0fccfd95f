package apply

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestDifferences(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		is, wanted, applied string
		want                []snapshot.DriftField
	}{
		"nothing":                   {`{"a":1}`, `{"a":1}`, `{}`, nil},
		"a value":                   {`{"a":{"b":"x"}}`, `{"a":{"b":"y"}}`, `{}`, []snapshot.DriftField{{Path: "spec.a.b", InForce: "x", Wanted: "y"}}},
		"a field is not there":      {`{}`, `{"a":5}`, `{}`, []snapshot.DriftField{{Path: "spec.a", Wanted: "5"}}},
		"a field of somebody":       {`{"a":1,"b":2}`, `{"a":1}`, `{"a":1}`, nil},
		"a field that we took back": {`{"a":1,"b":2}`, `{"a":1}`, `{"a":1,"b":2}`, []snapshot.DriftField{{Path: "spec.b", InForce: "2"}}},
		"a field more in a list":    {`{"l":[{"a":1,"b":true}]}`, `{"l":[{"a":1}]}`, `{}`, []snapshot.DriftField{{Path: "spec.l[0].b", InForce: "true"}}},
		"one field of a list":       {`{"l":[{"w":75},{"w":25}]}`, `{"l":[{"w":60},{"w":40}]}`, `{}`, []snapshot.DriftField{{Path: "spec.l[].w", InForce: "75/25", Wanted: "60/40"}}},
		"of some elements":          {`{"l":[{"w":75},{}]}`, `{"l":[{"w":60},{}]}`, `{}`, []snapshot.DriftField{{Path: "spec.l[].w", InForce: "75/-", Wanted: "60/-"}}},
		"two fields of a list": {`{"l":[{"w":75,"h":"a"},{"w":25,"h":"b"}]}`, `{"l":[{"w":75,"h":"b"},{"w":20,"h":"b"}]}`, `{}`,
			[]snapshot.DriftField{{Path: "spec.l[0].h", InForce: "a", Wanted: "b"}, {Path: "spec.l[1].w", InForce: "25", Wanted: "20"}}},
		"more elements": {`{"l":["a"]}`, `{"l":["a","b"]}`, `{}`, []snapshot.DriftField{{Path: "spec.l", InForce: `["a"]`, Wanted: `["a","b"]`}}},
		"another type":  {`{"a":"1"}`, `{"a":1}`, `{}`, []snapshot.DriftField{{Path: "spec.a", InForce: "1", Wanted: "1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			values := make([]any, 3)
			for i, text := range []string{tt.is, tt.wanted, tt.applied} {
				require.NoError(t, json.Unmarshal([]byte(text), &values[i]))
			}
			assert.Equal(t, tt.want, differences("spec", values[0], values[1], values[2]))
		})
	}
}
