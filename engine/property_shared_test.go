package engine_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	security "istio.io/api/security/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/meshctl/meshctl/engine"
	commonv1 "github.com/meshctl/meshctl/engine/api/common/v1"
	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/enginetest"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sharingServices is how many services may be added over the pods of others.
const sharingServices = 4

func sharingService(n int) string { return fmt.Sprintf("sharing-%d", n) }

// sharePods adds a service over pods of others, or changes or removes one.
func (w *randomWorld) sharePods() {
	at, n := w.r.Intn(len(w.base.Clusters)), w.r.Intn(randomServices)
	c := *w.base.Clusters[at]
	name := sharingService(w.r.Intn(sharingServices))
	c.Services = slices.DeleteFunc(slices.Clone(c.Services), func(s *corev1.Service) bool { return s.Name == name })
	of := slices.IndexFunc(c.Services, func(s *corev1.Service) bool { return s.Name == enginetest.Service(n) && len(s.Spec.Ports) > 0 })
	if w.r.Intn(8) > 0 && of >= 0 {
		s := c.Services[of].DeepCopy()
		s.Name, s.Labels = name, map[string]string{"federated": fmt.Sprint(w.r.Intn(2) == 0)}
		s.Spec.Selector = []map[string]string{{"app": enginetest.Service(n)}, {"version": "v1"}, {"extra": "1"}, s.Spec.Selector}[w.r.Intn(4)]
		s.Spec.Ports[0].Port = []int32{8080, 80}[w.r.Intn(2)]
		s.Spec.Ports[0].TargetPort = intstr.FromInt32([]int32{8080, 9090}[w.r.Intn(2)])
		c.Services = append(c.Services, s)
		slices.SortFunc(c.Services, func(a, b *corev1.Service) int {
			return strings.Compare(a.Namespace+" "+a.Name, b.Namespace+" "+b.Name)
		})
	}
	base := *w.base
	base.Clusters = slices.Clone(base.Clusters)
	base.Clusters[at] = &c
	w.base = &base
}

func (w *randomWorld) addAccess() {
	w.n++
	p := &networkingv1.AccessPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("access-%03d", w.r.Intn(1000)*100+w.n), Namespace: w.home(), Generation: 1},
		Spec: networkingv1.AccessPolicySpec{
			DestinationSelector: w.destinations(),
			SourceSelector: []commonv1.IdentitySelector{{KubeServiceAccountRefs: &commonv1.KubeServiceAccountRefs{ServiceAccounts: []commonv1.ClusterObjectRef{{
				Name: "default", ClusterName: enginetest.Cluster(w.r.Intn(randomClusters + 1)),
			}}}}},
		},
	}
	if w.r.Intn(2) == 0 {
		w.fillAccess(&p.Spec)
	}
	if w.r.Intn(4) == 0 {
		p.Spec.Action = networkingv1.AccessDeny
	}
	w.access = append(slices.Clone(w.access), p)
}

// fillAccess writes random conditions.
func (w *randomWorld) fillAccess(spec *networkingv1.AccessPolicySpec) {
	spec.SourceSelector, spec.AllowedPaths, spec.AllowedMethods, spec.AllowedPorts = nil, nil, nil, nil
	for range w.r.Intn(3) {
		var s commonv1.IdentitySelector
		cluster := enginetest.Cluster(w.r.Intn(randomClusters + 1))
		switch w.r.Intn(4) {
		case 0:
			s.KubeIdentityMatcher = &commonv1.KubeIdentityMatcher{Namespaces: some(w, enginetest.Namespace(0), "elsewhere")}
		case 1:
			s.KubeIdentityMatcher = &commonv1.KubeIdentityMatcher{Clusters: []string{cluster}, Namespaces: some(w, enginetest.Namespace(0))}
		default:
			s.KubeServiceAccountRefs = &commonv1.KubeServiceAccountRefs{ServiceAccounts: []commonv1.ClusterObjectRef{{
				Name: []string{"default", "web", ""}[w.r.Intn(3)], Namespace: enginetest.Namespace(0), ClusterName: cluster,
			}}}
			if w.r.Intn(4) == 0 {
				s.KubeIdentityMatcher = &commonv1.KubeIdentityMatcher{Namespaces: []string{"elsewhere", enginetest.Namespace(0)}[:1+w.r.Intn(2)]}
			}
		}
		spec.SourceSelector = append(spec.SourceSelector, s)
	}
	if w.r.Intn(2) == 0 {
		spec.AllowedPaths = some(w, "/a", "/a*", "/a/*", "*/info", "*", "/b")
	}
	if w.r.Intn(3) == 0 {
		spec.AllowedMethods = some(w, "GET", "POST", "*")
	}
	if w.r.Intn(3) == 0 {
		spec.AllowedPorts = some(w, uint32(80), 8080, 9090)
	}
}

