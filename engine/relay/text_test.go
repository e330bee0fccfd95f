package relay

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                         "",
		"v1.2.3":                   "v1.2.3",
		"two\nlines \x1b[2J":       "two lines ?[2J",
		strings.Repeat("ä", 500):   strings.Repeat("ä", 500),
		strings.Repeat("ä", 1<<20): strings.Repeat("ä", 500) + "...",
	} {
		assert.Equal(t, want, Text(in))
	}
}
