package istio

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	security "istio.io/api/security/v1beta1"
	typev1beta1 "istio.io/api/type/v1beta1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"

	"github.com/meshctl/meshctl/engine/access"
	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// gatewayName is the label of the proxies of a Gateway of the Gateway API. To these, a policy applies that refers to
// the Gateway, and to no others (Istio, WorkloadPolicyMatcher.ShouldAttachPolicy).
const gatewayName = "gateway.networking.k8s.io/gateway-name"

// dryRun is the annotation of AuthorizationPolicies that are only tried (istio.io: Dry Run).
const dryRun = "istio.io/dry-run"

// isDryRun reports whether a policy decides nothing.
func isDryRun(o *istiosecurityv1.AuthorizationPolicy) bool {
	dry, err := strconv.ParseBool(o.Annotations[dryRun])
	return err == nil && dry
}

// guard is what applies to a group of pods.
type guard struct {
	mesh     *snapshot.MeshPlan
	cluster  string
	pods     int
	policies []*istiosecurityv1.AuthorizationPolicy // ascending by namespace and name
	peers    peers
	tokens   []*istiosecurityv1.RequestAuthentication
	// tokensUnknown: it is not known which tokens are read.
	tokensUnknown bool
}

var _ snapshot.Guard = (*guard)(nil)

// Guards implements snapshot.ByHand.
func (h *handWritten) Guards(of *snapshot.PodQuery) []snapshot.Guard {
	var groups []*guard
	for _, labels := range of.Pods {
		g := &guard{
			mesh: of.Mesh, cluster: h.from.Name, policies: h.policiesOn(of, labels), peers: h.peersOn(of, labels), tokens: h.tokensOn(of, labels),
			tokensUnknown: slices.Contains(h.from.Denied, snapshot.RequestAuthentication),
		}
		same := slices.IndexFunc(groups, func(o *guard) bool {
			return slices.Equal(o.policies, g.policies) && o.peers == g.peers && slices.Equal(o.tokens, g.tokens)
		})
		if same < 0 {
			same = len(groups)
			groups = append(groups, g)
		}
		groups[same].pods++
	}
	if !slices.ContainsFunc(groups, func(g *guard) bool { return len(g.policies)+len(g.tokens) > 0 || g.peers != peers{} }) {
		return nil
	}
	out := make([]snapshot.Guard, len(groups))
	for i, g := range groups {
		out[i] = g
	}
	return out
}

// policiesOn are the AuthorizationPolicies that apply to a pod: of its namespace, and of the root namespace, whose policies
// apply everywhere.
func (h *handWritten) policiesOn(of *snapshot.PodQuery, labels map[string]string) (out []*istiosecurityv1.AuthorizationPolicy) {
	namespaces := []string{of.Namespace, of.Mesh.RootNamespace}
	slices.Sort(namespaces)
	for _, namespace := range slices.Compact(namespaces) {
		for _, o := range h.authorizationPolicies[namespace] {
			if inRevision(of.Mesh, o) && attaches(o.Namespace, &o.Spec, of.Namespace, labels) {
				out = append(out, o)
			}
		}
	}
	return out
}

// attachable is the spec of an object that is for pods with labels, or for gateways that it names.
type attachable interface {
	GetSelector() *typev1beta1.WorkloadSelector
	GetTargetRef() *typev1beta1.PolicyTargetReference
	GetTargetRefs() []*typev1beta1.PolicyTargetReference
}

// attaches reports whether an object in a namespace is for a pod of another one.
func attaches(own string, o attachable, namespace string, labels map[string]string) bool {
	targets := targetsOf(o)
	if len(targets) == 0 {
		return inventory.MatchLabels(o.GetSelector().GetMatchLabels(), labels)
	}
	gateway := labels[gatewayName]
	return gateway != "" && own == namespace && slices.ContainsFunc(targets, func(ref *typev1beta1.PolicyTargetReference) bool {
		return ref.Kind == "Gateway" && ref.Group == gatewayv1.GroupVersion.Group && ref.Name == gateway && (ref.Namespace == "" || ref.Namespace == namespace)
	})
}

