package snapshot

import (
	"fmt"
	"slices"
)

// Cluster returns the cluster of a name; nil if it is not registered.
func (in *Input) Cluster(name string) *Cluster {
	for _, c := range in.Clusters {
		if c.Name == name {
			return c
		}
	}
	return nil
}

// Find returns an object; nil if there is none.
func (in *Input) Find(ref Ref) APIObject {
	list := in.list(ref.Kind, ref.Cluster)
	if list == nil {
		return nil
	}
	return list.Find(ref.Namespace, ref.Name)
}

// list returns the list of a kind in a cluster, which is empty for the
// management plane; nil if there is none.
func (in *Input) list(k Kind, cluster string) ObjectList {
	if cluster == "" {
		return in.Management.List(k)
	}
	if c := in.Cluster(cluster); c != nil {
		return c.List(k)
	}
	return nil
}

// Objects calls yield for each object until it returns false: those of the
// management plane, then those of each cluster, by kind, namespace and name.
func (in *Input) Objects(yield func(Ref, APIObject) bool) {
	each := func(cluster string, k Kind, list ObjectList) bool {
		for i := range list.Len() {
			o := list.At(i)
			if !yield(Ref{Kind: k, Cluster: cluster, Namespace: o.GetNamespace(), Name: o.GetName()}, o) {
				return false
			}
		}
		return true
	}
	for k, list := range in.Management.Lists {
		if !each("", k, list) {
			return
		}
	}
	for _, c := range in.Clusters {
		for k, list := range c.Lists {
			if !each(c.Name, k, list) {
				return
			}
		}
	}
}

// With returns an Input that has o in a cluster, which is empty for the
// management plane, in the place of an object of its kind and name if there is
// one. All else is shared with in, which does not change.
func (in *Input) With(cluster string, o APIObject) (*Input, error) {
	k, ok := KindOfObject(o)
	if !ok {
		return nil, fmt.Errorf("%T %s/%s: an Input holds no objects of this type", o, o.GetNamespace(), o.GetName())
	}
	ref := RefOf(k, o)
	ref.Cluster = cluster
	if in.list(k, cluster) == nil {
		return nil, fmt.Errorf("%s: no registered cluster of this name holds objects of the kind", ref)
	}
	out := in.withOwn(cluster)
	out.list(k, cluster).put(o)
	return out, nil
}

// Without returns an Input that lacks an object; in itself if it has none. All
// else is shared with in, which does not change.
func (in *Input) Without(ref Ref) *Input {
	if in.Find(ref) == nil {
		return in
	}
	out := in.withOwn(ref.Cluster)
	out.list(ref.Kind, ref.Cluster).remove(ref.Namespace, ref.Name)
	return out
}

// WithoutCluster returns an Input in which a cluster is not registered.
func (in *Input) WithoutCluster(name string) *Input {
	out := *in.Without(Ref{Kind: KubernetesCluster, Namespace: in.Management.Namespace, Name: name})
	out.Clusters = slices.DeleteFunc(slices.Clone(in.Clusters), func(c *Cluster) bool { return c.Name == name })
	return &out
}

// withOwn copies in with a cluster, or the management plane, of its own.
func (in *Input) withOwn(cluster string) *Input {
	out := *in
	if cluster == "" {
		m := *in.Management
		out.Management = &m
		return &out
	}
	out.Clusters = slices.Clone(in.Clusters)
	for i, c := range out.Clusters {
		if c.Name == cluster {
			own := *c
			out.Clusters[i] = &own
		}
	}
	return &out
}
