package rbac

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// anything stands for everything in a Role, where it has to be written.
const anything = "*"

// area is what an element of a selector selects, in one namespace and cluster: by labels, or by name. Empty strings are any.
type area struct {
	byName                   bool
	namespace, cluster, name string
	labels                   map[string]string
}

// String is the area in the words of selectors.
func (a area) String() string {
	word := func(what, value string) string {
		if value == "" {
			return "any " + what
		}
		return what + " " + snapshot.Clean(value)
	}
	place := word("namespace", a.namespace) + " in " + word("cluster", a.cluster)
	if a.byName {
		return word("name", a.name) + " in " + place
	}
	if len(a.labels) == 0 {
		return place
	}
	parts := make([]string, 0, len(a.labels))
	for _, key := range slices.Sorted(maps.Keys(a.labels)) {
		parts = append(parts, snapshot.Clean(key+"="+a.labels[key]))
	}
	return strings.Join(parts, ",") + " in " + place
}

// permit is what an element of a selector in a Role allows.
type permit struct {
	byName               bool
	namespaces, clusters []string
	name                 string
	labels               map[string]string
	// unlabeled selectors have no labels.
	unlabeled bool
}

// covers reports whether all of an area is allowed. An area that is covered by several permits together is covered by one
// of them alone: each is written for one place, or for any.
func (p permit) covers(a area) bool {
	if a.byName != p.byName || !within(p.namespaces, a.namespace) || !within(p.clusters, a.cluster) {
		return false
	}
	if p.byName {
		return within([]string{p.name}, a.name)
	}
	return p.unlabeled || covered(p.labels, a.labels)
}

// within reports whether a value is in a list of a Role; an empty one is any value.
func within(allowed []string, value string) bool {
	return slices.Contains(allowed, anything) || value != "" && slices.Contains(allowed, value)
}

// covered reports whether labels of a selector select no more than those of a Role, of which there must be some.
func covered(allowed, wanted map[string]string) bool {
	for key, value := range allowed {
		if key == anything && value == anything {
			continue
		}
		if is, ok := wanted[key]; !ok || is != value {
			return false
		}
	}
	return len(allowed) > 0
}

// maxAreas bounds what is compared for one object. More is not allowed: a Role with "*" is meant for that.
const maxAreas = 10_000

// places are all pairs of a namespace and a cluster; empty lists are any. Too many are taken for all there are.
func places(namespaces, clusters []string) []area {
	anyOf := func(list []string) []string {
		if len(list) == 0 || slices.Contains(list, anything) {
			return []string{""}
		}
		return list
	}
	namespaces, clusters = anyOf(namespaces), anyOf(clusters)
	if len(namespaces)*len(clusters) > maxAreas {
		return []area{{}}
	}
	out := make([]area, 0, len(namespaces)*len(clusters))
	for _, namespace := range namespaces {
		for _, cluster := range clusters {
			out = append(out, area{namespace: namespace, cluster: cluster})
		}
	}
	return out
}

// named are the areas of references.
func named(refs []commonv1.ClusterObjectRef) (out []area) {
	plain := func(s string) string {
		if s == anything {
			return ""
		}
		return s
	}
	for _, ref := range refs {
		out = append(out, area{byName: true, namespace: plain(ref.Namespace), cluster: plain(ref.ClusterName), name: plain(ref.Name)})
	}
	return out
}

// namedPermits are what references in a Role allow.
func namedPermits(refs []commonv1.ClusterObjectRef) (out []permit) {
	for _, ref := range refs {
		out = append(out, permit{byName: true, namespaces: []string{ref.Namespace}, clusters: []string{ref.ClusterName}, name: ref.Name})
	}
	return out
}

// labeled gives areas labels.
func labeled(areas []area, labels map[string]string) []area {
	for i := range areas {
		areas[i].labels = labels
	}
	return areas
}

