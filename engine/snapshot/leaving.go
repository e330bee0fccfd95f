package snapshot

import (
	"slices"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
)

// Causes of ClusterLeaving: what a cluster that leaves waits for, in their order. One that cannot be read has the cause of that: see
// NewOutage.
const (
	// LeavingAsked: serve has not taken notice yet.
	LeavingAsked Code = "LeavingAsked"
	// LeavingObjects: objects that serve wrote are still there.
	LeavingObjects Code = "LeavingObjects"
	// LeavingMeshes: meshes have not got back the certificates that they had before.
	LeavingMeshes Code = "LeavingMeshes"
	// LeavingAgent: its agent is told to remove itself, and has not said that it has.
	LeavingAgent Code = "LeavingAgent"
	// LeavingStays: nothing that serve wrote is left there, and the agent may not remove itself.
	LeavingStays Code = "LeavingStays"
	// LeavingDone: nothing is left there.
	LeavingDone Code = "LeavingDone"
)

// Leaves reports whether an administrator deregisters a cluster through its agent: nothing is wanted there any more, and nothing that
// leads there, as if it were not registered; what is there is removed before the registration is.
func (m *Management) Leaves(cluster string) bool {
	return slices.Contains(m.Leaving(), cluster)
}

// Leaving are the clusters that leave, ascending.
func (m *Management) Leaving() []string {
	var out []string
	for _, o := range m.KubernetesClusters {
		if o.Namespace == m.Namespace && o.Annotations[LeavingAnnotation] != "" {
			out = append(out, o.Name)
		}
	}
	return out
}

// Staying is the Input without the clusters that leave; in itself if there are none. What is registered is the same.
func (in *Input) Staying() *Input {
	leaving := in.Management.Leaving()
	if len(leaving) == 0 {
		return in
	}
	out := *in
	out.Clusters = slices.DeleteFunc(slices.Clone(in.Clusters), func(c *Cluster) bool { return slices.Contains(leaving, c.Name) })
	return &out
}

// MeshesLeaving are the names of the meshes of a cluster that are not back at what they had before their VirtualMesh, ascending: the agent
// has a request for a certificate that is not asked for any more.
func (c *Cluster) MeshesLeaving() []string {
	asked := map[string]bool{}
	for _, o := range c.IssuedCertificates {
		asked[o.Namespace+"/"+o.Name] = true
	}
	var out []string
	for _, o := range c.CertificateRequests {
		if !asked[o.Namespace+"/"+o.Name] {
			out = append(out, o.Name)
		}
	}
	return out
}

// Left is what serve has said last of a cluster that leaves, if nothing that it wrote is left there; nil if something is, or the cluster stays.
func Left(o *multiclusterv1alpha1.KubernetesCluster) *multiclusterv1alpha1.ClusterReason {
	if o.Annotations[LeavingAnnotation] == "" {
		return nil
	}
	for i := range o.Status.Status {
		for j := range o.Status.Status[i].Reasons {
			r := &o.Status.Status[i].Reasons[j]
			if Code(r.Code) == ClusterLeaving && (Code(r.Cause) == LeavingDone || Code(r.Cause) == LeavingStays) {
				return r
			}
		}
	}
	return nil
}
