package explain

import (
	"time"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// VirtualMeshItem is a VirtualMesh in a list.
type VirtualMeshItem struct {
	Ref snapshot.Ref `json:"ref"`
	// State is that of its status.
	State commonv1.ApprovalState `json:"state"`
	// Members are the meshes that it joins, of those that it names.
	Members int `json:"members"`
	Named   int `json:"named"`
	// Federated are the services that members see of each other.
	Federated    int                             `json:"federated"`
	GlobalAccess networkingv1.GlobalAccessPolicy `json:"globalAccessPolicy"`
	// Trust says in words who issues the members' certificates.
	Trust string `json:"trust"`
	// TrustStage is where a common trust stands; empty if there is none, or it is not known.
	TrustStage networkingv1.TrustStage `json:"trustStage,omitempty"`
	Created    time.Time               `json:"created,omitzero"`
	Issues     []snapshot.Issue        `json:"issues"`

	plan *snapshot.VirtualMeshPlan
}

func (x Tables) virtualMeshItems() []VirtualMeshItem {
	federated := map[snapshot.Ref]int{}
	for d := range x.state.Plan.Destinations.All() {
		if d.Federation != nil {
			federated[d.Federation.Origin.Ref]++
		}
	}
	items := make([]VirtualMeshItem, len(x.state.Plan.VirtualMeshes))
	for i, v := range x.state.Plan.VirtualMeshes {
		o := v.VirtualMesh
		items[i] = VirtualMeshItem{
			Ref: v.Ref, State: x.stateOf(v.Ref), Members: len(v.Members), Named: len(o.Spec.Meshes), Federated: federated[v.Ref],
			TrustStage: describing(x.Index).trustStatus(v).Stage, GlobalAccess: globalAccess(o), Trust: trustText(o.Spec.MtlsConfig), Created: o.CreationTimestamp.UTC(), Issues: x.issues.of(v.Ref), plan: v,
		}
	}
	return items
}

// globalAccess is the global access policy of a VirtualMesh; MESH_DEFAULT if it has none.
func globalAccess(o *networkingv1.VirtualMesh) networkingv1.GlobalAccessPolicy {
	if o.Spec.GlobalAccessPolicy == "" {
		return networkingv1.GlobalAccessPolicyMeshDefault
	}
	return o.Spec.GlobalAccessPolicy
}

// VirtualMeshes lists all VirtualMeshes.
func (x Tables) VirtualMeshes() Table {
	columns := []column[VirtualMeshItem]{
		text("NAME", 0, func(v *VirtualMeshItem) string { return v.Ref.Name }),
		text("NAMESPACE", 3, func(v *VirtualMeshItem) string { return v.Ref.Namespace }),
		text("STATE", 0, func(v *VirtualMeshItem) string { return string(v.State) }),
		number("MEMBERS", 0, func(v *VirtualMeshItem) string { return partly(v.Members, v.Named) }),
		number("FEDERATED", 0, func(v *VirtualMeshItem) string { return some(v.Federated) }),
		text("GLOBAL ACCESS", 1, func(v *VirtualMeshItem) string { return string(v.GlobalAccess) }),
		text("TRUST", 4, func(v *VirtualMeshItem) string {
			if v.TrustStage == "" {
				return v.Trust
			}
			return string(v.TrustStage) + "; " + v.Trust
		}),
		since("CREATED", 2, func(v *VirtualMeshItem) time.Time { return v.Created }),
		text("ISSUES", 0, func(v *VirtualMeshItem) string { return worst(v.Issues) }),
	}
	const empty = "There is no VirtualMesh. A VirtualMesh joins meshes, so that services of one can be called from another."
	return newTable(empty, columns, x.virtualMeshItems(), func(v *VirtualMeshItem) Row {
		row := Row{Key: shortName(v.Ref), Ref: v.Ref, Labels: labelsOf(x.state.Input, v.Ref)}
		for _, m := range v.plan.Members {
			row.Clusters = append(row.Clusters, m.Cluster)
		}
		x.setNote(&row, v.Issues)
		return row
	})
}
