package istio

import (
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/render"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// priorityLabel, followed by a number, is on endpoints of that priority; those of the
// first priority have none. Istio prefers endpoints that share more labels of a list
// with the caller, and a label that both lack counts as shared (DestinationRule,
// localityLbSetting.failoverPriority).
const priorityLabel = "priority.networking.mesh.gloo.solo.io/"

// VirtualDestination renders the objects that make a VirtualDestination known in the
// meshes that see it, and at the gateways in between.
func (Renderer) VirtualDestination(plan *snapshot.VirtualDestinationPlan, namespace string) []*snapshot.Object {
	v := &virtualBuilder{plan: plan, namespace: namespace, done: map[snapshot.Ref]bool{}}
	for _, view := range plan.Views {
		if view.Mesh.Dialect == dialect && len(view.Priorities) > 0 {
			v.views = append(v.views, view)
			v.callers(view)
		}
	}
	v.homes()
	meshes := make([]*snapshot.MeshPlan, 0, len(v.views))
	for _, view := range v.views {
		meshes = append(meshes, view.Mesh)
	}
	newExporter(nil, meshes...).export(v.objects)
	slices.SortFunc(v.objects, func(a, b *snapshot.Object) int { return a.Ref.Compare(b.Ref) })
	return v.objects
}

// virtualBuilder collects the objects of one VirtualDestination.
type virtualBuilder struct {
	plan      *snapshot.VirtualDestinationPlan
	namespace string
	objects   []*snapshot.Object
	// views are those from meshes of Istio that can call it.
	views []*snapshot.VirtualView
	// done are the objects made: revisions of one control plane share them.
	done map[snapshot.Ref]bool
}

func (v *virtualBuilder) add(kind snapshot.Kind, mesh *snapshot.MeshPlan, name string, spec any, needs, provides []snapshot.Name, policies ...snapshot.Ref) {
	ref := snapshot.Ref{Kind: kind, Cluster: mesh.Cluster, Namespace: v.plan.Home(mesh), Name: name}
	if v.done[ref] {
		return
	}
	v.done[ref] = true
	parents := append([]snapshot.Ref{v.plan.Ref}, policies...)
	slices.SortFunc(parents, snapshot.Ref.Compare)
	parents = slices.Compact(parents)
	v.objects = append(v.objects, &snapshot.Object{Ref: ref, Content: related(render.NewContent(v.namespace, spec, parents, parents), needs, provides)})
}

// callers makes the host name known to the callers in a mesh.
func (v *virtualBuilder) callers(view *snapshot.VirtualView) {
	entry := v.entry(v.plan.Hostname)
	entry.Addresses = []string{v.plan.Address}
	entry.Endpoints = v.endpoints(view.Priorities)
	entry.Resolution = resolution(entry.Endpoints)
	if view.WithoutIdentity() == nil {
		entry.SubjectAltNames = v.plan.Answers() // see remoteContent
	}
	if v.plan.OfNamespace() {
		entry.ExportTo = []string{v.plan.Ref.Namespace}
	}
	passages, connections := v.passages(view), v.connections()
	needs := slices.Clone(passages)
	if view.PassedAs != "" {
		needs = append(needs, connections)
	}
	v.add(snapshot.ServiceEntry, view.Mesh, v.plan.Hostname, entry, needs, v.routable(hostNames(entry)))

	policy := v.trafficPolicy(len(view.Priorities))
	subsets := subsetsOf(v.plan.Subsets)
	origins := v.origins()
	if k := view.KeepAlive; k != nil {
		policy.ConnectionPool = connectionPool(k)
		origins = append(origins, k.Origin.Ref)
	}
	rule := &networking.DestinationRule{Host: v.plan.Hostname, TrafficPolicy: policy, Subsets: subsets, ExportTo: entry.ExportTo}
	provides := v.routable(subsetNames(rule))
	switch {
	case view.PassedAs != "":
		// A proxy has one SNI for all endpoints of a host.
		policy.Tls = v.passed(view.PassedAs, "")
		provides = append(provides, connections)
		for _, s := range subsets {
			s.TrafficPolicy = &networking.TrafficPolicy{Tls: v.passed(view.PassedAs, s.Name)}
		}
	case view.TLS != nil:
		policy.Tls = &networking.ClientTLSSettings{Mode: tlsMode(view.TLS.Value)}
	}
	if view.TLS != nil {
		origins = append(origins, view.TLS.Origin.Ref)
	}
	v.add(snapshot.DestinationRule, view.Mesh, v.plan.Hostname, rule, passages, provides, origins...)
}

// passages are what the gateways through which callers of a mesh connect have to pass on.
func (v *virtualBuilder) passages(view *snapshot.VirtualView) []snapshot.Name {
	var out []snapshot.Name
	done := map[string]bool{}
	for _, p := range view.Priorities {
		for _, t := range p.Targets {
			cluster := t.Backing.Mesh.Cluster
			if len(t.Through) == 0 || done[cluster] {
				continue
			}
			done[cluster] = true
			names := append(reach(view.PassedAs, snapshot.PlaceVirtual, ""), passageTo(view.PassedAs))
			for _, s := range v.plan.Subsets {
				names = append(names, snapshot.Name{Name: subsetName(view.PassedAs, s.Name)})
			}
			out = append(out, inCluster(cluster, names)...)
		}
	}
	return out
}

// connections names how proxies of a cluster connect to the VirtualDestination: those of its namespace, if it is of one. Others may have
// a host of that name, too.
func (v *virtualBuilder) connections() snapshot.Name {
	if v.plan.OfNamespace() {
		return connectionsTo(v.plan.Hostname + " from " + v.plan.Ref.Namespace)
	}
	return connectionsTo(v.plan.Hostname)
}

// routable are those of the names that routes may need: no route leads to the VirtualDestination of a namespace.
func (v *virtualBuilder) routable(names []snapshot.Name) []snapshot.Name {
	if v.plan.OfNamespace() {
		return nil
	}
	return names
}

// entry is a ServiceEntry without endpoints.
func (v *virtualBuilder) entry(host string) *networking.ServiceEntry {
	return &networking.ServiceEntry{
		Hosts: []string{host}, Location: networking.ServiceEntry_MESH_INTERNAL,
		Ports: []*networking.ServicePort{{Number: v.plan.Port, Name: v.portName(), Protocol: v.plan.Protocol}},
	}
}

func (v *virtualBuilder) portName() string { return strings.ToLower(v.plan.Protocol) }

// passed sets mutual TLS with the SNI that gateways expect: the name of a cluster from
// the entry in the service's own mesh.
func (v *virtualBuilder) passed(host, subset string) *networking.ClientTLSSettings {
	return &networking.ClientTLSSettings{
		Mode: networking.ClientTLSSettings_ISTIO_MUTUAL,
		Sni:  "outbound_." + strconv.FormatUint(uint64(v.plan.Port), 10) + "_." + subset + "_." + host,
	}
}

// trafficPolicy has the settings that failover needs, for callers or for a gateway.
func (v *virtualBuilder) trafficPolicy(priorities int) *networking.TrafficPolicy {
	out := &networking.TrafficPolicy{OutlierDetection: outliers(v.plan.Outlier.Value)}
	if priorities < 2 {
		return out
	}
	locality := &networking.LocalityLoadBalancerSetting{Enabled: wrapperspb.Bool(true)}
	for p := priorities - 1; p > 0; p-- {
		locality.FailoverPriority = append(locality.FailoverPriority, priorityLabel+strconv.Itoa(p))
	}
	out.LoadBalancer = &networking.LoadBalancerSettings{LocalityLbSetting: locality}
	return out
}

// outliers counts errors from a proxy in between like errors of the service. Where all
// endpoints of all clusters are excluded, all are used: a single gateway with many pods
// behind it would otherwise be out of use for long, after a few errors.
func outliers(o networkingv1.OutlierDetection) *networking.OutlierDetection {
	return &networking.OutlierDetection{
		ConsecutiveGatewayErrors: wrapperspb.UInt32(o.ConsecutiveErrors),
		Consecutive_5XxErrors:    wrapperspb.UInt32(o.ConsecutiveErrors),
		Interval:                 durationpb.New(o.Interval.Duration),
		BaseEjectionTime:         durationpb.New(o.BaseEjectionTime.Duration),
		MaxEjectionPercent:       int32(o.MaxEjectionPercent),
		MinHealthPercent:         1,
	}
}

// origins are the policies that configure connections.
func (v *virtualBuilder) origins() []snapshot.Ref {
	out := []snapshot.Ref{v.plan.Outlier.Origin.Ref}
	for _, p := range v.plan.RequiredSubsets {
		out = append(out, snapshot.RefOf(snapshot.TrafficPolicy, p.Policy))
	}
	return out
}
