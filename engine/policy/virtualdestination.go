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

// virtualDestination is a VirtualDestination with the meshes that see it and the
// services behind it: all that does not depend on policies and on other
// VirtualDestinations.
type virtualDestination struct {
	source *enterprisev1beta1.VirtualDestination
	ref    snapshot.Ref
	// meshes are ascending by Ref.
	meshes   []*snapshot.MeshPlan
	backing  []*snapshot.BackingPlan
	selected []int // indexes of backing
	issues   []snapshot.Issue
}

func (env *environment) newVirtualDestination(o *enterprisev1beta1.VirtualDestination) *virtualDestination {
	v := &virtualDestination{source: o, ref: snapshot.RefOf(snapshot.VirtualDestination, o)}
	if v.issues = append(env.scope.Issues(v.ref), env.local[v.ref]...); !env.scope.CountsPolicy(v.ref) || snapshot.Rejected(v.issues) {
		return v // no mesh sees it
	}
	v.findMeshes(env)
	reserved := v.reservedHost()
	switch {
	case reserved != nil:
		v.meshes = nil
		v.addIssue(snapshot.Ref{}, *reserved)
	case !strings.Contains(o.Spec.Hostname, ".") || strings.Contains(o.Spec.Hostname, "."+snapshot.PassedAsMark+"."):
		v.meshes = nil
		v.addIssue(snapshot.Ref{}, snapshot.Errorf(snapshot.FieldInvalid, "choose another one, such as reviews.global",
			"hostname %q is invalid: it needs a dot, and must not contain .%s., which is reserved", o.Spec.Hostname, snapshot.PassedAsMark).At("hostname"))
	case o.Spec.Port == nil:
		v.meshes = nil
		v.addIssue(snapshot.Ref{}, snapshot.Errorf(snapshot.FieldInvalid, "set port.number", "port is missing").At("port"))
	case o.Spec.Static == nil && o.Spec.Localized == nil: // older CRDs and folders do not validate it
		v.meshes = nil
		v.addIssue(snapshot.Ref{}, snapshot.Errorf(snapshot.FieldInvalid, "set exactly one of static and localized", "neither static nor localized is set").At("static"))
	default:
		v.addBacking(env)
	}
	return v
}

// addIssue adds an issue about the VirtualDestination.
func (v *virtualDestination) addIssue(target snapshot.Ref, issue snapshot.Issue) {
	v.issues = append(v.issues, issue.On(v.ref, target))
}

// findMeshes finds the meshes that see the VirtualDestination.
func (v *virtualDestination) findMeshes(env *environment) {
	spec := &v.source.Spec
	switch {
	case spec.VirtualMesh != nil:
		at := slices.IndexFunc(env.topology.VirtualMeshes, func(vm *snapshot.VirtualMeshPlan) bool {
			return vm.Ref.Name == spec.VirtualMesh.Name && vm.Ref.Namespace == spec.VirtualMesh.Namespace
		})
		if at < 0 {
			v.addIssue(snapshot.Ref{}, snapshot.Errorf(snapshot.MeshNotFound,
				"correct virtualMesh; `meshctl describe virtualmesh` lists those there are",
				"VirtualMesh %s.%s does not exist", spec.VirtualMesh.Name, spec.VirtualMesh.Namespace).At("virtualMesh"))
			return
		}
		v.meshes = env.topology.VirtualMeshes[at].Members
	case spec.MeshList != nil:
		for _, name := range spec.MeshList.Meshes {
			mesh := env.topology.Mesh(commonv1.ObjectRef{Name: name.Name, Namespace: name.Namespace})
			switch {
			case mesh == nil:
				v.addIssue(snapshot.Ref{}, snapshot.Errorf(snapshot.MeshNotFound,
					"correct meshList; `meshctl describe mesh` lists the meshes there are",
					"mesh %s.%s was not discovered", name.Name, name.Namespace).At("meshList.meshes"))
			case !slices.Contains(v.meshes, mesh):
				v.meshes = append(v.meshes, mesh)
			}
		}
		slices.SortFunc(v.meshes, virtualmesh.CompareMeshes)
	}
	field := "meshList"
	if spec.VirtualMesh != nil {
		field = "virtualMesh"
	}
	if v.ref.Cluster != "" {
		v.keepOwnMeshes(env, field)
	}
	if len(v.meshes) == 0 && !snapshot.HasErrors(v.issues) {
		v.addIssue(snapshot.Ref{}, snapshot.Warnf(snapshot.SelectsNothing, "name a mesh, or a VirtualMesh that has members", "it is exported to no mesh").At(field))
	}
}

