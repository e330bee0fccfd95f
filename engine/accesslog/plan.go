package accesslog

import (
	"fmt"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// Plan is the verdict on one AccessLogRecord.
type Plan = snapshot.AccessLogPlan

// Plans are the verdicts on the AccessLogRecords of an Input, ascending by Ref.
func Plans(in *snapshot.Input, plan *snapshot.Plan) []*Plan {
	records := in.Management.AccessLogRecords
	if len(records) == 0 {
		return nil
	}
	w := &world{
		in: in, scope: virtualmesh.ScopeOf(in.Management), doors: map[string]multiclusterv1alpha1.TelemetryDoor{}, relayed: map[string]bool{},
		logs: map[snapshot.Ref]bool{}, meshes: map[commonv1.ObjectRef]*snapshot.MeshPlan{},
	}
	for _, k := range in.Management.KubernetesClusters {
		if k.Spec.Telemetry != nil {
			w.doors[k.Name] = k.Spec.Telemetry.Door
		}
		w.relayed[k.Name] = k.Status.Connection != nil && k.Status.Connection.Via == multiclusterv1alpha1.ViaRelay
	}
	for _, c := range in.Clusters {
		if c.Relay != nil {
			w.relayed[c.Name] = true
		}
	}
	for _, m := range plan.Meshes {
		w.meshes[commonv1.ObjectRef{Name: m.Ref.Name, Namespace: m.Ref.Namespace}] = m
	}
	if in.Logging != nil {
		for _, ref := range in.Logging.Workloads {
			w.logs[ref] = true
		}
	}
	out := make([]*Plan, 0, len(records))
	counted := 0
	for _, o := range records {
		p := w.plan(o, plan)
		if !snapshot.Rejected(p.Issues) {
			if counted++; counted > MaxRecords {
				p.State, p.Issues = commonv1.ApprovalStateInvalid, append(p.Issues, snapshot.Errorf(snapshot.BudgetExceeded, "join AccessLogRecords, or remove some",
					"at most %d AccessLogRecords are in force, and this is one more", MaxRecords).On(p.Ref, snapshot.Ref{}))
			}
		}
		out = append(out, p)
	}
	return out
}

// world is what the verdicts follow from.
type world struct {
	in    *snapshot.Input
	scope virtualmesh.Scope
	// doors are how KubernetesClusters want numbers to come in, and relayed are the clusters that are reached through their agents, by name.
	doors   map[string]multiclusterv1alpha1.TelemetryDoor
	relayed map[string]bool
	logs    map[snapshot.Ref]bool
	meshes  map[commonv1.ObjectRef]*snapshot.MeshPlan
}

func (w *world) plan(o *observabilityv1.AccessLogRecord, plan *snapshot.Plan) *Plan {
	p := &Plan{Ref: snapshot.RefOf(snapshot.AccessLogRecord, o), Record: o, State: commonv1.ApprovalStateInvalid}
	p.Issues = w.scope.Issues(p.Ref)
	for _, issue := range Check(&o.Spec) {
		p.Issues = append(p.Issues, issue.On(p.Ref, snapshot.Ref{}))
	}
	if snapshot.Rejected(p.Issues) {
		return p
	}
	// lacks are how many of the workloads send no log, by what is missing, and hints what to do about it.
	lacks, hints := map[string]int{}, map[string]string{}
	for _, workload := range plan.Workloads {
		k := workload.Spec.Kubernetes
		if k == nil || !inventory.SelectsWorkload(o.Spec.WorkloadSelectors, k) {
			continue
		}
		ref := snapshot.RefOf(snapshot.Workload, workload)
		p.Workloads = append(p.Workloads, ref)
		if w.logs[ref] {
			p.Logging++
			continue
		}
		what, hint := w.missing(k.Controller.ClusterName, w.meshes[workload.Spec.Mesh])
		lacks[what]++
		hints[what] = hint
		if w.in.Logging == nil {
			continue
		}
		if p.Missing == nil {
			p.Missing = map[snapshot.Ref]string{}
		}
		p.Missing[ref] = what
	}
	p.State = commonv1.ApprovalStatePending
	switch {
	case len(p.Workloads) == 0:
		p.Issues = append(p.Issues, snapshot.Warnf(snapshot.SelectsNothing, "correct workloadSelectors, or start the workloads; `meshctl describe workload` lists those there are",
			"workloadSelectors match no workload with a sidecar").On(p.Ref, snapshot.Ref{}).At("workloadSelectors"))
	case w.in.Logging == nil:
		// Only who takes the logs knows; what it said last stays.
		if s := &o.Status; s.State == commonv1.ApprovalStateAccepted && s.ObservedGeneration == o.Generation {
			p.State = commonv1.ApprovalStateAccepted
		}
	default:
		if p.Logging > 0 {
			p.State = commonv1.ApprovalStateAccepted
		}
		p.Issues = append(p.Issues, missing(p, lacks, hints)...)
	}
	return p
}

// missing says whose requests are not logged: an error if nobody's are.
func missing(p *Plan, lacks map[string]int, hints map[string]string) (out []snapshot.Issue) {
	for what, n := range lacks {
		issue := snapshot.Warnf(snapshot.LogsMissing, hints[what], "no log comes from %d of %s: %s", n, snapshot.Count(len(p.Workloads), "workload"), what)
		if p.Logging == 0 {
			issue.Severity = snapshot.Error
		}
		out = append(out, issue.On(p.Ref, snapshot.Ref{}))
	}
	slices.SortFunc(out, func(a, b snapshot.Issue) int { return strings.Compare(a.Message, b.Message) })
	return out
}

// missing is why workloads of a mesh send no log, and what to do.
func (w *world) missing(cluster string, mesh *snapshot.MeshPlan) (what, hint string) {
	switch {
	case mesh == nil || mesh.Dialect.Proxies == nil || mesh.Dialect.Proxies.Stats == nil || mesh.Dialect.Proxies.Stats.Node == nil:
		return "proxies of this kind of mesh send none", "leave them out of workloadSelectors"
	case !w.relayed[cluster]:
		return fmt.Sprintf("no agent of cluster %s dials meshctl serve, and takes it", cluster), "reach the cluster through its agent: `meshctl help relay`; or leave it out of workloadSelectors"
	case w.doors[cluster] != multiclusterv1alpha1.TelemetryDoorPush:
		return fmt.Sprintf("the agent of cluster %s does not take what proxies send", cluster), fmt.Sprintf("run `meshctl telemetry enable %s --door push`", cluster)
	}
	return fmt.Sprintf("the agent of cluster %s gets nothing from their proxies", cluster), "have Istio send it, as `meshctl help access-logs` says, and send requests: a proxy connects with the first one"
}

// ForCluster is a record as the agent of a cluster needs it: without selectors of other clusters. It is nil if the record selects nothing there.
func ForCluster(p *Plan, cluster string) *observabilityv1.AccessLogRecordSpec {
	if p.State == commonv1.ApprovalStateInvalid {
		return nil
	}
	out := p.Record.Spec.DeepCopy()
	out.IncludedFilterStateObjects, out.WorkloadSelectors = nil, nil
	for _, s := range p.Record.Spec.WorkloadSelectors {
		m := s.KubeWorkloadMatcher
		switch {
		case m == nil:
			s = commonv1.WorkloadSelector{KubeWorkloadMatcher: &commonv1.KubeWorkloadMatcher{}}
		case !inventory.Includes(m.Clusters, cluster):
			continue
		default:
			m = m.DeepCopy()
			m.Clusters = nil
			s.KubeWorkloadMatcher = m
		}
		out.WorkloadSelectors = append(out.WorkloadSelectors, s)
	}
	if len(p.Record.Spec.WorkloadSelectors) > 0 && len(out.WorkloadSelectors) == 0 {
		return nil
	}
	return out
}

// Selects reports whether a record of ForCluster selects a pod, by its namespace and labels.
func (r *Record) Selects(namespace string, labels map[string]string) bool {
	return len(r.Spec.WorkloadSelectors) == 0 || slices.ContainsFunc(r.Spec.WorkloadSelectors, func(s commonv1.WorkloadSelector) bool {
		m := s.KubeWorkloadMatcher
		return m == nil || inventory.Includes(m.Namespaces, namespace) && inventory.MatchLabels(m.Labels, labels)
	})
}