// targetsOf are what an object refers to: the older field has one.
func targetsOf(o attachable) []*typev1beta1.PolicyTargetReference {
	if one := o.GetTargetRef(); one != nil {
		return append([]*typev1beta1.PolicyTargetReference{one}, o.GetTargetRefs()...)
	}
	return o.GetTargetRefs()
}

// Pods implements snapshot.Guard.
func (g *guard) Pods() int { return g.pods }

// Objects implements snapshot.Guard.
func (g *guard) Objects() []snapshot.Ref {
	var out []snapshot.Ref
	for _, o := range g.policies {
		out = append(out, g.ref(o))
	}
	for _, o := range g.tokens {
		out = append(out, snapshot.Ref{Kind: snapshot.RequestAuthentication, Cluster: g.cluster, Namespace: o.Namespace, Name: o.Name})
	}
	out = append(out, g.peers.objects(g.cluster)...)
	slices.SortFunc(out, snapshot.Ref.Compare)
	return out
}

func (g *guard) ref(o *istiosecurityv1.AuthorizationPolicy) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.AuthorizationPolicy, Cluster: g.cluster, Namespace: o.Namespace, Name: o.Name}
}

// Decide implements snapshot.Guard, in the order of proxies: an authorizer, what denies, what allows (istio.io:
// Authorization Policy, implicit enablement).
func (g *guard) Decide(call *snapshot.Call) (out snapshot.Ruling) {
	for _, o := range g.policies {
		ref, fits := g.ref(o), g.fits(o, call)
		switch o.Spec.Action {
		case security.AuthorizationPolicy_CUSTOM:
			if fits.yes || fits.unknown != "" {
				out.MayDeny = append(out.MayDeny, snapshot.Intersection{Ref: ref, What: "leaves it to the external authorizer " + o.Spec.GetProvider().GetName()})
			}
		case security.AuthorizationPolicy_DENY:
			switch {
			case fits.unknown != "":
				out.MayDeny = append(out.MayDeny, snapshot.Intersection{Ref: ref, What: "denies by " + fits.unknown})
			case fits.yes && out.Denied == (snapshot.Ref{}):
				out.Denied = ref
			}
		case security.AuthorizationPolicy_ALLOW:
			if out.Closed == (snapshot.Ref{}) {
				out.Closed = ref
			}
			switch {
			case fits.unknown != "":
				out.MayAllow = append(out.MayAllow, snapshot.Intersection{Ref: ref, What: "allows by " + fits.unknown})
			case fits.yes && out.Allowed == (snapshot.Ref{}):
				out.Allowed = ref
			}
		}
	}
	if by, where := g.tokenOf(call); where != "" {
		out.MayDeny = append(out.MayDeny, snapshot.Intersection{
			Ref:  snapshot.Ref{Kind: snapshot.RequestAuthentication, Cluster: g.cluster, Namespace: by.Namespace, Name: by.Name},
			What: "checks the token in " + where + ", and refuses one that is not valid (status 401)",
		})
	}
	return out
}

// truth is whether something holds. If that is not known, unknown says by what it is decided.
type truth struct {
	yes     bool
	unknown string
}

func (t truth) isNo() bool { return !t.yes && t.unknown == "" }

func (t truth) not() truth {
	if t.unknown != "" {
		return t
	}
	return truth{yes: !t.yes}
}

// allOf holds if all do; what certainly does not hold outweighs what is not known.
func allOf[T any](list []T, holds func(T) truth) truth {
	out := truth{yes: true}
	for _, e := range list {
		switch t := holds(e); {
		case t.isNo():
			return t
		case t.unknown != "" && out.unknown == "":
			out = truth{unknown: t.unknown}
		}
	}
	return out
}

// anyOf holds if one does.
func anyOf[T any](list []T, holds func(T) truth) truth {
	return allOf(list, func(e T) truth { return holds(e).not() }).not()
}

// fits says whether one of the rules of a policy is for a call.
func (g *guard) fits(o *istiosecurityv1.AuthorizationPolicy, call *snapshot.Call) truth {
	at := &ruling{guard: g, policy: o, call: call}
	return anyOf(o.Spec.Rules, at.rule)
}

// ruling compares a call with the rules of a policy.
type ruling struct {
	*guard
	policy *istiosecurityv1.AuthorizationPolicy
	call   *snapshot.Call
}

