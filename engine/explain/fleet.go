package explain

import (
	"strconv"
	"strings"
	"time"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Sign is what a source knows of a cluster beside its objects.
type Sign struct {
	// Issued and Expires bound the life of the credential; zero if not known.
	Issued, Expires time.Time
	// BehindSince is when all was last as it should be, as far as was seen: the
	// cluster could be read, and no edit that concerns it waited to be taken up.
	// Zero if that is so now, or never was.
	BehindSince time.Time
}

// Fleet lists clusters with their meshes, one row each, and one for a cluster
// without. Signs, by the name of the cluster, may be nil.
func (x *Index) Fleet(signs map[string]Sign) Table {
	t := Table{
		Columns: columns("CLUSTER", "HEALTH", "MESH", "VERSION", "WORKLOADS#", "DESTS#", "+GATEWAYS", "+CREDENTIAL@", "+EXPIRES@", "+SYNC LAG@", "+WAITING#", "ISSUES"),
		Empty:   "No cluster is registered. Register one with: meshctl cluster register NAME --remote-context CONTEXT",
	}
	workloads, destinations := x.perMesh()
	waiting := x.Waiting()
	meshes := map[string][]*snapshot.MeshPlan{}
	for _, m := range x.state.Plan.Meshes {
		meshes[m.Cluster] = append(meshes[m.Cluster], m)
	}
	for _, c := range x.state.Input.Clusters {
		health, why := x.health(c.Name)
		ref := x.clusterRef(c.Name)
		issues := x.issuesOf(ref, snapshot.Ref{Kind: snapshot.KubernetesCluster, Name: c.Name})
		sign := signs[c.Name]
		if len(meshes[c.Name]) == 0 {
			t.Rows = append(t.Rows, Row{
				Key: c.Name, Ref: ref, Clusters: []string{c.Name}, Level: max(levelOf(issues), health.level()), Note: why,
				Cells: []string{c.Name, string(health), "", "", "", "", "", moment(sign.Issued), moment(sign.Expires), moment(sign.BehindSince), some(waiting[c.Name]), worst(issues)},
			})
		}
		for _, m := range meshes[c.Name] {
			kind, installation := installationOf(&m.Mesh.Spec)
			all := append(x.issuesOf(m.Ref), issues...)
			gateways := make([]string, 0, len(m.Gateways))
			for _, g := range m.Gateways {
				for _, address := range g.Addresses {
					gateways = append(gateways, address+":"+strconv.FormatUint(uint64(g.Port), 10))
				}
			}
			t.Rows = append(t.Rows, Row{
				Key: c.Name + " " + m.Ref.Name, Ref: m.Ref, Clusters: []string{c.Name}, Labels: m.Mesh.Labels,
				Level: max(levelOf(all), health.level()), Note: why,
				Cells: []string{
					c.Name, string(health), m.Ref.Name, strings.TrimSpace(kind + " " + installation.Version),
					strconv.Itoa(workloads[m.Ref]), strconv.Itoa(destinations[m.Ref]), strings.Join(gateways, ", "),
					moment(sign.Issued), moment(sign.Expires), moment(sign.BehindSince), some(waiting[c.Name]), worst(x.issuesOf(m.Ref, ref)),
				},
			})
		}
	}
	return t
}

// level is how bad a health is.
func (h Health) level() Level {
	switch h {
	case Healthy:
		return Fine
	case Unknown:
		return Noted
	}
	return Broken
}

// perMesh counts workloads and destinations by mesh.
func (x *Index) perMesh() (workloads, destinations map[snapshot.Ref]int) {
	workloads, destinations = map[snapshot.Ref]int{}, map[snapshot.Ref]int{}
	for _, o := range x.workloads {
		if m := x.meshOf(o); m != nil {
			workloads[m.Ref]++
		}
	}
	for d := range x.state.Plan.Destinations.All() {
		if d.Mesh != nil {
			destinations[d.Mesh.Ref]++
		}
	}
	return workloads, destinations
}
