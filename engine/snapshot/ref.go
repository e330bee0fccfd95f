package snapshot

import (
	"cmp"
	"strings"
)

// Ref names one object in one cluster. The empty Cluster is the management plane.
type Ref struct {
	Kind      Kind   `json:"kind,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// Key is the reference's spelling in statuses and messages:
// <name>.<namespace>.<cluster>, ending in a dot on the management plane.
func (r Ref) Key() string { return r.Name + "." + r.Namespace + "." + r.Cluster }

// String is r as messages show it: "VirtualService cluster-1/bookinfo/reviews".
func (r Ref) String() string {
	var parts []string
	for _, p := range []string{r.Cluster, r.Namespace, r.Name} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return r.Kind.String() + " " + strings.Join(parts, "/")
}

// Compare orders references by kind, namespace, name and cluster.
func (r Ref) Compare(o Ref) int {
	if c := cmp.Compare(r.Kind, o.Kind); c != 0 {
		return c
	}
	if c := strings.Compare(r.Namespace, o.Namespace); c != 0 {
		return c
	}
	if c := strings.Compare(r.Name, o.Name); c != 0 {
		return c
	}
	return strings.Compare(r.Cluster, o.Cluster)
}

// named is the part of metav1.Object that references need.
type named interface {
	GetNamespace() string
	GetName() string
}

// RefOf refers to an object of the given kind: one of the management plane, or one that says in which cluster it was found.
func RefOf(k Kind, o named) Ref {
	ref := Ref{Kind: k, Namespace: o.GetNamespace(), Name: o.GetName()}
	if in, ok := o.(interface{ FoundIn() string }); ok {
		ref.Cluster = in.FoundIn()
	}
	return ref
}

// Identity is how messages tell r apart from others of its kind: <name>.<namespace>, and .<cluster> if it is in a registered cluster.
func (r Ref) Identity() string {
	if r.Cluster == "" {
		return r.Name + "." + r.Namespace
	}
	return r.Key()
}
