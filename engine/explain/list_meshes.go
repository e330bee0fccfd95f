package explain

import (
	"slices"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// MeshItem is a mesh in a list.
type MeshItem struct {
	Ref     snapshot.Ref `json:"ref"`
	Cluster string       `json:"cluster"`
	// Health is that of the cluster.
	Health snapshot.Health `json:"health"`
	Type   string          `json:"type"`
	// DataPlanes says which data planes it has, if it has not only sidecars.
	DataPlanes  string        `json:"dataPlanes,omitempty"`
	Version     string        `json:"version,omitempty"`
	TrustDomain string        `json:"trustDomain"`
	VirtualMesh *snapshot.Ref `json:"virtualMesh,omitempty"`
	// Gateways are the addresses, with ports, under which other clusters reach it.
	Gateways     []string `json:"gateways"`
	Workloads    int      `json:"workloads"`
	Destinations int      `json:"destinations"`
	// Issues are those of the mesh and of its cluster and, if it is the only one there, of what is
	// in it.
	Issues []snapshot.Issue `json:"issues"`

	in     *ClusterItem
	labels map[string]string
}

// meshItems lists the meshes by cluster and, with an empty Ref, the clusters
// without one.
func (x Tables) meshItems() []MeshItem {
	clusters := x.clusterItems()
	meshes := map[string][]*snapshot.MeshPlan{}
	for _, m := range x.state.Plan.Meshes {
		meshes[m.Cluster] = append(meshes[m.Cluster], m)
	}
	workloads, destinations := x.perMesh()
	var items []MeshItem
	for i := range clusters {
		c := &clusters[i]
		if len(c.Meshes) == 0 {
			items = append(items, MeshItem{Cluster: c.Ref.Name, Health: c.Health, Issues: c.Issues, in: c})
		}
		for _, m := range meshes[c.Ref.Name] {
			kind, installation := snapshot.MeshType(&m.Mesh.Spec)
			item := MeshItem{
				Ref: m.Ref, Cluster: c.Ref.Name, Health: c.Health, Type: kind, Version: installation.Version, TrustDomain: m.TrustDomain,
				Gateways: gatewayAddresses(m), Workloads: workloads[m.Ref], Destinations: destinations[m.Ref],
				Issues: x.meshIssues(m, c, len(meshes[c.Ref.Name]) == 1), in: c, labels: m.Mesh.Labels,
			}
			if istio := m.Mesh.Spec.Istio; istio != nil {
				item.DataPlanes = dataPlanes(istio.Ambient)
			}
			if m.VirtualMesh != nil {
				ref := snapshot.RefOf(snapshot.VirtualMesh, m.VirtualMesh)
				item.VirtualMesh = &ref
			}
			items = append(items, item)
		}
	}
	return items
}

// meshIssues are those of a mesh. What is in a cluster with one mesh is in that mesh.
func (x Tables) meshIssues(m *snapshot.MeshPlan, c *ClusterItem, only bool) []snapshot.Issue {
	if only {
		return c.Issues
	}
	return x.issues.of(m.Ref, c.Ref, clusterName(c.Ref.Name))
}

// perMesh counts workloads and destinations by mesh.
func (x Tables) perMesh() (workloads, destinations map[snapshot.Ref]int) {
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

// gatewayAddresses are those of the gateways of a mesh, with ports.
func gatewayAddresses(m *snapshot.MeshPlan) []string {
	all := []string{}
	for _, g := range m.Gateways {
		for _, address := range g.Addresses {
			all = append(all, address+":"+strconv.FormatUint(uint64(g.Port), 10))
		}
	}
	return all
}

// Fleet lists all meshes by cluster, and the clusters without one. Its rows are about the clusters.
func (x Tables) Fleet() Table {
	return meshTable(noClusters, x.meshItems(), x.facts, true)
}

// Meshes lists all meshes by cluster.
func (x Tables) Meshes() Table {
	items := slices.DeleteFunc(x.meshItems(), func(m MeshItem) bool { return m.Ref == snapshot.Ref{} })
	return meshTable("No mesh was discovered. A mesh is discovered when it is installed in a registered cluster.", items, nil, false)
}

func meshTable(empty string, items []MeshItem, facts map[string]ClusterFacts, byCluster bool) Table {
	inCluster := func(m *MeshItem) *ClusterItem { return m.in }
	var clusters []ClusterItem
	for i := range items {
		if byCluster && items[i].in != nil {
			clusters = append(clusters, *items[i].in)
		}
	}
	columns := slices.Concat(lift(clusterColumns(), inCluster), lift(sinceColumns(clusters, 1, clusterSince), inCluster), lift(connectionColumns(clusters), inCluster), []column[MeshItem]{
		text("MESH", 0, func(m *MeshItem) string { return m.Ref.Name }),
		text("TYPE", 1, func(m *MeshItem) string {
			if m.DataPlanes != "" {
				return m.Type + ", ambient"
			}
			return m.Type
		}),
		text("VERSION", 1, func(m *MeshItem) string { return m.Version }),
		number("WORKLOADS", 2, func(m *MeshItem) string { return countIn(m, m.Workloads) }),
		number("DESTINATIONS", 2, func(m *MeshItem) string { return countIn(m, m.Destinations) }),
		text("GATEWAYS", 3, func(m *MeshItem) string { return strings.Join(m.Gateways, ", ") }),
		text("VIRTUAL MESH", 7, func(m *MeshItem) string {
			if m.VirtualMesh == nil {
				return ""
			}
			return shortName(*m.VirtualMesh)
		}),
		text("TRUST DOMAIN", 8, func(m *MeshItem) string { return m.TrustDomain }),
	}, lift(factColumns(facts), inCluster), []column[MeshItem]{
		text("ISSUES", 0, func(m *MeshItem) string { return worst(m.Issues) }),
	})
	return newTable(empty, columns, items, func(m *MeshItem) Row {
		row := Row{Key: strings.TrimSpace(m.Cluster + " " + m.Ref.Name), Ref: m.Ref, Clusters: []string{m.Cluster}, Labels: m.labels}
		if byCluster || m.Ref == (snapshot.Ref{}) {
			row.Ref = m.in.Ref
		}
		m.in.setNote(&row, m.Issues)
		return row
	})
}

// countIn is a number of objects in a mesh as text; empty if there is no mesh.
func countIn(m *MeshItem, n int) string {
	if m.Ref == (snapshot.Ref{}) {
		return ""
	}
	return strconv.Itoa(n)
}
