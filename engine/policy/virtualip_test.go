package policy

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
)

// TestVirtualIP: Gloo Mesh 1.x gave services these addresses, and callers may
// have written them down.
func TestVirtualIP(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, namespace, cluster, want string }{
		{"some-svc", "some-ns", "cluster", "243.21.204.125"},
		{"reviews", "bookinfo", "cluster-2", "255.51.210.11"},
	} {
		service := commonv1.ClusterObjectRef{Name: tt.name, Namespace: tt.namespace, ClusterName: tt.cluster}
		taken := map[netip.Addr]bool{}
		assert.Equal(t, tt.want, virtualIP(service, taken))
		again := netip.MustParseAddr(tt.want).Next().String()
		assert.Equal(t, again, virtualIP(service, taken), "the first one has it")
	}
}

// TestVirtualIPAtTheEnd: the range goes round, and never gives out broadcast.
func TestVirtualIPAtTheEnd(t *testing.T) {
	t.Parallel()
	service := commonv1.ClusterObjectRef{Name: "some-svc", Namespace: "some-ns", ClusterName: "cluster"}
	taken := map[netip.Addr]bool{}
	for at := netip.MustParseAddr("243.21.204.125"); at.IsValid() && at.Compare(netip.MustParseAddr("243.21.205.0")) < 0; at = at.Next() {
		taken[at] = true
	}
	assert.Equal(t, "243.21.205.0", virtualIP(service, taken))
}
