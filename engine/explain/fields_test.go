package explain_test

import (
	"encoding/json"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// specs are the types of the kinds whose issues name fields.
var specs = map[snapshot.Kind]reflect.Type{
	snapshot.TrafficPolicy:      reflect.TypeFor[networkingv1.TrafficPolicySpec](),
	snapshot.AccessPolicy:       reflect.TypeFor[networkingv1.AccessPolicySpec](),
	snapshot.VirtualMesh:        reflect.TypeFor[networkingv1.VirtualMeshSpec](),
	snapshot.VirtualDestination: reflect.TypeFor[enterprisev1beta1.VirtualDestinationSpec](),
	snapshot.ServiceDependency:  reflect.TypeFor[enterprisev1beta1.ServiceDependencySpec](),
	snapshot.AccessLogRecord:    reflect.TypeFor[observabilityv1.AccessLogRecordSpec](),
	snapshot.Settings:           reflect.TypeFor[settingsv1.SettingsSpec](),
}

// indexes are places in lists and keys of maps.
var indexes = regexp.MustCompile(`\[[^\]]*\]`)

// isField reports whether a path is a field of a kind, or one with such fields.
func isField(kind snapshot.Kind, path string) bool {
	path = indexes.ReplaceAllString(path, "")
	return specs[kind] != nil && slices.ContainsFunc(snapshot.FieldsOf(specs[kind]), func(field string) bool {
		return field == path || strings.HasPrefix(field, path+".")
	})
}

// TestIssuesNameFieldsAndCauses checks the issues of all cases: the fields exist,
// conflicts name the other object, and all of it is in the JSON.
func TestIssuesNameFieldsAndCauses(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(cases)
	require.NoError(t, err)
	fields, causes := map[snapshot.Code]int{}, map[snapshot.Code]int{}
	for _, entry := range entries {
		state := engine.Translate(load(t, entry.Name()))
		for _, issue := range state.Output.Issues {
			text := entry.Name() + ": " + issue.Ref.String() + ": " + issue.Message
			if issue.Field != "" {
				fields[issue.Code]++
				assert.True(t, isField(issue.Ref.Kind, issue.Field), "%s: no field %s", text, issue.Field)
			}
			switch issue.Code {
			case snapshot.FieldConflict, snapshot.HandWritten, snapshot.HostnameTaken, snapshot.MeshClaimed, snapshot.RuleShadowed, snapshot.GatewayOpen,
				snapshot.CallersUnidentified, snapshot.PodsShared:
				causes[issue.Code]++
				assert.NotZero(t, issue.Cause, text)
				assert.NotEqual(t, issue.Ref, issue.Cause, text)
			case snapshot.FieldInvalid, snapshot.DestinationNotFound:
				assert.NotEmpty(t, issue.Field, text)
			default:
			}
			data, err := json.Marshal(issue)
			require.NoError(t, err)
			var again snapshot.Issue
			require.NoError(t, json.Unmarshal(data, &again))
			assert.Equal(t, issue, again)
		}
	}
	assert.Len(t, causes, 8, "a code is in no case")
	assert.Greater(t, len(fields), 5)
}

// TestLostFieldsAreFields: what a policy lost are fields of it, whatever the
// sentence of the conflict begins with.
func TestLostFieldsAreFields(t *testing.T) {
	t.Parallel()
	entries, err := os.ReadDir(cases)
	require.NoError(t, err)
	lost := 0
	for _, entry := range entries {
		world := explain.New(engine.Translate(load(t, entry.Name())))
		for _, kind := range []snapshot.Kind{snapshot.TrafficPolicy, snapshot.AccessPolicy} {
			for _, ref := range world.Refs(kind) {
				for _, target := range world.Describe(ref).(*explain.Policy).Targets {
					for _, field := range target.Lost {
						lost++
						assert.True(t, isField(kind, field), "%s: %s on %s: %q", entry.Name(), ref, target.Destination, field)
					}
				}
			}
		}
	}
	assert.NotZero(t, lost)
}