// condition is one line of a rule: a call has one of the values, and none of the others. Empty lists say nothing.
type condition struct {
	key            string
	values, others []string
}

// The keys of conditions that sources and operations of rules have by other names (istio.io: Authorization Policy Conditions).
const (
	keySourceIP       = "source.ip"
	keyRemoteIP       = "remote.ip"
	keyNamespace      = "source.namespace"
	keyTrustDomain    = "source.trustDomain"
	keyServiceAccount = "source.serviceAccount"
	keyPrincipal      = "source.principal"
	keyToken          = "request.auth.principal"
	keyHeader         = "request.headers["
	keyPort           = "destination.port"
	keyHost           = "host"
	keyMethod         = "method"
	keyPath           = "path"
)

func (r *ruling) rule(rule *security.Rule) truth {
	var sources, operations [][]condition
	for _, from := range rule.From {
		s := from.GetSource()
		sources = append(sources, []condition{
			{keyPrincipal, s.GetPrincipals(), s.GetNotPrincipals()}, {keyNamespace, s.GetNamespaces(), s.GetNotNamespaces()},
			{keyServiceAccount, s.GetServiceAccounts(), s.GetNotServiceAccounts()}, {keyTrustDomain, s.GetTrustDomains(), s.GetNotTrustDomains()},
			{keyToken, s.GetRequestPrincipals(), s.GetNotRequestPrincipals()},
			{keySourceIP, s.GetIpBlocks(), s.GetNotIpBlocks()}, {keyRemoteIP, s.GetRemoteIpBlocks(), s.GetNotRemoteIpBlocks()},
		})
	}
	for _, to := range rule.To {
		o := to.GetOperation()
		operations = append(operations, []condition{
			{keyHost, o.GetHosts(), o.GetNotHosts()}, {keyMethod, o.GetMethods(), o.GetNotMethods()},
			{keyPath, o.GetPaths(), o.GetNotPaths()}, {keyPort, o.GetPorts(), o.GetNotPorts()},
		})
	}
	var when []condition
	for _, c := range rule.When {
		when = append(when, condition{c.GetKey(), c.GetValues(), c.GetNotValues()})
	}
	all := slices.Concat(append(append(sources, operations...), when)...)
	if !r.call.HTTP && r.policy.Spec.Action == security.AuthorizationPolicy_ALLOW && slices.ContainsFunc(all, condition.isOfRequest) {
		return truth{} // such a rule is left out (Istio, authz/model.rule.checkError)
	}
	holds := func(list []condition) truth { return allOf(list, r.holds) }
	groups := [][][]condition{sources, operations}
	return allOf(append(groups, [][]condition{when}), func(alternatives [][]condition) truth {
		if len(alternatives) == 0 {
			return truth{yes: true}
		}
		return anyOf(alternatives, holds)
	})
}

// isOfRequest reports whether a condition says something that connections do not have.
func (c condition) isOfRequest() bool {
	if len(c.values)+len(c.others) == 0 {
		return false
	}
	switch c.key {
	case keyHost, keyMethod, keyPath:
		return true
	}
	return strings.HasPrefix(c.key, "request.")
}

// holds says whether a call fulfils a condition. One of requests is left out for connections where it would let
// in less.
func (r *ruling) holds(c condition) truth {
	if !r.call.HTTP && c.isOfRequest() {
		return truth{yes: true}
	}
	out := truth{yes: true}
	if len(c.values) > 0 {
		out = anyOf(c.values, func(v string) truth { return r.has(c.key, v) })
	}
	if len(c.others) == 0 {
		return out
	}
	none := anyOf(c.others, func(v string) truth { return r.has(c.key, v) }).not()
	return allOf([]truth{out, none}, func(t truth) truth { return t })
}