// destinationAreas are what a list of selectors of an object selects. An element with neither part is taken for all services,
// as in federation.
func destinationAreas(selectors []commonv1.DestinationSelector) (out []area) {
	if len(selectors) == 0 {
		return []area{{}}
	}
	for _, s := range selectors {
		if s.KubeServiceMatcher == nil && s.KubeServiceRefs == nil {
			out = append(out, area{})
		}
		if m := s.KubeServiceMatcher; m != nil {
			out = append(out, labeled(places(m.Namespaces, m.Clusters), m.Labels)...)
		}
		if s.KubeServiceRefs != nil {
			out = append(out, named(s.KubeServiceRefs.Services)...)
		}
	}
	return out
}

func destinationPermits(selectors []commonv1.DestinationSelector) (out []permit) {
	for _, s := range selectors {
		if m := s.KubeServiceMatcher; m != nil {
			out = append(out, permit{namespaces: m.Namespaces, clusters: m.Clusters, labels: m.Labels})
		}
		if s.KubeServiceRefs != nil {
			out = append(out, namedPermits(s.KubeServiceRefs.Services)...)
		}
	}
	return out
}

func workloadAreas(selectors []commonv1.WorkloadSelector) (out []area) {
	if len(selectors) == 0 {
		return []area{{}}
	}
	for _, s := range selectors {
		m := s.KubeWorkloadMatcher
		if m == nil {
			m = &commonv1.KubeWorkloadMatcher{}
		}
		out = append(out, labeled(places(m.Namespaces, m.Clusters), m.Labels)...)
	}
	return out
}

func workloadPermits(selectors []commonv1.WorkloadSelector) (out []permit) {
	for _, s := range selectors {
		if m := s.KubeWorkloadMatcher; m != nil {
			out = append(out, permit{namespaces: m.Namespaces, clusters: m.Clusters, labels: m.Labels})
		}
	}
	return out
}

func identityAreas(selectors []commonv1.IdentitySelector) (out []area) {
	if len(selectors) == 0 {
		return []area{{}}
	}
	for _, s := range selectors {
		accounts := s.KubeServiceAccountRefs
		m := s.KubeIdentityMatcher
		if m == nil && accounts == nil {
			m = &commonv1.KubeIdentityMatcher{}
		}
		// An empty matcher beside service accounts adds nobody.
		if m != nil && (accounts == nil || len(accounts.ServiceAccounts) == 0 || len(m.Namespaces)+len(m.Clusters) > 0) {
			out = append(out, places(m.Namespaces, m.Clusters)...)
		}
		if accounts != nil {
			out = append(out, named(accounts.ServiceAccounts)...)
		}
	}
	return out
}

func identityPermits(selectors []commonv1.IdentitySelector) (out []permit) {
	for _, s := range selectors {
		if m := s.KubeIdentityMatcher; m != nil {
			out = append(out, permit{namespaces: m.Namespaces, clusters: m.Clusters, unlabeled: true})
		}
		if s.KubeServiceAccountRefs != nil {
			out = append(out, namedPermits(s.KubeServiceAccountRefs.ServiceAccounts)...)
		}
	}
	return out
}

// refAreas are references to objects of the management cluster, which have no cluster.
func refAreas(refs []commonv1.ObjectRef) (out []area) {
	for _, ref := range refs {
		out = append(out, area{byName: true, namespace: ref.Namespace, name: ref.Name})
	}
	return out
}

func refPermits(refs []commonv1.ObjectRef) (out []permit) {
	for _, ref := range refs {
		out = append(out, permit{byName: true, namespaces: []string{ref.Namespace}, clusters: []string{anything}, name: ref.Name})
	}
	return out
}

// uncovered says which area a list of a Role does not allow, or nothing if it allows all of them.
func uncovered(list string, permits []permit, areas []area) []string {
	if len(areas) > maxAreas {
		return []string{fmt.Sprintf("%s: the object selects too much to compare (more than %d places)", list, maxAreas)}
	}
	for _, a := range areas {
		if slices.ContainsFunc(permits, func(p permit) bool { return p.covers(a) }) {
			continue
		}
		if len(permits) == 0 {
			return []string{list + " is empty, so allows none"}
		}
		return []string{list + " does not cover " + a.String()}
	}
	return nil
}
