package discovery

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Defaults of the limits in Settings: twice the Services and five times the Deployments
// that Kubernetes supports in a namespace. See
// https://github.com/kubernetes/community/blob/master/sig-scalability/configs-and-limits/thresholds.md.
const (
	defaultServicesPerNamespace  = 10_000
	defaultWorkloadsPerNamespace = 10_000
)

// candidate is what becomes a Workload or a Destination.
type candidate struct {
	source metav1.Object
	mesh   *ControlPlane
	// controller is set for a Workload; service, with the workloads behind it, for a
	// Destination.
	controller *controller
	service    *corev1.Service
	workloads  []*workload
	// machines answer for the Service, too.
	machines []Machine
	// bare is how many ready pods of the Service have no proxy of the mesh.
	bare int
}

// limitOn is the limit on a kind in each namespace, its field in Settings, what it counts,
// and what holds for those beyond it.
func limitOn(kind snapshot.Kind, limits settingsv1.DiscoveryLimits) (most int, field, word, effect string) {
	if kind == snapshot.Workload {
		return int(cmp.Or(limits.WorkloadsPerNamespace, defaultWorkloadsPerNamespace)), "discovery.limits.workloadsPerNamespace", "workload",
			"which no policy selects as callers"
	}
	return int(cmp.Or(limits.ServicesPerNamespace, defaultServicesPerNamespace)), "discovery.limits.servicesPerNamespace", "service",
		"to which no policy applies, and which other clusters do not see"
}

// keepToLimit returns the candidates without the newest of those namespaces that have too
// many, which it reports. What is stored stays in any case: policies may protect it.
func (x *Index) keepToLimit(kind snapshot.Kind, all []candidate) []candidate {
	most, field, word, effect := limitOn(kind, x.limits)
	if len(all) <= most {
		return all
	}
	byNamespace := map[string]int{}
	for _, c := range all {
		byNamespace[c.source.GetNamespace()]++
	}
	leftOut := map[metav1.Object]bool{}
	for namespace, n := range byNamespace { // Discover orders the issues
		if n <= most {
			continue
		}
		of := slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return c.source.GetNamespace() != namespace })
		stored := x.orderByPlace(kind, of)
		newest := of[max(most, stored):]
		if len(newest) == 0 {
			continue
		}
		for _, c := range newest {
			leftOut[c.source] = true
		}
		mesh := newest[0].mesh.ref()
		x.Report(snapshot.Errorf(snapshot.BudgetExceeded, "remove those that nobody needs, or raise the limit",
			"%s, more than the limit of %d (%s of the Settings); left out, the newest first: %d, %s",
			snapshot.Count(n, word), most, field, len(newest), effect).On(x.namespaceRef(namespace), meshRef(mesh)))
	}
	return slices.DeleteFunc(slices.Clone(all), func(c candidate) bool { return leftOut[c.source] })
}

func meshRef(r commonv1.ObjectRef) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.Mesh, Namespace: r.Namespace, Name: r.Name}
}

// orderByPlace orders the candidates of a namespace by who gets a place first: those that
// are stored, and of two the older one. It returns how many are stored.
func (x *Index) orderByPlace(kind snapshot.Kind, of []candidate) int {
	x.usedNames = true
	names := x.names.sourcesIn(kind, x.Cluster, of[0].source.GetNamespace())
	stored, added := make([]candidate, 0, len(names)), make([]candidate, 0, len(of))
	for _, c := range of {
		if names[c.source.GetName()] {
			stored = append(stored, c)
		} else {
			added = append(added, c)
		}
	}
	slices.SortStableFunc(added, func(a, b candidate) int {
		at, bt := a.source.GetCreationTimestamp(), b.source.GetCreationTimestamp()
		return cmp.Or(at.Compare(bt.Time), strings.Compare(a.source.GetName(), b.source.GetName()))
	})
	copy(of, stored)
	copy(of[len(stored):], added)
	return len(stored)
}
