package rbac

import (
	"maps"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Scope is a scope of a Role: what its bearers may write, as one object has to stay within all of its lists.
type Scope struct {
	// Name is where in the spec of the Role, such as trafficPolicyScopes[0].
	Name string `json:"name"`
	// Kind of the objects.
	Kind snapshot.Kind `json:"kind"`
	// Lists bound the objects.
	Lists []List `json:"lists"`
}

// List is one list of a scope.
type List struct {
	// Name of the list, such as destinationSelectors.
	Name string `json:"name"`
	// Allows is what may be written or selected, in words; nothing if it is empty.
	Allows []string `json:"allows"`
}

// Empty are the lists that allow nothing.
func (s *Scope) Empty() (names []string) {
	for _, list := range s.Lists {
		if len(list.Allows) == 0 {
			names = append(names, list.Name)
		}
	}
	return names
}

// Allows reports whether there is any object that the scope lets write. A list of what a VirtualDestination does not have does not
// keep it out.
func (s *Scope) Allows() bool {
	empty := len(s.Empty())
	if s.Kind == snapshot.VirtualDestination {
		return empty < len(s.Lists)
	}
	return empty == 0
}

// Scopes are those of a Role, in the order of its fields.
func Scopes(role *rbacv1.Role) []Scope {
	spec, out := &role.Spec, []Scope{}
	add := func(kind snapshot.Kind, name string, lists ...List) { out = append(out, Scope{name, kind, lists}) }
	for i := range spec.TrafficPolicyScopes {
		s := &spec.TrafficPolicyScopes[i]
		add(snapshot.TrafficPolicy, indexed("trafficPolicyScopes", i), actionList("trafficPolicyActions", s.TrafficPolicyActions, rbacv1.TrafficPolicyActionUnknown),
			listOf("destinationSelectors", destinationPermits(s.DestinationSelectors)), listOf("workloadSelectors", workloadPermits(s.WorkloadSelectors)))
	}
	for i := range spec.VirtualMeshScopes {
		s := &spec.VirtualMeshScopes[i]
		actions := actionList("virtualMeshActions", s.VirtualMeshActions, rbacv1.VirtualMeshActionUnknown)
		if len(actions.Allows) == 0 {
			actions.Allows = []string{"meshes alone"}
		}
		add(snapshot.VirtualMesh, indexed("virtualMeshScopes", i), actions, refList("meshRefs", s.MeshRefs))
	}
	for _, s := range accessGroups(spec.AccessPolicyScopes) {
		add(snapshot.AccessPolicy, s.name, listOf("identitySelectors", identityPermits(s.scope.IdentitySelectors)), listOf("destinationSelectors", destinationPermits(s.scope.DestinationSelectors)))
	}
	for i := range spec.VirtualDestinationScopes {
		s := &spec.VirtualDestinationScopes[i]
		add(snapshot.VirtualDestination, indexed("virtualDestinationScopes", i), refList("virtualMeshRefs", s.VirtualMeshRefs), refList("meshRefs", s.MeshRefs),
			listOf("destinationSelectors", destinationPermits(s.DestinationSelectors)), listOf("destinations", namedPermits(services(s.Destinations))))
	}
	for i := range spec.WasmDeploymentScopes {
		add(snapshot.WasmDeployment, indexed("wasmDeploymentScopes", i), listOf("workloadSelectors", workloadPermits(spec.WasmDeploymentScopes[i].WorkloadSelectors)))
	}
	for i := range spec.AccessLogRecordScopes {
		add(snapshot.AccessLogRecord, indexed("accessLogRecordScopes", i), listOf("workloadSelectors", workloadPermits(spec.AccessLogRecordScopes[i].WorkloadSelectors)))
	}
	return out
}

// actionList are actions of a scope; unknown is none.
func actionList[A ~string](name string, actions []A, unknown A) List {
	out := List{Name: name, Allows: []string{}}
	for _, a := range actions {
		if a != unknown {
			out.Allows = append(out.Allows, snapshot.Clean(string(a)))
		}
	}
	return out
}

func listOf(name string, permits []permit) List {
	out := List{Name: name, Allows: []string{}}
	for _, p := range permits {
		if text := p.String(); text != "" {
			out.Allows = append(out.Allows, text)
		}
	}
	return out
}

// refList are objects of the management cluster.
func refList(name string, refs []commonv1.ObjectRef) List {
	out := List{Name: name, Allows: []string{}}
	for _, ref := range refs {
		if ref.Name != "" && ref.Namespace != "" {
			out.Allows = append(out.Allows, snapshot.Clean(ref.Namespace+"/"+ref.Name))
		}
	}
	return out
}

// String is what a permit allows, in the words of selectors; empty if it allows nothing.
func (p permit) String() string {
	if len(p.namespaces) == 0 || len(p.clusters) == 0 || p.byName && p.name == "" || !p.byName && !p.unlabeled && len(p.labels) == 0 {
		return ""
	}
	place := someOf("namespace", p.namespaces) + " in " + someOf("cluster", p.clusters)
	if p.byName {
		return someOf("name", []string{p.name}) + " in " + place
	}
	parts := make([]string, 0, len(p.labels))
	for _, key := range slices.Sorted(maps.Keys(p.labels)) {
		if key != anything || p.labels[key] != anything {
			parts = append(parts, snapshot.Clean(key+"="+p.labels[key]))
		}
	}
	switch {
	case p.unlabeled:
		return place
	case len(parts) == 0:
		return "any labels in " + place
	}
	return strings.Join(parts, ",") + " in " + place
}

// someOf is "namespace a or b", or "any namespace".
func someOf(what string, values []string) string {
	if slices.Contains(values, anything) {
		return "any " + what
	}
	return what + " " + snapshot.Clean(strings.Join(values, " or "))
}

// Holder is somebody who has a Role, by a RoleBinding.
type Holder struct {
	Binding snapshot.Ref `json:"binding"`
	// Subject is the kind and the name, such as User ada; empty for a RoleBinding without subjects.
	Subject string `json:"subject,omitempty"`
}

// Holders are who has a Role, by the names of the RoleBindings.
func (r *Rules) Holders(role *rbacv1.Role) []Holder {
	out := []Holder{}
	if role.Namespace != r.namespace {
		return out
	}
	for _, binding := range r.bindings {
		if ref := binding.Spec.RoleRef; ref.Namespace != role.Namespace || ref.Name != role.Name {
			continue
		}
		holder := Holder{Binding: snapshot.RefOf(snapshot.RoleBinding, binding)}
		if len(binding.Spec.Subjects) == 0 {
			out = append(out, holder)
		}
		for _, s := range binding.Spec.Subjects {
			name := s.Name
			if s.Kind == ServiceAccount {
				name = s.Namespace + "/" + s.Name
			}
			holder.Subject = snapshot.Clean(s.Kind + " " + name)
			out = append(out, holder)
		}
	}
	return out
}
