package policy

import (
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/meshctl/meshctl/demo/waittest"
)

// TestSubsetName: the names that Gloo Mesh 1.x gave stay, where they are clear.
func TestSubsetName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		labels map[string]string
		want   string
	}{
		{map[string]string{"version": "v1"}, "version-v1"},
		{map[string]string{"version": "v1-canary"}, "version-v1-canary"},
		{map[string]string{"version": "2026-11-21"}, "version-2026-11-21"},
		{map[string]string{"version": "v1", "app": "cart"}, "app-cart-version-v1"},
		{map[string]string{"app": "cart-version-v1"}, "subset-app-cart-version-v1-05126362"},
		{map[string]string{"version": "V1"}, "subset-version-v1-869339cb"},
		{map[string]string{"version": "1.2"}, "subset-version-1-2-afaa2c01"},
	} {
		assert.Equal(t, tt.want, subsetName(tt.labels))
	}
}

// TestSubsetNamesDiffer: no two sets of labels share a name, and every name is
// one that a mesh takes.
func TestSubsetNamesDiffer(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewSource(int64(waittest.Seed(t))))
	word := func(marks string) string {
		const letters = "abAB01"
		n := 1 + r.Intn(3)
		if r.Intn(20) == 0 {
			n = 31 + r.Intn(2)
		}
		out := []byte{letters[r.Intn(len(letters))]}
		for range n - 1 {
			if all := letters + marks; r.Intn(2) == 0 {
				out = append(out, all[r.Intn(len(all))])
			} else {
				out = append(out, '-')
			}
		}
		return string(append(out, letters[r.Intn(len(letters))]))
	}
	seen := map[string]string{}
	for range 20_000 {
		labels := map[string]string{}
		for range 1 + r.Intn(3) {
			labels[word("._/")] = word("._")
			if r.Intn(2) == 0 {
				labels[strings.ToLower(string("abc"[r.Intn(3)]))] = string("abc"[r.Intn(3)])
			}
		}
		name, text := subsetName(labels), labelList(labels)
		require.Empty(t, validation.IsDNS1123Label(name), "%s of %s", name, text)
		if other, ok := seen[name]; ok {
			require.Equal(t, other, text, "both are called %s", name)
		}
		seen[name] = text
	}
}
