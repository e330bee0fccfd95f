package explain

import (
	"slices"
	"strconv"

	"github.com/meshctl/meshctl/engine/netpolicy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// networkPolicies says which connections on the way to a Destination NetworkPolicies may end. Whether a cluster enforces them is not
// known: its network plugin does that, or does not.
func networkPolicies(q *query, d *snapshot.DestinationPlan, port uint32) (list []string) {
	ports := podPortsOf(d, port)
	for _, f := range q.outside.network.To(d).From(q.workload, q.mesh, ports) {
		if len(f.By) == 0 {
			why := "which meshctl's account may not read: register the cluster again"
			if c := q.clusters[f.Cluster]; c != nil && slices.Contains(c.Unsent, snapshot.NetworkPolicy) {
				why = "which its agent is too old to send: register the cluster again with --agent-image"
			}
			list = append(list, "whether NetworkPolicies of cluster "+f.Cluster+" let connections through, "+why)
			continue
		}
		way := " from " + endText(f.From, d) + " through to port " + strconv.Itoa(int(f.Port)) + " of " + endText(f.To, d)
		if f.Verdict == netpolicy.MayPass {
			list = append(list, "whether "+refsText(f.By)+" "+verb(len(f.By), "lets", "let")+" connections"+way+": "+
				verb(len(f.By), "it goes", "they go")+" by addresses, namespaces or names of ports that are not known")
			continue
		}
		list = append(list, "whether the network of cluster "+f.Cluster+" enforces "+refsText(f.By)+", which "+verb(len(f.By), "lets", "let")+" no connection"+way)
	}
	return list
}

func endText(end netpolicy.End, d *snapshot.DestinationPlan) string {
	switch end {
	case netpolicy.Gateways:
		return "the east-west gateways of cluster " + d.Mesh.Cluster
	case netpolicy.OwnGateways:
		return "the callers' own east-west gateways"
	case netpolicy.Pods:
		return "pods of " + d.Ref.Name
	}
	return "the callers"
}

// isolated says that NetworkPolicies let only some connections into the pods of a Destination.
func isolated(x *Index, d *snapshot.DestinationPlan) []string {
	by := x.outside.network.To(d).Isolating()
	if len(by) == 0 {
		return nil
	}
	return []string{"whom " + refsText(by) + " " + verb(len(by), "lets", "let") + " through to its pods: ask meshctl why"}
}
