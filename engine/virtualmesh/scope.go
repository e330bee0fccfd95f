package virtualmesh

import (
	"slices"

	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Scope says in which namespaces of the management cluster policies and VirtualMeshes count. A policy is about the services
// of all clusters: who may create one in a single namespace could otherwise open, close or move those of everybody.
type Scope struct {
	// own is that of the management plane.
	own string
	// named are those that the Settings name, with own; all of them if everywhere is set. silent is set if the Settings say
	// nothing, so that kept counts as well: where something was in force before anybody asked.
	named, kept        []string
	everywhere, silent bool
	// inClusters are the namespaces of registered clusters in which policies count, as the Settings name them.
	inClusters []settingsv1.WorkloadClusterPolicies
}

// everyNamespace is the entry of Settings for all namespaces, and for all clusters.
const everyNamespace = "*"

// ScopeOf is the Scope of a management plane.
func ScopeOf(m *snapshot.Management) Scope {
	s := Scope{own: m.Namespace, named: []string{m.Namespace}, kept: m.KeptNamespaces()}
	settings := SettingsInForce(m)
	if settings != nil && settings.Namespace == m.Namespace {
		s.inClusters = settings.Spec.WorkloadClusterPolicies
	}
	// Those of another namespace say nothing about namespaces: their own is one.
	if s.silent = settings == nil || settings.Namespace != m.Namespace || settings.Spec.PolicyNamespaces == nil; !s.silent {
		s.everywhere = slices.Contains(settings.Spec.PolicyNamespaces, everyNamespace)
		s.named = append(s.named, settings.Spec.PolicyNamespaces...)
		slices.Sort(s.named)
		s.named = slices.Compact(s.named)
	}
	return s
}

// SettingsInForce are the oldest ones in the management plane's namespace; without any, those where some were in force before
// an upgrade; nil if there are none either.
func SettingsInForce(m *snapshot.Management) *settingsv1.Settings {
	var own, kept *settingsv1.Settings
	older := func(s, than *settingsv1.Settings) *settingsv1.Settings {
		if than == nil || inventory.CompareAge(s, than) < 0 {
			return s
		}
		return than
	}
	for _, s := range m.Settings {
		switch {
		case s.Namespace == m.Namespace:
			own = older(s, own)
		case slices.Contains(m.KeptNamespaces(), s.Namespace):
			kept = older(s, kept)
		}
	}
	if own != nil {
		return own
	}
	return kept
}

// Equal reports whether the same namespaces count, for the same reasons.
func (s *Scope) Equal(o *Scope) bool {
	return s.own == o.own && s.everywhere == o.everywhere && s.silent == o.silent && slices.Equal(s.named, o.named) && slices.Equal(s.kept, o.kept) &&
		slices.EqualFunc(s.inClusters, o.inClusters, func(a, b settingsv1.WorkloadClusterPolicies) bool {
			return slices.Equal(a.Clusters, b.Clusters) && slices.Equal(a.Namespaces, b.Namespaces)
		})
}

// CountsPolicy reports whether a policy counts: one of the management cluster by its namespace there, and one of a registered cluster
// by its namespace and its cluster.
func (s *Scope) CountsPolicy(of snapshot.Ref) bool {
	if of.Cluster == "" {
		return s.Counts(of.Namespace)
	}
	return slices.ContainsFunc(s.inClusters, func(w settingsv1.WorkloadClusterPolicies) bool {
		return isNamed(w.Clusters, of.Cluster) && isNamed(w.Namespaces, of.Namespace)
	})
}

// PoliciesCountIn reports whether policies count that are in any namespace of a registered cluster.
func PoliciesCountIn(m *snapshot.Management, cluster string) bool {
	settings := SettingsInForce(m)
	return settings != nil && settings.Namespace == m.Namespace &&
		slices.ContainsFunc(settings.Spec.WorkloadClusterPolicies, func(w settingsv1.WorkloadClusterPolicies) bool { return isNamed(w.Clusters, cluster) })
}

// isNamed reports whether a list of the Settings names something, or everything.
func isNamed(names []string, name string) bool {
	return slices.Contains(names, name) || slices.Contains(names, everyNamespace)
}

// Counts reports whether what is in a namespace counts.
func (s *Scope) Counts(namespace string) bool {
	return s.everywhere || slices.Contains(s.named, namespace) || s.silent && slices.Contains(s.kept, namespace)
}

// Record is what a server notes for the next one: the namespaces that count without having been named, and its own. Once
// somebody has named any, no others come back.
func (s *Scope) Record() []string {
	out := []string{s.own}
	if s.silent {
		out = append(out, s.kept...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Issues say that an object does not count because of its namespace, or only because it did so before.
func (s *Scope) Issues(of snapshot.Ref) []snapshot.Issue {
	switch {
	case of.Cluster != "" && s.CountsPolicy(of):
		return nil
	case of.Cluster != "":
		return []snapshot.Issue{snapshot.Errorf(snapshot.NamespaceNotNamed,
			"write it in the management cluster, or have an administrator name the cluster and the namespace in spec.workloadClusterPolicies of the Settings in "+s.own,
			"it has no effect: policies in namespace %s of cluster %s do not count", of.Namespace, of.Cluster).On(of, snapshot.Ref{})}
	case s.everywhere || slices.Contains(s.named, of.Namespace):
		return nil
	case s.Counts(of.Namespace):
		return []snapshot.Issue{snapshot.Warnf(snapshot.NamespaceKept,
			"name "+of.Namespace+" in spec.policyNamespaces of the Settings in "+s.own+", or only "+s.own+" if it is not to count",
			"it is in force only because it was before namespaces had to be named").On(of, snapshot.Ref{})}
	}
	return []snapshot.Issue{snapshot.Errorf(snapshot.NamespaceNotNamed,
		"put it into namespace "+s.own+", or have an administrator name "+of.Namespace+" in spec.policyNamespaces of the Settings there",
		"it has no effect: policies in namespace %s do not count", of.Namespace).On(of, snapshot.Ref{})}
}
