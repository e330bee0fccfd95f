package explain

import (
	"slices"
	"strconv"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Cluster describes a registered cluster.
type Cluster struct {
	Name   string          `json:"name"`
	Health snapshot.Health `json:"health"`
	// Reason says why it is not healthy.
	Reason string `json:"reason,omitempty"`
	// Cause is Reason as a code, and Next the next step; empty unless nothing is changed there. See snapshot.NewOutage.
	Cause  snapshot.Code `json:"cause,omitempty"`
	Next   string        `json:"next,omitempty"`
	Domain string        `json:"domain"`
	// Meshes in it, ascending.
	Meshes       []snapshot.Ref `json:"meshes"`
	Workloads    int            `json:"workloads"`
	Destinations int            `json:"destinations"`
	// Objects are those that are generated for it.
	Objects int `json:"objects"`
	// Connection is that of its agent, as the server stored it; nil if the cluster is dialled directly.
	Connection *multiclusterv1alpha1.Connection `json:"connection,omitempty"`
	// Facts are set by who knows them.
	Facts *ClusterFacts `json:"facts,omitempty"`
	// Issues are those of the cluster, and of what is in it.
	Issues []snapshot.Issue `json:"issues"`
}

// clusterRef refers to a cluster by its registration, whether or not there is one.
func (x *Index) clusterRef(name string) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.KubernetesCluster, Namespace: x.state.Input.Management.Namespace, Name: name}
}

// registration is the KubernetesCluster of a cluster; nil if there is none.
func (x *Index) registration(cluster string) *multiclusterv1alpha1.KubernetesCluster {
	o, _ := x.state.Input.Find(x.clusterRef(cluster)).(*multiclusterv1alpha1.KubernetesCluster)
	return o
}

func (x Tables) clusterRefs() []snapshot.Ref {
	refs := make([]snapshot.Ref, 0, len(x.state.Input.Clusters))
	for _, c := range x.state.Input.Clusters {
		refs = append(refs, x.clusterRef(c.Name))
	}
	return refs
}

// clusterName refers to a cluster as issues do that know its name only.
func clusterName(name string) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.KubernetesCluster, Name: name}
}

// issuesByCluster are the issues of each cluster, and of what is in it, worst first.
func (x *Index) issuesByCluster() map[string][]snapshot.Issue {
	out := map[string][]snapshot.Issue{}
	for _, issue := range x.Issues() {
		if name := x.clusterOfIssue(issue); name != "" {
			out[name] = append(out[name], issue)
		}
	}
	return out
}

func (x describer) cluster(c *snapshot.Cluster) *Cluster {
	name := c.Name
	out := &Cluster{
		Name: name, Domain: c.DomainOrDefault(), Meshes: []snapshot.Ref{},
		Issues: append([]snapshot.Issue{}, x.issuesByCluster()[name]...),
	}
	out.Health, out.Reason = x.health(name)
	if o := outageOf(x.Index, name); o != nil {
		out.Cause, out.Next = o.Cause, o.Hint()
	}
	out.Connection = connectionIn(x.Index, name)
	for _, m := range x.state.Plan.Meshes {
		if m.Cluster == name {
			out.Meshes = append(out.Meshes, m.Ref)
		}
	}
	for _, ref := range sortedRefs(x.workloads) {
		if k := x.workloads[ref].Spec.Kubernetes; k != nil && k.Controller.ClusterName == name {
			out.Workloads++
		}
	}
	for ref := range x.destinations {
		if x.clusterOf(ref) == name {
			out.Destinations++
		}
	}
	for o := range x.state.Output.Objects {
		if o.Ref.Cluster == name {
			out.Objects++
		}
	}
	return out
}

// health says how a cluster is, and why.
func (x *Index) health(name string) (snapshot.Health, string) {
	if in := x.state.Input; in.Management.Leaves(name) {
		return snapshot.HealthLeaving, leavingText(x.registration(name))
	}
	if o := outageOf(x, name); o != nil {
		return o.Health, o.What
	}
	if !x.unread && !onlyByAgent(x, name) {
		return snapshot.Healthy, ""
	}
	if registration := x.registration(name); registration != nil {
		switch s := registration.Status.Status; {
		case slices.ContainsFunc(s, func(s multiclusterv1alpha1.ClusterStatus) bool {
			return s.State == multiclusterv1alpha1.ClusterStateAccepted
		}):
			if n := registration.Status.Connection; n != nil && n.State == multiclusterv1alpha1.ConnectionStateStuck && n.Reason != nil {
				return snapshot.HealthDegraded, n.Reason.What
			}
			return snapshot.Healthy, ""
		case len(s) > 0 && s[0].Message != "":
			return snapshot.HealthUnknown, s[0].Message
		}
		return snapshot.HealthUnknown, "no server manages it yet; start one with: meshctl serve"
	}
	return snapshot.HealthUnknown, "it is not registered; only its discovered objects are known"
}

// leavingText is what a cluster that leaves waits for, as far as the server has said that.
func leavingText(o *multiclusterv1alpha1.KubernetesCluster) string {
	for _, s := range o.Status.Status {
		for _, r := range s.Reasons {
			if snapshot.Code(r.Code) == snapshot.ClusterLeaving {
				return r.What
			}
		}
	}
	return "it is deregistered through its agent"
}

// factRows are what is known beside its objects.
func (c *Cluster) factRows() [][2]string {
	f := c.Facts
	if f == nil {
		f = &ClusterFacts{}
	}
	since := "Behind since"
	if c.Next != "" {
		since = "Unreachable since"
	}
	return [][2]string{
		{since, timeText(f.BehindSince)}, {"Kubernetes", f.Kubernetes}, {"Server", f.Server},
		{"Credential", prefixed("issued ", timeText(f.Issued)) + prefixed(", expires ", timeText(f.Expires))}, {"DNS domain", c.Domain},
	}
}

// Page implements Description.
func (c *Cluster) Page() Page {
	meshes := Section{Title: "Meshes", Header: []string{"MESH"}}
	for _, ref := range c.Meshes {
		meshes.Rows = append(meshes.Rows, []string{shortName(ref)})
		meshes.Refs = append(meshes.Refs, ref)
	}
	if len(meshes.Rows) == 0 {
		meshes = Section{Title: "Meshes", Text: "None was discovered. A mesh is discovered when it is installed."}
	}
	return Page{
		Title: "Cluster " + c.Name,
		Sections: []Section{
			facts("", append([][2]string{{"Health", string(c.Health)}, {"Reason", c.Reason}, {"Next", c.Next}}, append(c.connectionRows(), c.factRows()...)...)...),
			facts("What is in it",
				[2]string{"Workloads", strconv.Itoa(c.Workloads)}, [2]string{"Destinations", strconv.Itoa(c.Destinations)},
				[2]string{"Generated objects", strconv.Itoa(c.Objects)},
			),
			meshes,
		},
		Issues: c.Issues,
	}
}
