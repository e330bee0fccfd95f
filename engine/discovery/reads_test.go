package discovery

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/labels"
)

func TestInjectorSelector(t *testing.T) {
	t.Parallel()
	a, b, none := Detector{Reads: Reads{Injector: "a"}}, Detector{Reads: Reads{Injector: "b"}}, Detector{}
	for text, c := range map[string]struct {
		detectors Detectors
		matches   []string
	}{
		"app,!app":     {Detectors{none}, nil},
		"app=a":        {Detectors{a, none}, []string{"a"}},
		"app in (a,b)": {Detectors{a, none, b}, []string{"a", "b"}},
	} {
		got := c.detectors.InjectorSelector()
		assert.Equal(t, text, got)
		selector, err := labels.Parse(got)
		require.NoError(t, err)
		var matches []string
		for _, value := range []string{"a", "b", "c"} {
			if selector.Matches(labels.Set{InjectorLabel: value}) {
				matches = append(matches, value)
			}
		}
		assert.Equal(t, c.matches, matches)
		assert.False(t, selector.Matches(labels.Set{}))
	}
}
