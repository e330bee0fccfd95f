package wizards

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
)

// TestEveryPartOfAPolicyIsAskedFor: a new field of the API needs an action.
func TestEveryPartOfAPolicyIsAskedFor(t *testing.T) {
	t.Parallel()
	form := TrafficPolicy()
	for _, field := range reflect.VisibleFields(reflect.TypeFor[networkingv1.Policy]()) {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		part := "policy." + name
		assert.True(t, slices.ContainsFunc(actions(), func(a action) bool { return a.part == part }), "no action for %s", part)
		assert.True(t, slices.ContainsFunc(form.Fields, func(f Field) bool { return strings.HasPrefix(f.Path+".", part+".") }), "no flag for %s", part)
	}
}
