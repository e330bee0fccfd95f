package ferrytest_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/mesh/ferrytest"
	"github.com/meshctl/meshctl/engine/mesh/istio"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// timetable is what a user wrote for the Service cart.
const timetable = `
---
apiVersion: config.openservicemesh.io/v1alpha2
kind: MeshConfig
metadata: {name: cart, namespace: shop}
`

// load reads the world of the folder testdata, and more objects of its cluster.
func load(t *testing.T, more string) *snapshot.Input {
	t.Helper()
	folder := fstest.MapFS{}
	for _, name := range []string{"cluster-1/cluster.yaml", "management/policies.yaml"} {
		data, err := os.ReadFile("testdata/" + name)
		require.NoError(t, err)
		folder[name] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(string(data), "NAMESPACE", "shop"))}
	}
	if more != "" {
		folder["cluster-1/more.yaml"] = &fstest.MapFile{Data: []byte(more)}
	}
	in, unused, err := offline.Load(folder)
	require.NoError(t, err)
	require.Empty(t, unused)
	return in
}

// meshes are Istio and Ferry.
func meshes() []engine.Mesh {
	return []engine.Mesh{
		{Detector: istio.Detector(), Renderer: istio.Renderer{}},
		{Detector: ferrytest.Detector(), Renderer: ferrytest.Renderer{}},
	}
}

// TestAMeshIsAFolder: with one line in the list of meshes, Ferry is discovered beside Istio, policies become its objects, and what a
// user wrote for it is noticed.
func TestAMeshIsAFolder(t *testing.T) {
	t.Parallel()
	translator := engine.New(engine.Options{Meshes: meshes()})
	state := translator.Translate(load(t, ""))
	found := map[string]string{}
	for _, m := range state.Plan.Meshes {
		found[m.Ref.Name] = m.Dialect.Name + " of " + m.TrustDomain
	}
	assert.Equal(t, map[string]string{
		"ferry-control-shop-cluster-1":  "Ferry of ferry.example",
		"istiod-istio-system-cluster-1": "Istio of cluster.local",
	}, found)

	want := map[string][]string{
		// Identities are those of all trust domains of the cluster, Istio's among them.
		"service-cart":    {"traffic careful", "from cluster.local/web", "from ferry.example/web"},
		"service-web":     {"traffic elsewhere"},
		"deny":            {"by all"},
		"filters":         {"for careful"},
		"egress-web":      {"cart.global", "cart.shop.svc.cluster.local"},
		"external-legacy": {"legacy.example.com"},
		"virtual-cart":    {"cart.global"},
	}
	assert.Equal(t, want, crossings(state))
	assert.Empty(t, noticed(state))

	written := translator.Translate(load(t, timetable))
	assert.Equal(t, []string{"the hand-written MeshConfig cluster-1/shop/cart also says when requests for cart.shop.svc.cluster.local cross"}, noticed(written))
	assert.Equal(t, want, crossings(written), "a warning withdraws nothing")
	assert.Empty(t, noticed(translator.Translate(load(t, ""))), "the user deleted it")
}

// TestACommonRoot: the agent of the cluster is asked for a certificate of the root, where Ferry's control plane takes it from.
func TestACommonRoot(t *testing.T) {
	t.Parallel()
	in := load(t, "")
	vm := in.Management.VirtualMeshes[0]
	vm.Spec.MtlsConfig = &networkingv1.MTLSConfig{Shared: &networkingv1.SharedTrust{}, AutoRestartPods: true}
	root := &snapshot.Root{Fingerprint: strings.Repeat("ab", 32), PEM: "root", Secret: snapshot.Ref{Kind: snapshot.Secret, Namespace: "shop", Name: "root"}}
	in.Roots = []*snapshot.VirtualMeshRoots{{VirtualMesh: snapshot.RefOf(snapshot.VirtualMesh, vm), Roots: []*snapshot.Root{root}, Signs: root.Fingerprint}}

	state := engine.New(engine.Options{Meshes: meshes()}).Translate(in)
	members := state.Plan.VirtualMeshes[0].Trust.Members
	require.Len(t, members, 1)
	spec := members[0].Spec
	require.NotNil(t, spec)
	assert.Equal(t, commonv1.ObjectRef{Name: "ferry-ca", Namespace: "shop"}, *spec.IssuedCertificateSecret)
	assert.Equal(t, []string{"ferry.example/ferry-control"}, spec.Hosts)
	assert.Equal(t, "Ferry", spec.Org)
	assert.Equal(t, map[string]string{"app": "ferry-control"}, spec.Trust.ControlPlane)
	require.Len(t, members[0].Restart.PodsToBounce, 2)
	sync := members[0].Restart.PodsToBounce[1].RootCertSync
	assert.Equal(t, commonv1.ObjectRef{Name: "ferry-roots", Namespace: "shop"}, sync.ConfigMapRef)
	assert.Equal(t, "roots.pem", sync.ConfigMapKey)
}

// TestAMeshThatIsNotListed is not known.
func TestAMeshThatIsNotListed(t *testing.T) {
	t.Parallel()
	state := engine.New(engine.Options{Meshes: meshes()[:1]}).Translate(load(t, timetable))
	require.Len(t, state.Plan.Meshes, 1)
	assert.Equal(t, "Istio", state.Plan.Meshes[0].Dialect.Name)
	assert.Empty(t, crossings(state))
	assert.Empty(t, noticed(state))
}

// TestNoMeshes: discovery knows none by itself.
func TestNoMeshes(t *testing.T) {
	t.Parallel()
	in := load(t, "")
	assert.Empty(t, discovery.Discover(in.Clusters[0], discovery.Options{}).Meshes)
}

// crossings are what the objects of Ferry say, by name.
func crossings(state *snapshot.State) map[string][]string {
	out := map[string][]string{}
	for part := range state.Output.Parts.All() {
		for _, o := range part.Objects {
			if o.Ref.Kind == ferrytest.Crossing {
				says, _ := o.Content.Spec.(map[string]any)["says"].([]string)
				out[o.Ref.Name] = says
			}
		}
	}
	return out
}

// noticed are the issues about hand-written objects of Ferry.
func noticed(state *snapshot.State) []string {
	var out []string
	for _, i := range state.Output.Issues {
		if strings.Contains(i.Message, ferrytest.Timetable.String()) {
			out = append(out, i.Message)
		}
	}
	return out
}
