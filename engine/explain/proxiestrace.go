package explain

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// targets follows the request to each target of its route.
func (t *trace) targets(config *envoy.Config, sent *envoy.Sent, request envoy.Request) {
	var sum float64
	for _, target := range sent.Targets {
		sum += float64(target.Weight)
	}
	for i := range sent.Targets {
		if len(t.out.Outcomes) >= maxOutcomes {
			t.note(fmt.Sprintf("the route has %s: not all were looked at", snapshot.Count(len(sent.Targets), "target")))
			break
		}
		target := &sent.Targets[i]
		outcome := ProxyOutcome{Share: whole, Target: clip(target.Name)}
		if sum > 0 {
			outcome.Share = whole * float64(target.Weight) / sum
		}
		named, passes := t.names.Target(target.Name)
		if t.names.PodPorts {
			named.Port = t.servicePort(named)
		}
		outcome.Host, outcome.Port, outcome.Subset = clip(named.Host), named.Port, clip(named.Subset)
		for _, ref := range t.hosts(t.mesh, nil, named.Host) {
			if d := t.destinations[ref]; d != nil && d.Destination.Spec.KubeService != nil {
				t.addService(d.Destination.Spec.KubeService)
			}
		}
		connections, reason := config.Connect(target.Name)
		switch {
		case passes:
			if sent.Route != nil {
				t.toAddress(outcome, envoy.Connection{}, true, request.Changed(target, sent.Route))
			} else {
				t.toAddress(outcome, envoy.Connection{}, true, request)
			}
			continue
		case reason != "":
			outcome.Verdict, outcome.Reason = Unreachable, "in the proxy of the caller: "+clip(reason)
			if c := config.Cluster(target.Name); c != nil {
				outcome.by(t.origin(c.Metadata))
			}
		case named.Host == "" || t.isOutside(connections):
			outcome.Verdict, outcome.Reason = Unknown, outcome.target()+" is outside of all clusters: what becomes of the requests there is not known"
		case len(connections) == 1 && connections[0].Endpoint.Address == "":
			t.toAddress(outcome, connections[0], false, request.Changed(target, sent.Route))
			continue
		default:
			t.connections(outcome, connections, request.Changed(target, sent.Route))
			continue
		}
		t.out.Outcomes = append(t.out.Outcomes, outcome)
	}
}

// isOutside reports whether none of some endpoints is in the network of a cluster, as far as services are known.
func (t *trace) isOutside(connections []envoy.Connection) bool {
	return len(t.services) == 0 && !slices.ContainsFunc(connections, func(c envoy.Connection) bool {
		_, gw := t.gatewayAt(t.mesh.Cluster, c.Endpoint)
		return gw != nil
	})
}

// by adds an object that decides.
func (o *ProxyOutcome) by(ref snapshot.Ref) {
	if ref != (snapshot.Ref{}) && !slices.Contains(o.By, ref) {
		o.By = append(o.By, ref)
	}
}

// connections follows a request to the endpoints of a target: to one pod of each workload.
func (t *trace) connections(outcome ProxyOutcome, connections []envoy.Connection, request envoy.Request) {
	cluster, seen := t.mesh.Cluster, map[string]bool{}
	if more := len(connections) - maxEndpoints; more > 0 {
		t.note(fmt.Sprintf("%s of %s were not looked at", snapshot.Count(more, "endpoint"), outcome.Target))
		connections = connections[:maxEndpoints]
	}
	for _, c := range connections {
		o := outcome
		if c.TLS && c.Certificate {
			o.Identity = t.why.Identity
		}
		request.Principal = o.Identity
		if mesh, gw := t.gatewayAt(cluster, c.Endpoint); gw != nil {
			if key := gw.Service.String(); !seen[key] {
				seen[key] = true
				t.throughGateway(o, mesh, gw, c, request, maxGateways)
			}
			continue
		}
		t.toPod(o, cluster, c.Endpoint, c, request, seen)
	}
}

// toPod asks the proxy of a called pod, unless one of the same owner was asked already.
func (t *trace) toPod(o ProxyOutcome, cluster string, e envoy.Endpoint, c envoy.Connection, request envoy.Request, seen map[string]bool) {
	pod, err := t.podAt(cluster, e.Address)
	key := e.Address
	if pod != nil {
		key, o.Pod = pod.Owner, pod
	}
	if seen[key] {
		return
	}
	seen[key] = true
	if t.asked == maxAsked {
		t.note(fmt.Sprintf("more than %d pods were not asked", maxAsked))
		return
	}
	t.asked++
	switch {
	case err != nil:
		o.Verdict, o.Reason = Unknown, err.Error()
	case pod == nil:
		o.Verdict, o.Reason = Unknown, fmt.Sprintf("the endpoint %s:%d is no pod of %s that was found: it may have ended, and proxies not know that yet", e.Address, e.Port, cluster)
	case pod.Gateway:
		o.Verdict, o.Reason = Unknown, "pod "+pod.String()+" is a gateway: what gateways do with requests is not evaluated"
	case !slices.Contains(pod.Containers, t.names.Container) && !pod.Ambient:
		o.withoutSidecar(c)
	case c.Doubt != "":
		o.Verdict, o.Reason = Unknown, "not evaluated: "+c.Doubt
	default:
		in := envoy.Incoming{Address: e.Address, Port: e.Port, TLS: c.TLS, NoCertificate: !c.Certificate, SNI: c.SNI, ALPN: c.ALPN, Connection: t.connection}
		if !t.connection {
			in.Plain = []string{"http/1.1"}
		}
		t.receive(&o, pod, cluster, in, request)
	}
	o.Reason = clip(o.Reason)
	t.out.Outcomes = append(t.out.Outcomes, o)
}