// has says whether a call has a value.
func (r *ruling) has(key, value string) truth {
	header, isHeader := strings.CutPrefix(key, keyHeader)
	switch {
	case key == keyPort:
		return truth{yes: value == strconv.FormatUint(uint64(r.call.PodPort), 10)}
	case key == keyNamespace || key == keyServiceAccount || key == keyTrustDomain || key == keyPrincipal:
		return truth{yes: r.call.Caller != nil && r.isCaller(key, value)}
	case r.call.AnyRequest && (condition{key: key, values: []string{value}}).isOfRequest():
		return truth{unknown: "what is asked for"}
	case key == keyMethod:
		return truth{yes: matchesText(value, r.call.Method)}
	case key == keyPath:
		return truth{yes: access.ParsePattern(value).Matches(r.call.Path)}
	case key == keyHost:
		return r.hasHeader("host", strings.ToLower(value), "the host that callers name")
	case isHeader:
		return r.hasHeader(strings.ToLower(strings.TrimSuffix(header, "]")), value, "")
	case strings.HasPrefix(key, "request.auth.") && !r.mayHaveToken(r.call):
		return truth{}
	case strings.HasPrefix(key, "request.auth."):
		return truth{unknown: "a token of the request"}
	case key == keySourceIP || key == keyRemoteIP:
		return truth{unknown: "the callers' addresses"}
	}
	return truth{unknown: key}
}

// hasHeader compares a header. If the request has none of the name, callers or proxies may still add it: unknown says so,
// and is empty if the request is taken as it is.
func (r *ruling) hasHeader(name, want, unknown string) truth {
	have, found := r.call.Headers[name]
	switch {
	case found && name == "host":
		return truth{yes: matchesText(want, strings.ToLower(have))}
	case found:
		return truth{yes: matchesText(want, have)}
	}
	return truth{unknown: unknown}
}

// isCaller compares what the certificate of the callers names.
func (r *ruling) isCaller(key, value string) bool {
	who := r.call.Caller
	switch key {
	case keyNamespace:
		return matchesAsterisks(value, who.Namespace)
	case keyServiceAccount:
		namespace, account, found := strings.Cut(value, "/")
		if !found {
			namespace, account = r.policy.Namespace, value
		}
		return namespace == who.Namespace && account == who.ServiceAccount
	case keyTrustDomain:
		if slices.Contains(r.own(), value) {
			return slices.Contains(r.own(), r.domain())
		}
		return matchesAsterisks(value, r.domain())
	}
	return slices.ContainsFunc(r.principals(value), func(v string) bool { return matchesText(v, r.principal()) })
}

func (r *ruling) domain() string {
	domain, _ := r.call.Caller.InCluster()
	return domain
}

func (r *ruling) principal() string {
	return fmt.Sprintf("%s/ns/%s/sa/%s", r.domain(), r.call.Caller.Namespace, r.call.Caller.ServiceAccount)
}

// own are the trust domains that the mesh treats as its own.
func (r *ruling) own() []string { return append([]string{r.mesh.TrustDomain}, r.mesh.TrustAliases...) }

// principals are what a principal of a policy stands for: one of a trust domain of the mesh is one of all of these, and the default
// trust domain stands for them (Istio, trustdomain.Bundle.ReplaceTrustDomainAliases).
func (r *ruling) principals(value string) (out []string) {
	domain, rest, _ := strings.Cut(value, "/")
	if domain == "*" || strings.Count(rest, "/") != 3 || domain != snapshot.DefaultTrustDomain &&
		!slices.ContainsFunc(r.own(), func(own string) bool { return matchesText(domain, own) || matchesText(own, domain) }) {
		return []string{value}
	}
	for _, own := range r.own() {
		if strings.HasPrefix(domain, "*") && matchesText(domain, own) {
			out = append(out, value)
			continue
		}
		out = append(out, own+"/"+rest)
	}
	return out
}

// matchesText compares as the values of most conditions do: exact, with an asterisk for any beginning or any ending, or
// any text that is not empty.
func matchesText(want, have string) bool {
	switch before, isPrefix := strings.CutSuffix(want, "*"); {
	case want == "*":
		return have != ""
	case strings.HasPrefix(want, "*"):
		return strings.HasSuffix(have, want[1:])
	case isPrefix:
		return strings.HasPrefix(have, before)
	}
	return want == have
}

// matchesAsterisks compares where asterisks may be anywhere.
func matchesAsterisks(want, have string) bool {
	first, rest, found := strings.Cut(want, "*")
	if !found {
		return want == have
	}
	have, ok := strings.CutPrefix(have, first)
	if !ok {
		return false
	}
	for at := range len(have) + 1 {
		if matchesAsterisks(rest, have[at:]) {
			return true
		}
	}
	return false
}
