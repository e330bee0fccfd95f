package explain

import (
	"fmt"

	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// toAddress follows requests that the caller's proxy sends to the address that the caller asked for: to a pod of the called service, if
// that is one of the caller's own cluster. Past is set if the proxy knows nothing of it.
func (t *trace) toAddress(o ProxyOutcome, c envoy.Connection, past bool, request envoy.Request) {
	d := t.destinations[t.why.To]
	known := d != nil && d.Destination.Spec.KubeService != nil && d.Mesh != nil && d.Mesh.Ref == t.mesh.Ref
	var pods []envoy.Connection
	if known && (past || d.Destination.Spec.KubeService.Headless) {
		pods = t.resolvedBy(d, c)
	}
	switch {
	case len(pods) > 0:
		if o.Host == t.why.Host {
			o.Subset = "" // of no matter
		}
		if past && t.saysPast() {
			o.Host, o.Port = t.why.Host, t.why.Request.Port
		}
		t.connections(o, pods, request)
		return
	case past:
		o.Verdict, o.Reason = Unknown, "the proxy knows nothing of "+t.why.Host+", and passes the request on to the address that the caller asked for, without an identity"
	default:
		o.Verdict, o.Reason = Unknown, fmt.Sprintf("the proxy sends requests for %s to the address that the caller asked for, which is not evaluated", o.target())
	}
	t.out.Outcomes = append(t.out.Outcomes, o)
}

// saysPast reports whether that follows from the objects, too.
func (t *trace) saysPast() bool {
	for i := range t.why.Outcomes {
		if t.why.Outcomes[i].past {
			return true
		}
	}
	return false
}

// resolvedBy are the connections to the pods of a service: at the port of the request if it is headless, as then nothing translates it
// (kubernetes.io: headless Services), and else where they serve it. What is no pod has no endpoint in Kubernetes.
func (t *trace) resolvedBy(d *snapshot.DestinationPlan, c envoy.Connection) (out []envoy.Connection) {
	k := d.Destination.Spec.KubeService
	for i := range k.EndpointSubsets {
		part := &k.EndpointSubsets[i]
		port, serves := snapshot.SubsetPort(k, part, t.why.Request.Port)
		if part.Machines || !serves {
			continue
		}
		if k.Headless {
			port = t.why.Request.Port
		}
		for _, e := range part.Endpoints {
			c.Endpoint = envoy.Endpoint{Address: e.IpAddress, Port: port}
			out = append(out, c)
		}
	}
	return out
}