// withoutSidecar sets what becomes of a request at a pod in which no proxy decides.
func (o *ProxyOutcome) withoutSidecar(c envoy.Connection) {
	switch {
	case c.TLS && c.Certificate:
		o.Verdict, o.Reason = Unreachable, "the callers come with mutual TLS, and pod "+o.Pod.String()+" has no sidecar that takes it"
	case c.TLS || c.Doubt != "":
		o.Verdict, o.Reason = Unknown, "pod "+o.Pod.String()+" has no sidecar: whether the application takes TLS is not known"
	default:
		o.Verdict, o.Reason = Allowed, "pod "+o.Pod.String()+" has no sidecar, so that nothing there decides who calls it"
	}
}

// receive sets what the proxy of a called pod does with a request.
func (t *trace) receive(o *ProxyOutcome, pod *ProxyPod, cluster string, in envoy.Incoming, request envoy.Request) {
	config, err := t.read(pod)
	if err != nil {
		o.Verdict, o.Reason = Unknown, err.Error()
		return
	}
	got := config.Receive(in, request)
	mesh := &snapshot.MeshPlan{Cluster: cluster}
	for _, name := range got.Passage.Allowed {
		o.by(t.policyOf(name, mesh))
	}
	switch d := &got.Passage.Decision; {
	case got.Passage.Answer == envoy.No && d.Policy != "":
		o.By = nil
		o.by(t.policyOf(d.Policy, mesh))
		o.Verdict, o.Reason = Refused, fmt.Sprintf("pod %s: policy %s denies it", pod, d.Policy)
	case got.Passage.Answer == envoy.No:
		o.By = nil
		for _, name := range d.Policies {
			o.by(t.policyOf(name, mesh))
		}
		o.Verdict, o.Reason = Refused, fmt.Sprintf("pod %s lets in only what a policy allows, and none does: it has %s", pod, orNone(d.Policies))
	case got.Stopped != "":
		o.Verdict, o.Reason = Unreachable, "pod "+pod.String()+": "+got.Stopped
		if got.Status != 0 {
			o.Reason += fmt.Sprintf(" (status %d)", got.Status)
		}
	case got.Passage.Answer == envoy.Unknown:
		o.Verdict, o.Reason = Unknown, "not evaluated at pod "+pod.String()+": "+firstOf(got.Passage.Doubts)
	default:
		o.Verdict, o.Reason = Allowed, "pod "+pod.String()+" lets it in"
		if len(got.Passage.Allowed) > 0 {
			o.Reason += ", by policy " + firstOf(got.Passage.Allowed)
		}
	}
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "no policies"
	}
	return firstOf(names)
}

// policyOf is the object that a policy in a proxy of a mesh comes from.
func (t *trace) policyOf(name string, mesh *snapshot.MeshPlan) snapshot.Ref {
	ref := t.names.Policy(name)
	if ref != (snapshot.Ref{}) {
		ref.Cluster = mesh.Cluster
	}
	return ref
}

// abort lets the caller's proxy answer requests itself.
func (t *trace) abort(abort *envoy.FaultAbort) {
	if abort == nil {
		return
	}
	p, share := t.out, abort.Percentage.Percent()
	by := fmt.Sprintf("the proxy of the caller answers %s with status %d itself", ofRequests(share), abort.HTTPStatus)
	switch {
	case share >= whole:
		p.Verdict, p.Reason, p.Outcomes = Unreachable, by, []ProxyOutcome{}
	case share > 0 && p.Verdict == Allowed:
		p.Verdict, p.Reason = Partly, by
	}
}

// conclude sets the verdict that follows from what the caller's proxy does, and from the outcomes.
func (t *trace) conclude() {
	p, sent := t.out, t.out.sent
	slices.SortStableFunc(p.Outcomes, func(a, b ProxyOutcome) int { return cmp.Compare(b.Share, a.Share) })
	var all Why
	for i := range p.Outcomes {
		o := &p.Outcomes[i]
		all.Outcomes = append(all.Outcomes, Outcome{Share: &o.Share, Host: o.target(), Verdict: o.Verdict, Reason: o.Reason})
	}
	passage := &sent.Passage
	switch {
	case passage.Answer == envoy.No:
		p.Verdict, p.Reason = Refused, "the proxy of the caller refuses it: "+passage.Filter+prefixed(", policy ", passage.Decision.Policy)
	case len(passage.Doubts) > 0:
		p.Verdict, p.Reason = Unknown, "not evaluated in the proxy of the caller: "+firstOf(passage.Doubts)
	case sent.Stopped != "":
		p.Verdict, p.Reason = Unreachable, "the proxy of the caller sends nothing on: "+sent.Stopped
		if sent.Status != 0 {
			p.Reason += fmt.Sprintf(" (status %d)", sent.Status)
		}
	default:
		all.conclude()
		p.Verdict, p.Reason = all.Verdict, all.Reason
		t.abort(passage.Abort)
	}
	p.Reason = clip(p.Reason)
}
