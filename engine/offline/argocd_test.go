package offline_test

import (
	"os"
	"path"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	lua "github.com/yuin/gopher-lua"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// healthFor is what Argo CD shows for what kstatus says.
var healthFor = map[kstatus.Status]string{
	kstatus.CurrentStatus: "Healthy", kstatus.InProgressStatus: "Progressing", kstatus.FailedStatus: "Degraded",
}

// argoCheck reads the health checks of `meshctl help gitops argocd-cm.yaml`, as Argo CD does:
// https://argo-cd.readthedocs.io/en/stable/operator-manual/health/
func argoCheck(t *testing.T) argoChecks {
	t.Helper()
	text, err := os.ReadFile("../../cmd/help/gitops/argocd-cm.yaml")
	require.NoError(t, err)
	var configMap struct {
		Data map[string]string `json:"data"`
	}
	require.NoError(t, yaml.Unmarshal(text, &configMap))
	var customizations map[string]map[string]string
	require.NoError(t, yaml.Unmarshal([]byte(configMap.Data["resource.customizations"]), &customizations))
	out := argoChecks{}
	for pattern, customization := range customizations {
		out[pattern] = customization["health.lua"]
	}
	require.NotEmpty(t, out)
	return out
}

// argoChecks are Lua scripts by a pattern of GROUP/KIND.
type argoChecks map[string]string

// of is the health of an object with a status, so many edits after the one that the status is about.
func (c argoChecks) of(t *testing.T, kind snapshot.Kind, status map[string]any, edits float64) (health, message string) {
	t.Helper()
	gvk := kind.Info().GroupVersionKind
	for pattern, script := range c {
		matches, err := path.Match(pattern, gvk.Group+"/"+gvk.Kind)
		require.NoError(t, err)
		if !matches {
			continue
		}
		observed, _ := status["observedGeneration"].(float64)
		return runHealth(t, script, map[string]any{
			"kind": gvk.Kind, "metadata": map[string]any{"name": "a", "generation": observed + edits}, "status": status,
		})
	}
	require.Fail(t, "no health check", "for %s", gvk)
	return "", ""
}

// runHealth runs a script with the libraries that Argo CD gives it: none that reach out of it.
func runHealth(t *testing.T, script string, object map[string]any) (health, message string) {
	t.Helper()
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable,
	} {
		require.NoError(t, state.CallByParam(lua.P{Fn: state.NewFunction(open), Protect: true}, lua.LString(name)))
	}
	state.SetGlobal("obj", luaValue(state, object))
	require.NoError(t, state.DoString(script))
	result, isTable := state.Get(-1).(*lua.LTable)
	require.True(t, isTable)
	return lua.LVAsString(result.RawGetString("status")), lua.LVAsString(result.RawGetString("message"))
}

// luaValue is a value of JSON in Lua.
func luaValue(state *lua.LState, value any) lua.LValue {
	switch v := value.(type) {
	case map[string]any:
		table := state.NewTable()
		for key, element := range v {
			table.RawSetString(key, luaValue(state, element))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, element := range v {
			table.Append(luaValue(state, element))
		}
		return table
	case string:
		return lua.LString(v)
	case float64:
		return lua.LNumber(v)
	case bool:
		return lua.LBool(v)
	default:
		return lua.LNil
	}
}

// TestArgoHealthWithoutStatus: what nobody processed yet is in progress, and kinds without conditions are healthy.
func TestArgoHealthWithoutStatus(t *testing.T) {
	t.Parallel()
	check := argoCheck(t)
	for _, script := range check {
		health, message := runHealth(t, script, map[string]any{"kind": "TrafficPolicy", "metadata": map[string]any{"generation": 1.0}})
		assert.Equal(t, "Progressing", health)
		assert.NotEmpty(t, message)
		health, _ = runHealth(t, script, map[string]any{"kind": "Role", "metadata": map[string]any{"generation": 1.0}})
		assert.Equal(t, "Healthy", health)
	}
}
