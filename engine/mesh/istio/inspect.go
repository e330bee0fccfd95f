package istio

import (
	"maps"
	"slices"
	"strings"
	"time"

	security "istio.io/api/security/v1beta1"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// handWritten is an index of the Istio objects of one cluster that users wrote.
type handWritten struct {
	virtualServices, destinationRules, serviceEntries hostIndex
	virtualServiceOf                                  map[snapshot.Ref]*istionetworkingv1.VirtualService
	destinationRuleOf                                 map[snapshot.Ref]*istionetworkingv1.DestinationRule
	backends                                          backendRules
	// addressed are the ServiceEntries that take connections by their address.
	addressed []addressed
	// By namespace.
	authorizationPolicies map[string][]*istiosecurityv1.AuthorizationPolicy
	// tried are AuthorizationPolicies that decide nothing.
	tried               map[string][]*istiosecurityv1.AuthorizationPolicy
	peerAuthentications map[string][]*istiosecurityv1.PeerAuthentication
	sidecars            map[string][]*istionetworkingv1.Sidecar
	// listens: a Sidecar has listeners of its own.
	listens bool
	// selecting are the ServiceEntries that select pods.
	selecting []*istionetworkingv1.ServiceEntry
	tokens    map[string][]*istiosecurityv1.RequestAuthentication
	filters   map[string][]filter
	// attached is what the Gateway API routes, by host.
	attached map[string][]attachedRoutes
	gateways []*istionetworkingv1.Gateway
	// bound are the VirtualServices for gateways.
	bound []*istionetworkingv1.VirtualService

	from *snapshot.Cluster
}

var _ snapshot.ByHand = (*handWritten)(nil)

// hostIndex finds objects by host.
type hostIndex struct {
	exact map[string][]handWrittenObject
	// wild are by the part after the asterisk.
	wild map[string][]handWrittenObject
}

type handWrittenObject struct {
	ref snapshot.Ref
	// exportTo is as written; empty means that the mesh's settings say it.
	exportTo []string
	created  time.Time
	revisioned
	// in is its namespace; nil if that is not known.
	in *corev1.Namespace
}

// inspect leaves out what the management plane generated. What another one did is
// like what users write.
func inspect(c *snapshot.Cluster, plane snapshot.Plane) snapshot.ByHand {
	isHandWritten := func(o metav1.Object) bool { return !plane.Generated(o.GetLabels(), c.Name) }
	h := &handWritten{
		virtualServiceOf: map[snapshot.Ref]*istionetworkingv1.VirtualService{}, destinationRuleOf: map[snapshot.Ref]*istionetworkingv1.DestinationRule{},
		from: c, authorizationPolicies: map[string][]*istiosecurityv1.AuthorizationPolicy{}, tried: map[string][]*istiosecurityv1.AuthorizationPolicy{},
		peerAuthentications: map[string][]*istiosecurityv1.PeerAuthentication{}, sidecars: map[string][]*istionetworkingv1.Sidecar{},
		tokens: map[string][]*istiosecurityv1.RequestAuthentication{}, filters: filtersOf(c, isHandWritten),
	}
	h.attached = attach(c)
	for o := range snapshot.Each[*istionetworkingv1.Gateway](c.OfMeshes[snapshot.Gateway]) {
		if isHandWritten(o) {
			h.gateways = append(h.gateways, o)
		}
	}
	for o := range snapshot.Each[*istionetworkingv1.VirtualService](c.OfMeshes[snapshot.VirtualService]) {
		if isHandWritten(o) && (len(o.Spec.Gateways) == 0 || slices.Contains(o.Spec.Gateways, meshGateway)) {
			h.virtualServiceOf[snapshot.Ref{Kind: snapshot.VirtualService, Cluster: c.Name, Namespace: o.Namespace, Name: o.Name}] = o
			h.virtualServices.add(c, snapshot.VirtualService, o, o.Spec.Hosts, o.Spec.ExportTo)
		}
		if isHandWritten(o) && slices.ContainsFunc(o.Spec.Gateways, func(name string) bool { return name != meshGateway }) {
			h.bound = append(h.bound, o)
		}
	}
	for o := range snapshot.Each[*istionetworkingv1.DestinationRule](c.OfMeshes[snapshot.DestinationRule]) {
		if isHandWritten(o) {
			exportTo := o.Spec.ExportTo
			h.destinationRuleOf[snapshot.Ref{Kind: snapshot.DestinationRule, Cluster: c.Name, Namespace: o.Namespace, Name: o.Name}] = o
			if o.Spec.WorkloadSelector != nil {
				exportTo = []string{ownNamespace} // whatever it says (Istio, PushContext.setDestinationRules)
			}
			h.destinationRules.add(c, snapshot.DestinationRule, o, []string{o.Spec.Host}, exportTo)
		}
	}
	h.backends = newBackendRules(c, &h.destinationRules)
	for o := range snapshot.Each[*istionetworkingv1.ServiceEntry](c.OfMeshes[snapshot.ServiceEntry]) {
		if isHandWritten(o) {
			h.serviceEntries.add(c, snapshot.ServiceEntry, o, o.Spec.Hosts, o.Spec.ExportTo)
			if len(o.Spec.GetWorkloadSelector().GetLabels()) > 0 {
				h.selecting = append(h.selecting, o)
			}
			if entry, takes := addressedOf(o, newObject(c, snapshot.ServiceEntry, o, o.Spec.ExportTo)); takes {
				h.addressed = append(h.addressed, entry)
			}
		}
	}
	for o := range snapshot.Each[*istiosecurityv1.AuthorizationPolicy](c.OfMeshes[snapshot.AuthorizationPolicy]) {
		switch {
		case !isHandWritten(o) || o.Spec.Action == security.AuthorizationPolicy_AUDIT:
		case isDryRun(o):
			h.tried[o.Namespace] = append(h.tried[o.Namespace], o)
		default:
			h.authorizationPolicies[o.Namespace] = append(h.authorizationPolicies[o.Namespace], o)
		}
	}
	for o := range snapshot.Each[*istiosecurityv1.PeerAuthentication](c.OfMeshes[snapshot.PeerAuthentication]) {
		h.peerAuthentications[o.Namespace] = append(h.peerAuthentications[o.Namespace], o)
	}
	for o := range snapshot.Each[*istiosecurityv1.RequestAuthentication](c.OfMeshes[snapshot.RequestAuthentication]) {
		h.tokens[o.Namespace] = append(h.tokens[o.Namespace], o)
	}
	for o := range snapshot.Each[*istionetworkingv1.Sidecar](c.OfMeshes[snapshot.Sidecar]) {
		if isHandWritten(o) {
			h.sidecars[o.Namespace] = append(h.sidecars[o.Namespace], o)
			h.listens = h.listens || hasListeners(&o.Spec)
		}
	}
	return h
}

// Holds implements snapshot.ByHand.
func (h *handWritten) Holds(c *snapshot.Cluster) bool {
	if h.from == c {
		return true
	}
	for kind := range reads {
		if kind.Info().Effect&snapshot.Counts == 0 && !snapshot.SameSlice(h.from.OfMeshes[kind], c.OfMeshes[kind]) {
			return false
		}
	}
	return h.from.Domain == c.Domain && (!h.backends.named && len(h.selecting) == 0 || snapshot.SameSlice(h.from.Services, c.Services)) && sameLabels(h.from.Namespaces, c.Namespaces)
}

// sameLabels reports whether namespaces, by which a control plane may ignore them, have the same labels.
func sameLabels(a, b []*corev1.Namespace) bool {
	return snapshot.SameSlice(a, b) || slices.EqualFunc(a, b, func(a, b *corev1.Namespace) bool { return a == b || a.Name == b.Name && maps.Equal(a.Labels, b.Labels) })
}

// namespaceOf is a namespace of a cluster; nil if it is not known.
func namespaceOf(c *snapshot.Cluster, name string) *corev1.Namespace {
	at, found := slices.BinarySearchFunc(c.Namespaces, name, func(ns *corev1.Namespace, name string) int { return strings.Compare(ns.Name, name) })
	if !found {
		return nil
	}
	return c.Namespaces[at]
}

// ignored reports whether the control plane of a mesh reads nothing of a namespace.
func (h *handWritten) ignored(mesh *snapshot.MeshPlan, namespace string) bool {
	ns := namespaceOf(h.from, namespace)
	return ns != nil && isIgnored(mesh, ns)
}

// reads reports whether the control plane of a mesh reads an object.
func (h *handWritten) reads(mesh *snapshot.MeshPlan, o metav1.Object) bool {
	return inRevision(mesh, o) && !h.ignored(mesh, o.GetNamespace())
}

// Empty implements snapshot.ByHand.
func (h *handWritten) Empty() bool {
	return h.virtualServices.empty() && h.destinationRules.empty() && h.serviceEntries.empty() &&
		len(h.authorizationPolicies)+len(h.tried)+len(h.peerAuthentications)+len(h.sidecars)+len(h.tokens)+len(h.filters)+len(h.attached)+len(h.bound) == 0 &&
		!slices.ContainsFunc(ofGateways, func(k snapshot.Kind) bool { return len(h.from.OfMeshes[k]) > 0 })
}

// ofGateways are the kinds that say where gateways of Kubernetes' own kinds send requests. It is read-only.
var ofGateways = []snapshot.Kind{snapshot.KubeGateway, snapshot.Ingress}

func newObject(c *snapshot.Cluster, kind snapshot.Kind, o metav1.Object, exportTo []string) handWrittenObject {
	return handWrittenObject{
		ref:      snapshot.Ref{Kind: kind, Cluster: c.Name, Namespace: o.GetNamespace(), Name: o.GetName()},
		exportTo: exportTo, created: o.GetCreationTimestamp().Time, revisioned: revisionedOf(o), in: namespaceOf(c, o.GetNamespace()),
	}
}

// add indexes an object by its hosts as Istio reads them: a name without dots is a
// service of the object's namespace.
func (x *hostIndex) add(c *snapshot.Cluster, kind snapshot.Kind, o metav1.Object, hosts, exportTo []string) {
	object := newObject(c, kind, o, exportTo)
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

// matching lists the objects that apply to a host, ascending, without duplicates.
func (x *hostIndex) matching(host string) []handWrittenObject {
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
	return sortedObjects(out)
}

// sortedObjects sorts a list, and leaves out repetitions.
func sortedObjects(list []handWrittenObject) []handWrittenObject {
	slices.SortFunc(list, func(a, b handWrittenObject) int { return a.ref.Compare(b.ref) })
	return slices.CompactFunc(list, func(a, b handWrittenObject) bool { return a.ref == b.ref })
}

// named lists the objects that name a host without a wildcard, ascending.
func (x *hostIndex) named(host string) []handWrittenObject {
	return sortedObjects(slices.Clone(x.exact[host]))
}
