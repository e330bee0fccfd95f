package policy

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// externals are the Destinations that users wrote: services outside all clusters.
// Equal ones stay the same objects as before.
func externals(before, stored []*discoveryv1.Destination) []*discoveryv1.Destination {
	var out []*discoveryv1.Destination
	for _, d := range stored {
		if d.Spec.ExternalService != nil && d.Labels[snapshot.DiscoveryOwnerLabel] == "" {
			out = append(out, d)
		}
	}
	out = reuseUnchanged(before, nil, out, func(a, b *discoveryv1.Destination) bool {
		return a == b || reflect.DeepEqual(a.Spec.ExternalService, b.Spec.ExternalService)
	})
	if slices.Equal(before, out) {
		return before
	}
	return out
}

// externalServices are services outside all clusters.
type externalServices []*discoveryv1.Destination

// find finds the Destination of an external service; nil if there is none.
func (all externalServices) find(ref commonv1.ObjectRef) *discoveryv1.Destination {
	for _, d := range all {
		if d.Name == ref.Name && d.Namespace == ref.Namespace {
			return d
		}
	}
	return nil
}

// externalNotFound is the issue for an external service that does not exist.
func externalNotFound(field string, ref commonv1.ObjectRef) []snapshot.Issue {
	return []snapshot.Issue{snapshot.Errorf(snapshot.DestinationNotFound,
		"create a Destination with spec.externalService, in the namespace of the management plane, or correct the reference",
		"%s: there is no external service %s.%s", field, ref.Name, ref.Namespace).At(field)}
}

// resolveExternal finds an external service and its port for requests. A reference
// has no port, so the service must have exactly one.
func (c *fieldContext) resolveExternal(field string, to commonv1.ObjectRef) (snapshot.Target, []snapshot.Issue) {
	d := c.env.externals.find(to)
	if d == nil {
		return snapshot.Target{}, externalNotFound(field, to)
	}
	e := d.Spec.ExternalService
	target := snapshot.Target{Destination: inventory.DestinationRef(d), Place: snapshot.PlaceOutside}
	if issues := c.env.externals.check(field, d); len(issues) > 0 {
		return target, issues
	}
	target.Host = e.Hosts[0]
	var ports []uint32
	for _, p := range e.Ports {
		if slices.Contains(requestProtocols, strings.ToUpper(p.Protocol)) {
			ports = append(ports, p.Number)
		}
	}
	if len(ports) != 1 {
		return target, []snapshot.Issue{snapshot.Errorf(snapshot.FieldInvalid,
			"keep one port of protocol HTTP, HTTP2 or GRPC in its spec.externalService.ports, and move the others to another Destination",
			"%s: external service %s.%s has %d ports for requests, and the reference cannot choose one", field, to.Name, to.Namespace, len(ports)).At(field)}
	}
	target.Port = ports[0]
	return target, nil
}

// requestProtocols are the protocols in which a proxy can forward a request. It does
// not originate TLS, so HTTPS is not one of them.
var requestProtocols = []string{"HTTP", "HTTP2", "GRPC"}

