package explain

import (
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// generatedHosts finds generated objects that are for hosts, by kind and cluster. Users write objects for the same hosts, and the mesh
// uses the older one.
type generatedHosts map[clusterKind]*hostsOfKind

type clusterKind struct {
	cluster string
	kind    snapshot.Kind
}

// hostsOfKind has, by host, the first object that is for it, by its place in refs. Short is by what comes before ".svc." in hosts of
// services.
type hostsOfKind struct {
	refs        []snapshot.Ref
	full, short map[string]int
}

// newGeneratedHosts indexes what is generated for some clusters.
func newGeneratedHosts(output *snapshot.Output, in func(cluster string) bool) generatedHosts {
	out := generatedHosts{}
	for o := range output.Objects {
		spec, ok := o.Content.Spec.(interface{ GetHosts() []string })
		if !ok || !in(o.Ref.Cluster) || output.IsForeign(o.Ref) {
			continue
		}
		at := clusterKind{o.Ref.Cluster, o.Ref.Kind}
		if out[at] == nil {
			out[at] = &hostsOfKind{full: map[string]int{}, short: map[string]int{}}
		}
		out[at].add(o.Ref, spec.GetHosts())
	}
	return out
}

func (x *hostsOfKind) add(ref snapshot.Ref, hosts []string) {
	for _, host := range hosts {
		if _, taken := x.full[host]; !taken {
			x.full[host] = len(x.refs)
		}
		service, _, is := strings.Cut(host, ".svc.")
		if _, taken := x.short[service]; is && !taken {
			x.short[service] = len(x.refs)
		}
	}
	x.refs = append(x.refs, ref)
}

// find is the first generated object of the kind and in the cluster of another one, for one of some hosts. A host without dots is a
// service of its namespace.
func (g generatedHosts) find(beside snapshot.Ref, hosts []string) snapshot.Ref {
	of := g[clusterKind{beside.Cluster, beside.Kind}]
	if of == nil {
		return snapshot.Ref{}
	}
	first := len(of.refs)
	for _, host := range hosts {
		if i, found := of.full[host]; found {
			first = min(first, i)
		}
		if i, found := of.short[host+"."+beside.Namespace]; found && !strings.Contains(host, ".") {
			first = min(first, i)
		}
	}
	if first == len(of.refs) {
		return snapshot.Ref{}
	}
	return of.refs[first]
}
