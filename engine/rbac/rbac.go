// Package rbac says what Roles let somebody write: TrafficPolicies, AccessPolicies, VirtualMeshes, VirtualDestinations,
// WasmDeployments and AccessLogRecords. It is pure; the admission webhook enforces what it says, and `meshctl why may`
// explains it.
//
//   - Only Roles and RoleBindings in the namespace of the management plane count: who may write in another namespace
//     cannot give rights on the services of all clusters.
//   - Nothing is implied. An absent list allows nothing, and "*" has to be written for "any". What an object selects by
//     labels has to be allowed by labels, and what it names has to be allowed by name.
//   - One scope has to allow all of an object. Of access policies, scopes that list only identities complete those that
//     list only destinations, as the Roles do that Gloo Mesh documents.
//   - An update needs the right to write the object as it was, and as it becomes: nobody takes over, or takes away, what
//     is not theirs. A deletion needs the right to write what is deleted.
//   - Some are always allowed, so that nobody is locked out: see Exempt. Roles, RoleBindings, ServiceDependencies and
//     Settings have no scopes: Kubernetes decides about them, and so does who may write a RoleBinding about all others.
//
// The parts:
//
//	rbac.go      who is allowed, and why
//	scopes.go    what a scope of each kind lacks for an object
//	select.go    whether selectors stay within others
//	contents.go  what a Role allows, and who has it, in words
package rbac

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Verb is what somebody does with an object.
type Verb string

// The verbs that Roles are about.
const (
	Create Verb = "create"
	Update Verb = "update"
	Delete Verb = "delete"
)

// Verbs are all of them.
func Verbs() []Verb { return []Verb{Create, Update, Delete} }

// The kinds of subjects in a RoleBinding.
const (
	User           = "User"
	Group          = "Group"
	ServiceAccount = "ServiceAccount"
)

// Masters is the group whose members the API server allows everything (kubernetes.io: Using RBAC Authorization).
const Masters = "system:masters"

// accountPrefix is before NAMESPACE:NAME in the user name of a ServiceAccount (kubernetes.io: Authenticating).
const accountPrefix = "system:serviceaccount:"

// SystemAccounts is the group of the controllers of Kubernetes, which delete what an owner or a namespace leaves.
const SystemAccounts = "system:serviceaccounts:kube-system"

// Account is the user name of a ServiceAccount.
func Account(namespace, name string) string { return accountPrefix + namespace + ":" + name }

// Subject is who writes.
type Subject struct {
	User   string
	Groups []string
}

// String names the subject for people.
func (s Subject) String() string {
	if account, ok := strings.CutPrefix(s.User, accountPrefix); ok {
		return "ServiceAccount " + snapshot.Clean(strings.Replace(account, ":", "/", 1))
	}
	return "User " + snapshot.Clean(s.User)
}

// Exempt says why a subject is always allowed; empty if it is not. Those are the members of system:masters, the controllers
// of Kubernetes, and the ServiceAccount of meshctl serve in the namespace of the management plane.
func Exempt(s Subject, namespace, serve string) string {
	switch {
	case slices.Contains(s.Groups, Masters):
		return "members of the group " + Masters + " are always allowed"
	case slices.Contains(s.Groups, SystemAccounts):
		return "the controllers of Kubernetes (group " + SystemAccounts + ") are always allowed"
	case s.User == Account(namespace, serve):
		return "the ServiceAccount of meshctl serve is always allowed"
	}
	return ""
}

// Rules are the Roles and RoleBindings that count.
type Rules struct {
	namespace string
	roles     map[string]*rbacv1.Role
	bindings  []*rbacv1.RoleBinding
}

// New returns the rules of a management plane in a namespace. Those of other namespaces do not count.
func New(namespace string, roles []*rbacv1.Role, bindings []*rbacv1.RoleBinding) *Rules {
	r := &Rules{namespace: namespace, roles: map[string]*rbacv1.Role{}}
	for _, role := range roles {
		if role.Namespace == namespace {
			r.roles[role.Name] = role
		}
	}
	for _, binding := range bindings {
		if binding.Namespace == namespace {
			r.bindings = append(r.bindings, binding)
		}
	}
	slices.SortFunc(r.bindings, func(a, b *rbacv1.RoleBinding) int { return strings.Compare(a.Name, b.Name) })
	return r
}

