package virtualmesh

import (
	"cmp"
	"fmt"

	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Defaults of the limits in Settings: the largest that Kubernetes supports, for endpoints
// ten times the 3,000 pods of a namespace, which may be behind several services each. See
// https://github.com/kubernetes/community/blob/master/sig-scalability/configs-and-limits/thresholds.md.
const (
	defaultServicesPerNamespace  = 5_000
	defaultServicesPerCluster    = 10_000
	defaultEndpointsPerNamespace = 30_000
)

// A limit is one of those on what is federated.
type limit uint8

const (
	servicesPerNamespace limit = iota + 1
	endpointsPerNamespace
	servicesPerCluster
)

// field is the path of a limit below spec of Settings.
func (l limit) field() string {
	return "federation.limits." + [...]string{
		servicesPerNamespace: "servicesPerNamespace", endpointsPerNamespace: "endpointsPerNamespace", servicesPerCluster: "servicesPerCluster",
	}[l]
}

// limits are the values that are in force, and asked those in the Settings, 0 for the
// default.
type limits struct {
	values, asked map[limit]int
	settings      *settingsv1.Settings
}

// limitsOf are those of Settings, which may be nil.
func limitsOf(s *settingsv1.Settings) limits {
	asked := &settingsv1.FederationLimits{}
	if s != nil && s.Spec.Federation != nil && s.Spec.Federation.Limits != nil {
		asked = s.Spec.Federation.Limits
	}
	out := limits{settings: s, values: map[limit]int{}, asked: map[limit]int{
		servicesPerNamespace:  int(asked.ServicesPerNamespace),
		endpointsPerNamespace: int(asked.EndpointsPerNamespace),
		servicesPerCluster:    int(asked.ServicesPerCluster),
	}}
	for l, byDefault := range map[limit]int{
		servicesPerNamespace: defaultServicesPerNamespace, endpointsPerNamespace: defaultEndpointsPerNamespace, servicesPerCluster: defaultServicesPerCluster,
	} {
		out.values[l] = cmp.Or(out.asked[l], byDefault)
	}
	return out
}

// text says what a limit is, and where it is set.
func (l limits) text(of limit) string {
	from := "the default of " + of.field() + " of Settings"
	if l.asked[of] != 0 {
		from = of.field() + " of Settings " + l.settings.Name + "." + l.settings.Namespace
	}
	return fmt.Sprintf("the limit is %d, %s", l.values[of], from)
}

// cause are the Settings that set a limit; zero if none do.
func (l limits) cause(of limit) snapshot.Ref {
	if l.asked[of] == 0 {
		return snapshot.Ref{}
	}
	return snapshot.RefOf(snapshot.Settings, l.settings)
}

// DiscoveryLimits are those of Settings, which may be nil; 0 for the default.
func DiscoveryLimits(s *settingsv1.Settings) settingsv1.DiscoveryLimits {
	if s == nil || s.Spec.Discovery == nil || s.Spec.Discovery.Limits == nil {
		return settingsv1.DiscoveryLimits{}
	}
	return *s.Spec.Discovery.Limits
}
