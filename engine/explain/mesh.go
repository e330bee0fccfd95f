package explain

import (
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Mesh describes a mesh.
type Mesh struct {
	Ref snapshot.Ref `json:"ref"`
	InForce
	// Type is istio, osm, ...
	Type    string `json:"type"`
	Version string `json:"version,omitempty"`
	Cluster string `json:"cluster"`
	Region  string `json:"region,omitempty"`
	// Namespace of the control plane.
	Namespace   string `json:"namespace"`
	TrustDomain string `json:"trustDomain"`
	// Roots are the SHA-256 fingerprints of the root certificates that its proxies
	// trust; absent if they are not known.
	Roots []string `json:"rootFingerprints,omitempty"`
	// CommonTrust is what it has of the trust that its VirtualMesh gives; nil if that gives
	// none, or is not known.
	CommonTrust *TrustMember `json:"commonTrust,omitempty"`
	SmartDNS    bool         `json:"smartDns"`
	// OutboundTrafficPolicy is what its proxies do with requests for hosts that they do not know, as its settings name it; empty if they
	// send them on as they are.
	OutboundTrafficPolicy string `json:"outboundTrafficPolicy,omitempty"`
	// DataPlanes says which data planes it has, if it has not only sidecars.
	DataPlanes string `json:"dataPlanes,omitempty"`
	// NotEvaluated are sentences on what applies in the mesh and is not evaluated.
	NotEvaluated []string `json:"notEvaluated,omitempty"`
	// Permissive meshes let everybody call everybody, whatever policies say.
	Permissive bool `json:"permissive,omitempty"`
	// Frozen says why the mesh's cluster cannot be reached, so that nothing is changed there; empty if it can.
	Frozen      string        `json:"unreachable,omitempty"`
	VirtualMesh *snapshot.Ref `json:"virtualMesh,omitempty"`
	// HostnameSuffix ends the names of services federated from and to it.
	HostnameSuffix string    `json:"hostnameSuffix,omitempty"`
	Gateways       []Gateway `json:"gateways"`
	// DenyByDefault is what denies access that no policy allows; nil if nothing does.
	DenyByDefault *snapshot.Origin `json:"denyByDefault,omitempty"`
	// Failovers are the VirtualDestinations exported to it.
	Failovers []Failover       `json:"failovers,omitempty"`
	Counts    MeshCounts       `json:"counts"`
	Issues    []snapshot.Issue `json:"issues"`

	trust *Trust
}

// Gateway lets other meshes in.
type Gateway struct {
	Service   snapshot.Ref `json:"service"`
	Addresses []string     `json:"addresses"`
	Port      uint32       `json:"port"`
}

// MeshCounts are numbers of what is in a mesh.
type MeshCounts struct {
	Workloads    int `json:"workloads"`
	Destinations int `json:"destinations"`
	// Ambient are its workloads in ambient mode, or for which labels ask for it.
	Ambient int `json:"ambient,omitempty"`
	// FederatedOut are its services that other meshes see, FederatedIn those
	// of others that it sees.
	FederatedOut int `json:"federatedOut"`
	FederatedIn  int `json:"federatedIn"`
}

func (x describer) mesh(m *snapshot.MeshPlan) *Mesh {
	kind, installation := snapshot.MeshType(&m.Mesh.Spec)
	out := &Mesh{
		Ref: m.Ref, InForce: x.inForceOf(m.Ref), Type: kind, Version: installation.Version, Cluster: m.Cluster, Region: installation.Region,
		Namespace: m.Namespace, TrustDomain: m.TrustDomain, Roots: m.Roots, Frozen: x.frozenReason(m.Cluster),
		HostnameSuffix: m.HostnameSuffix, Gateways: []Gateway{}, Issues: x.issues.of(m.Ref), SmartDNS: m.DNS.ResolvesAll, Permissive: m.Open,
		DenyByDefault: m.DenyByDefault,
	}
	if istio := m.Mesh.Spec.Istio; istio != nil {
		out.OutboundTrafficPolicy = istio.OutboundTrafficPolicy
		out.NotEvaluated = unevaluatedIn(x.Index, m.Ref)
		out.DataPlanes = dataPlanes(istio.Ambient)
	}
	out.Failovers = x.failovers(m, nil)
	if m.VirtualMesh != nil {
		ref := snapshot.RefOf(snapshot.VirtualMesh, m.VirtualMesh)
		out.VirtualMesh = &ref
		if v := x.virtualMeshes[ref]; v != nil && x.trustStatus(v).Stage != "" {
			out.setTrust(x.trust(v))
		}
	}
	for _, g := range m.Gateways {
		out.Gateways = append(out.Gateways, Gateway{Service: g.Service, Addresses: g.Addresses, Port: g.Port})
	}
	for _, workload := range x.workloads {
		if x.meshOf(workload) == m {
			out.Counts.Workloads++
			if modeOf(workload).IsAmbient() {
				out.Counts.Ambient++
			}
		}
	}
	for d := range x.state.Plan.Destinations.All() {
		switch {
		case d.Mesh == nil:
		case d.Mesh.Ref == m.Ref:
			out.Counts.Destinations++
			if d.Federation != nil {
				out.Counts.FederatedOut++
			}
		case d.Federation != nil && reaches(m, d):
			out.Counts.FederatedIn++
		}
	}
	return out
}

// setTrust takes the mesh's part of the trust of its VirtualMesh.
func (m *Mesh) setTrust(trust *Trust) {
	for i := range trust.Members {
		if trust.Members[i].Mesh == m.Ref {
			m.trust, m.CommonTrust = trust, &trust.Members[i]
		}
	}
}

// Page implements Description.
func (m *Mesh) Page() Page {
	virtual, access, dns := "none", "open unless a policy says otherwise", "only services of its own cluster"
	if m.VirtualMesh != nil {
		virtual = shortName(*m.VirtualMesh)
	}
	if m.DenyByDefault != nil {
		access = "denied unless a policy allows it (" + kindAndName(m.DenyByDefault.Ref) + ")"
	}
	if m.Permissive {
		access = "open to everyone in the mesh, whatever policies say (permissive traffic policy mode)"
	}
	if m.SmartDNS {
		dns = "any host that the mesh knows"
	}
	page := Page{
		Title: "Mesh " + shortName(m.Ref),
		Sections: []Section{
			facts("",
				[2]string{"Type", m.Type}, [2]string{"Version", m.Version}, [2]string{"Cluster", m.Cluster},
				[2]string{"Unreachable", m.Frozen}, [2]string{"Namespace", m.Namespace}, [2]string{"Region", m.Region},
				[2]string{"Trust domain", m.TrustDomain}, [2]string{"Trusted roots", strings.Join(m.Roots, ", ")}, [2]string{"DNS resolves", dns},
				[2]string{"Data planes", m.DataPlanes}, [2]string{"Unknown hosts", m.OutboundTrafficPolicy}, [2]string{"Not evaluated", strings.Join(m.NotEvaluated, "; ")},
				[2]string{"Virtual mesh", virtual}, [2]string{"Host suffix", m.HostnameSuffix}, [2]string{"Access", access},
			),
			facts("What is in it",
				[2]string{"Workloads", strconv.Itoa(m.Counts.Workloads)},
				[2]string{"Workloads in ambient mode", some(m.Counts.Ambient)},
				[2]string{"Destinations", strconv.Itoa(m.Counts.Destinations)},
				[2]string{"Services seen by other meshes", strconv.Itoa(m.Counts.FederatedOut)},
				[2]string{"Services of other meshes seen", strconv.Itoa(m.Counts.FederatedIn)},
			),
		},
		Issues: m.Issues,
	}
	gateways := Section{Title: "East-west gateways"}
	if len(m.Gateways) == 0 {
		gateways.Text = "None: other meshes cannot reach it."
	} else {
		gateways.Header = []string{"SERVICE", "ADDRESSES", "PORT"}
	}
	for _, g := range m.Gateways {
		gateways.Rows = append(gateways.Rows, []string{
			g.Service.Namespace + "/" + g.Service.Name, strings.Join(g.Addresses, ", "), strconv.FormatUint(uint64(g.Port), 10),
		})
	}
	page.Sections = append(page.Sections, gateways)
	if m.CommonTrust != nil {
		page.Sections = append(page.Sections, m.CommonTrust.facts(m.trust))
	}
	if len(m.Failovers) > 0 {
		page.Sections = append(page.Sections, failoverSection("VirtualDestinations", m.Failovers))
	}
	return m.InForce.on(page)
}