func some[T any](w *randomWorld, of ...T) []T {
	var out []T
	for range w.r.Intn(3) {
		out = append(out, of[w.r.Intn(len(of))])
	}
	return out
}

// call is a request as a pod receives it.
type call struct {
	trustDomain, namespace, account string
	path, method                    string
	port                            uint32 // of the pod
}

func (w *randomWorld) call() call {
	of := func(list ...string) string { return list[w.r.Intn(len(list))] }
	return call{
		of(enginetest.Cluster(0), enginetest.Cluster(1)) + ".example", of(enginetest.Namespace(0), "elsewhere"), of("default", "web"),
		of("/a", "/ab", "/a/info", "/b", "/b/info"), of("GET", "POST"), []uint32{80, 8080, 9090}[w.r.Intn(3)],
	}
}

// pattern matches as Istio does: with * at one end, or alone.
func pattern(p, text string) bool {
	if prefix, ok := strings.CutSuffix(p, "*"); ok {
		return strings.HasPrefix(text, prefix)
	}
	if suffix, ok := strings.CutPrefix(p, "*"); ok {
		return strings.HasSuffix(text, suffix)
	}
	return p == text
}

func anyPattern(patterns []string, text string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return pattern(p, text) })
}

// letsIn evaluates rules of AuthorizationPolicies as Istio does.
func letsIn(rule *security.Rule, c call) bool {
	from := len(rule.From) == 0 || slices.ContainsFunc(rule.From, func(f *security.Rule_From) bool {
		principal := c.trustDomain + "/ns/" + c.namespace + "/sa/" + c.account
		return anyPattern(f.Source.Principals, principal) && anyPattern(f.Source.Namespaces, c.namespace)
	})
	return from && (len(rule.To) == 0 || slices.ContainsFunc(rule.To, func(to *security.Rule_To) bool {
		o := to.Operation
		return anyPattern(o.Paths, c.path) && anyPattern(o.Methods, c.method) && anyPattern(o.Ports, strconv.FormatUint(uint64(c.port), 10))
	}))
}

// anyMatches reports whether a rule of the policies with an action that select a pod matches a call.
func anyMatches(policies []*security.AuthorizationPolicy, action security.AuthorizationPolicy_Action, labels map[string]string, c call) bool {
	return slices.ContainsFunc(policies, func(p *security.AuthorizationPolicy) bool {
		return p.Action == action && inventory.MatchLabels(p.Selector.MatchLabels, labels) &&
			slices.ContainsFunc(p.Rules, func(rule *security.Rule) bool { return letsIn(rule, c) })
	})
}

// allows evaluates a policy as it is written, on the ports of one service.
func allows(rule *snapshot.AccessRule, on *snapshot.DestinationPlan, c call) bool {
	from := rule.Anyone || slices.ContainsFunc(rule.Sources, func(s snapshot.Source) bool {
		return inventory.Includes(s.Namespaces, c.namespace) && (len(s.Identities) == 0 || slices.ContainsFunc(s.Identities, func(i snapshot.Identity) bool {
			return i.TrustDomain == c.trustDomain && slices.Contains([]string{"", c.namespace}, i.Namespace) && slices.Contains([]string{"", c.account}, i.ServiceAccount)
		}))
	})
	port := len(rule.Ports) == 0
	for _, p := range rule.Ports {
		for _, of := range on.Destination.Spec.KubeService.Ports {
			if of.Port == p {
				p, _ = snapshot.PodPort(on.Destination.Spec.KubeService, of)
				break
			}
		}
		port = port || p == c.port
	}
	return from && port && anyPattern(rule.Paths, c.path) && anyPattern(rule.Methods, c.method)
}

// protected are the services with AccessPolicies over pods with some labels.
func protected(plan *snapshot.Plan, at inventory.Namespace, labels map[string]string) (out []*snapshot.DestinationPlan) {
	for d := range plan.Destinations.All() {
		k := d.Destination.Spec.KubeService
		if k.Ref.ClusterName == at.Cluster && k.Ref.Namespace == at.Name && len(d.Access) > 0 && inventory.MatchLabels(k.WorkloadSelectorLabels, labels) {
			out = append(out, d)
		}
	}
	return out
}

// ownAllow reports whether a policy on a service allows a call to a port of the service.
func ownAllow(d *snapshot.DestinationPlan, c call) bool {
	return slices.ContainsFunc(d.Access, func(rule *snapshot.AccessRule) bool { return allows(rule, d, c) })
}

// allAllow reports whether the policies on each of the services allow a call. A policy
// on several of them allows the ports of each.
func allAllow(services []*snapshot.DestinationPlan, c call) bool {
	return !slices.ContainsFunc(services, func(d *snapshot.DestinationPlan) bool {
		return !slices.ContainsFunc(d.Access, func(rule *snapshot.AccessRule) bool {
			return slices.ContainsFunc(services, func(on *snapshot.DestinationPlan) bool {
				return slices.Contains(on.Access, rule) && allows(rule, on, c)
			})
		})
	})
}

