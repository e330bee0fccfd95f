// Package schematest checks for tests that what a command prints is what its JSON Schema says.
package schematest

import (
	"bytes"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/cmd/help"
)

// Valid checks what the command, such as "cluster list", has printed with -o json or -o yaml. A field
// that the schema does not have is an error.
func Valid(t testing.TB, command, printed string) {
	t.Helper()
	schema := compiled(t, command)
	documents := strings.Split("\n"+printed, "\n---\n")
	for _, document := range documents {
		if strings.TrimSpace(document) == "" {
			continue
		}
		data, err := yaml.YAMLToJSON([]byte(document)) // JSON is YAML, too
		require.NoError(t, err, "%s: %s", command, document)
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		require.NoError(t, err, command)
		assert.NoError(t, schema.Validate(value), "see: meshctl help schema %s", command)
	}
}

func compiled(t testing.TB, command string) *jsonschema.Schema {
	t.Helper()
	data := help.Schema(command)
	require.NotNil(t, data, "%s has no schema", command)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err, command)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	require.NoError(t, compiler.AddResource("schema.json", value), command)
	schema, err := compiler.Compile("schema.json")
	require.NoError(t, err, command)
	return schema
}
