package snapshot

import (
	"time"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
)

// Discovered is what discovery finds in one cluster: the objects to write on the
// management plane, without status, each list ascending by name. A Destination was created
// when its Service was.
type Discovered struct {
	Cluster      string
	Meshes       []*discoveryv1.Mesh
	Workloads    []*discoveryv1.Workload
	Destinations []*discoveryv1.Destination
	// Clashes are the objects whose parts join to a name that another object of the
	// cluster has: that name, by what they are called instead. Nil if there are none.
	Clashes map[Ref]string
	Issues  []Issue
	// Aliases are the Services that only stand for other names, ascending by namespace and name.
	Aliases []Alias
	// UsedWorkloads and UsedDestinations: a doubt was settled by what is stored of the
	// cluster.
	UsedWorkloads, UsedDestinations bool
	// Absent are the names of Meshes that are stored, and whose control plane is not there.
	Absent []string
	// UsedNames: a namespace has too much, of which what is stored keeps its place.
	UsedNames bool
	// Debounce is that of the slowest control plane; nil for UsualDebounce.
	Debounce *Debounce
}

// Alias is a Service of type ExternalName.
type Alias struct {
	Namespace, Name string
	// For is the host name that it stands for.
	For string
}

// Reason says why an Alias is no Destination, and what to do about it.
func (a *Alias) Reason() (what, hint string) {
	return "it is of type ExternalName: it stands for " + a.For + ", and has no pods of its own",
		"name the Service that it stands for; if that is outside of the clusters, write an external Destination"
}

// Debounce is how long a control plane collects changes before it sends them to its
// proxies: until there are none for After, but not longer than Most.
type Debounce struct{ After, Most time.Duration }

// UsualDebounce is that of an Istio control plane that is configured no other way, and
// assumed of all others of which it is not known. See PILOT_DEBOUNCE_AFTER and
// PILOT_DEBOUNCE_MAX in
// https://istio.io/latest/docs/reference/commands/pilot-discovery/#envvars.
var UsualDebounce = Debounce{After: 100 * time.Millisecond, Most: 10 * time.Second}

// OrUsual is d, or UsualDebounce if d is nil.
func (d *Debounce) OrUsual() Debounce {
	if d == nil {
		return UsualDebounce
	}
	return *d
}
