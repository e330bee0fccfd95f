package explain

import (
	"slices"
	"strconv"
	"strings"
	"time"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ClusterFacts are facts about a cluster that are not in its objects.
type ClusterFacts struct {
	// Issued and Expires bound the life of the credential; zero if not known.
	Issued  time.Time `json:"credentialIssued,omitzero"`
	Expires time.Time `json:"credentialExpires,omitzero"`
	// BehindSince is when the cluster was last seen up to date: it could be read, and
	// no edit that concerns it waited to be processed. Zero if it is up to date, or
	// never was.
	BehindSince time.Time `json:"behindSince,omitzero"`
	// Kubernetes is the version of its API server, and Server its address; empty if not known.
	Kubernetes string `json:"kubernetes,omitempty"`
	Server     string `json:"server,omitempty"`
}

// ClusterItem is a registered cluster in a list.
type ClusterItem struct {
	Ref    snapshot.Ref    `json:"ref"`
	Health snapshot.Health `json:"health"`
	// Since is since when it is healthy, or is not, as the server dated it; zero if that is not known.
	Since time.Time `json:"since,omitzero"`
	// Reason says why it is not healthy.
	Reason string `json:"reason,omitempty"`
	// Cause is Reason as a code, and Next the next step; empty unless nothing is changed there. See snapshot.NewOutage.
	Cause        snapshot.Code `json:"cause,omitempty"`
	Next         string        `json:"next,omitempty"`
	Meshes       []string      `json:"meshes"`
	Workloads    int           `json:"workloads"`
	Destinations int           `json:"destinations"`
	// Objects are those that are generated for it.
	Objects int `json:"objects"`
	// Connection is that of its agent, as the server stored it; nil if the cluster is dialled directly.
	Connection *multiclusterv1alpha1.Connection `json:"connection,omitempty"`
	// Pending are the edits that concern it and wait to be processed.
	Pending int `json:"pending,omitempty"`
	ClusterFacts
	// Issues are those of the cluster, and of what is in it.
	Issues []snapshot.Issue `json:"issues"`
}

// clusterItems lists the registered clusters and those of which only
// discovered meshes are known, ascending by name.
func (x Tables) clusterItems() []ClusterItem {
	names := make([]string, 0, len(x.clusters))
	for name := range x.clusters {
		names = append(names, name)
	}
	meshes := map[string][]string{}
	for _, m := range x.state.Plan.Meshes {
		if x.clusters[m.Cluster] == nil && meshes[m.Cluster] == nil {
			names = append(names, m.Cluster)
		}
		meshes[m.Cluster] = append(meshes[m.Cluster], m.Ref.Name)
	}
	slices.Sort(names)
	issues := x.issuesByCluster()
	workloads, destinations, objects, pending := map[string]int{}, map[string]int{}, map[string]int{}, x.Pending()
	for _, o := range x.state.Plan.Workloads {
		if k := o.Spec.Kubernetes; k != nil {
			workloads[k.Controller.ClusterName]++
		}
	}
	for d := range x.state.Plan.Destinations.All() {
		if k := d.Destination.Spec.KubeService; k != nil {
			destinations[k.Ref.ClusterName]++
		}
	}
	for o := range x.state.Output.Objects {
		objects[o.Ref.Cluster]++
	}
	items := make([]ClusterItem, len(names))
	for i, name := range names {
		ref := x.clusterRef(name)
		c := ClusterItem{
			Ref: ref, Meshes: append([]string{}, meshes[name]...), Workloads: workloads[name], Destinations: destinations[name],
			Objects: objects[name], Pending: pending[name], ClusterFacts: x.facts[name], Issues: append([]snapshot.Issue{}, issues[name]...),
		}
		c.Health, c.Reason = x.health(name)
		if o := outageOf(x.Index, name); o != nil {
			c.Cause, c.Next = o.Cause, o.Hint()
		}
		c.Since = stateSince(x.Index, ref, c.Health == snapshot.Healthy)
		c.Connection = connectionIn(x.Index, name)
		items[i] = c
	}
	return items
}

// Clusters lists the registered clusters.
func (x Tables) Clusters() Table {
	items := x.clusterItems()
	columns := slices.Concat(clusterColumns(), sinceColumns(items, 1, clusterSince), connectionColumns(items), []column[ClusterItem]{
		text("MESHES", 3, func(c *ClusterItem) string { return strings.Join(c.Meshes, ", ") }),
		number("WORKLOADS", 1, func(c *ClusterItem) string { return strconv.Itoa(c.Workloads) }),
		number("DESTINATIONS", 1, func(c *ClusterItem) string { return strconv.Itoa(c.Destinations) }),
		number("OBJECTS", 2, func(c *ClusterItem) string { return strconv.Itoa(c.Objects) }),
	}, factColumns(x.facts), []column[ClusterItem]{
		text("ISSUES", 0, func(c *ClusterItem) string { return worst(c.Issues) }),
	})
	registered := slices.DeleteFunc(items, func(c ClusterItem) bool { return x.clusters[c.Ref.Name] == nil })
	return newTable(noClusters, columns, registered, func(c *ClusterItem) Row {
		row := Row{Key: c.Ref.Name, Ref: c.Ref, Clusters: []string{c.Ref.Name}}
		c.setNote(&row, c.Issues)
		return row
	})
}

func clusterSince(c *ClusterItem) time.Time { return c.Since }

const noClusters = "No cluster is registered. Register one with: meshctl cluster register NAME --remote-context CONTEXT"

func clusterColumns() []column[ClusterItem] {
	return []column[ClusterItem]{
		text("CLUSTER", 0, func(c *ClusterItem) string { return c.Ref.Name }),
		text("HEALTH", 0, func(c *ClusterItem) string { return string(c.Health) }),
	}
}

// factColumns are the columns of ClusterFacts; none if there are no facts.
func factColumns(facts map[string]ClusterFacts) []column[ClusterItem] {
	if facts == nil {
		return nil
	}
	return []column[ClusterItem]{
		text("KUBERNETES", 7, func(c *ClusterItem) string { return c.Kubernetes }),
		since("CREDENTIAL", 6, func(c *ClusterItem) time.Time { return c.Issued }),
		until("EXPIRES", 5, func(c *ClusterItem) time.Time { return c.Expires }),
		since("SYNC LAG", 4, func(c *ClusterItem) time.Time { return c.BehindSince }),
		number("PENDING", 4, func(c *ClusterItem) string { return some(c.Pending) }),
	}
}

// setNote puts the worst issue into a row or, if there is none, the health of the
// cluster.
func (c *ClusterItem) setNote(row *Row, issues []snapshot.Issue) {
	row.setIssue(issues)
	row.Level = max(row.Level, healthLevel(c.Health))
	if len(issues) == 0 {
		row.Note, row.Next = c.Reason, c.Next
	}
}

// markUnreachable marks a row about something in a cluster that cannot be read.
func (x Tables) markUnreachable(row *Row) {
	for _, cluster := range row.Clusters {
		if why := x.frozenReason(cluster); why != "" && row.Level < Warning {
			row.Level = Warning
			row.Note, row.Next = "cluster "+cluster+" is not read ("+why+"): this is what was last known, and nothing is changed there", outageOf(x.Index, cluster).Hint()
		}
	}
}

// healthLevel is how bad a health is.
func healthLevel(h snapshot.Health) Level {
	switch h {
	case snapshot.Healthy:
		return OK
	case snapshot.HealthUnknown:
		return Info
	case snapshot.HealthLeaving:
		return Warning
	}
	return Error
}
