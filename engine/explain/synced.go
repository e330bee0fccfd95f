package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Syncs are where control planes are asked what proxies have acknowledged. Errors are for people: they say what to do.
type Syncs interface {
	Sync(mesh *snapshot.MeshPlan) ([]snapshot.SyncedProxy, error)
}

// Synced says how many proxies have acknowledged all that their control planes sent them, in the meshes in which something follows from
// an object. It is what the control planes say: what they have not read yet, they have not sent.
type Synced struct {
	// Acknowledged of Proxies that are connected have.
	Acknowledged int `json:"acknowledged"`
	Proxies      int `json:"proxies"`
	// Waiting are the first of the others.
	Waiting []WaitingProxy `json:"waiting,omitempty"`
	// Unknown are the meshes whose control planes could not be asked.
	Unknown []UnknownSync `json:"unknown,omitempty"`
}

// WaitingProxy is a proxy that has not acknowledged all.
type WaitingProxy struct {
	Cluster   string `json:"cluster"`
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// Kinds of configuration that wait, and why the proxy rejected one; empty if it did not.
	Kinds   []string `json:"kinds"`
	Refused string   `json:"refused,omitempty"`
}

// UnknownSync is a mesh whose proxies are not known.
type UnknownSync struct {
	Mesh   snapshot.Ref `json:"mesh"`
	Reason string       `json:"reason"`
}

// SyncedOf asks the control planes of the meshes in which something follows from an object.
func SyncedOf(x *Index, ref snapshot.Ref, syncs Syncs) *Synced {
	out := &Synced{}
	concerned := clustersWith(x, ref)
	for _, m := range x.state.Plan.Meshes {
		if !concerned[m.Cluster] {
			continue
		}
		if m.Dialect.Proxies == nil || m.Dialect.Proxies.Sync == nil {
			out.Unknown = append(out.Unknown, UnknownSync{m.Ref, "control planes of " + m.Dialect.Name + " do not say what proxies have acknowledged"})
			continue
		}
		proxies, err := syncs.Sync(m)
		if err != nil {
			out.Unknown = append(out.Unknown, UnknownSync{m.Ref, err.Error()})
			continue
		}
		for i := range proxies {
			out.add(m.Cluster, &proxies[i])
		}
	}
	return out
}

func (s *Synced) add(cluster string, p *snapshot.SyncedProxy) {
	s.Proxies++
	if len(p.Waits) == 0 {
		s.Acknowledged++
		return
	}
	if len(s.Waiting) < maxOutcomes {
		s.Waiting = append(s.Waiting, WaitingProxy{cluster, clip(p.Namespace), clip(p.Pod), p.Waits, clip(p.Refused)})
	}
}

// Done reports whether all proxies have acknowledged all, as far as every control plane concerned says.
func (s *Synced) Done() bool { return len(s.Unknown) == 0 && s.Acknowledged == s.Proxies }

// Text says how many, and what is with the first of the others: "12 of 13; cluster-1/shop/cart-1 has not acknowledged routes".
func (s *Synced) Text() string {
	var parts []string
	switch {
	case s.Proxies > 0:
		parts = append(parts, fmt.Sprintf("%d of %d", s.Acknowledged, s.Proxies))
	case len(s.Unknown) == 0:
		return "no proxy is connected where something follows from it"
	}
	if len(s.Waiting) > 0 {
		w := &s.Waiting[0]
		text := fmt.Sprintf("%s/%s/%s has not acknowledged %s", w.Cluster, w.Namespace, w.Pod, strings.Join(w.Kinds, ", "))
		if w.Refused != "" {
			text = fmt.Sprintf("%s/%s/%s rejects %s: %s", w.Cluster, w.Namespace, w.Pod, strings.Join(w.Kinds, ", "), w.Refused)
		}
		parts = append(parts, text)
	}
	for _, u := range s.Unknown {
		parts = append(parts, "mesh "+u.Mesh.Name+" not known: "+u.Reason)
	}
	return strings.Join(parts, "; ")
}

// AskSyncs adds to a description what SyncedOf says; it reports whether descriptions of the kind have that.
func AskSyncs(x *Index, d Description, syncs Syncs) bool {
	switch d := d.(type) {
	case *Policy:
		d.InProxies = SyncedOf(x, d.Ref, syncs)
	case *Destination:
		d.InProxies = SyncedOf(x, d.Ref, syncs)
	default:
		return false
	}
	return true
}

// clustersWith are the clusters in which something is generated from an object, or for it.
func clustersWith(x *Index, ref snapshot.Ref) map[string]bool {
	out := map[string]bool{}
	for part := range x.state.Output.Parts.All() {
		own := slices.ContainsFunc(part.Objects, func(o *snapshot.Object) bool { return o.Ref == ref })
		for _, o := range part.Objects {
			if o.Ref.Cluster != "" && o.Ref.Kind != snapshot.Secret && (own || slices.Contains(o.Content.Parents, ref)) {
				out[o.Ref.Cluster] = true
			}
		}
	}
	return out
}

// SlowestDebounce is that of the slowest control plane in the clusters in which something is generated from an object.
func SlowestDebounce(x *Index, ref snapshot.Ref) snapshot.Debounce {
	slowest := snapshot.UsualDebounce
	for cluster := range clustersWith(x, ref) {
		if d, set := x.state.Output.Debounces[cluster]; set {
			slowest.After, slowest.Most = max(slowest.After, d.After), max(slowest.Most, d.Most)
		}
	}
	return slowest
}
