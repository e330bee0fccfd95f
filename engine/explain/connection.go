package explain

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// connectionIn is that of the agent of a cluster, as the server stored it; nil if the cluster is dialled directly, or nobody said.
func connectionIn(x *Index, cluster string) *multiclusterv1alpha1.Connection {
	if o := x.registration(cluster); o != nil {
		return o.Status.Connection
	}
	return nil
}

// onlyByAgent reports whether a cluster is reached through its agent, which speaks to the server only: what is known of it here is what the
// server stored.
func onlyByAgent(x *Index, cluster string) bool {
	c := x.clusters[cluster]
	return !x.unread && x.stored != nil && c != nil && c.Frozen() && c.Relay == nil && connectionIn(x, cluster) != nil
}

// connectionColumns are those of how clusters are connected; none if all are dialled directly.
func connectionColumns(items []ClusterItem) []column[ClusterItem] {
	relayed := false
	for i := range items {
		relayed = relayed || items[i].Connection != nil
	}
	if !relayed {
		return nil
	}
	at := func(of func(*multiclusterv1alpha1.Connection) *metav1.Time) func(*ClusterItem) time.Time {
		return func(c *ClusterItem) time.Time { return timeIn(c.Connection, of) }
	}
	return []column[ClusterItem]{
		text("VIA", 1, func(c *ClusterItem) string { return viaText(c.Connection) }),
		text("STATE", 1, func(c *ClusterItem) string { return connectionState(c.Connection) }),
		since("FOR", 5, at(func(c *multiclusterv1alpha1.Connection) *metav1.Time { return c.Since })),
		since("LAG UP", 4, at(func(c *multiclusterv1alpha1.Connection) *metav1.Time { return c.UpBehindSince })),
		since("LAG DOWN", 4, at(func(c *multiclusterv1alpha1.Connection) *metav1.Time { return c.DownBehindSince })),
		text("AGENT", 5, func(c *ClusterItem) string {
			if c.Connection == nil {
				return ""
			}
			return c.Connection.AgentVersion
		}),
		until("CERTIFICATE", 6, at(func(c *multiclusterv1alpha1.Connection) *metav1.Time { return c.CertificateExpires })),
	}
}

func timeIn(c *multiclusterv1alpha1.Connection, of func(*multiclusterv1alpha1.Connection) *metav1.Time) time.Time {
	if c == nil || of(c) == nil {
		return time.Time{}
	}
	return of(c).UTC()
}

// viaText is how a cluster is reached.
func viaText(c *multiclusterv1alpha1.Connection) string {
	if c == nil {
		return strings.ToLower(string(multiclusterv1alpha1.ViaDirect))
	}
	return strings.ToLower(string(c.Via))
}

func connectionState(c *multiclusterv1alpha1.Connection) string {
	if c == nil {
		return ""
	}
	return strings.ToLower(string(c.State))
}

// connectionRows describe the connection of the agent of a cluster; none if there is no agent.
func (c *Cluster) connectionRows() [][2]string {
	n := c.Connection
	if n == nil {
		return nil
	}
	at := func(t *metav1.Time) string {
		if t == nil {
			return ""
		}
		return timeText(t.UTC())
	}
	rows := [][2]string{
		{"Via", viaText(n)}, {"State", connectionState(n) + prefixed(" since ", at(n.Since))}, {"Agent", n.AgentVersion},
		{"Agent's certificate", prefixed("expires ", at(n.CertificateExpires))}, {"Behind upwards since", at(n.UpBehindSince)}, {"Behind downwards since", at(n.DownBehindSince)},
	}
	if n.Objects > 0 {
		rows = append(rows, [2]string{"Objects reported", strconv.FormatInt(n.Objects, 10) + " when this was written"})
	}
	if n.Reason != nil {
		rows = append(rows, [2]string{"Because", snapshot.Sentences(n.Reason.What, n.Reason.Hint)})
	}
	if r := n.Refused; r != nil {
		rows = append(rows, [2]string{"Refused caller", snapshot.Sentences(r.What, r.Hint) + prefixed("; from ", r.Address) + prefixed(" since ", at(r.Since))})
	}
	return rows
}
