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

// handWritten is an index of the Istio objects of one cluster that users wrote.
type handWritten struct {
	virtualServices, destinationRules, serviceEntries hostIndex
	authorizationPolicies                             map[string][]*istiosecurityv1.AuthorizationPolicy // by namespace
	sidecars                                          map[string][]*istionetworkingv1.Sidecar           // by namespace

	from *snapshot.Cluster
}

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
}

// sameHandWritten reports whether two clusters have the same hand-written objects.
func sameHandWritten(a, b *snapshot.Cluster) bool {
	return a == b || snapshot.SameSlice(a.VirtualServices, b.VirtualServices) && snapshot.SameSlice(a.DestinationRules, b.DestinationRules) &&
		snapshot.SameSlice(a.ServiceEntries, b.ServiceEntries) && snapshot.SameSlice(a.AuthorizationPolicies, b.AuthorizationPolicies) && snapshot.SameSlice(a.Sidecars, b.Sidecars) && a.Domain == b.Domain
}

// newHandWritten leaves out what the management plane generated. What another one did is
// like what users write.
func newHandWritten(c *snapshot.Cluster, plane snapshot.Plane) *handWritten {
	isHandWritten := func(o metav1.Object) bool { return !plane.Generated(o.GetLabels(), c.Name) }
	h := &handWritten{
		from: c, authorizationPolicies: map[string][]*istiosecurityv1.AuthorizationPolicy{}, sidecars: map[string][]*istionetworkingv1.Sidecar{},
	}
	for _, o := range c.VirtualServices {
		if isHandWritten(o) && (len(o.Spec.Gateways) == 0 || slices.Contains(o.Spec.Gateways, "mesh")) {
			h.virtualServices.add(c, snapshot.VirtualService, o, o.Spec.Hosts, o.Spec.ExportTo)
		}
	}
	for _, o := range c.DestinationRules {
		if isHandWritten(o) {
			exportTo := o.Spec.ExportTo
			if o.Spec.WorkloadSelector != nil {
				exportTo = []string{ownNamespace} // whatever it says (Istio, PushContext.setDestinationRules)
			}
			h.destinationRules.add(c, snapshot.DestinationRule, o, []string{o.Spec.Host}, exportTo)
		}
	}
	for _, o := range c.ServiceEntries {
		if isHandWritten(o) {
			h.serviceEntries.add(c, snapshot.ServiceEntry, o, o.Spec.Hosts, o.Spec.ExportTo)
		}
	}
	for _, o := range c.AuthorizationPolicies {
		if isHandWritten(o) && o.Spec.Action != security.AuthorizationPolicy_AUDIT && len(o.Spec.TargetRefs) == 0 {
			h.authorizationPolicies[o.Namespace] = append(h.authorizationPolicies[o.Namespace], o)
		}
	}
	for _, o := range c.Sidecars {
		if isHandWritten(o) {
			h.sidecars[o.Namespace] = append(h.sidecars[o.Namespace], o)
		}
	}
	return h
}