// newPlan makes the plan without what follows from policies. Taken has, for each
// mesh, the issue if something else has the host name there.
func (v *virtualDestination) newPlan(env *environment, address string, taken []*snapshot.Issue) *snapshot.VirtualDestinationPlan {
	spec := &v.source.Spec
	plan := &snapshot.VirtualDestinationPlan{
		Ref: v.ref, VirtualDestination: v.source, Hostname: spec.Hostname, Address: address, Backing: v.backing, Issues: v.issues,
	}
	if spec.Port != nil {
		plan.Port, plan.Protocol = spec.Port.Number, strings.ToUpper(spec.Port.Protocol)
		if plan.Protocol == "" {
			plan.Protocol = "HTTP"
		}
	}
	for i, mesh := range v.meshes {
		view := &snapshot.VirtualView{Mesh: mesh}
		plan.Views = append(plan.Views, view)
		for _, problem := range []*snapshot.Issue{taken[i], v.unusable(env, mesh)} {
			if problem != nil {
				view.Issues = append(view.Issues, (*problem).On(v.ref, mesh.Ref))
			}
		}
		if len(view.Issues) == 0 {
			for _, issue := range env.byHand.hostIssues(plan.Hostname, mesh, plan.Home(mesh)) {
				view.Issues = append(view.Issues, issue.On(v.ref, mesh.Ref))
			}
			if assumed := virtualmesh.AssumedServer(mesh, plan.Hostname); assumed != nil {
				view.Issues = append(view.Issues, assumed.At("hostname").On(v.ref, mesh.Ref))
			}
		}
		if snapshot.HasErrors(view.Issues) {
			continue
		}
		v.setPriorities(view)
		env.setConnection(v, view)
	}
	return plan
}

// unusable says why callers in a mesh cannot call any VirtualDestination, or this
// one; nil if they can.
func (v *virtualDestination) unusable(env *environment, mesh *snapshot.MeshPlan) *snapshot.Issue {
	hostname := v.source.Spec.Hostname
	var issue snapshot.Issue
	if v.ref.Cluster != "" {
		if unlimited := unlimitedHosts(env, mesh); unlimited != nil {
			return unlimited
		}
	}
	switch ok, why := mesh.Dialect.Supports(snapshot.VirtualDestination, ""); {
	case !ok:
		issue = snapshot.Errorf(snapshot.FieldUnsupported, "remove the mesh from meshList, or call a service by its own name there",
			"mesh %s has no failover between services: %s", mesh.Ref.Name, why)
	case mesh.DNS.Resolves(hostname) == snapshot.NotResolved:
		issue = snapshot.Errorf(snapshot.SmartDNSMissing,
			mesh.Dialect.ResolveHint+", or choose a hostname that ends in .global",
			"mesh %s cannot resolve %s: its proxies do not capture DNS", mesh.Ref.Name, hostname).At("hostname")
	default:
		return nil
	}
	return &issue
}

// setConnection sets how a mesh connects to the VirtualDestination.
func (env *environment) setConnection(v *virtualDestination, view *snapshot.VirtualView) {
	remote := false
	for _, p := range view.Priorities {
		for _, t := range p.Targets {
			remote = remote || clusterOf(t.Backing) != view.Mesh.Cluster
			if len(t.Through) > 0 {
				view.PassedAs = snapshot.PassedAs(v.ref, view.Mesh.HostnameSuffix)
			}
		}
	}
	if d := env.defaultTLS; d != nil && (view.PassedAs == "" || d.Value == networkingv1.TLSModeIstioMutual) {
		view.TLS = d
	}
	if vm := view.Mesh.VirtualMesh; vm != nil && remote {
		view.KeepAlive = virtualmesh.KeepAlive(snapshot.RefOf(snapshot.VirtualMesh, vm), vm.Spec.Federation)
	}
}
