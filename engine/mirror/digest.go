package mirror

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Digest stands for the part of an object that the engine owns. Two objects
// with equal digests differ in nothing that a write of ours would change.
type Digest [16]byte

// ObjectDigest is the digest of a spec, labels and annotations. Ownership
// labels are left out: they are compared by value.
func ObjectDigest(labels, annotations map[string]string, spec any) Digest {
	buf := appendStrings(nil, labels)
	buf = appendStrings(buf, annotations)
	return digestOf(buf, spec)
}

// StatusDigest is the digest of a status, without the times of its conditions: see Transitions.
func StatusDigest(status any) Digest { return digestOf(nil, snapshot.Undated(status)) }

// sum digests prefix and value. No value is the same as an empty object.
func digestOf(prefix []byte, value any) Digest {
	if value == nil {
		value = map[string]any{}
	}
	full := sha256.Sum256(appendCanonical(prefix, value))
	return Digest(full[:16])
}

// Plain turns a value that marshals to JSON into what that JSON says. A panic in
// the value's own MarshalJSON is an error.
func Plain(value any) (out any, err error) {
	caught := kube.Catch(func() {
		var raw []byte
		if raw, err = json.Marshal(value); err == nil {
			err = utiljson.Unmarshal(raw, &out)
		}
	})
	return out, cmp.Or(caught, err)
}

// appendCanonical spells a JSON value in one way: keys sorted, nulls of
// objects left out (API servers drop them), numbers by value. It need not be
// JSON, only the same for the same value.
func appendCanonical(buf []byte, value any) []byte {
	switch v := value.(type) {
	case map[string]any:
		buf = append(buf, '{')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if v[key] == nil {
				continue
			}
			buf = strconv.AppendQuote(buf, key)
			buf = append(buf, ':')
			buf = appendCanonical(buf, v[key])
			buf = append(buf, ',')
		}
		return append(buf, '}')
	case []any:
		buf = append(buf, '[')
		for _, element := range v {
			buf = appendCanonical(buf, element)
			buf = append(buf, ',')
		}
		return append(buf, ']')
	case string:
		return strconv.AppendQuote(buf, v)
	case bool:
		return strconv.AppendBool(buf, v)
	case int64:
		return strconv.AppendInt(buf, v, 10)
	case float64:
		return appendFloat(buf, v)
	default:
		return append(buf, "null"...)
	}
}

// exactFloat is the greatest magnitude below which each integer has a float of its own.
const exactFloat = 1 << 53

func appendFloat(buf []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < exactFloat {
		return strconv.AppendInt(buf, int64(v), 10)
	}
	return strconv.AppendFloat(buf, v, 'g', -1, 64)
}

func appendStrings(buf []byte, values map[string]string) []byte {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch key {
		case snapshot.DiscoveryOwnerLabel, snapshot.NetworkingOwnerLabel, snapshot.PlaneLabel, snapshot.ClusterLabel:
			continue
		}
		buf = strconv.AppendQuote(buf, key)
		buf = strconv.AppendQuote(buf, values[key])
	}
	return append(buf, ';')
}
