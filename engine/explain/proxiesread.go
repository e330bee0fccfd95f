package explain

import (
	"fmt"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/envoy"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Bounds of one answer, as what proxies hold is not trusted: how many called pods are asked, how many outcomes and notes it has, how many
// endpoints of a target are looked at, and how long a text of a proxy may be.
const (
	maxAsked     = 20
	maxOutcomes  = 100
	maxNotes     = 20
	maxEndpoints = 1000
	maxText      = 300
)

// clip shortens a text of a proxy.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// trace follows a request from proxy to proxy.
type trace struct {
	*Index
	why     *Why
	proxies Proxies
	mesh    *snapshot.MeshPlan
	names   *snapshot.ProxyNames
	out     *InProxies
	// services are those behind which the called pods may be.
	services []*discoveryv1.KubeService
	asked    int
	// connection: the callers make a connection that their proxies do not read.
	connection bool
}

// AddProxies adds to an answer what the proxies hold: of one pod of the callers, of one of each workload where requests end, and of the
// gateways between them.
func AddProxies(x *Index, w *Why, proxies Proxies) {
	w.Proxies = &InProxies{Verdict: Unknown, Agrees: true, Differences: []ProxyDifference{}, Outcomes: []ProxyOutcome{}}
	t := &trace{Index: x, why: w, proxies: proxies, out: w.Proxies}
	if reason := t.follow(); reason != "" {
		t.out.Reason = reason
		return
	}
	t.conclude()
	t.compare()
}

// follow sets the outcomes; the reason says why there are none.
func (t *trace) follow() (reason string) {
	workload := t.workloads[t.why.From]
	if workload == nil || workload.Spec.Kubernetes == nil {
		return t.why.From.Name + " is no workload of Kubernetes"
	}
	k := workload.Spec.Kubernetes
	if t.mesh = t.meshOf(workload); t.mesh == nil || t.mesh.Dialect.Proxies == nil {
		return "what proxies of this kind of mesh hold is not evaluated"
	}
	t.names = t.mesh.Dialect.Proxies
	t.connection = t.traffic() != snapshot.Requests
	if t.why.Host == "" || t.why.Request.Port == 0 {
		return "the callers have no name for it, so there is nothing to ask their proxies for"
	}
	pods, err := t.proxies.Pods(k.Controller.ClusterName, k.Controller.Namespace, k.PodLabels)
	if err != nil {
		return err.Error()
	}
	if len(pods) == 0 {
		return "no pod of workload " + t.why.From.Name + " runs: start one"
	}
	config, err := t.read(&pods[0])
	if err != nil {
		return err.Error()
	}
	t.out.Caller = &pods[0]
	t.findServices()
	request := envoy.Request{Method: t.why.Request.Method, Path: t.why.Request.Path, Headers: t.why.Request.Headers, Host: t.why.Host}
	sent, reason := t.send(config, &pods[0], request)
	if reason != "" {
		return reason
	}
	t.out.sent, t.out.VirtualHost = &sent, clip(sent.VirtualHost)
	if sent.Route != nil {
		t.out.Route, t.out.Origin = clip(sent.Route.Name), t.origin(sent.Route.Metadata)
	}
	t.targets(config, &sent, request)
	return ""
}

// origin is the object that something in the caller's proxy comes from.
func (t *trace) origin(metadata envoy.Metadata) snapshot.Ref {
	ref := t.names.Origin(metadata.FilterMetadata)
	if ref != (snapshot.Ref{}) {
		ref.Cluster = t.mesh.Cluster
	}
	return ref
}

// read reads the configuration of a pod, and notes what its proxy refused.
func (t *trace) read(p *ProxyPod) (*envoy.Config, error) {
	switch {
	case slices.Contains(p.Containers, t.names.Container):
	case p.Ambient:
		return nil, fmt.Errorf("pod %s is in ambient mode: what ztunnel and waypoints hold is not evaluated", p)
	default:
		return nil, fmt.Errorf("pod %s has no sidecar (no container %s), so no proxy decides there; see: meshctl describe workload", p, t.names.Container)
	}
	config, err := t.proxies.Config(*p, t.names.AdminPort)
	if err != nil {
		return nil, err
	}
	for _, refused := range config.Refused {
		t.note("the proxy of pod " + p.String() + " refused " + clip(refused))
	}
	return config, nil
}

func (t *trace) note(text string) {
	if len(t.out.Notes) < maxNotes && !slices.Contains(t.out.Notes, text) {
		t.out.Notes = append(t.out.Notes, text)
	}
}

// findServices finds the services where requests may end: those of the answer's outcomes, and the called one.
func (t *trace) findServices() {
	refs := []snapshot.Ref{t.why.To}
	for i := range t.why.Outcomes {
		refs = append(refs, t.why.Outcomes[i].Destination)
	}
	for _, ref := range refs {
		if d := t.destinations[ref]; d != nil && d.Destination.Spec.KubeService != nil {
			t.addService(d.Destination.Spec.KubeService)
		}
	}
}

func (t *trace) addService(k *discoveryv1.KubeService) {
	if !slices.Contains(t.services, k) {
		t.services = append(t.services, k)
	}
}

// podAt finds the pod that has an address in a cluster.
func (t *trace) podAt(cluster, ip string) (*ProxyPod, error) {
	for _, k := range t.services {
		if k.Ref.ClusterName != cluster || len(k.WorkloadSelectorLabels) == 0 {
			continue
		}
		pods, err := t.proxies.Pods(cluster, k.Ref.Namespace, k.WorkloadSelectorLabels)
		if err != nil {
			return nil, err
		}
		for i := range pods {
			if slices.Contains(pods[i].IPs, ip) {
				return &pods[i], nil
			}
		}
	}
	return nil, nil
}
