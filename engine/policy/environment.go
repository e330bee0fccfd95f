package policy

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// environment is what policies are applied to: what was discovered, the
// VirtualMeshes, the VirtualDestinations, the hand-written objects and the defaults.
type environment struct {
	inv      *inventory.Inventory
	topology *virtualmesh.Topology
	// scope says which policies count, and local what there is to say of each policy of a registered cluster.
	scope    virtualmesh.Scope
	local    map[snapshot.Ref][]snapshot.Issue
	accounts *accounts
	shared   *sharedPods
	captures *captures
	// virtualDestinations are planned without the subsets and outlier detection that
	// follow from policies.
	virtualDestinations map[snapshot.Ref]*snapshot.VirtualDestinationPlan
	// backedBy are the VirtualDestinations that a Destination serves, by its index,
	// oldest first.
	backedBy   map[int][]*snapshot.VirtualDestinationPlan
	defaultTLS *snapshot.WithOrigin[networkingv1.TLSMode]
	byHand     byHand
	// services are the Services, by cluster.
	services map[string]*clusterServices
	// externals are the services outside all clusters, ascending by name.
	externals externalServices
	// specIssues and requestKeys are caches of what follows from a spec alone.
	specIssues  map[specKey][]snapshot.Issue
	requestKeys map[*networkingv1.HttpMatcher]string
}

// bound empties caches that are much larger than what a number of policies needs: specs
// that are gone are still in them.
func (env *environment) bound(policies int) {
	const rest = 1000
	if len(env.specIssues) > 4*policies+rest {
		env.specIssues = nil
	}
	if len(env.requestKeys) > 16*policies+rest {
		env.requestKeys = nil
	}
}

// duration is 0 for nil.
func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}
