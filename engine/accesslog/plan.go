package accesslog

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/policy"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// Plan is the verdict on one AccessLogRecord.
type Plan = snapshot.AccessLogPlan

// Planner gives the verdicts on the AccessLogRecords of one Input after another. A record that stays the same is not checked again, and a
// verdict that stays the same is the same object: users of a cluster may write very many. The zero value is ready for use.
type Planner struct {
	records policy.Records
	scope   virtualmesh.Scope
	// last are the records of the last Input, and checked the same ones with what was found out about them.
	last    []*observabilityv1.AccessLogRecord
	checked []*checked
}

// checked is a record with what is wrong with it by itself, and the last verdict on it.
type checked struct {
	ref    snapshot.Ref
	record *observabilityv1.AccessLogRecord
	// local are the issues with its reach, and issues all of them.
	local, issues []snapshot.Issue
	plan          *Plan
}

// Plans are the verdicts on the AccessLogRecords of an Input, ascending by Ref.
func (l *Planner) Plans(in *snapshot.Input, plan *snapshot.Plan) []*Plan {
	scope := virtualmesh.ScopeOf(in.Management)
	records := l.records.Next(in, &scope)
	l.check(records, &scope)
	if len(records) == 0 {
		return nil
	}
	w := worldOf(in, plan)
	out := make([]*Plan, 0, len(records))
	for _, c := range l.checked {
		if snapshot.Rejected(c.issues) && c.plan != nil {
			out = append(out, c.plan)
			continue
		}
		out = append(out, w.plan(c, plan))
	}
	bound(out)
	for i, c := range l.checked {
		if c.plan != nil && samePlan(c.plan, out[i]) {
			out[i] = c.plan
		}
		c.plan = out[i]
	}
	return out
}

func samePlan(a, b *Plan) bool {
	return a == b || a.Ref == b.Ref && a.Record == b.Record && a.State == b.State && a.Logging == b.Logging &&
		slices.Equal(a.Workloads, b.Workloads) && maps.Equal(a.Missing, b.Missing) && reflect.DeepEqual(a.Issues, b.Issues)
}

// check finds out what is wrong with each record by itself.
func (l *Planner) check(records []*observabilityv1.AccessLogRecord, scope *virtualmesh.Scope) {
	sameScope := l.scope.Equal(scope)
	if sameScope && snapshot.SameSlice(l.last, records) {
		return
	}
	before := make(map[snapshot.Ref]*checked, len(l.checked))
	for _, c := range l.checked {
		before[c.ref] = c
	}
	l.last, l.scope, l.checked = records, *scope, make([]*checked, 0, len(records))
	for _, o := range records {
		ref := snapshot.RefOf(snapshot.AccessLogRecord, o)
		local, was := l.records.Issues(ref), before[ref]
		if was != nil && sameScope && was.record == o && snapshot.SameSlice(was.local, local) {
			l.checked = append(l.checked, was)
			continue
		}
		now := &checked{ref: ref, record: o, local: local, issues: slices.Concat(scope.Issues(ref), local)}
		for _, issue := range Check(&o.Spec) {
			now.issues = append(now.issues, issue.On(ref, snapshot.Ref{}))
		}
		l.checked = append(l.checked, now)
	}
}

// world is what the verdicts follow from.
type world struct {
	in *snapshot.Input
	// doors are how KubernetesClusters want numbers to come in, and relayed are the clusters that are reached through their agents, by name.
	doors   map[string]multiclusterv1alpha1.TelemetryDoor
	relayed map[string]bool
	logs    map[snapshot.Ref]bool
	meshes  map[commonv1.ObjectRef]*snapshot.MeshPlan
	// inNamespace are the workloads of each namespace; nil until somebody asks.
	inNamespace map[inventory.Namespace][]*discoveryv1.Workload
}

func worldOf(in *snapshot.Input, plan *snapshot.Plan) *world {
	w := &world{
		in: in, doors: map[string]multiclusterv1alpha1.TelemetryDoor{}, relayed: map[string]bool{},
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
	return w
}

// within are the workloads that a record may be about: those of a registered cluster only those of its namespace there. Its selectors,
// which are bounded, match no others; and nobody looks at all workloads for each of very many records.
func (w *world) within(of snapshot.Ref, plan *snapshot.Plan) []*discoveryv1.Workload {
	if of.Cluster == "" {
		return plan.Workloads
	}
	if w.inNamespace == nil {
		w.inNamespace = map[inventory.Namespace][]*discoveryv1.Workload{}
		for _, o := range plan.Workloads {
			if k := o.Spec.Kubernetes; k != nil {
				at := inventory.NamespaceOf(k)
				w.inNamespace[at] = append(w.inNamespace[at], o)
			}
		}
	}
	return w.inNamespace[inventory.Namespace{Cluster: of.Cluster, Name: of.Namespace}]
}

func (w *world) plan(c *checked, plan *snapshot.Plan) *Plan {
	o := c.record
	p := &Plan{Ref: c.ref, Record: o, State: commonv1.ApprovalStateInvalid, Issues: slices.Clone(c.issues)}
	if snapshot.Rejected(p.Issues) {
		return p
	}
	// lacks are how many of the workloads send no log, by what is missing, and hints what to do about it.
	lacks, hints := map[string]int{}, map[string]string{}
	for _, workload := range w.within(p.Ref, plan) {
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

// reaches reports whether the agent of a cluster has to know of a record: one of a registered cluster is for no other.
func reaches(p *Plan, cluster string) bool {
	if p.State == commonv1.ApprovalStateInvalid || p.Ref.Cluster != "" && p.Ref.Cluster != cluster {
		return false
	}
	selectors := p.Record.Spec.WorkloadSelectors
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(s commonv1.WorkloadSelector) bool {
		return s.KubeWorkloadMatcher == nil || inventory.Includes(s.KubeWorkloadMatcher.Clusters, cluster)
	})
}

// ForCluster is a record as the agent of a cluster needs it: without selectors of other clusters. It is nil if the record selects nothing there.
func ForCluster(p *Plan, cluster string) *observabilityv1.AccessLogRecordSpec {
	if !reaches(p, cluster) {
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
	return out
}

// Selects reports whether a record of ForCluster selects a pod, by its namespace and labels.
func (r *Record) Selects(namespace string, labels map[string]string) bool {
	return len(r.Spec.WorkloadSelectors) == 0 || slices.ContainsFunc(r.Spec.WorkloadSelectors, func(s commonv1.WorkloadSelector) bool {
		m := s.KubeWorkloadMatcher
		return m == nil || inventory.Includes(m.Namespaces, namespace) && inventory.MatchLabels(m.Labels, labels)
	})
}