// add indexes an object by its hosts as Istio reads them: a name without dots is a
// service of the object's namespace.
func (x *hostIndex) add(c *snapshot.Cluster, kind snapshot.Kind, o metav1.Object, hosts, exportTo []string) {
	object := handWrittenObject{ref: snapshot.Ref{Kind: kind, Cluster: c.Name, Namespace: o.GetNamespace(), Name: o.GetName()}, exportTo: exportTo}
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

// updateHandWritten indexes the clusters again whose hand-written objects changed.
func (r *reconciler) updateHandWritten(in *snapshot.Input) {
	before := r.handWritten
	r.handWritten = make(map[string]*handWritten, len(in.Clusters))
	changed := r.env == nil || r.env.refuseIntersecting != in.RefuseIntersecting || len(before) != len(in.Clusters)
	for _, c := range in.Clusters {
		was := before[c.Name]
		if was != nil && sameHandWritten(was.from, c) {
			was.from = c
			r.handWritten[c.Name] = was
			continue
		}
		r.handWritten[c.Name] = newHandWritten(c, in.Management.Plane())
		changed = changed || was != nil || !sameHandWritten(c, &snapshot.Cluster{Domain: c.Domain})
	}
	r.handWrittenChanged = changed
}

// handWrittenIssues lists the hand-written objects that configure the same as a
// policy for a host: routes, or connections and subsets.
func (c *fieldContext) handWrittenIssues() []snapshot.Issue {
	env := c.env
	hand := env.handWritten[c.viewer.Cluster]
	if hand == nil || hand.virtualServices.empty() && hand.destinationRules.empty() && hand.serviceEntries.empty() {
		return nil
	}
	routed, connected := false, false
	for i := range features {
		f := &features[i]
		if f.value(c.spec.Policy) != nil {
			routed, connected = routed || f.route != nil, connected || f.view != nil
		}
	}
	var issues []snapshot.Issue
	if at := c.place(c.index); routed && at.host != "" {
		for _, o := range hand.virtualServices.matching(at.host) {
			if to := o.seenBy(at.mesh).among(c.sourceNamespaces()); !to.none() {
				issues = append(issues, env.intersectionIssue(at, o, "also routes requests for "+at.host+to.phrase()+undecided))
			}
		}
	}
	for _, i := range env.configuredDestinations(c.index, connected, c.spec.Policy) {
		if at := c.place(i); at.host != "" {
			issues = append(issues, env.ruleIssues(hand, at)...)
		}
	}
	return append(issues, c.serviceEntryIssues(hand)...)
}

// undecided ends the sentence about two objects of which Istio documents no order.
const undecided = ", and the mesh decides which of the two applies"

// older ends that about two ServiceEntries (Istio, PushContext.initServiceRegistry).
const older = ", and the mesh uses the older of the two"

// ruleIssues reports the DestinationRules for the host of a service.
func (env *environment) ruleIssues(hand *handWritten, at hostPlace) []snapshot.Issue {
	var issues []snapshot.Issue
	for _, o := range hand.destinationRules.matching(at.host) {
		switch to, hidden := o.ruleFor(at); {
		case to.none():
		case hidden:
			issues = append(issues, env.intersectionIssue(at, o, "no longer sets how "+at.host+" is connected to"+to.phrase()+
				": a DestinationRule in the namespace of the service takes precedence over one in the root namespace"))
		default:
			issues = append(issues, env.intersectionIssue(at, o, "also sets how "+at.host+" is connected to, or its subsets"+to.phrase()+undecided))
		}
	}
	return issues
}

// intersectionIssue reports an object that configures the same as a policy.
func (env *environment) intersectionIssue(at hostPlace, o handWrittenObject, what string) snapshot.Issue {
	return env.handWrittenIssue(o.ref, at.decides(o.ref.Namespace), what, "delete it, or remove from it what the policy sets")
}

// handWrittenWarning reports an object beside something that is never rejected because of it: all callers of a federated
// service or VirtualDestination, and the pods of a ServiceDependency, would pay for what one editor wrote.
func handWrittenWarning(by snapshot.Ref, what, hint string) snapshot.Issue {
	return snapshot.Warnf(snapshot.HandWritten, hint, "the hand-written %s %s", by, what).CausedBy(by)
}

// handWrittenIssue reports an object beside a TrafficPolicy or AccessPolicy: a warning, or an error if conflicts are rejected
// and the object may decide about what it conflicts with. A policy that was in force before stays in force.
func (env *environment) handWrittenIssue(by snapshot.Ref, decides bool, what, hint string) snapshot.Issue {
	issue := handWrittenWarning(by, what, hint)
	switch {
	case !env.refuseIntersecting:
	case decides:
		issue.Severity = snapshot.Error
		issue.Message += "; --disallow-intersecting-config rejects that"
	default:
		issue.Message += "; --disallow-intersecting-config does not reject because of it: its namespace is neither that of the service nor that of the mesh"
	}
	return issue
}
