package istio

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOfObject(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ to, want []string }{
		"some":            {[]string{"front", "back"}, []string{"front", "back"}},
		"all":             {[]string{"front", "*"}, []string{"*"}},
		"nobody":          {[]string{"~"}, []string{"."}},
		"own twice":       {[]string{"shop", ".", "front", "front"}, []string{".", "front"}},
		"no namespace":    {[]string{"", "Front", "front"}, []string{"front"}},
		"only nonsense":   {[]string{"a b"}, []string{"."}},
		"nobody and some": {[]string{"~", "front"}, []string{"front"}},
		"own by its name": {[]string{"shop"}, []string{"."}},
	} {
		assert.Equal(t, tt.want, ofObject(tt.to, "shop"), name)
	}
}
