package snapshot_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestObjectYAML(t *testing.T) {
	t.Parallel()
	labels := map[string]string{"owner": "gloo-mesh"}
	o := &snapshot.Object{
		Ref:     snapshot.Ref{Kind: snapshot.AuthorizationPolicy, Cluster: "c1", Namespace: "bookinfo", Name: "deny"},
		Content: &snapshot.Content{Labels: labels, Annotations: map[string]string{"why": "x"}, Spec: struct{}{}},
	}
	data, err := o.YAML()
	require.NoError(t, err)
	assert.Equal(t, `apiVersion: security.istio.io/v1
kind: AuthorizationPolicy
metadata:
  annotations:
    why: x
  labels:
    cluster.multicluster.solo.io: c1
    owner: gloo-mesh
  name: deny
  namespace: bookinfo
spec: {}
`, string(data))
	assert.Len(t, labels, 1, "the object stays as it was")
}

// TestIssues: issues as data read back as they were, and as a line they name what
// they are about.
func TestIssues(t *testing.T) {
	t.Parallel()
	issues := []snapshot.Issue{
		{Code: snapshot.FieldInvalid, Severity: snapshot.Error, Ref: snapshot.Ref{Kind: snapshot.TrafficPolicy, Namespace: "a", Name: "b"}, Message: "m", Hint: "h"},
		{Code: snapshot.ClusterFrozen, Severity: snapshot.Info, Target: snapshot.Ref{Kind: snapshot.Mesh, Name: "c"}, Message: "m"},
	}
	data, err := snapshot.YAML(issues)
	require.NoError(t, err)
	var back []snapshot.Issue
	require.NoError(t, yaml.Unmarshal(data, &back))
	assert.Equal(t, issues, back)
	assert.Contains(t, string(data), "help: meshctl help FieldInvalid\n")
	assert.Equal(t, "TrafficPolicy a/b: m (FieldInvalid)", issues[0].Summary())
	assert.Equal(t, "TrafficPolicy a/b on c: m (FieldInvalid)", issues[0].On(issues[0].Ref, issues[1].Target).Summary())
	assert.Equal(t, "m (WriteFailed)", snapshot.Issue{Code: snapshot.WriteFailed, Message: "m"}.Summary())
}

func TestWords(t *testing.T) {
	t.Parallel()
	for _, want := range []snapshot.Sync{snapshot.Unsynced, snapshot.Stale, snapshot.Synced} {
		data, err := json.Marshal(want)
		require.NoError(t, err)
		var got snapshot.Sync
		require.NoError(t, json.Unmarshal(data, &got))
		assert.Equal(t, want, got)
	}
	var (
		sync     snapshot.Sync
		severity snapshot.Severity
		kind     snapshot.Kind
	)
	require.ErrorContains(t, json.Unmarshal([]byte(`"old"`), &sync), "unsynced, stale, synced")
	require.ErrorContains(t, json.Unmarshal([]byte(`"bad"`), &severity), "info, warning, error")
	require.ErrorContains(t, json.Unmarshal([]byte(`"Foo"`), &kind), `"Foo"`)
}

// TestEscape: what a user typed into a policy cannot act on the terminal of
// who prints it, and comes back whole.
func TestEscape(t *testing.T) {
	t.Parallel()
	value := map[string]string{"path": "/a\x1b[2J\u009b\u202e\x7fé\n"}
	data, err := snapshot.YAML(value)
	require.NoError(t, err)
	for _, bad := range []string{"\x1b", "\u009b", "\x7f"} {
		assert.NotContains(t, string(data), bad)
	}
	var back map[string]string
	require.NoError(t, yaml.Unmarshal(data, &back))
	assert.Equal(t, value, back)
}
