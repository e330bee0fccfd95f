package policy

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// subsetName is how a set of labels is called in generated objects: its pairs of
// key and value in the order of the keys, as Gloo Mesh 1.x has it. Where another
// set could have that name, or none can, a hash of the labels ends it: two sets
// that share a name would also share their pods.
func subsetName(labels map[string]string) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		parts = append(parts, key, labels[key])
	}
	name := strings.Join(parts, "-")
	if len(validation.IsDNS1123Label(name)) == 0 && maps.Equal(labelsNamed(name), labels) {
		return name
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(labelList(labels))) // a hash never fails
	end := fmt.Sprintf("-%08x", hash.Sum32())
	name = strings.Map(func(r rune) rune {
		if (r >= 'a' && r <= 'z') || (r >= '0' && r <= '9') {
			return r
		}
		return '-'
	}, strings.ToLower(name))
	return "subset-" + strings.Trim(name[:min(len(name), snapshot.MaxName-len("subset-")-len(end))], "-") + end
}

// labelsNamed reads a name the one way in which it is read: as pairs of words if
// every second one, the keys, comes after those before it; else as one key and
// its value.
func labelsNamed(name string) map[string]string {
	words := strings.Split(name, "-")
	pairs := map[string]string{}
	for i := 0; i+1 < len(words); i += 2 {
		pairs[words[i]] = words[i+1]
		if i > 0 && words[i-2] >= words[i] {
			pairs = nil
			break
		}
	}
	if pairs != nil && len(words)%2 == 0 {
		return pairs
	}
	key, value, _ := strings.Cut(name, "-")
	return map[string]string{key: value}
}
