package e2e

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/meshctl/meshctl/demo/local"
	"github.com/meshctl/meshctl/demo/shard"
	"github.com/meshctl/meshctl/engine/registration"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestRegisterAsksServe: serve runs, and `cluster register` says whether it reaches the cluster. What only its pods can
// dial is read from here all the same.
func TestRegisterAsksServe(t *testing.T) {
	shard.Only(t, shard.Clusters)
	t.Parallel()
	w := newEnvironment(t, func(context.Context, *local.Cluster) error { return nil })
	w.startServe()
	register := func(flags ...string) result {
		t.Helper()
		return w.run(append([]string{"cluster", "register", "cluster-2", "--remote-context", "cluster-2", "--mgmt-context", "cluster-1"}, flags...)...)
	}
	list := func() registration.ClusterStatus {
		t.Helper()
		var all []registration.ClusterStatus
		require.NoError(t, json.Unmarshal([]byte(w.must("cluster", "list", "--mgmt-context", "cluster-1", "-o", "json").stdout), &all))
		require.Len(t, all, 1)
		return all[0]
	}

	w.scaleServe(1)
	r := register()
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, `(of context "cluster-2") does not lead the pods of meshctl serve to the cluster`)
	assert.Contains(t, r.stderr, "use --api-server-address HOST[:PORT]")
	_, err := w.object("cluster-2", core("namespaces"), "", mgmt)
	assert.True(t, apierrors.IsNotFound(err), "nothing is written")
	assert.JSONEq(t, "[]", w.must("cluster", "list", "--mgmt-context", "cluster-1", "-o", "json").stdout)

	r = register("--api-server-address", "cluster-2-control-plane.invalid:6443")
	assert.Equal(t, 1, r.code, "%s%s", r.stdout, r.stderr)
	assert.Regexp(t, `(?m)^created +management +KubernetesCluster +gloo-mesh/cluster-2$`, r.stdout)
	assert.Contains(t, r.stderr, "Note: https://cluster-2-control-plane.invalid:6443 cannot be reached from here")
	assert.Contains(t, r.stderr, "cluster cluster-2 is registered, but meshctl serve does not reach it: "+
		"the host name of https://cluster-2-control-plane.invalid:6443 cannot be resolved; ")
	seen := list()
	assert.Equal(t, registration.ServeFails, seen.Serve)
	assert.Equal(t, snapshot.HealthDegraded, seen.Health, "%+v", seen)
	assert.NotEmpty(t, seen.Detour, "it was reached by its context")

	w.scaleServe(0)
	r = register()
	assert.Zero(t, r.code, "%s%s", r.stdout, r.stderr)
	assert.Contains(t, r.stderr, "Cluster cluster-2 is registered again; the credentials of before are revoked. meshctl serve reaches it.")
	r = register()
	assert.Contains(t, r.stderr, "Cluster cluster-2 is registered again; the credentials of before are revoked. meshctl serve reaches it.")
	seen = list()
	assert.Equal(t, registration.ServeReaches, seen.Serve)
	assert.Equal(t, snapshot.Healthy, seen.Health, "%+v", seen)
	table := w.must("cluster", "list", "--mgmt-context", "cluster-1").stdout
	assert.Regexp(t, `(?m)^cluster-2 +healthy +\S+ +ok +v1`, table)
	w.stopServe()
	assert.Empty(t, list().Serve, "nobody serves")
}