// Verdict is whether somebody may write, and why.
type Verdict struct {
	Allowed bool `json:"allowed"`
	// Grants allow it: one, or two where an update needs one for the object as it was and another one for what it becomes.
	Grants []Grant `json:"grants,omitempty"`
	// Missing is why it is not allowed, the scope that lacks least first; bounded.
	Missing []string `json:"missing,omitempty"`
}

// Grant is what allows something.
type Grant struct {
	Role    snapshot.Ref `json:"role"`
	Binding snapshot.Ref `json:"binding"`
	// Scope is where in the spec of the Role, such as trafficPolicyScopes[0].
	Scope string `json:"scope"`
}

// String is the grant in a few words.
func (g Grant) String() string {
	return fmt.Sprintf("%s of Role %s, by RoleBinding %s", g.Scope, g.Role.Name, g.Binding.Name)
}

// maxMissing bounds what is said of scopes that do not allow something.
const maxMissing = 5

// Text is the verdict as a sentence without a period.
func (v Verdict) Text() string {
	if !v.Allowed {
		return strings.Join(v.Missing, "; ")
	}
	parts := make([]string, 0, len(v.Grants))
	for _, g := range v.Grants {
		parts = append(parts, g.String())
	}
	return strings.Join(parts, " and ")
}

// Governs reports whether Roles decide about objects of a kind.
func Governs(kind snapshot.Kind) bool {
	return slices.Contains(Kinds(), kind)
}

// Kinds are those that Roles decide about.
func Kinds() []snapshot.Kind {
	return []snapshot.Kind{
		snapshot.TrafficPolicy, snapshot.AccessPolicy, snapshot.VirtualMesh, snapshot.VirtualDestination, snapshot.WasmDeployment, snapshot.AccessLogRecord,
	}
}

// Allowed says whether a subject may do something with an object. Before is the object as it is stored, nil where it is
// created; object is nil where it is deleted. About kinds without scopes, and about who is exempt, it does not know: see
// Governs and Exempt.
func (r *Rules) Allowed(s Subject, verb Verb, object, before snapshot.APIObject) Verdict {
	held, missing := r.held(s)
	if len(held) == 0 {
		return Verdict{Missing: missing}
	}
	var sides []snapshot.APIObject
	switch verb {
	case Create:
		sides = []snapshot.APIObject{object}
	case Update:
		sides = []snapshot.APIObject{before, object}
	case Delete:
		sides = []snapshot.APIObject{before}
	}
	out := Verdict{Allowed: len(sides) > 0}
	for i, side := range sides {
		grant, lacks := allowing(held, side)
		if grant == nil {
			if verb == Update && i == 0 {
				for n := range lacks {
					lacks[n] = "for the object as it is stored, " + lacks[n]
				}
			}
			return Verdict{Missing: append(lacks, missing...)}
		}
		if !slices.Contains(out.Grants, *grant) {
			out.Grants = append(out.Grants, *grant)
		}
	}
	return out
}

// holding is a Role that a subject has.
type holding struct {
	role    *rbacv1.Role
	binding *rbacv1.RoleBinding
}

func (h holding) grant(scope string) *Grant {
	return &Grant{Role: snapshot.RefOf(snapshot.Role, h.role), Binding: snapshot.RefOf(snapshot.RoleBinding, h.binding), Scope: scope}
}

