package policy

import (
	"net/netip"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file is about VirtualDestinations of registered clusters. Callers in their own namespace alone see them, so what is generated for
// one is there, too, and says that nobody else is to see it.

// keepOwnMeshes leaves the meshes of its own cluster. Field is the one that names meshes.
func (v *virtualDestination) keepOwnMeshes(env *environment, field string) {
	in := reachOf(v.ref)
	var own []*snapshot.MeshPlan
	var left []string
	for _, mesh := range v.meshes {
		if mesh.Cluster == in.cluster {
			own = append(own, mesh)
		} else {
			left = append(left, "mesh "+mesh.Ref.Name)
		}
	}
	v.meshes = own
	controls := func(m *snapshot.MeshPlan) bool {
		return m.Cluster == in.cluster && (m.Namespace == in.namespace || m.RootNamespace == in.namespace)
	}
	switch at := slices.IndexFunc(env.topology.Meshes, controls); {
	case at >= 0:
		v.meshes = nil
		v.addIssue(snapshot.Ref{}, snapshot.Errorf(snapshot.OutsideNamespace, "write it in the namespace of the callers, or in the management cluster",
			"it has no effect: what is written in namespace %s may be for all callers of mesh %s", in.namespace, env.topology.Meshes[at].Ref.Name))
	case len(left) > 0 && len(own) == 0:
		v.addIssue(snapshot.Ref{}, snapshot.Errorf(snapshot.OutsideNamespace, "name the mesh of cluster "+in.cluster+", or have an administrator write it in the management cluster",
			"it has no effect: %s names no mesh of cluster %s, and callers in %s alone can see it", field, in.cluster, in).At(field))
	case len(left) > 0 && v.source.Spec.VirtualMesh != nil:
		// Which meshes are in the VirtualMesh is not for everybody to know.
		v.addIssue(snapshot.Ref{}, snapshot.Warnf(snapshot.OutsideNamespace, "name the mesh of cluster "+in.cluster+" in meshList, or have an administrator write it in the management cluster",
			"%s names meshes of other clusters: callers in %s alone see it", field, in).At(field))
	case len(left) > 0:
		for _, issue := range in.leftOut(field, left) {
			v.addIssue(snapshot.Ref{}, issue)
		}
	}
}

// reservedHost says why nobody in a registered cluster may choose the host name of a VirtualDestination, whoever has it; nil if that is
// not so, or if it is one of the management cluster.
func (v *virtualDestination) reservedHost() *snapshot.Issue {
	hostname := v.source.Spec.Hostname
	var issue snapshot.Issue
	switch {
	case v.ref.Cluster == "":
		return nil
	case len(validation.IsDNS1123Subdomain(hostname)) > 0 || isAddress(hostname): // the CRD there may be any
		issue = snapshot.Errorf(snapshot.FieldInvalid, "choose a DNS name in lower case, such as reviews.global",
			"hostname %q is invalid: it must be a DNS name in lower case, of one host, without a dot at either end", hostname)
	case strings.Contains("."+hostname+".", ".svc."):
		issue = snapshot.Errorf(snapshot.FieldInvalid, "choose another one, such as reviews.global", "hostname %s is a name for services in clusters", hostname)
	default:
		return nil
	}
	issue = issue.At("hostname")
	return &issue
}

func isAddress(hostname string) bool {
	_, err := netip.ParseAddr(hostname)
	return err == nil
}

// unlimitedHosts says why callers in all namespaces of a mesh would know a host that is for one of them; nil if they would not.
func unlimitedHosts(env *environment, mesh *snapshot.MeshPlan) *snapshot.Issue {
	const hint = "have an administrator write it in the management cluster, or call a service by its own name there"
	if ok, why := mesh.Dialect.Supports(snapshot.Settings, "workloadClusterPolicies"); !ok {
		issue := snapshot.Errorf(snapshot.FieldUnsupported, hint, "mesh %s cannot make a host known in one namespace alone: %s", mesh.Ref.Name, why)
		return &issue
	}
	// Which pods are in ambient mode is for others to say, and may change: that there is such a mode is for the control plane.
	if slices.ContainsFunc(env.topology.Meshes, func(m *snapshot.MeshPlan) bool { return m.Cluster == mesh.Cluster && hasAmbient(m) }) {
		issue := snapshot.Errorf(snapshot.AmbientMode, hint, "mesh %s cannot make a host known in one namespace alone: callers in ambient mode know the hosts of all namespaces", mesh.Ref.Name)
		return &issue
	}
	return nil
}

func hasAmbient(m *snapshot.MeshPlan) bool {
	return m.Mesh.Spec.Istio != nil && m.Mesh.Spec.Istio.Ambient != nil
}
