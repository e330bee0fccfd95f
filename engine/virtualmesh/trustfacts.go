package virtualmesh

import (
	"cmp"
	"reflect"
	"slices"

	certificatesv1 "github.com/meshctl/meshctl/engine/api/certificates/v1"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// TrustFacts are what the trust and the gateways of VirtualMeshes follow from, beside the meshes.
type TrustFacts struct {
	roots    []*snapshot.VirtualMeshRoots
	gateways []servedGateways
	clusters []clusterFacts
	// stored are the statuses of VirtualMeshes that have any.
	stored []stored
}

// clusterFacts are about one cluster.
type clusterFacts struct {
	name string
	// agents is the namespace of the agent.
	agents string
	// read is false if the cluster was never read, and synced if the certificates are as
	// they are now.
	read, synced bool
	certificates []*certificatesv1.IssuedCertificate
}

type stored struct {
	virtualMesh snapshot.Ref
	trust       *networkingv1.TrustStatus
}

// NewTrustFacts reads the facts of an Input.
func NewTrustFacts(in *snapshot.Input) TrustFacts {
	facts := TrustFacts{roots: in.Roots, gateways: newServedGateways(in)}
	namespaces := map[string]string{}
	for _, registered := range in.Management.KubernetesClusters {
		namespaces[registered.Name] = registered.Status.Namespace
	}
	for _, c := range in.Clusters {
		facts.clusters = append(facts.clusters, clusterFacts{
			name: c.Name, agents: cmp.Or(namespaces[c.Name], in.Management.Namespace),
			read: c.Sync != snapshot.Unsynced, synced: c.Sync == snapshot.Synced, certificates: c.IssuedCertificates,
		})
	}
	for _, vm := range in.Management.VirtualMeshes {
		if vm.Status.Trust != nil {
			facts.stored = append(facts.stored, stored{snapshot.RefOf(snapshot.VirtualMesh, vm), vm.Status.Trust})
		}
	}
	return facts
}

// SameSources reports whether the facts, which were read where the management plane was as given,
// would be read from an Input with the same clusters again: what they follow from is the same by
// identity.
func (f TrustFacts) SameSources(was *snapshot.Management, in *snapshot.Input) bool {
	m := in.Management
	return was.Namespace == m.Namespace && slices.Equal(f.roots, in.Roots) &&
		snapshot.SameSlice(was.KubernetesClusters, m.KubernetesClusters) && snapshot.SameSlice(was.VirtualMeshes, m.VirtualMeshes) &&
		snapshot.SameSlice(was.Meshes, m.Meshes)
}

// Same reports whether the same follows from two facts.
func (f TrustFacts) Same(o TrustFacts) bool {
	return slices.Equal(f.roots, o.roots) && reflect.DeepEqual(f.gateways, o.gateways) &&
		slices.EqualFunc(f.clusters, o.clusters, func(a, b clusterFacts) bool {
			return a.name == b.name && a.agents == b.agents && a.read == b.read && a.synced == b.synced && slices.Equal(a.certificates, b.certificates)
		}) &&
		slices.EqualFunc(f.stored, o.stored, func(a, b stored) bool {
			return a.virtualMesh == b.virtualMesh && (reflect.DeepEqual(a.trust, b.trust) || f.rootsOf(a.virtualMesh) != nil && sameRecord(a.trust, b.trust))
		})
}

// sameRecord compares what of a stored status decides although the roots are known.
func sameRecord(a, b *networkingv1.TrustStatus) bool {
	return a.Usage == b.Usage && slices.Equal(a.Established, b.Established) &&
		slices.EqualFunc(a.Members, b.Members, func(a, b networkingv1.MemberTrust) bool { return a.Mesh == b.Mesh && a.Root == b.Root })
}

// rootsOf are the roots of a VirtualMesh; nil if they are not known.
func (f TrustFacts) rootsOf(vm snapshot.Ref) *snapshot.VirtualMeshRoots {
	for _, r := range f.roots {
		if r.VirtualMesh == vm {
			return r
		}
	}
	return nil
}

// pinsOf are the recorded trust domains of the members of a VirtualMesh. While the record is not known, they are what the
// status says about it, which is nothing to record.
func (f TrustFacts) pinsOf(vm *networkingv1.VirtualMesh) (pins []snapshot.TrustPin, known bool) {
	ref := snapshot.RefOf(snapshot.VirtualMesh, vm)
	if roots := f.rootsOf(ref); roots != nil {
		return roots.Pins, true
	}
	if status := f.storedTrust(ref); status != nil {
		for _, pin := range status.TrustDomains {
			pins = append(pins, snapshot.TrustPin(pin))
		}
	}
	return pins, false
}

func (f TrustFacts) cluster(name string) clusterFacts {
	for _, c := range f.clusters {
		if c.name == name {
			return c
		}
	}
	return clusterFacts{name: name}
}

// certificate finds an IssuedCertificate; nil if there is none.
func (c clusterFacts) certificate(name string) *certificatesv1.IssuedCertificate {
	for _, o := range c.certificates {
		if o.Namespace == c.agents && o.Name == name {
			return o
		}
	}
	return nil
}

// wasEstablished reports whether a member has had the common trust before, of the same model.
func (f TrustFacts) wasEstablished(vm *snapshot.VirtualMeshPlan, mesh snapshot.Ref) bool {
	trust := f.storedTrust(vm.Ref)
	return trust != nil && trust.Usage == usageOf(vm.VirtualMesh) && slices.Contains(trust.Established, commonv1.ObjectRef{Name: mesh.Name, Namespace: mesh.Namespace})
}

// storedRoot is the root of the certificates of a member, as the status of its VirtualMesh says; empty if it does not.
func (f TrustFacts) storedRoot(vm, mesh snapshot.Ref) string {
	if trust := f.storedTrust(vm); trust != nil {
		for _, m := range trust.Members {
			if m.Mesh.Name == mesh.Name && m.Mesh.Namespace == mesh.Namespace {
				return m.Root
			}
		}
	}
	return ""
}

// storedTrust is what the status of a VirtualMesh says; nil if it says nothing.
func (f TrustFacts) storedTrust(vm snapshot.Ref) *networkingv1.TrustStatus {
	for _, s := range f.stored {
		if s.virtualMesh == vm {
			return s.trust
		}
	}
	return nil
}
