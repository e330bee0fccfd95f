package explain

import (
	"cmp"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// WorkloadItem is a workload in a list.
type WorkloadItem struct {
	Ref snapshot.Ref `json:"ref"`
	// Controller is the Deployment, DaemonSet or StatefulSet, or what else owns the pods; nil if it has none.
	Controller     *snapshot.Ref `json:"controller,omitempty"`
	ServiceAccount string        `json:"serviceAccount"`
	Mesh           string        `json:"mesh"`
	// Mode is how its pods take part in the mesh; empty for sidecars, and for other gateways.
	Mode string `json:"mode,omitempty"`
	// Policies are how many select it as a caller.
	Policies int              `json:"policies"`
	Issues   []snapshot.Issue `json:"issues"`

	labels map[string]string
}

func (x Tables) workloadItems() []WorkloadItem {
	policies := x.policiesByCaller()
	items := make([]WorkloadItem, 0, len(x.workloads))
	for _, o := range x.state.Plan.Workloads {
		ref := snapshot.RefOf(snapshot.Workload, o)
		item := WorkloadItem{Ref: ref, ServiceAccount: account(o), Mesh: o.Spec.Mesh.Name, Policies: policies(ref, o), Issues: x.issues.of(ref)}
		if k := o.Spec.Kubernetes; k != nil {
			item.Controller = controllerOf(ref, k)
			item.labels, item.Mode = k.PodLabels, modeWord(k.DataPlaneMode)
		}
		items = append(items, item)
	}
	return items
}

// Workloads lists all workloads.
func (x Tables) Workloads() Table {
	controller := func(o *WorkloadItem) snapshot.Ref {
		if o.Controller == nil {
			return snapshot.Ref{}
		}
		return *o.Controller
	}
	columns := []column[WorkloadItem]{
		text("WORKLOAD", 0, func(o *WorkloadItem) string { return cmp.Or(controller(o).Name, o.Ref.Name) }),
		text("NAMESPACE", 0, func(o *WorkloadItem) string { return controller(o).Namespace }),
		text("CLUSTER", 0, func(o *WorkloadItem) string { return controller(o).Cluster }),
		text("KIND", 2, func(o *WorkloadItem) string { return controller(o).Kind.String() }),
		text("SERVICE ACCOUNT", 1, func(o *WorkloadItem) string { return o.ServiceAccount }),
		number("POLICIES", 0, func(o *WorkloadItem) string { return some(o.Policies) }),
		text("MESH", 3, func(o *WorkloadItem) string { return o.Mesh }),
		text("NAME", 4, func(o *WorkloadItem) string { return o.Ref.Name }),
		text("ISSUES", 0, func(o *WorkloadItem) string { return worst(o.Issues) }),
	}
	items := x.workloadItems()
	if slices.ContainsFunc(items, func(o WorkloadItem) bool { return o.Mode != "" }) {
		columns = slices.Insert(columns, 5, text("MODE", 2, func(o *WorkloadItem) string { return o.Mode }))
	}
	columns = beforeIssues(columns, seenColumns(x.Index, servedRows(x.Index), func(o *WorkloadItem) snapshot.Ref { return o.Ref }))
	const empty = "No workload was discovered. A workload is discovered when its pods have a sidecar, or are in ambient mode."
	return newTable(empty, columns, items, func(o *WorkloadItem) Row {
		row := Row{Key: o.Ref.Name, Ref: o.Ref, Labels: o.labels}
		if o.Controller != nil {
			row.Clusters = []string{o.Controller.Cluster}
		}
		row.setIssue(o.Issues)
		x.markUnreachable(&row)
		return row
	})
}

// controllerOf refers to what keeps a workload running.
func controllerOf(workload snapshot.Ref, k *discoveryv1.KubernetesWorkload) *snapshot.Ref {
	c := k.Controller
	kind := snapshot.NoKind
	if k.ControllerKind == "" {
		kind = controllerKind(workload.Name)
	}
	return &snapshot.Ref{Kind: kind, Cluster: c.ClusterName, Namespace: c.Namespace, Name: c.Name}
}

// controllerKinds are the kinds of objects that keep workloads running.
var controllerKinds = []snapshot.Kind{snapshot.Deployment, snapshot.DaemonSet, snapshot.StatefulSet}

// controllerKind is the last part of a Workload's name.
func controllerKind(name string) snapshot.Kind {
	for _, kind := range controllerKinds {
		if strings.HasSuffix(name, "-"+strings.ToLower(kind.String())) {
			return kind
		}
	}
	return snapshot.NoKind
}
