package explain

import (
	"slices"
	"strconv"
	"strings"
	"time"

	rbacv1 "github.com/meshctl/meshctl/engine/api/rbac/v1"
	"github.com/meshctl/meshctl/engine/rbac"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Role describes a Role: what it lets somebody write, and who has it.
type Role struct {
	Ref snapshot.Ref `json:"ref"`
	// Verbs are what its bearers may do with an object that stays within a scope.
	Verbs []rbac.Verb `json:"verbs"`
	// Scopes are what it lets write.
	Scopes []rbac.Scope `json:"scopes"`
	// Holders are who has it, by which RoleBinding.
	Holders []rbac.Holder `json:"holders"`
	// NoEffect says why it lets nobody write anything; empty if it may.
	NoEffect string           `json:"noEffect,omitempty"`
	Issues   []snapshot.Issue `json:"issues"`
}

// RoleItem is a Role in a list.
type RoleItem struct {
	Ref snapshot.Ref `json:"ref"`
	// Kinds are those of the objects that it lets write.
	Kinds []snapshot.Kind `json:"kinds"`
	// Holders is how many subjects have it.
	Holders int              `json:"holders"`
	Created time.Time        `json:"created,omitzero"`
	Issues  []snapshot.Issue `json:"issues"`

	labels map[string]string
}

func rbacOf(x *Index) *rbac.Rules {
	m := x.state.Input.Management
	return rbac.New(m.Namespace, m.Roles, m.RoleBindings)
}

// rolesOf are those of the management cluster.
func rolesOf(x *Index) map[snapshot.Ref]*rbacv1.Role {
	out := map[snapshot.Ref]*rbacv1.Role{}
	if x.state == nil {
		return out
	}
	for _, r := range x.state.Input.Management.Roles {
		out[snapshot.RefOf(snapshot.Role, r)] = r
	}
	return out
}

func describeRole(x *Index, r *rbacv1.Role) *Role {
	rules, ref := rbacOf(x), snapshot.RefOf(snapshot.Role, r)
	out := &Role{Ref: ref, Verbs: rbac.Verbs(), Scopes: rbac.Scopes(r), Holders: rules.Holders(r), Issues: x.issues.of(ref)}
	switch unbound := rules.Unbound(r); {
	case len(unbound) > 0:
		out.NoEffect = unbound[0]
	case !slices.ContainsFunc(out.Scopes, func(s rbac.Scope) bool { return s.Allows() }):
		out.NoEffect = "has no effect: no scope allows anything"
	case !slices.ContainsFunc(out.Holders, func(h rbac.Holder) bool { return h.Subject != "" }):
		out.NoEffect = "has no effect: no RoleBinding gives it to anybody"
	}
	return out
}

// partsOfScopes are the words for the lists of scopes.
var partsOfScopes = map[string]string{
	"trafficPolicyActions": "fields", "virtualMeshActions": "fields", "destinationSelectors": "services", "destinations": "listed services",
	"workloadSelectors": "workloads", "identitySelectors": "callers", "meshRefs": "meshes", "virtualMeshRefs": "VirtualMeshes",
}

// Page implements Description.
func (o *Role) Page() Page {
	verbs := make([]string, 0, len(o.Verbs))
	for _, v := range o.Verbs {
		verbs = append(verbs, string(v))
	}
	effect := "where meshctl serve enforces Roles; see meshctl help roles"
	if o.NoEffect != "" {
		effect = o.NoEffect
	}
	scopes := Section{Title: "What it lets them " + strings.Join(verbs, ", "), Text: "Nothing."}
	if len(o.Scopes) > 0 {
		scopes.Text, scopes.Header = "", []string{"KIND", "PART", "ALLOWED"}
	}
	for i := range o.Scopes {
		scopes.Rows = append(scopes.Rows, rowsOfScope(&o.Scopes[i])...)
	}
	holders := Section{Title: "Who has it", Text: "Nobody: no RoleBinding in its namespace names it."}
	if len(o.Holders) > 0 {
		holders.Text, holders.Header = "", []string{"SUBJECT", "ROLEBINDING"}
	}
	for _, h := range o.Holders {
		subject := h.Subject
		if subject == "" {
			subject = "nobody"
		}
		holders.Rows = append(holders.Rows, []string{subject, h.Binding.Name})
	}
	return Page{Title: "Role " + shortName(o.Ref), Sections: []Section{facts("", [2]string{"Effect", effect}), scopes, holders}, Issues: o.Issues}
}

// rowsOfScope has a row for each element of each list. A list that is empty allows nothing.
func rowsOfScope(s *rbac.Scope) (rows [][]string) {
	for _, list := range s.Lists {
		allows := list.Allows
		if len(allows) == 0 {
			allows = []string{"none"}
		}
		for i, one := range allows {
			row := []string{s.Kind.String(), partsOfScopes[list.Name], one}
			if len(rows) > 0 {
				row[0] = above
			}
			if i > 0 {
				row[1] = above
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// roleTable lists all Roles.
func (x Tables) roleTable() Table {
	var items []RoleItem
	roles := rolesOf(x.Index)
	for _, ref := range sortedRefs(roles) {
		is := describeRole(x.Index, roles[ref])
		item := RoleItem{Ref: ref, Kinds: []snapshot.Kind{}, Created: roles[ref].CreationTimestamp.UTC(), Issues: is.Issues, labels: roles[ref].Labels}
		for i := range is.Scopes {
			if s := &is.Scopes[i]; s.Allows() && !slices.Contains(item.Kinds, s.Kind) {
				item.Kinds = append(item.Kinds, s.Kind)
			}
		}
		for _, h := range is.Holders {
			if h.Subject != "" {
				item.Holders++
			}
		}
		items = append(items, item)
	}
	const empty = "There is no Role. Without one, Kubernetes alone decides who may write policies; see meshctl help roles."
	return newTable(empty, []column[RoleItem]{
		text("NAME", 0, func(r *RoleItem) string { return r.Ref.Name }),
		text("NAMESPACE", 3, func(r *RoleItem) string { return r.Ref.Namespace }),
		number("HOLDERS", 0, func(r *RoleItem) string { return strconv.Itoa(r.Holders) }),
		text("KINDS", 0, func(r *RoleItem) string {
			words := make([]string, 0, len(r.Kinds))
			for _, k := range r.Kinds {
				words = append(words, k.String())
			}
			return strings.Join(words, ",")
		}),
		since("CREATED", 1, func(r *RoleItem) time.Time { return r.Created }),
	}, items, func(r *RoleItem) Row {
		row := Row{Key: r.Ref.String(), Ref: r.Ref, Labels: r.labels}
		x.setNote(&row, r.Issues)
		return row
	})
}
