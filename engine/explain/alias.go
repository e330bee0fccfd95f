package explain

import (
	"cmp"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Alias is a Service that stands for another name, as the callers of a workload mean it.
type Alias struct {
	Service snapshot.Ref
	// For is the name that it stands for in the end, and To what the callers know by that; none if that is no Destination and no
	// VirtualDestination.
	For string
	To  []snapshot.Ref
	// host is the name of the Service itself.
	host string
}

// FindAlias finds the ExternalName of their own cluster that the callers of a workload mean by a name; nil if there is none. Proxies
// treat its name as another one of the service that it stands for (Istio, model.resolveServiceAliases).
func FindAlias(x *Index, from snapshot.Ref, name string) *Alias {
	workload := x.workloads[from]
	if workload == nil || workload.Spec.Kubernetes == nil {
		return nil
	}
	c := workload.Spec.Kubernetes.Controller
	mesh := x.meshOf(workload)
	at := slices.IndexFunc(x.state.Discovered, func(d *snapshot.Discovered) bool { return d.Cluster == c.ClusterName })
	if at < 0 || mesh == nil {
		return nil
	}
	cluster := cmp.Or(x.clusters[c.ClusterName], &snapshot.Cluster{})
	domain := cluster.DomainOrDefault()
	hosts := map[string]*snapshot.Alias{}
	var meant *snapshot.Alias
	var called string
	for i := range x.state.Discovered[at].Aliases {
		a := &x.state.Discovered[at].Aliases[i]
		host := a.Name + "." + a.Namespace + ".svc." + domain
		hosts[host] = a
		switch name {
		case a.Name:
			if a.Namespace != c.Namespace {
				continue
			}
		case a.Name + "." + a.Namespace, a.Name + "." + a.Namespace + ".svc", a.Name + "." + a.Namespace + "." + c.ClusterName, host:
		default:
			continue
		}
		meant, called = a, host
	}
	if meant == nil {
		return nil
	}
	out := &Alias{host: called, Service: snapshot.Ref{Kind: snapshot.Service, Cluster: c.ClusterName, Namespace: meant.Namespace, Name: meant.Name}}
	out.For = meant.For
	for range hosts { // one may stand for another, but not in a circle
		next := hosts[out.For]
		if next == nil {
			out.To = x.hosts(mesh, x.workloads[from], out.For)
			return out
		}
		out.For = next.For
	}
	return out
}

// NoteAlias says in an answer that the name by which its service was asked for stands for another one.
func (w *Why) NoteAlias(x *Index, name string) {
	alias := FindAlias(x, w.From, name)
	if alias == nil || !slices.Contains(alias.To, w.To) {
		return
	}
	w.Notes = append(w.Notes, alias.Text())
	q := query{Index: x, workload: x.workloads[w.From], mesh: x.meshOf(x.workloads[w.From])}
	home := q.mesh.Namespace
	if d := x.destinations[w.To]; d != nil && d.Mesh != nil && d.Mesh.Ref == q.mesh.Ref && d.Destination.Spec.KubeService != nil {
		home = d.Destination.Spec.KubeService.Ref.Namespace
	}
	// A name is imported by itself, from the namespace of the service (Istio, model.matchingAliasService).
	why := q.hostMissing(snapshot.Ref{}, alias.host)
	if by := q.hiddenBy(alias.host, home); by != "" {
		why = "the proxies of the callers do not know " + alias.host + ": " + by
	}
	if why != "" {
		w.Verdict, w.Reason = Unknown, why+"; "+pastProxies
	}
}

// Text says what the name stands for.
func (a *Alias) Text() string {
	text := a.Service.String() + " is of type ExternalName: it stands for " + a.For
	switch {
	case strings.HasSuffix(a.For, "."):
		return text + ", which proxies take for no service because of the dot at its end; no policy applies to requests for it, and what becomes of them is not known"
	case len(a.To) == 0:
		return text + ", which is no destination; no policy applies to requests for it, and what becomes of them is not known"
	case len(a.To) > 0:
		text += ", which is " + a.To[0].Name + "; proxies route requests for both names alike"
	}
	return text
}
