package istio

import (
	"cmp"
	"strings"

	security "istio.io/api/security/v1beta1"
	istiosecurityv1 "istio.io/client-go/pkg/apis/security/v1"

	"github.com/meshctl/meshctl/engine/inventory"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// peers are the PeerAuthentications that apply to a pod, the most specific first: of its namespace with a selector and
// without, and of the mesh.
type peers [3]*istiosecurityv1.PeerAuthentication

// peersOn finds them. Of several of one kind, the mesh uses the oldest (Istio, authn.ComposePeerAuthentication).
func (h *handWritten) peersOn(of *snapshot.PodQuery, labels map[string]string) (out peers) {
	use := func(i int, o *istiosecurityv1.PeerAuthentication) {
		if inRevision(of.Mesh, o) && (out[i] == nil || cmp.Or(o.CreationTimestamp.Compare(out[i].CreationTimestamp.Time), strings.Compare(o.Name, out[i].Name)) < 0) {
			out[i] = o
		}
	}
	for _, o := range h.peerAuthentications[of.Mesh.RootNamespace] {
		if len(o.Spec.GetSelector().GetMatchLabels()) == 0 {
			use(2, o)
		}
	}
	if of.Namespace == of.Mesh.RootNamespace {
		return out
	}
	for _, o := range h.peerAuthentications[of.Namespace] {
		switch want := o.Spec.GetSelector().GetMatchLabels(); {
		case len(want) == 0:
			use(1, o)
		case inventory.MatchLabels(want, labels):
			use(0, o)
		}
	}
	return out
}

func (p peers) objects(cluster string) (out []snapshot.Ref) {
	for _, o := range p {
		if o != nil {
			out = append(out, peerRef(cluster, o))
		}
	}
	return out
}

func peerRef(cluster string, o *istiosecurityv1.PeerAuthentication) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.PeerAuthentication, Cluster: cluster, Namespace: o.Namespace, Name: o.Name}
}

// TLS implements snapshot.Guard. Callers decide by what is for the whole namespace or mesh, and do not see that pods are told otherwise
// (Istio, PushContext.BestEffortInferServiceMTLSMode).
func (g *guard) TLS(podPort uint32) (snapshot.TLS, snapshot.Ref) {
	wanted, by := g.wanted(podPort)
	callers, of := (&guard{cluster: g.cluster, peers: peers{nil, g.peers[1], g.peers[2]}}).wanted(podPort)
	switch {
	case callers != snapshot.TLSNone || wanted == snapshot.TLSNone:
		return wanted, by
	case wanted == snapshot.TLSMutual:
		return snapshot.TLSUnmet, by
	}
	return snapshot.TLSUnused, of
}

// wanted is what the pods want.
func (g *guard) wanted(podPort uint32) (snapshot.TLS, snapshot.Ref) {
	if o := g.peers[0]; o != nil {
		if mode := o.Spec.PortLevelMtls[podPort].GetMode(); mode != security.PeerAuthentication_MutualTLS_UNSET {
			return tlsOf(mode), peerRef(g.cluster, o)
		}
	}
	for _, o := range g.peers {
		if o == nil {
			continue
		}
		if mode := o.Spec.GetMtls().GetMode(); mode != security.PeerAuthentication_MutualTLS_UNSET {
			return tlsOf(mode), peerRef(g.cluster, o)
		}
	}
	return snapshot.TLSAny, snapshot.Ref{}
}

func tlsOf(mode security.PeerAuthentication_MutualTLS_Mode) snapshot.TLS {
	switch mode {
	case security.PeerAuthentication_MutualTLS_DISABLE:
		return snapshot.TLSNone
	case security.PeerAuthentication_MutualTLS_STRICT:
		return snapshot.TLSMutual
	}
	return snapshot.TLSAny
}
