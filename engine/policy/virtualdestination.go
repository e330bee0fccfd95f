package policy

import (
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// virtualBinding is a VirtualDestination with the meshes that see it and the
// services behind it: all that does not depend on other VirtualDestinations
// and on policies.
type virtualBinding struct {
	source *enterprisev1beta1.VirtualDestination
	ref    snapshot.Ref
	// exported are ascending by Ref.
	exported []*snapshot.MeshPlan
	backing  []*snapshot.BackingPlan
	selected []int // indexes of backing
	issues   []snapshot.Issue
}

func (w *world) bindVirtual(v *enterprisev1beta1.VirtualDestination) *virtualBinding {
	b := &virtualBinding{source: v, ref: snapshot.RefOf(snapshot.VirtualDestination, v)}
	b.export(w)
	switch {
	case !strings.Contains(v.Spec.Hostname, ".") || strings.Contains(v.Spec.Hostname, "."+snapshot.PassedAsMark+"."):
		b.exported = nil
		b.issue(snapshot.Ref{}, snapshot.Errorf(snapshot.FieldInvalid, "choose another one, such as reviews.global",
			"hostname %q cannot be used: it needs a dot, and .%s. in it is for our own use", v.Spec.Hostname, snapshot.PassedAsMark))
	case v.Spec.Port == nil:
		b.exported = nil
		b.issue(snapshot.Ref{}, snapshot.Errorf(snapshot.FieldInvalid, "set port.number", "port is missing"))
	case v.Spec.Static == nil && v.Spec.Localized == nil: // older CRDs and folders let it through
		b.exported = nil
		b.issue(snapshot.Ref{}, snapshot.Errorf(snapshot.FieldInvalid, "set exactly one of static and localized", "neither static nor localized is set"))
	default:
		b.back(w)
	}
	return b
}

// issue puts an issue on the VirtualDestination.
func (b *virtualBinding) issue(target snapshot.Ref, issue snapshot.Issue) {
	b.issues = append(b.issues, issue.On(b.ref, target))
}

// export finds the meshes that see the VirtualDestination.
func (b *virtualBinding) export(w *world) {
	spec := &b.source.Spec
	switch {
	case spec.VirtualMesh != nil:
		at := slices.IndexFunc(w.topology.VirtualMeshes, func(vm *snapshot.VirtualMeshPlan) bool {
			return vm.Ref.Name == spec.VirtualMesh.Name && vm.Ref.Namespace == spec.VirtualMesh.Namespace
		})
		if at < 0 {
			b.issue(snapshot.Ref{}, snapshot.Errorf(snapshot.MeshNotFound,
				"correct virtualMesh; `meshctl describe virtualmesh` lists those there are",
				"VirtualMesh %s.%s does not exist", spec.VirtualMesh.Name, spec.VirtualMesh.Namespace))
			return
		}
		b.exported = w.topology.VirtualMeshes[at].Members
	case spec.MeshList != nil:
		for _, name := range spec.MeshList.Meshes {
			mesh := w.topology.Mesh(commonv1.ObjectRef{Name: name.Name, Namespace: name.Namespace})
			switch {
			case mesh == nil:
				b.issue(snapshot.Ref{}, snapshot.Errorf(snapshot.MeshNotFound,
					"correct meshList; `meshctl describe mesh` lists the meshes there are",
					"mesh %s.%s was not discovered", name.Name, name.Namespace))
			case !slices.Contains(b.exported, mesh):
				b.exported = append(b.exported, mesh)
			}
		}
		slices.SortFunc(b.exported, virtualmesh.CompareMeshes)
	}
	if len(b.exported) == 0 && len(b.issues) == 0 {
		b.issue(snapshot.Ref{}, snapshot.Warnf(snapshot.SelectsNothing, "name a mesh, or a VirtualMesh that has members", "it is exported to no mesh"))
	}
}

// plan makes the plan, but for what policies have a say in. Taken says of a
// mesh what else is called by the host name there.
func (b *virtualBinding) plan(w *world, address string, taken []*snapshot.Issue) *snapshot.VirtualDestinationPlan {
	spec := &b.source.Spec
	plan := &snapshot.VirtualDestinationPlan{
		Ref: b.ref, VirtualDestination: b.source, Hostname: spec.Hostname, Address: address, Backing: b.backing, Issues: b.issues,
	}
	if spec.Port != nil {
		plan.Port, plan.Protocol = spec.Port.Number, strings.ToUpper(spec.Port.Protocol)
		if plan.Protocol == "" {
			plan.Protocol = "HTTP"
		}
	}
	for i, mesh := range b.exported {
		view := &snapshot.VirtualView{Mesh: mesh}
		plan.Views = append(plan.Views, view)
		for _, problem := range []*snapshot.Issue{taken[i], b.unusable(mesh)} {
			if problem != nil {
				view.Issues = append(view.Issues, (*problem).On(b.ref, mesh.Ref))
			}
		}
		if len(view.Issues) == 0 {
			for _, issue := range w.alsoVirtual(plan.Hostname, mesh) {
				view.Issues = append(view.Issues, issue.On(b.ref, mesh.Ref))
			}
		}
		if snapshot.HasErrors(view.Issues) {
			continue
		}
		b.prioritize(view)
		w.connect(b, view)
	}
	return plan
}

// unusable says why callers in a mesh cannot call any VirtualDestination, or
// not this one.
func (b *virtualBinding) unusable(mesh *snapshot.MeshPlan) *snapshot.Issue {
	hostname := b.source.Spec.Hostname
	var issue snapshot.Issue
	switch {
	case mesh.Mesh.Spec.Istio == nil:
		issue = snapshot.Errorf(snapshot.FieldUnsupported, "leave the mesh out of meshList, or call one service by its own name there",
			"mesh %s is no Istio, and has no failover between services", mesh.Ref.Name)
	case !virtualmesh.Resolves(mesh, hostname):
		issue = snapshot.Errorf(snapshot.SmartDNSMissing,
			"set ISTIO_META_DNS_CAPTURE to \"true\" in its meshConfig.defaultConfig.proxyMetadata, or choose a hostname that ends in .global",
			"mesh %s cannot resolve %s: its proxies do not capture DNS", mesh.Ref.Name, hostname)
	default:
		return nil
	}
	return &issue
}

// connect says how a mesh's connections to the VirtualDestination are made.
func (w *world) connect(b *virtualBinding, view *snapshot.VirtualView) {
	remote := false
	for _, p := range view.Priorities {
		for _, t := range p.Targets {
			remote = remote || clusterOf(t.Backing) != view.Mesh.Cluster
			if len(t.Through) > 0 {
				view.PassedAs = snapshot.PassedAs(b.ref, view.Mesh.HostnameSuffix)
			}
		}
	}
	if d := w.defaultTLS; d != nil && (view.PassedAs == "" || d.Value == networkingv1.TLSModeIstioMutual) {
		view.TLS = d
	}
	if vm := view.Mesh.VirtualMesh; vm != nil && remote {
		view.KeepAlive = virtualmesh.KeepAlive(snapshot.RefOf(snapshot.VirtualMesh, vm), vm.Spec.Federation)
	}
}
