package policy

import (
	"slices"
	"strings"

	security "istio.io/api/security/v1beta1"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// handWritten is what users wrote for the Istio of one cluster themselves.
type handWritten struct {
	services, rules, entries hostIndex
	access                   map[string][]*istiosecurityv1.AuthorizationPolicy // by namespace
	sidecars                 map[string][]*istionetworkingv1.Sidecar           // by namespace

	from *snapshot.Cluster
}

// hostIndex finds the objects that are about a host.
type hostIndex struct {
	exact map[string][]handWrittenObject
	// wild are by what follows the asterisk.
	wild map[string][]handWrittenObject
}

type handWrittenObject struct {
	ref snapshot.Ref
	// only is the namespace whose callers it holds for; empty for all.
	only string
}

// sameHandWritten reports whether the lists of two clusters are the same.
func sameHandWritten(a, b *snapshot.Cluster) bool {
	return a == b || snapshot.SameSlice(a.VirtualServices, b.VirtualServices) && snapshot.SameSlice(a.DestinationRules, b.DestinationRules) &&
		snapshot.SameSlice(a.ServiceEntries, b.ServiceEntries) && snapshot.SameSlice(a.AuthorizationPolicies, b.AuthorizationPolicies) && snapshot.SameSlice(a.Sidecars, b.Sidecars) && a.Domain == b.Domain
}

func newHandWritten(c *snapshot.Cluster) *handWritten {
	h := &handWritten{
		from: c, access: map[string][]*istiosecurityv1.AuthorizationPolicy{}, sidecars: map[string][]*istionetworkingv1.Sidecar{},
	}
	for _, o := range c.VirtualServices {
		if others(o) && (len(o.Spec.Gateways) == 0 || slices.Contains(o.Spec.Gateways, "mesh")) {
			h.services.add(c, snapshot.VirtualService, o, o.Spec.Hosts, o.Spec.ExportTo)
		}
	}
	for _, o := range c.DestinationRules {
		if others(o) {
			h.rules.add(c, snapshot.DestinationRule, o, []string{o.Spec.Host}, o.Spec.ExportTo)
		}
	}
	for _, o := range c.ServiceEntries {
		if others(o) {
			h.entries.add(c, snapshot.ServiceEntry, o, o.Spec.Hosts, o.Spec.ExportTo)
		}
	}
	for _, o := range c.AuthorizationPolicies {
		if others(o) && o.Spec.Action != security.AuthorizationPolicy_AUDIT && len(o.Spec.TargetRefs) == 0 {
			h.access[o.Namespace] = append(h.access[o.Namespace], o)
		}
	}
	for _, o := range c.Sidecars {
		if others(o) {
			h.sidecars[o.Namespace] = append(h.sidecars[o.Namespace], o)
		}
	}
	return h
}

// others reports whether an object is not one of ours.
func others(o metav1.Object) bool {
	_, ours := o.GetLabels()[snapshot.NetworkingOwnerLabel]
	return !ours
}

// add indexes an object by its hosts as Istio reads them: a name without dots is
// a service of the object's namespace.
func (x *hostIndex) add(c *snapshot.Cluster, kind snapshot.Kind, o metav1.Object, hosts, exportTo []string) {
	if slices.Equal(exportTo, []string{"~"}) {
		return
	}
	object := handWrittenObject{ref: snapshot.Ref{Kind: kind, Cluster: c.Name, Namespace: o.GetNamespace(), Name: o.GetName()}}
	if slices.Equal(exportTo, []string{"."}) {
		object.only = o.GetNamespace()
	}
	for _, host := range hosts {
		host = strings.ToLower(host)
		if wild, ok := strings.CutPrefix(host, "*"); ok {
			if x.wild == nil {
				x.wild = map[string][]handWrittenObject{}
			}
			x.wild[wild] = append(x.wild[wild], object)
			continue
		}
		if !strings.Contains(host, ".") {
			host += "." + o.GetNamespace() + ".svc." + c.DomainOrDefault()
		}
		if x.exact == nil {
			x.exact = map[string][]handWrittenObject{}
		}
		x.exact[host] = append(x.exact[host], object)
	}
}

func (x *hostIndex) empty() bool { return len(x.exact)+len(x.wild) == 0 }

// about lists the objects about a host, each once, ascending.
func (x *hostIndex) about(host string) []handWrittenObject {
	out := slices.Clone(x.exact[host])
	for at := 0; len(x.wild) > 0 && at <= len(host); {
		out = append(out, x.wild[host[at:]]...)
		next := strings.IndexByte(host[min(at+1, len(host)):], '.')
		if at == len(host) {
			break
		}
		if next < 0 {
			at = len(host)
		} else {
			at += 1 + next
		}
	}
	slices.SortFunc(out, func(a, b handWrittenObject) int { return a.ref.Compare(b.ref) })
	return slices.Compact(out)
}

// renewHandWritten indexes anew what users changed, and marks what it may concern.
func (r *round) renewHandWritten(clusters []*snapshot.Cluster, refuse bool) {
	before := r.byHand
	r.byHand = make(map[string]*handWritten, len(clusters))
	changed := r.world == nil || r.world.refuse != refuse || len(before) != len(clusters)
	for _, c := range clusters {
		was := before[c.Name]
		if was != nil && sameHandWritten(was.from, c) {
			was.from = c
			r.byHand[c.Name] = was
			continue
		}
		r.byHand[c.Name] = newHandWritten(c)
		changed = changed || was != nil || !sameHandWritten(c, &snapshot.Cluster{Domain: c.Domain})
	}
	r.handChanged = changed
}

// markHandWritten looks again at what users' own objects may intersect with.
func (r *round) markHandWritten() {
	if r.fresh || !r.handChanged {
		return
	}
	for i, c := range r.cells {
		if len(c.traffic) > 0 {
			r.dirty[i] = true
		}
	}
	for _, b := range r.access {
		r.policies[b.ref] = true
	}
}

// intersecting lists the objects of users that are about what a policy sets for
// a host: routes, or connections and subsets.
func (s *setting) intersecting() []snapshot.Issue {
	w := s.world
	hand := w.byHand[s.viewer.Cluster]
	if hand == nil || hand.services.empty() && hand.rules.empty() && hand.entries.empty() {
		return nil
	}
	routed, connected := false, false
	for i := range features {
		f := &features[i]
		if f.value(s.spec.Policy) != nil {
			routed, connected = routed || f.route != nil, connected || f.view != nil
		}
	}
	var issues []snapshot.Issue
	host, _ := w.topology.Host(s.self, s.viewer)
	if routed {
		for _, o := range hand.services.about(host) {
			issues = append(issues, w.intersection(o, "also routes requests for "+host))
		}
	}
	for _, at := range w.subsetted(s.self, connected, s.spec.Policy) {
		if host, ok := w.topology.Host(at, s.viewer); ok {
			for _, o := range hand.rules.about(host) {
				issues = append(issues, w.intersection(o, "also sets how "+host+" is connected to, or what its subsets are"))
			}
		}
	}
	return append(issues, s.alsoOutside(hand)...)
}

// intersection is the issue that an object is about the same as a policy.
func (w *world) intersection(o handWrittenObject, what string) snapshot.Issue {
	if o.only != "" {
		what += ", for callers in namespace " + o.only
	}
	return w.handIssue(o.ref, what+", and the mesh decides which of the two holds", "remove it, or take from it what the policy says")
}

// handIssue is a warning, or an error where such things are refused.
func (w *world) handIssue(by snapshot.Ref, what, hint string) snapshot.Issue {
	issue := snapshot.Warnf(snapshot.HandWritten, hint, "the hand-written %s %s", by, what)
	if w.refuse {
		issue.Severity = snapshot.Error
		issue.Message += "; --disallow-intersecting-config refuses that"
	}
	return issue
}