// TestPodsAreAsClosedAsEachServiceSays: whoever gets into a pod is allowed by the
// policies on each service over the pod that has any; and whom the policies on all
// services allow that share pods with such a service gets in.
func TestPodsAreAsClosedAsEachServiceSays(t *testing.T) {
	t.Parallel()
	var in, out, shared, narrowed int
	enough := func() bool { return min(in, out, shared, narrowed) > 100 }
	for seed := range seeds(t, 2*rounds, enough) {
		w := newRandomWorld(seed)
		w.access = slices.DeleteFunc(w.access, func(p *networkingv1.AccessPolicy) bool { return len(p.Spec.DestinationSelector) == 0 })
		for range 6 {
			w.sharePods()
			w.addAccess()
			w.change()
		}
		state := engine.Translate(w.input())
		objects := authorizationPolicies(state.Output)
		for _, workload := range state.Plan.Workloads {
			k := workload.Spec.Kubernetes
			services := protected(state.Plan, inventory.NamespaceOf(k), k.PodLabels)
			if len(services) == 0 || k.Controller.Namespace == "istio-system" {
				continue
			}
			if len(services) > 1 {
				shared++
			}
			for range 20 {
				c := w.call()
				got := anyMatches(objects[inventory.NamespaceOf(k)], security.AuthorizationPolicy_ALLOW, k.PodLabels, c)
				at := fmt.Sprintf("seed %d: %+v to %s", seed, c, workload.Name)
				if got {
					in++
					require.True(t, allAllow(services, c), at)
					continue
				}
				out++
				for _, d := range services {
					near := neighbours(state.Plan, d)
					refused := slices.ContainsFunc(near, func(d *snapshot.DestinationPlan) bool { return !ownAllow(d, c) })
					require.True(t, refused || writesSuffixes(near), at)
				}
				if slices.ContainsFunc(services, func(d *snapshot.DestinationPlan) bool { return ownAllow(d, c) }) {
					narrowed++
				}
			}
		}
	}
	t.Logf("%d calls let in, %d kept out, %d of them let in by some policies; %d workloads behind several services", in, out, narrowed, shared)
}

// TestSharedPodsAreJudgedAnew: a policy on one service decides over those on others with
// the same pods; what is remembered must know that.
func TestSharedPodsAreJudgedAnew(t *testing.T) {
	t.Parallel()
	changed := 0
	for seed := range seeds(t, rounds/2, func() bool { return changed > 30 }) {
		w := newRandomWorld(seed)
		translator := engine.New(engine.Options{})
		var before string
		for range 10 {
			[]func(){w.sharePods, w.addAccess, w.editAccess, func() { w.access = without(w.r, w.access) }}[w.r.Intn(4)]()
			in := w.input()
			got := text(t, translator.Translate(in).Output)
			require.Equal(t, text(t, engine.Translate(in).Output), got, "seed %d", seed)
			if got != before && strings.Contains(got, string(snapshot.PodsShared)) {
				changed++
			}
			before = got
		}
	}
}

// authorizationPolicies are those of an output that select pods.
func authorizationPolicies(out *snapshot.Output) map[inventory.Namespace][]*security.AuthorizationPolicy {
	found := map[inventory.Namespace][]*security.AuthorizationPolicy{}
	for o := range out.Objects {
		if spec, ok := o.Content.Spec.(*security.AuthorizationPolicy); ok && spec.Selector != nil {
			at := inventory.Namespace{Cluster: o.Ref.Cluster, Name: o.Ref.Namespace}
			found[at] = append(found[at], spec)
		}
	}
	return found
}

// neighbours are a service and the others with AccessPolicies that have pods in common
// with it: those of a workload, or one that was labelled by hand.
func neighbours(plan *snapshot.Plan, d *snapshot.DestinationPlan) []*snapshot.DestinationPlan {
	k := d.Destination.Spec.KubeService
	at := inventory.Namespace{Cluster: k.Ref.ClusterName, Name: k.Ref.Namespace}
	var out []*snapshot.DestinationPlan
	add := func(services []*snapshot.DestinationPlan) {
		if slices.Contains(services, d) {
			out = append(out, services...)
		}
	}
	for _, workload := range plan.Workloads {
		if inventory.NamespaceOf(workload.Spec.Kubernetes) == at {
			add(protected(plan, at, workload.Spec.Kubernetes.PodLabels))
		}
	}
	for _, e := range endpoints(plan, at) {
		services := protected(plan, at, e.Labels)
		for other := range plan.Destinations.All() {
			if ref := other.Destination.Spec.KubeService.Ref; ref.ClusterName == at.Cluster && ref.Namespace == at.Name &&
				len(other.Access) > 0 && slices.Contains(addresses(other), e.IpAddress) {
				services = append(services, other)
			}
		}
		add(services)
	}
	return out
}

