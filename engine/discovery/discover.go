package discovery

import (
	"slices"
	"strings"

	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options of a discovery.
type Options struct {
	// Namespace is the management namespace: where discovered objects live
	// and the value of their owner label. snapshot.DefaultNamespace if empty.
	Namespace string
	// Detectors are the kinds of mesh to look for.
	Detectors Detectors
	// Stored are the discovered objects as stored: what is in doubt stays as it was. May be
	// nil.
	Stored *snapshot.Management
	// Installed are the namespaces of the cluster in which everything that looks like a
	// control plane is one.
	Installed []string
	// Gone are the names of stored Meshes whose control plane is gone for good.
	Gone []string
	// Names are those of the stored objects: what is stored keeps its place when there is
	// too much. May be nil.
	Names *StoredNames
	// Limits are those on each namespace; the zero value has the defaults.
	Limits settingsv1.DiscoveryLimits
}

func (o Options) namespace() string {
	if o.Namespace == "" {
		return snapshot.DefaultNamespace
	}
	return o.Namespace
}

// Discover lists what a cluster's objects show of meshes. It reads c and opts
// only; the result shares label maps with c, so both must stay unchanged. It ignores
// c.Sync: the caller decides whether c is complete. Names are unique within the
// cluster; those that objects really have are the business of Distinct.
func Discover(c *snapshot.Cluster, opts Options) *snapshot.Discovered {
	x := newIndex(c, opts)
	kinds := make([]*detected, 0, len(opts.Detectors))
	for _, d := range opts.Detectors {
		planes := d.ControlPlanes(x)
		planes = append(planes, x.keptControlPlanes(&d, planes, opts.Gone)...)
		kinds = append(kinds, newDetected(d, planes))
	}
	workloads := x.findWorkloads(kinds)
	destinations := x.findDestinations(kinds, workloads)
	reportIgnored(x, kinds)

	out := &snapshot.Discovered{Cluster: c.Name, Issues: x.issues, Destinations: destinations, Clashes: x.clashes, Aliases: aliases(x.services),
		UsedWorkloads: x.lastMesh != nil, UsedDestinations: x.usedDestinations, UsedNames: x.usedNames, Absent: x.absent}
	for _, k := range kinds {
		for _, p := range k.controlPlanes {
			out.Meshes = append(out.Meshes, p.Mesh)
		}
	}
	out.Debounce = slowest(kinds)
	for _, wl := range workloads {
		if !wl.leftOut {
			out.Workloads = append(out.Workloads, wl.object)
		}
	}
	slices.SortFunc(out.Meshes, byName)
	slices.SortFunc(out.Workloads, byName)
	slices.SortFunc(out.Destinations, byName)
	slices.SortFunc(out.Issues, snapshot.Issue.Compare)
	return out
}

// slowest is how long the slowest control plane collects changes; nil if as usual.
func slowest(kinds []*detected) *snapshot.Debounce {
	var out *snapshot.Debounce
	for _, k := range kinds {
		for _, p := range k.controlPlanes {
			one := p.Debounce.OrUsual()
			if out == nil {
				out = &one
			}
			out.After, out.Most = max(out.After, one.After), max(out.Most, one.Most)
		}
	}
	if out.OrUsual() == snapshot.UsualDebounce {
		return nil
	}
	return out
}

type named interface{ GetName() string }

func byName[T named](a, b T) int { return strings.Compare(a.GetName(), b.GetName()) }
