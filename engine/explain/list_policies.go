package explain

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// PolicyItem is a TrafficPolicy, AccessPolicy, VirtualDestination or
// ServiceDependency in a list.
type PolicyItem struct {
	Ref snapshot.Ref `json:"ref"`
	// Action is DENY for an AccessPolicy that denies; else empty.
	Action string `json:"action,omitempty"`
	// Enforcement is AUDIT for an AccessPolicy that is not in force; else empty.
	Enforcement string `json:"enforcement,omitempty"`
	// State is that of its status.
	State commonv1.ApprovalState `json:"state"`
	// Targets are the Destinations that it selects, or the Workloads of a
	// ServiceDependency.
	Targets AcceptedCount `json:"targets"`
	// Conflicts are the targets on which an older policy has a field that it sets.
	Conflicts int       `json:"conflicts,omitempty"`
	Created   time.Time `json:"created,omitzero"`
	// Since is since when it is in force everywhere, or is not, as the server dated it; zero if that is not known.
	Since  time.Time        `json:"since,omitzero"`
	Issues []snapshot.Issue `json:"issues"`

	clusters []string
	labels   map[string]string
}

// policyItem counts the targets of a policy, and those that accepted it.
func (x Tables) policyItem(ref snapshot.Ref, state commonv1.ApprovalState, verdicts []snapshot.Verdict, o metav1.Object) PolicyItem {
	item := PolicyItem{Ref: ref, State: state, Issues: x.issues.of(ref)}
	item.Since = stateSince(x.Index, ref, state == commonv1.ApprovalStateAccepted)
	if o != nil {
		item.Created, item.labels = o.GetCreationTimestamp().UTC(), labelsOf(x.state.Input, ref)
	}
	for i := range verdicts {
		v := &verdicts[i]
		item.Targets.add(v.Accepted)
		if len(lostFields(v.Issues)) > 0 {
			item.Conflicts++
		}
		item.in(x.clusterOf(v.Destination))
	}
	return item
}

// labelsOf are the labels of an object that users write. A Plan may have an earlier version of it, with other labels.
func labelsOf(in *snapshot.Input, ref snapshot.Ref) map[string]string {
	if o := in.Find(ref); o != nil {
		return o.GetLabels()
	}
	return nil
}

// in adds a cluster that the policy concerns; empty is none.
func (p *PolicyItem) in(cluster string) {
	if cluster != "" && !slices.Contains(p.clusters, cluster) {
		p.clusters = append(p.clusters, cluster)
	}
}

// VirtualDestinationItem is a VirtualDestination in a list; its targets are the
// services behind it.
type VirtualDestinationItem struct {
	PolicyItem
	Host     string `json:"hostname"`
	Port     uint32 `json:"port"`
	Protocol string `json:"protocol"`
	// Meshes are those from which it can be called.
	Meshes int `json:"meshes"`
}

// ServiceDependencyItem is a ServiceDependency in a list.
type ServiceDependencyItem struct {
	PolicyItem
	// Hosts are how many its workloads have because of it.
	Hosts int `json:"hosts"`
}

// newPolicyTable lists items, each with a PolicyItem as a part; first and own are the
// columns that only they have.
func newPolicyTable[T any](x Tables, empty string, items []T, policy func(*T) *PolicyItem, first, own []column[T]) Table {
	names := []column[PolicyItem]{
		text("NAME", 0, func(p *PolicyItem) string { return p.Ref.Name }),
		text("NAMESPACE", 3, func(p *PolicyItem) string { return p.Ref.Namespace }),
	}
	if slices.ContainsFunc(items, func(t T) bool { return policy(&t).Ref.Cluster != "" }) {
		names = append(names, text("CLUSTER", 0, func(p *PolicyItem) string { return p.Ref.Cluster }))
	}
	columns := slices.Concat(first, lift(names, policy), lift([]column[PolicyItem]{
		text("STATE", 0, func(p *PolicyItem) string { return string(p.State) }),
		number("TARGETS", 0, func(p *PolicyItem) string { return p.Targets.text() }),
	}, policy), sinceColumns(items, 1, func(t *T) time.Time { return policy(t).Since }), own, lift([]column[PolicyItem]{
		since("CREATED", 1, func(p *PolicyItem) time.Time { return p.Created }),
		text("ISSUES", 0, func(p *PolicyItem) string { return worst(p.Issues) }),
	}, policy))
	return newTable(empty, columns, items, func(t *T) Row {
		p := policy(t)
		row := Row{Key: p.Ref.String(), Ref: p.Ref, Clusters: p.clusters, Labels: p.labels}
		x.setNote(&row, p.Issues)
		return row
	})
}

