package discovery

import corev1 "k8s.io/api/core/v1"

// nodeLabel is the value of a node's first label of the given ones.
func nodeLabel(n *corev1.Node, labels ...string) string {
	if n == nil {
		return ""
	}
	for _, l := range labels {
		if v := n.Labels[l]; v != "" {
			return v
		}
	}
	return ""
}

func regionOf(n *corev1.Node) string {
	return nodeLabel(n, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaRegion)
}

func zoneOf(n *corev1.Node) string {
	return nodeLabel(n, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone)
}

// regions counts regions. Nearly always there is one; where a cluster spans
// several, the one with most of the counted things stands for all, so that
// the answer does not depend on the name of a node or a pod.
type regions []regionCount

type regionCount struct {
	region string
	count  int
}

func (r *regions) add(n *corev1.Node) {
	region := regionOf(n)
	if region == "" {
		return
	}
	for i := range *r {
		if (*r)[i].region == region {
			(*r)[i].count++
			return
		}
	}
	*r = append(*r, regionCount{region, 1})
}

// most returns the most frequent region, the first by name among equals;
// empty if none was counted.
func (r regions) most() string {
	var best regionCount
	for _, c := range r {
		if c.count > best.count || c.count == best.count && c.region < best.region {
			best = c
		}
	}
	return best.region
}

// Region is the region of most nodes of the cluster.
func (x *Index) Region() string {
	var r regions
	for _, n := range x.nodes {
		r.add(n)
	}
	return r.most()
}

// regionOf is the region of most pods of the workloads.
func (n nodes) regionOf(backing []*workload) string {
	var r regions
	for _, wl := range backing {
		for _, pod := range wl.controller.pods {
			r.add(n[pod.Spec.NodeName])
		}
	}
	return r.most()
}