// check checks the fields of an external service.
func (all externalServices) check(field string, d *discoveryv1.Destination) []snapshot.Issue {
	e := d.Spec.ExternalService
	var issues []snapshot.Issue
	wrong := func(hint, format string, args ...any) {
		issues = append(issues, snapshot.Errorf(snapshot.FieldInvalid, "in Destination "+d.Name+"."+d.Namespace+" "+hint, field+": "+format, args...).At(field).CausedBy(inventory.DestinationRef(d)))
	}
	if len(e.Hosts) == 0 {
		wrong("set spec.externalService.hosts", "the external service has no host")
	}
	for _, host := range e.Hosts {
		switch other := all.hostTaken(d, host); {
		case len(validation.IsDNS1123Subdomain(host)) > 0:
			wrong("correct spec.externalService.hosts", "host %q of the external service is not a DNS name", host)
		case strings.Contains(host+".", ".svc."):
			wrong("correct spec.externalService.hosts", "host %s of the external service is a name for services in clusters", host)
		case other != "":
			wrong("change spec.externalService.hosts", "external service %[2]s has host %[1]s, too", host, other)
		}
	}
	names, numbers := map[string]bool{}, map[uint32]bool{}
	for _, p := range e.Ports {
		if p.Number == 0 || p.Name == "" || names[p.Name] || numbers[p.Number] {
			wrong("give each port in spec.externalService.ports its own number and name", "port %d of the external service has no name or number, or that of another port", p.Number)
		}
		names[p.Name], numbers[p.Number] = true, true
	}
	for _, address := range e.Addresses {
		_, err := netip.ParseAddr(address)
		if _, wide := netip.ParsePrefix(address); err != nil && wide != nil {
			wrong("correct spec.externalService.addresses", "address %q of the external service is neither an IP address nor a CIDR", address)
		}
	}
	for _, p := range e.Endpoints {
		if _, err := netip.ParseAddr(p.Address); err != nil && len(validation.IsDNS1123Subdomain(p.Address)) > 0 {
			wrong("correct spec.externalService.endpoints", "endpoint %q of the external service is neither an IP address nor a DNS name", p.Address)
		}
		for _, name := range slices.Sorted(maps.Keys(p.Ports)) {
			if !names[name] {
				wrong("correct spec.externalService.endpoints", "endpoint %s of the external service has port %q, which the service does not have", p.Address, name)
			}
		}
	}
	return issues
}

// hostTaken names the older external service with the same host; empty if there is
// none.
func (all externalServices) hostTaken(d *discoveryv1.Destination, host string) string {
	for _, o := range all {
		if o != d && inventory.CompareAge(o, d) < 0 && slices.Contains(o.Spec.ExternalService.Hosts, host) {
			return o.Name + "." + o.Namespace
		}
	}
	return ""
}

// planExternals lists the external services that routes use, with the meshes that use
// them.
func (r assembler) planExternals() []*snapshot.ExternalPlan {
	found := map[snapshot.Ref]*snapshot.ExternalPlan{}
	for i := range r.extended {
		for _, v := range r.states[i].plan.Views {
			for _, route := range v.Routes {
				if route.Action.Targets != nil {
					r.addExternals(found, v.Mesh, route.Action.Targets)
				}
			}
		}
	}
	out := make([]*snapshot.ExternalPlan, 0, len(found))
	for _, now := range found {
		now.Policies = firstRefs(now.Policies)
		slices.SortFunc(now.Meshes, func(a, b *snapshot.MeshPlan) int { return a.Ref.Compare(b.Ref) })
		now.Meshes = slices.Compact(now.Meshes)
		if r.plan != nil {
			for _, was := range r.plan.Externals {
				if was.Destination == now.Destination && slices.Equal(was.Meshes, now.Meshes) && slices.Equal(was.Policies, now.Policies) {
					now = was
					break
				}
			}
		}
		out = append(out, now)
	}
	slices.SortFunc(out, func(a, b *snapshot.ExternalPlan) int { return a.Ref.Compare(b.Ref) })
	return out
}

func (r assembler) addExternals(found map[snapshot.Ref]*snapshot.ExternalPlan, mesh *snapshot.MeshPlan, targets *snapshot.WithOrigin[[]snapshot.Target]) {
	for _, t := range targets.Value {
		d := r.env.externals.find(commonv1.ObjectRef{Name: t.Destination.Name, Namespace: t.Destination.Namespace})
		if t.Place != snapshot.PlaceOutside || d == nil {
			continue
		}
		plan := found[t.Destination]
		if plan == nil {
			plan = &snapshot.ExternalPlan{Ref: t.Destination, Destination: d}
			found[t.Destination] = plan
		}
		plan.Meshes = append(plan.Meshes, mesh)
		plan.Policies = append(plan.Policies, targets.Origin.Ref)
	}
}

// firstRefs sorts references, removes duplicates, and limits their number.
func firstRefs(refs []snapshot.Ref) []snapshot.Ref {
	slices.SortFunc(refs, snapshot.Ref.Compare)
	refs = slices.Compact(refs)
	return refs[:min(len(refs), inventory.MaxListed)]
}
