package snapshot_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/meshctl/meshctl/engine/snapshot"
)

func TestSupports(t *testing.T) {
	t.Parallel()
	d := &snapshot.Dialect{Fields: append(
		append(snapshot.Declare(snapshot.VirtualMesh, snapshot.Enforced, "", "federation.flatNetwork"),
			snapshot.Declare(snapshot.VirtualMesh, snapshot.NotExpressible, "not this", "federation.selectors", "mtlsConfig")...),
		append(snapshot.Declare(snapshot.TrafficPolicy, snapshot.Approximated, "nearly", ""),
			snapshot.Support{Kind: snapshot.AccessPolicy, Path: "allowedPaths", Case: snapshot.PathTemplate, Level: snapshot.Enforced})...,
	)}
	for _, c := range []struct {
		kind snapshot.Kind
		path string
		ok   bool
		why  string
	}{
		{snapshot.VirtualMesh, "", true, ""},
		{snapshot.VirtualMesh, "federation", true, ""},
		{snapshot.VirtualMesh, "federation.selectors.meshes", false, "not this"},
		{snapshot.VirtualMesh, "mtlsConfig", false, "not this"},
		{snapshot.VirtualMesh, "mtls", false, ""},
		{snapshot.TrafficPolicy, "policy.retries", true, "nearly"},
		{snapshot.AccessPolicy, "allowedPaths", false, ""}, // a case is not the field
	} {
		ok, why := d.Supports(c.kind, c.path)
		assert.Equal(t, c.ok, ok, "%s %s", c.kind, c.path)
		assert.Equal(t, c.why, why, "%s %s", c.kind, c.path)
	}
}
