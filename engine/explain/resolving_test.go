package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/meshctl/meshctl/engine"
	"github.com/meshctl/meshctl/engine/explain"
	"github.com/meshctl/meshctl/engine/offline"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TestResolvedByServers: whose proxies do not answer for a host that is made for their mesh is named where the host is.
func TestResolvedByServers(t *testing.T) {
	t.Parallel()
	input, _, err := offline.Load(offline.Dir("../../testdata/world/dns-server/in"))
	require.NoError(t, err)
	x := explain.New(engine.Translate(input))
	asked := []snapshot.Ref{{Kind: snapshot.Mesh, Namespace: snapshot.DefaultNamespace, Name: "istiod-istio-system-cluster-2"}}
	service := x.Describe(x.Find(snapshot.Destination, "cart-shop-cluster-1")[0]).(*explain.Destination)
	assert.Equal(t, asked, service.Federation.ByServers)
	virtual := x.Describe(x.Refs(snapshot.VirtualDestination)[0]).(*explain.VirtualDestination)
	assert.Equal(t, asked, virtual.ByServers)
	for _, page := range []explain.Page{service.Page(), virtual.Page()} {
		found := false
		for _, section := range page.Sections {
			for _, row := range section.Rows {
				found = found || row[0] == "Not evaluated" && row[1] == "whether callers in gloo-mesh/istiod-istio-system-cluster-2 can resolve it: proxies there do not capture DNS, so that a DNS server of their cluster has to answer"
			}
		}
		assert.True(t, found, "%v", page)
	}
}
