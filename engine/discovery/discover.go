package discovery

import (
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Options are the circumstances of discovery that no cluster tells.
type Options struct {
	// Namespace is the management namespace: where discovered objects live
	// and the value of their owner label. snapshot.DefaultNamespace if empty.
	Namespace string
}

func (o Options) namespace() string {
	if o.Namespace == "" {
		return snapshot.DefaultNamespace
	}
	return o.Namespace
}

// Discover lists what a cluster's objects show of meshes. It reads c and opts
// only; the result shares label maps with c, so both must stay unchanged. It
// does not look at c.Sync: whoever asks decides whether c can be believed.
func Discover(c *snapshot.Cluster, opts Options) *snapshot.Discovered {
	w := newWorld(c, opts)
	kinds := detectors()
	for i := range kinds {
		kinds[i].found = kinds[i].meshes(w)
	}
	workloads := w.findWorkloads(kinds)
	destinations := w.findDestinations(kinds, workloads)

	out := &snapshot.Discovered{Cluster: c.Name, Issues: w.issues, Destinations: destinations}
	for _, k := range kinds {
		for _, m := range k.found {
			out.Meshes = append(out.Meshes, m.object)
		}
	}
	for _, wl := range workloads {
		out.Workloads = append(out.Workloads, wl.object)
	}
	slices.SortFunc(out.Meshes, byName)
	slices.SortFunc(out.Workloads, byName)
	slices.SortFunc(out.Destinations, byName)
	slices.SortFunc(out.Issues, snapshot.Issue.Compare)
	return out
}

// ReadsConfigMap reports whether a ConfigMap of that name may hold a mesh's
// settings, so that a source need not keep all of them.
func ReadsConfigMap(name string) bool {
	for _, d := range detectors() {
		if d.configMap != nil && d.configMap(name) {
			return true
		}
	}
	return false
}

type named interface{ GetName() string }

func byName[T named](a, b T) int { return strings.Compare(a.GetName(), b.GetName()) }