// endpoints are those of all services of a namespace.
func endpoints(plan *snapshot.Plan, at inventory.Namespace) (out []discoveryv1.Endpoint) {
	for d := range plan.Destinations.All() {
		if k := d.Destination.Spec.KubeService; k.Ref.ClusterName == at.Cluster && k.Ref.Namespace == at.Name {
			for _, subset := range k.EndpointSubsets {
				out = append(out, subset.Endpoints...)
			}
		}
	}
	return out
}

func addresses(d *snapshot.DestinationPlan) (out []string) {
	for _, subset := range d.Destination.Spec.KubeService.EndpointSubsets {
		for _, e := range subset.Endpoints {
			out = append(out, e.IpAddress)
		}
	}
	return out
}

// writesSuffixes reports whether any policy allows paths by their end: those that also
// begin as another policy asks cannot be written.
func writesSuffixes(services []*snapshot.DestinationPlan) bool {
	return slices.ContainsFunc(services, func(d *snapshot.DestinationPlan) bool {
		return slices.ContainsFunc(d.Access, func(rule *snapshot.AccessRule) bool {
			return slices.ContainsFunc(rule.Paths, func(p string) bool { return len(p) > 1 && strings.HasPrefix(p, "*") })
		})
	})
}

// overOnePod is a world in which many services have the pods of one on which an
// AccessPolicy is. Each has a label.
func overOnePod(services int, label func(int) string) *snapshot.Input {
	in := enginetest.World(enginetest.Size{Services: 2, Clusters: 1, Policies: 1})
	in.Management.TrafficPolicies = nil
	c := in.Clusters[0]
	at := slices.IndexFunc(c.Services, func(s *corev1.Service) bool { return s.Name == enginetest.Service(0) })
	for n := range services {
		s := c.Services[at].DeepCopy()
		s.Name, s.Labels = fmt.Sprintf("sharing-%05d", n), map[string]string{label(n): "yes"}
		c.Services = append(c.Services, s)
	}
	slices.SortFunc(c.Services, func(a, b *corev1.Service) int {
		return strings.Compare(a.Namespace+" "+a.Name, b.Namespace+" "+b.Name)
	})
	return in
}

// laxOn is the input with AccessPolicies for any caller of a path on the services with
// the labels many, many1, and so on.
func laxOn(in *snapshot.Input, policies int, path string) *snapshot.Input {
	out, management := *in, *in.Management
	out.Management = &management
	for n := range policies {
		p := &networkingv1.AccessPolicy{}
		p.Name, p.Namespace, p.Generation = fmt.Sprintf("lax-%03d", n), snapshot.DefaultNamespace, 1
		label := "many"
		if n > 0 {
			label = fmt.Sprint("many", n)
		}
		p.Spec.DestinationSelector = []commonv1.DestinationSelector{{KubeServiceMatcher: &commonv1.KubeServiceMatcher{Labels: map[string]string{label: "yes"}}}}
		p.Spec.AllowedPaths = []string{path}
		management.AccessPolicies = append(slices.Clone(management.AccessPolicies), p)
	}
	return &out
}

// TestManyServicesOverOnePod: a thousand services over somebody's pods let in no caller
// whom the policy on the first keeps out; with too many different policies, nobody may
// call any of them, and it is said.
func TestManyServicesOverOnePod(t *testing.T) {
	t.Parallel()
	const services = 1000
	for different, closed := range map[int]bool{1: false, 60: false, 64: true, 100: true} {
		in := overOnePod(services, func(n int) string { return []string{"many", fmt.Sprint("many", n%different)}[min(1, n%different)] })
		state := engine.Translate(laxOn(in, different, "/a"))
		objects := authorizationPolicies(state.Output)[inventory.Namespace{Cluster: enginetest.Cluster(0), Name: enginetest.Namespace(0)}]
		require.Len(t, objects, services+1)
		for _, o := range objects {
			if closed {
				require.Empty(t, o.Rules)
				continue
			}
			require.Len(t, o.Rules, 1)
			require.Equal(t, []string{"cluster-01.example/ns/team-000/sa/default"}, o.Rules[0].From[0].Source.Principals)
			require.Equal(t, []string{"/a"}, o.Rules[0].To[0].Operation.Paths)
		}
		for _, p := range state.Plan.Policies {
			for _, v := range p.Verdicts {
				require.Equal(t, !closed, v.Accepted, "%s on %s", p.Ref, v.Destination)
				require.True(t, slices.ContainsFunc(v.Issues, func(i snapshot.Issue) bool { return i.Code == snapshot.PodsShared }))
			}
		}
	}
}
