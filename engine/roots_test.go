package engine_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// someRoots are root certificates, the same in each run: random tests are to be repeatable.
var someRoots = sync.OnceValue(func() []string {
	out := make([]string, 50)
	for i := range out {
		key := ed25519.NewKeyFromSeed(binary.BigEndian.AppendUint64(make([]byte, ed25519.SeedSize-8), uint64(i)))
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i)), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), IsCA: true, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
		if err != nil {
			panic(err)
		}
		out[i] = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	}
	return out
})

// withRoots is a cluster whose mesh trusts a bundle of roots; one that says nothing of
// it if the bundle is empty.
func withRoots(c *snapshot.Cluster, bundle string) *snapshot.Cluster {
	const name = "istio-ca-root-cert"
	out := *c
	out.ConfigMaps = slices.DeleteFunc(slices.Clone(c.ConfigMaps), func(m *corev1.ConfigMap) bool { return m.Name == name })
	if bundle != "" {
		out.ConfigMaps = append(out.ConfigMaps, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "istio-system"}, Data: map[string]string{"root-cert.pem": bundle},
		})
	}
	return &out
}

// TestRootsOfManyMeshes: however many members trust other roots, one short issue says
// so, and nothing is withdrawn. When they match again it is gone.
func TestRootsOfManyMeshes(t *testing.T) {
	t.Parallel()
	const clusters = 50
	base := enginetest.World(enginetest.Size{Services: 2, Clusters: clusters, FederateEvery: 1})
	translator := engine.New(engine.Options{})
	translate := func(root func(cluster int) string) (state *snapshot.State, statuses map[snapshot.Ref]any) {
		in := *base
		in.Clusters = nil
		for i, c := range base.Clusters {
			in.Clusters = append(in.Clusters, withRoots(c, root(i)))
		}
		state = translator.Translate(&in)
		require.Equal(t, text(t, engine.Translate(&in).Output), text(t, state.Output))
		statuses = map[snapshot.Ref]any{}
		for s := range state.Output.Statuses.All() {
			statuses[s.Ref] = s.Value
			size, err := json.Marshal(s.Value)
			require.NoError(t, err)
			require.Less(t, len(size), largestStatus/4, "%s", s.Ref)
		}
		return state, statuses
	}
	virtualMesh := snapshot.RefOf(snapshot.VirtualMesh, base.Management.VirtualMeshes[0])
	destination := snapshot.Ref{Kind: snapshot.Destination, Namespace: "gloo-mesh", Name: "service-00000-team-000-cluster-01"}
	expect := func(statuses map[snapshot.Ref]any, state commonv1.ApprovalState, errors int) {
		t.Helper()
		vm := statuses[virtualMesh].(*networkingv1.VirtualMeshStatus)
		assert.Equal(t, state, vm.State)
		assert.Equal(t, state, vm.Meshes["istiod-istio-system-cluster-01.gloo-mesh."].State)
		assert.Equal(t, state, vm.Destinations[destination.Key()].State)
		assert.Len(t, vm.Errors, errors)
		assert.Len(t, statuses[destination].(*discoveryv1.DestinationStatus).AppliedFederation.Errors, errors)
	}

	same, statuses := translate(func(int) string { return someRoots()[0] })
	expect(statuses, commonv1.ApprovalStateAccepted, 0)
	assert.Empty(t, same.Output.Issues)

	apart, statuses := translate(func(cluster int) string { return someRoots()[cluster] })
	expect(statuses, commonv1.ApprovalStateInvalid, 1)
	require.Len(t, apart.Output.Issues, 1)
	assert.Equal(t, snapshot.RootsDiffer, apart.Output.Issues[0].Code)
	assert.Less(t, len(apart.Output.Issues[0].Text()), 500, "statuses cut longer texts off")
	assert.Equal(t, generated(same), generated(apart))

	half, statuses := translate(func(cluster int) string { return strings.Join(someRoots()[cluster%2:2], "") })
	expect(statuses, commonv1.ApprovalStateAccepted, 0)
	assert.Empty(t, half.Output.Issues, "all trust one of the two roots")

	again, statuses := translate(func(int) string { return someRoots()[0] })
	expect(statuses, commonv1.ApprovalStateAccepted, 0)
	assert.Equal(t, text(t, same.Output), text(t, again.Output))
}

// generated are the objects to have in registered clusters.
func generated(state *snapshot.State) map[snapshot.Ref]any {
	all := map[snapshot.Ref]any{}
	for part := range state.Output.Parts.All() {
		for _, o := range part.Objects {
			if o.Ref.Cluster != "" {
				all[o.Ref] = o.Content
			}
		}
	}
	return all
}