// policyItemTable lists PolicyItems; first are columns before the others.
func (x Tables) policyItemTable(empty string, items []PolicyItem, first []column[PolicyItem]) Table {
	own := []column[PolicyItem]{number("CONFLICTS", 2, func(p *PolicyItem) string { return some(p.Conflicts) })}
	if slices.ContainsFunc(items, func(p PolicyItem) bool { return p.Action != "" }) {
		own = append([]column[PolicyItem]{text("ACTION", 0, func(p *PolicyItem) string { return p.Action })}, own...)
	}
	if slices.ContainsFunc(items, func(p PolicyItem) bool { return p.Enforcement != "" }) {
		own = append([]column[PolicyItem]{text("ENFORCEMENT", 0, func(p *PolicyItem) string { return p.Enforcement })}, own...)
	}
	return newPolicyTable(x, empty, items, func(p *PolicyItem) *PolicyItem { return p }, first, own)
}

// policyTable lists the policies of a kind, TrafficPolicy or AccessPolicy.
func (x Tables) policyTable(kind snapshot.Kind) Table {
	return x.policyItemTable("There is no "+kind.String()+".", x.policyItems(kind), nil)
}

// Policies lists all TrafficPolicies and AccessPolicies, VirtualDestinations and
// ServiceDependencies.
func (x Tables) Policies() Table {
	items := slices.Concat(x.policyItems(snapshot.TrafficPolicy), x.policyItems(snapshot.AccessPolicy))
	for _, v := range x.virtualDestinationItems() {
		items = append(items, v.PolicyItem)
	}
	for _, d := range x.serviceDependencyItems() {
		items = append(items, d.PolicyItem)
	}
	kind := []column[PolicyItem]{text("KIND", 0, func(p *PolicyItem) string { return p.Ref.Kind.String() })}
	const empty = "There is no policy: routing and access are as the meshes configure them."
	return x.policyItemTable(empty, items, kind)
}

// policyItems lists the policies of a kind, TrafficPolicy or AccessPolicy.
func (x Tables) policyItems(kind snapshot.Kind) []PolicyItem {
	var items []PolicyItem
	for _, p := range x.state.Plan.Policies {
		if p.Ref.Kind == kind {
			item := x.policyItem(p.Ref, x.stateOf(p.Ref), p.Verdicts, p.Policy)
			item.Action, item.Enforcement = actionOf(p), enforcementOf(p)
			items = append(items, item)
		}
	}
	return items
}

func (x Tables) virtualDestinationItems() []VirtualDestinationItem {
	var items []VirtualDestinationItem
	for _, v := range x.state.Plan.VirtualDestinations {
		o := v.VirtualDestination
		item := VirtualDestinationItem{
			PolicyItem: x.policyItem(v.Ref, x.stateOf(v.Ref), nil, o), Host: v.Hostname, Port: v.Port, Protocol: v.Protocol,
		}
		for _, b := range v.Backing {
			item.Targets.add(true)
			item.in(b.Destination.Spec.KubeService.Ref.ClusterName)
		}
		for _, view := range v.Views {
			if len(view.Priorities) > 0 {
				item.Meshes++
			}
		}
		items = append(items, item)
	}
	return items
}

func (x Tables) virtualDestinationTable() Table {
	policy := func(v *VirtualDestinationItem) *PolicyItem { return &v.PolicyItem }
	own := []column[VirtualDestinationItem]{
		text("HOST", 1, func(v *VirtualDestinationItem) string { return v.Host }),
		number("PORT", 2, func(v *VirtualDestinationItem) string { return strconv.FormatUint(uint64(v.Port), 10) }),
		text("PROTOCOL", 2, func(v *VirtualDestinationItem) string { return v.Protocol }),
		number("MESHES", 1, func(v *VirtualDestinationItem) string { return strconv.Itoa(v.Meshes) }),
	}
	const empty = "There is no VirtualDestination. A VirtualDestination is a host name for services of several clusters, with failover between them."
	return newPolicyTable(x, empty, x.virtualDestinationItems(), policy, nil, own)
}

func (x Tables) serviceDependencyItems() []ServiceDependencyItem {
	hosts := hostsByDependency(x.state.Plan)
	var items []ServiceDependencyItem
	for _, p := range x.state.Plan.Dependencies {
		o := p.Dependency
		item := ServiceDependencyItem{
			PolicyItem: x.policyItem(p.Ref, x.stateOf(p.Ref), p.Verdicts, o), Hosts: len(hosts[p.Ref]),
		}
		for i := range p.Verdicts {
			item.in(x.clusterOfWorkload(p.Verdicts[i].Destination))
		}
		items = append(items, item)
	}
	return items
}

func (x Tables) serviceDependencyTable() Table {
	policy := func(d *ServiceDependencyItem) *PolicyItem { return &d.PolicyItem }
	own := []column[ServiceDependencyItem]{number("HOSTS", 1, func(d *ServiceDependencyItem) string { return strconv.Itoa(d.Hosts) })}
	const empty = "There is no ServiceDependency. Without one, each proxy is configured with every service of its mesh."
	return newPolicyTable(x, empty, x.serviceDependencyItems(), policy, nil, own)
}