// held are the Roles of a subject, and what is wrong with its bindings.
func (r *Rules) held(s Subject) (held []holding, problems []string) {
	for _, binding := range r.bindings {
		if !slices.ContainsFunc(binding.Spec.Subjects, s.is) {
			continue
		}
		ref := binding.Spec.RoleRef
		role := r.roles[ref.Name]
		switch {
		case ref.Namespace != r.namespace:
			problems = append(problems, fmt.Sprintf("RoleBinding %s names a Role of namespace %s, and only those of %s count", binding.Name, snapshot.Clean(ref.Namespace), r.namespace))
		case role == nil:
			problems = append(problems, fmt.Sprintf("RoleBinding %s names Role %s, which does not exist", binding.Name, snapshot.Clean(ref.Name)))
		default:
			held = append(held, holding{role, binding})
		}
	}
	if len(held)+len(problems) == 0 {
		problems = []string{fmt.Sprintf("no RoleBinding in namespace %s names %s or one of its groups", r.namespace, s)}
	}
	return held, problems[:min(len(problems), maxMissing)]
}

// is reports whether a RoleBinding means the subject.
func (s Subject) is(named commonv1.TypedObjectRef) bool {
	switch named.Kind {
	case User:
		return named.Name == s.User
	case Group:
		return slices.Contains(s.Groups, named.Name)
	case ServiceAccount:
		return s.User == Account(named.Namespace, named.Name)
	}
	return false
}

// allowing finds the scope that allows all of an object, or says what the scopes lack: the nearest first.
func allowing(held []holding, object snapshot.APIObject) (*Grant, []string) {
	type lack struct {
		text  string
		count int
	}
	var lacks []lack
	for _, h := range held {
		list, scopes := scopesFor(h.role, object)
		if len(scopes) == 0 {
			lacks = append(lacks, lack{fmt.Sprintf("Role %s has no %s", h.role.Name, list), 1000})
		}
		for _, scope := range scopes {
			if len(scope.lacks) == 0 {
				return h.grant(scope.name), nil
			}
			lacks = append(lacks, lack{fmt.Sprintf("%s of Role %s: %s", scope.name, h.role.Name, strings.Join(scope.lacks, ", and ")), len(scope.lacks)})
		}
	}
	slices.SortStableFunc(lacks, func(a, b lack) int { return cmp.Compare(a.count, b.count) })
	out := make([]string, 0, len(lacks))
	for _, l := range lacks[:min(len(lacks), maxMissing)] {
		out = append(out, l.text)
	}
	return nil, out
}

// Unbound are the sentences on a Role or RoleBinding that has no effect, without a period; none if it has one.
func (r *Rules) Unbound(object snapshot.APIObject) []string {
	if issue := r.Ineffective(object); issue != nil {
		return []string{issue.Message}
	}
	return nil
}

// Ineffective says why a Role or RoleBinding has no effect; nil if it has one. The issue is about no object yet.
func (r *Rules) Ineffective(object snapshot.APIObject) *snapshot.Issue {
	warning := func(code snapshot.Code, hint, format string, args ...any) *snapshot.Issue {
		issue := snapshot.Warnf(code, hint, format, args...)
		return &issue
	}
	if ns := object.GetNamespace(); ns != r.namespace {
		return warning(snapshot.NamespaceNotNamed, "put it into namespace "+r.namespace, "has no effect in namespace %s: only Roles and RoleBindings in %s count", snapshot.Clean(ns), r.namespace)
	}
	binding, ok := object.(*rbacv1.RoleBinding)
	if !ok {
		return nil
	}
	ref := binding.Spec.RoleRef
	switch {
	case ref.Namespace != r.namespace:
		return warning(snapshot.NamespaceNotNamed, "name a Role of namespace "+r.namespace+" in roleRef", "has no effect: its Role is in namespace %s, and only those of %s count", snapshot.Clean(ref.Namespace), r.namespace)
	case r.roles[ref.Name] == nil:
		return warning(snapshot.SelectsNothing, "correct roleRef, or make the Role with `meshctl create role`", "has no effect until there is a Role %s in namespace %s", snapshot.Clean(ref.Name), r.namespace)
	case len(binding.Spec.Subjects) == 0:
		return warning(snapshot.SelectsNothing, "name users, groups or ServiceAccounts in subjects", "has no effect: it names no subjects")
	}
	return nil
}
