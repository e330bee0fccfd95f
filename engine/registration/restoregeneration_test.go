package registration

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestGenerationsOfOthers: wherever a status says of another object which generation is in force, the restoration knows its kind.
func TestGenerationsOfOthers(t *testing.T) {
	t.Parallel()
	found := map[string]bool{}
	for _, k := range snapshot.Kinds(snapshot.ManagementSide, snapshot.Watch|snapshot.Write) {
		if status, ok := reflect.TypeOf(k.New()).Elem().FieldByName("Status"); ok {
			eachOther(status.Type, "status", map[reflect.Type]bool{}, found)
		}
	}
	for key := range found {
		assert.NotEqual(t, snapshot.NoKind, aboutOthers[key], "%s: of which kind is it?", key)
	}
	for key := range aboutOthers {
		assert.True(t, found[key], "no status has %s", key)
	}
}

// eachOther finds the fields whose values name an object and have its generation.
func eachOther(of reflect.Type, key string, seen map[reflect.Type]bool, found map[string]bool) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return
	}
	_, generation := of.FieldByName("ObservedGeneration")
	for i := range of.NumField() {
		if generation && of.Field(i).Type == reflect.TypeFor[commonv1.ObjectRef]() {
			found[key] = true
		}
	}
	if seen[of] {
		return
	}
	seen[of] = true
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if name != "spec" {
			eachOther(of.Field(i).Type, name, seen, found)
		}
	}
}
