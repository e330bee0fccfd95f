package policy

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// world is what policies are laid over: what was discovered, how it is joined
// and federated, and the defaults for all of it.
type world struct {
	dialects []*snapshot.Dialect
	inv      *inventory.Inventory
	topology *virtualmesh.Topology
	accounts *accounts
	// virtuals are the VirtualDestinations, but for what policies say of them.
	virtuals map[snapshot.Ref]*snapshot.VirtualDestinationPlan
	// backed are those that a Destination stands behind, by its index, the older first.
	backed     map[int][]*snapshot.VirtualDestinationPlan
	defaultTLS *snapshot.Owned[networkingv1.TLSMode]
	// byHand is what users wrote for the meshes themselves, by cluster, and refuse
	// whether policies that intersect with it are refused.
	byHand map[string]*handWritten
	refuse bool
	// externals are the services outside all clusters, ascending by name.
	externals []*discoveryv1.Destination
	// judged is remembered for one plan only.
	judged map[judgedSpec][]snapshot.Issue
}

// duration is 0 for an absent one.
func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}
