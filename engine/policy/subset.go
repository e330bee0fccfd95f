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

// subsetName is the name of a set of labels in generated objects: the pairs of key
// and value in the order of the keys, as in Gloo Mesh 1.x. If the name is ambiguous
// or invalid, a hash of the labels follows: sets with one name would share their
// pods. No labels have no name.
func subsetName(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
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

// labelsNamed parses a name in the one way that counts: as pairs of words if the
// keys, every second word, are ascending; else as one key and its value.
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
