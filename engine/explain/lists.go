package explain

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// tally is how many policies select a Destination or Workload.
type tally struct{ accepted, refused int }

// text is "3", or "3 of 4" where one was refused.
func (t tally) text() string {
	switch {
	case t.refused > 0:
		return strconv.Itoa(t.accepted) + " of " + strconv.Itoa(t.accepted+t.refused)
	case t.accepted > 0:
		return strconv.Itoa(t.accepted)
	}
	return ""
}

// tallies counts the TrafficPolicies on each Destination.
func (x *Index) tallies() map[snapshot.Ref]tally {
	out := map[snapshot.Ref]tally{}
	for _, p := range x.state.Plan.Policies {
		if p.Ref.Kind != snapshot.TrafficPolicy {
			continue
		}
		for i := range p.Verdicts {
			v := &p.Verdicts[i]
			t := out[v.Destination]
			if v.Accepted {
				t.accepted++
			} else {
				t.refused++
			}
			out[v.Destination] = t
		}
	}
	return out
}

// Destinations lists all services.
func (x *Index) Destinations() Table {
	t := Table{
		Columns: columns("SERVICE", "NAMESPACE", "CLUSTER", "+PORTS", "TRAFFIC#", "ACCESS", "+FEDERATED", "+ENDPOINTS#", "ISSUES"),
		Rows:    make([]Row, 0, x.state.Plan.Destinations.Len()),
		Empty:   "No service of a mesh was discovered. Services are found once pods behind them have a sidecar.",
	}
	tallies := x.tallies()
	for d := range x.state.Plan.Destinations.All() {
		issues := x.issuesOf(d.Ref)
		row := Row{Key: d.Ref.Name, Ref: d.Ref, Level: levelOf(issues)}
		var name, namespace, cluster, ports, federated, endpoints string
		name = d.Ref.Name
		if k := d.Destination.Spec.KubeService; k != nil {
			name, namespace, cluster = k.Ref.Name, k.Ref.Namespace, k.Ref.ClusterName
			row.Clusters, row.Labels = []string{cluster}, k.Labels
			numbered := make([]uint32, len(k.Ports))
			for i, p := range k.Ports {
				numbered[i] = p.Port
			}
			ports = numbers(numbered)
			endpoints = strconv.Itoa(len(endpointsOf(d, nil)))
		}
		if d.Federation != nil {
			federated = "to " + snapshot.Count(len(d.Federation.To), "mesh")
		}
		row.Cells = []string{name, namespace, cluster, ports, tallies[d.Ref].text(), accessBrief(d), federated, endpoints, worst(issues)}
		if len(issues) > 0 {
			row.Note, row.Next = issues[0].Message, issues[0].Hint
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// accessBrief is who may call a Destination, in a word or two.
func accessBrief(d *snapshot.DestinationPlan) string {
	switch {
	case isOpenGateway(d):
		return "open"
	case len(d.Access) > 0:
		return snapshot.Count(len(d.Access), "policy")
	case d.Mesh != nil && d.Mesh.DenyByDefault != nil:
		return "closed"
	}
	return "open"
}

// Workloads lists all workloads.
func (x *Index) Workloads() Table {
	t := Table{
		Columns: columns("WORKLOAD", "NAMESPACE", "CLUSTER", "+KIND", "SERVICE ACCOUNT", "+MESH", "POLICIES#", "ISSUES"),
		Rows:    make([]Row, 0, len(x.workloads)),
		Empty:   "No workload with a sidecar was discovered. Inject sidecars, and the workloads will be found.",
	}
	policies := map[snapshot.Ref]int{}
	for _, p := range x.state.Plan.Policies {
		for _, ref := range p.Workloads {
			policies[ref]++
		}
	}
	for _, o := range x.state.Plan.Workloads {
		ref := snapshot.RefOf(snapshot.Workload, o)
		issues := x.issuesOf(ref)
		row := Row{Key: ref.Name, Ref: ref, Level: levelOf(issues)}
		name, namespace, cluster, kind := ref.Name, "", "", ""
		if k := o.Spec.Kubernetes; k != nil {
			name, namespace, cluster = k.Controller.Name, k.Controller.Namespace, k.Controller.ClusterName
			kind = workloadKind(ref.Name)
			row.Clusters, row.Labels = []string{cluster}, k.PodLabels
		}
		if len(issues) > 0 {
			row.Note, row.Next = issues[0].Message, issues[0].Hint
		}
		row.Cells = []string{name, namespace, cluster, kind, account(o), o.Spec.Mesh.Name, some(policies[ref]), worst(issues)}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// workloadKind is the last part of a Workload's name.
func workloadKind(name string) string {
	for _, kind := range []string{"deployment", "daemonset", "statefulset"} {
		if strings.HasSuffix(name, "-"+kind) {
			return kind
		}
	}
	return ""
}

// VirtualMeshes lists all VirtualMeshes.
func (x *Index) VirtualMeshes() Table {
	t := Table{
		Columns: columns("NAME", "+NAMESPACE", "STATE", "MEMBERS", "FEDERATED#", "GLOBAL ACCESS", "+TRUST", "AGE@", "ISSUES"),
		Empty:   "There is no VirtualMesh. One joins meshes, so that services of one can be called from another.",
	}
	federated := map[snapshot.Ref]int{}
	for d := range x.state.Plan.Destinations.All() {
		if d.Federation != nil {
			federated[d.Federation.Origin.Ref]++
		}
	}
	for _, v := range x.state.Plan.VirtualMeshes {
		issues := x.issuesOf(v.Ref)
		row := Row{Key: shortName(v.Ref), Ref: v.Ref, Level: levelOf(issues), Labels: v.VirtualMesh.Labels}
		for _, m := range v.Members {
			row.Clusters = append(row.Clusters, m.Cluster)
		}
		members := strconv.Itoa(len(v.Members))
		if asked := len(v.VirtualMesh.Spec.Meshes); asked != len(v.Members) {
			members += " of " + strconv.Itoa(asked)
		}
		x.note(&row, v.Ref, issues)
		global := string(v.VirtualMesh.Spec.GlobalAccessPolicy)
		if global == "" {
			global = "MESH_DEFAULT"
		}
		row.Cells = []string{
			v.Ref.Name, v.Ref.Namespace, string(x.stateOf(v.Ref, v.VirtualMesh.Status.State)), members, some(federated[v.Ref]), global,
			trustText(v.VirtualMesh.Spec.MtlsConfig), moment(v.VirtualMesh.CreationTimestamp.Time), worst(issues),
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Policies lists all TrafficPolicies and AccessPolicies, VirtualDestinations and
// ServiceDependencies.
func (x *Index) Policies() Table {
	t := Table{
		Columns: columns("KIND", "NAME", "+NAMESPACE", "STATE", "TARGETS#", "CONFLICTS#", "AGE@", "ISSUES"),
		Rows:    make([]Row, 0, len(x.state.Plan.Policies)),
		Empty:   "There is no policy: requests go where they went without meshctl, and access is what the meshes say.",
	}
	for _, p := range x.state.Plan.Policies {
		issues := x.issuesOf(p.Ref)
		row := Row{Key: p.Ref.String(), Ref: p.Ref, Level: levelOf(issues)}
		var targets tally
		conflicts := 0
		for i := range p.Verdicts {
			v := &p.Verdicts[i]
			if v.Accepted {
				targets.accepted++
			} else {
				targets.refused++
			}
			if len(lostFields(v.Issues)) > 0 {
				conflicts++
			}
			if cluster := x.clusterOf(v.Destination); cluster != "" && (len(row.Clusters) == 0 || row.Clusters[len(row.Clusters)-1] != cluster) {
				row.Clusters = append(row.Clusters, cluster)
			}
		}
		var created string
		if p.Policy != nil {
			created, row.Labels = moment(p.Policy.GetCreationTimestamp().Time), p.Policy.GetLabels()
		}
		x.note(&row, p.Ref, issues)
		row.Cells = []string{
			strings.TrimSuffix(p.Ref.Kind.String(), "Policy"), p.Ref.Name, p.Ref.Namespace, string(x.policyState(p)),
			cmp.Or(targets.text(), "0"), some(conflicts), created, worst(issues),
		}
		t.Rows = append(t.Rows, row)
	}
	t.Rows = append(t.Rows, x.otherPolicies()...)
	return t
}
