package policy

import (
	"slices"
	"strconv"

	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// checkDirectives warns of directives that do not have the effect that they seem to
// have.
func (v *virtualDestination) checkDirectives(directives []enterprisev1beta1.FailoverDirective) {
	const fields = "localized.failoverDirectives"
	from := func(region string) bool {
		return slices.ContainsFunc(v.meshes, func(m *snapshot.MeshPlan) bool { return regionOf(m) == region })
	}
	to := func(region string) bool {
		return slices.ContainsFunc(v.backing, func(t *snapshot.BackingPlan) bool { return t.Region == region })
	}
	place := func(field string, l *enterprisev1beta1.Locality, known func(string) bool, nobody string) {
		switch {
		case l == nil || l.Region == "":
			v.addIssue(snapshot.Ref{}, snapshot.Errorf(snapshot.FieldInvalid, "set its region", "%s names no region", field).At(field))
			return
		case !known(l.Region):
			v.addIssue(snapshot.Ref{}, snapshot.Warnf(snapshot.SelectsNothing,
				"correct the region; it is the label topology.kubernetes.io/region of nodes", "%s: "+nobody+" in region %s", field, l.Region).At(field))
		}
		if l.Zone != "" || l.SubZone != "" {
			v.addIssue(snapshot.Ref{}, snapshot.Warnf(snapshot.FieldUnsupported, "name regions only", "%s: zone and subZone have no effect", field).At(field))
		}
	}
	for i := range directives {
		field := fields + "[" + strconv.Itoa(i) + "]"
		place(field+".from", directives[i].From, from, "it is exported to no mesh")
		if len(directives[i].To) == 0 {
			v.addIssue(snapshot.Ref{}, snapshot.Warnf(snapshot.SelectsNothing, "name the regions that take over, or remove it", "%s has no effect without to", field).At(field))
		}
		for j := range directives[i].To {
			place(field+".to["+strconv.Itoa(j)+"]", &directives[i].To[j], to, "no service behind it is")
		}
	}
}

// directives are the failoverDirectives; nil if it is not localized.
func (v *virtualDestination) directives() []enterprisev1beta1.FailoverDirective {
	if v.source.Spec.Localized == nil {
		return nil
	}
	return v.source.Spec.Localized.FailoverDirectives
}

// rank is a position in the failover order.
type rank struct {
	reason, field string
}

// ranks lists the possible positions, best first, and a function that gives the
// position of a backing service. Equally good services have the same position.
func (v *virtualDestination) ranks(viewer *snapshot.MeshPlan) ([]rank, func(*snapshot.BackingPlan) int) {
	if v.source.Spec.Static != nil {
		ranks := make([]rank, len(v.backing))
		for i, t := range v.backing {
			ranks[i] = rank{"place in the list", t.Origin.Field}
		}
		return ranks, func(t *snapshot.BackingPlan) int { return slices.Index(v.backing, t) }
	}
	ranks := []rank{{"own cluster", "localized"}, {"same region", "localized"}}
	home := regionOf(viewer)
	var regions []string
	for i, d := range v.directives() {
		if d.From == nil || d.From.Region == "" || d.From.Region != home {
			continue
		}
		for j, to := range d.To {
			if to.Region == "" || slices.Contains(regions, to.Region) {
				continue
			}
			regions = append(regions, to.Region)
			ranks = append(ranks, rank{"region " + to.Region, "localized.failoverDirectives[" + strconv.Itoa(i) + "].to[" + strconv.Itoa(j) + "]"})
		}
	}
	ranks = append(ranks, rank{"any other place", "localized"})
	return ranks, func(t *snapshot.BackingPlan) int {
		switch at := slices.Index(regions, t.Region); {
		case clusterOf(t) == viewer.Cluster:
			return 0
		case home != "" && t.Region == home:
			return 1
		case at >= 0:
			return 2 + at
		}
		return len(ranks) - 1
	}
}

func clusterOf(t *snapshot.BackingPlan) string { return t.Destination.Spec.KubeService.Ref.ClusterName }

// setPriorities sets the failover order among the services that a mesh can reach.
func (v *virtualDestination) setPriorities(view *snapshot.VirtualView) {
	ranks, rankOf := v.ranks(view.Mesh)
	groups := make([]snapshot.Priority, len(ranks))
	for _, t := range v.backing {
		through, problem := path(view.Mesh, t)
		if problem != nil {
			view.Issues = append(view.Issues, (*problem).On(v.ref, view.Mesh.Ref))
			continue
		}
		at := rankOf(t)
		groups[at].Targets = append(groups[at].Targets, snapshot.VirtualTarget{Backing: t, Through: through})
	}
	for i, g := range groups {
		if len(g.Targets) == 0 {
			continue
		}
		g.Reason, g.Origin = ranks[i].reason, snapshot.Origin{Ref: v.ref, Field: ranks[i].field}
		view.Priorities = append(view.Priorities, g)
	}
	v.joinByGateway(view)
	v.limitPriorities(view)
	if l := v.source.Spec.Localized; l != nil && len(l.FailoverDirectives) > 0 && regionOf(view.Mesh) == "" {
		view.Issues = append(view.Issues, snapshot.Warnf(snapshot.FailoverIncomplete,
			"label the nodes with topology.kubernetes.io/region", "the region of mesh %s is unknown, so no directive applies to it", view.Mesh.Ref.Name).At("localized.failoverDirectives").On(v.ref, view.Mesh.Ref))
	}
}

// joinByGateway joins services of one cluster that are behind its gateways. To a
// caller they are one endpoint; the gateway has the order among them.
func (v *virtualDestination) joinByGateway(view *snapshot.VirtualView) {
	first := map[string]int{}
	var out []snapshot.Priority
	for _, p := range view.Priorities {
		var own []snapshot.VirtualTarget
		for _, t := range p.Targets {
			cluster := clusterOf(t.Backing)
			at, seen := first[cluster]
			if !seen || len(t.Through) == 0 {
				first[cluster] = len(out)
				own = append(own, t)
				continue
			}
			before := out[at].Targets[0].Backing.Destination.Spec.KubeService.Ref
			out[at].Targets = append(out[at].Targets, t)
			view.Issues = append(view.Issues, snapshot.Warnf(snapshot.FailoverIncomplete,
				"remove one of them, or use a flat network",
				"services %s and %s are behind the same gateways, which fail over to the second when connections to the first fail, but not when it returns errors",
				inventory.ServiceName(before), inventory.ServiceName(t.Backing.Destination.Spec.KubeService.Ref)).On(v.ref, view.Mesh.Ref))
		}
		if len(own) > 0 {
			p.Targets = own
			out = append(out, p)
		}
	}
	view.Priorities = out
}

// limitPriorities moves what exceeds the number of priorities of proxies into the
// last one.
func (v *virtualDestination) limitPriorities(view *snapshot.VirtualView) {
	if len(view.Priorities) <= snapshot.MaxPriorities {
		return
	}
	last := &view.Priorities[snapshot.MaxPriorities-1]
	for _, p := range view.Priorities[snapshot.MaxPriorities:] {
		last.Targets = append(last.Targets, p.Targets...)
	}
	view.Priorities = view.Priorities[:snapshot.MaxPriorities]
	view.Issues = append(view.Issues, snapshot.Warnf(snapshot.FailoverIncomplete, "list fewer services",
		"proxies support %d priorities; the remaining services share the last one", snapshot.MaxPriorities).On(v.ref, view.Mesh.Ref))
}

// path says how callers in a mesh reach a backing service: through gateways, directly
// if there are none, or not at all.
func path(viewer *snapshot.MeshPlan, t *snapshot.BackingPlan) ([]snapshot.GatewayPlan, *snapshot.Issue) {
	service := inventory.ServiceName(t.Destination.Spec.KubeService.Ref)
	not := func(code snapshot.Code, hint, format string, args ...any) ([]snapshot.GatewayPlan, *snapshot.Issue) {
		args = append([]any{viewer.Ref.Name, service}, args...)
		issue := snapshot.Errorf(code, hint+"; until then its callers do not use that service", "mesh %s cannot reach service %s: "+format, args...)
		return nil, &issue
	}
	switch {
	case t.Mesh.Dialect != viewer.Dialect:
		return not(snapshot.FieldUnsupported, "use a service whose mesh is "+viewer.Dialect.Name, "mesh %s is %s", t.Mesh.Ref.Name, t.Mesh.Dialect.Name)
	case t.Mesh.Cluster == viewer.Cluster:
		return nil, nil
	case viewer.VirtualMesh == nil || viewer.VirtualMesh != t.Mesh.VirtualMesh:
		return not(snapshot.NotFederated, "join both meshes in one VirtualMesh", "mesh %s is not in the same VirtualMesh", t.Mesh.Ref.Name)
	}
	f := viewer.VirtualMesh.Spec.Federation
	switch {
	case f == nil:
		return not(snapshot.NotFederated, "add `federation: {}` to the VirtualMesh, so that the gateways are found, or set federation.flatNetwork",
			"VirtualMesh %s has no federation", viewer.VirtualMesh.Name)
	case viewer.Limited:
		return not(snapshot.FieldUnsupported, "use mtlsConfig.shared in the VirtualMesh, or a TrafficPolicy with a trafficShift to the service",
			"with limited trust, gateways know services of other members by their own names only")
	case f.FlatNetwork:
		return nil, nil
	case len(t.Mesh.Gateways) == 0 && len(t.Mesh.Served) > 0:
		return not(snapshot.GatewayNotReady, "make its gateway serve again: `meshctl describe mesh "+t.Mesh.Ref.Name+"` says what is wrong with it",
			"no gateway of cluster %s serves at present", t.Mesh.Cluster)
	case len(t.Mesh.Gateways) == 0:
		return not(snapshot.GatewayMissing, "`meshctl describe virtualmesh "+viewer.VirtualMesh.Name+"` shows what a gateway needs",
			"mesh %s has no gateway that other clusters can reach", t.Mesh.Ref.Name)
	}
	return t.Mesh.Gateways, nil
}
