package istio

import (
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"
	networking "istio.io/api/networking/v1alpha3"

	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// sharedRule is a DestinationRule that was rendered for a view with the same content.
type sharedRule struct {
	view    *snapshot.View
	content *snapshot.Content
}

// destinationRule renders the connection settings of a view; nothing if there are none.
func (r *builder) destinationRule(view *snapshot.View, remote bool) {
	if r.plan.ThroughGateways(view.Mesh) && view.Outlier != nil {
		// One pod that fails would take the gateway with all pods away.
		callers := *view
		callers.Outlier = nil
		view = &callers
	}
	relayed := remote && r.plan.Federation.Limited
	policy := trafficPolicy(view)
	if policy == nil && len(view.Subsets) == 0 && !relayed {
		return
	}
	ref := r.place(snapshot.DestinationRule, view, remote)
	if remote {
		for _, s := range r.rules {
			if sameRule(s.view, view) {
				r.add(ref, s.content)
				return
			}
		}
	}
	spec := &networking.DestinationRule{Host: view.Host, TrafficPolicy: policy, Subsets: subsetsOf(view.Subsets)}
	if relayed {
		r.nameToGateways(spec, &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_ISTIO_MUTUAL})
	}
	content := related(r.content(spec, remote, r.parents(remote, r.ruleOrigins(view)...)), nil, subsetNames(spec))
	if remote {
		r.rules = append(r.rules, sharedRule{view, content})
	}
	r.add(ref, content)
}

func sameRule(a, b *snapshot.View) bool {
	return a.Host == b.Host && a.Outlier == b.Outlier && a.TLS == b.TLS && a.KeepAlive == b.KeepAlive &&
		snapshot.SameSlice(a.Subsets, b.Subsets)
}

// ruleOrigins are the policies that set the connection settings of a view.
func (r *builder) ruleOrigins(view *snapshot.View) []snapshot.Ref {
	var out []snapshot.Ref
	for _, p := range r.plan.RequiredSubsets {
		out = append(out, snapshot.RefOf(snapshot.TrafficPolicy, p.Policy))
	}
	if view.Outlier != nil {
		out = append(out, view.Outlier.Origin.Ref)
	}
	if view.TLS != nil {
		out = append(out, view.TLS.Origin.Ref)
	}
	return out
}

func subsetsOf(list []snapshot.Subset) []*networking.Subset {
	var out []*networking.Subset
	for _, s := range list {
		out = append(out, &networking.Subset{Name: s.Name, Labels: s.Labels})
	}
	return out
}

// trafficPolicy is nil if the view has no connection settings.
func trafficPolicy(view *snapshot.View) *networking.TrafficPolicy {
	if view.Outlier == nil && view.TLS == nil && view.KeepAlive == nil {
		return nil
	}
	out := &networking.TrafficPolicy{}
	if view.TLS != nil {
		out.Tls = &networking.ClientTLSSettings{Mode: tlsMode(view.TLS.Value)}
	}
	if o := view.Outlier; o != nil {
		out.OutlierDetection = &networking.OutlierDetection{
			Consecutive_5XxErrors: wrapperspb.UInt32(o.Value.ConsecutiveErrors),
			Interval:              durationpb.New(o.Value.Interval.Duration),
			BaseEjectionTime:      durationpb.New(o.Value.BaseEjectionTime.Duration),
			MaxEjectionPercent:    int32(o.Value.MaxEjectionPercent),
		}
	}
	if k := view.KeepAlive; k != nil {
		out.ConnectionPool = connectionPool(k)
	}
	return out
}

func connectionPool(k *snapshot.WithOrigin[snapshot.KeepAlive]) *networking.ConnectionPoolSettings {
	return &networking.ConnectionPoolSettings{Tcp: &networking.ConnectionPoolSettings_TCPSettings{
		TcpKeepalive: &networking.ConnectionPoolSettings_TCPSettings_TcpKeepalive{
			Probes: k.Value.Probes, Time: seconds(k.Value.Time), Interval: seconds(k.Value.Interval),
		},
	}}
}

func tlsMode(mode networkingv1.TLSMode) networking.ClientTLSSettings_TLSmode {
	switch mode {
	case networkingv1.TLSModeIstioMutual:
		return networking.ClientTLSSettings_ISTIO_MUTUAL
	case networkingv1.TLSModeSimple:
		return networking.ClientTLSSettings_SIMPLE
	default:
		return networking.ClientTLSSettings_DISABLE
	}
}
