// Package netpolicy says which connections the NetworkPolicies of a cluster let through, as far as objects tell: whether a cluster
// enforces them at all is up to its network plugin (https://kubernetes.io/docs/concepts/services-networking/network-policies/).
package netpolicy

import (
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// Policies are those of a cluster. Nil has none, and lets everything through.
type Policies struct {
	cluster    string
	of         map[string][]*policy // by namespace
	namespaces map[string]labels.Set
}

// policy is a NetworkPolicy with its selectors read.
type policy struct {
	*networkingv1.NetworkPolicy
	pods labels.Selector
	// into and outOf: it isolates its pods for connections of that direction, and has the rules that let some through.
	into, outOf     bool
	ingress, egress []rule
}

// rule lets connections through from or to any of peers, nil for all, at any of ports, nil for all.
type rule struct {
	peers []peer
	ports []networkingv1.NetworkPolicyPort
}

// peer is pods, or addresses if block is set.
type peer struct {
	pods, namespaces labels.Selector // nil selects the pods of the policy's own namespace, and all pods of a namespace
	block            *networkingv1.IPBlock
}

// New reads the NetworkPolicies of a cluster; nil if it has none.
func New(c *snapshot.Cluster) *Policies {
	if c == nil || len(c.NetworkPolicies) == 0 {
		return nil
	}
	out := &Policies{cluster: c.Name, of: map[string][]*policy{}, namespaces: map[string]labels.Set{}}
	for _, ns := range c.Namespaces {
		of := labels.Set{corev1.LabelMetadataName: ns.Name} // set by API servers; folders leave it out
		maps.Copy(of, ns.Labels)
		out.namespaces[ns.Name] = of
	}
	for _, o := range c.NetworkPolicies {
		out.of[o.Namespace] = append(out.of[o.Namespace], read(o))
	}
	return out
}

func read(o *networkingv1.NetworkPolicy) *policy {
	p := &policy{NetworkPolicy: o, pods: selector(&o.Spec.PodSelector)}
	// Without policyTypes, a policy is for Ingress, and for Egress if it has rules for that.
	p.into = len(o.Spec.PolicyTypes) == 0 || slices.Contains(o.Spec.PolicyTypes, networkingv1.PolicyTypeIngress)
	p.outOf = len(o.Spec.PolicyTypes) == 0 && len(o.Spec.Egress) > 0 || slices.Contains(o.Spec.PolicyTypes, networkingv1.PolicyTypeEgress)
	for i := range o.Spec.Ingress {
		p.ingress = append(p.ingress, rule{peers(o.Spec.Ingress[i].From), o.Spec.Ingress[i].Ports})
	}
	for i := range o.Spec.Egress {
		p.egress = append(p.egress, rule{peers(o.Spec.Egress[i].To), o.Spec.Egress[i].Ports})
	}
	return p
}

func peers(all []networkingv1.NetworkPolicyPeer) (out []peer) {
	for i := range all {
		p := peer{block: all[i].IPBlock}
		if s := all[i].PodSelector; s != nil {
			p.pods = selector(s)
		}
		if s := all[i].NamespaceSelector; s != nil {
			p.namespaces = selector(s)
		}
		out = append(out, p)
	}
	return out
}

// selector reads a selector; one that API servers do not take selects nothing.
func selector(s *metav1.LabelSelector) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil {
		return labels.Nothing()
	}
	return out
}

// Side is one end of a connection.
type Side struct {
	// Namespace and Labels are those of a pod of the cluster; no Namespace stands for what is outside of it.
	Namespace string
	Labels    map[string]string
	// Addresses, if known.
	Addresses []string
	// Ports are those of a pod that have names, as far as they are known.
	Ports map[string]uint32
}

// Verdict is what NetworkPolicies do with a connection.
type Verdict uint8

const (
	// Passes: they let it through.
	Passes Verdict = iota
	// MayPass: a rule may let it through, by an address or the name of a port, which are not known.
	MayPass
	// Stays: no rule lets it through.
	Stays
)

// Ask says whether a connection gets through to a port, and which policies isolate the pods between which it does not for certain,
// ascending.
func (p *Policies) Ask(from, to Side, port uint32) (Verdict, []snapshot.Ref) {
	if p == nil {
		return Passes, nil
	}
	out, outBy := p.ask(from, to, target{port, to.Ports}, false)
	in, inBy := p.ask(to, from, target{port, to.Ports}, true)
	by := append(outBy, inBy...)
	slices.SortFunc(by, snapshot.Ref.Compare)
	return max(out, in), slices.Compact(by)
}

// target is the port of a connection, and what is known of the names of ports there.
type target struct {
	port  uint32
	names map[string]uint32
}

// ask is about the policies of one end.
func (p *Policies) ask(own, other Side, at target, into bool) (Verdict, []snapshot.Ref) {
	best, isolated := Stays, false
	var by []snapshot.Ref
	for _, x := range p.of[own.Namespace] {
		if own.Namespace == "" || into && !x.into || !into && !x.outOf || !x.pods.Matches(labels.Set(own.Labels)) {
			continue
		}
		isolated = true
		by = append(by, snapshot.Ref{Kind: snapshot.NetworkPolicy, Cluster: p.cluster, Namespace: x.Namespace, Name: x.Name})
		rules := x.egress
		if into {
			rules = x.ingress
		}
		for _, r := range rules {
			best = min(best, max(p.reaches(r, own.Namespace, other), opens(r, at)))
		}
	}
	if !isolated || best == Passes {
		return Passes, nil
	}
	return best, by
}

// reaches says whether a rule of a policy in a namespace is for the other end.
func (p *Policies) reaches(r rule, namespace string, other Side) Verdict {
	if len(r.peers) == 0 {
		return Passes
	}
	best := Stays
	for _, peer := range r.peers {
		best = min(best, p.isFor(peer, namespace, other))
	}
	return best
}

func (p *Policies) isFor(peer peer, namespace string, other Side) Verdict {
	switch {
	case peer.block != nil:
		return holds(peer.block, other.Addresses)
	case other.Namespace == "":
		return Stays
	case peer.namespaces == nil && other.Namespace != namespace, peer.pods != nil && !peer.pods.Matches(labels.Set(other.Labels)):
		return Stays
	case peer.namespaces == nil:
		return Passes
	}
	known, found := p.namespaces[other.Namespace]
	switch {
	case peer.namespaces.Empty(), found && peer.namespaces.Matches(known):
		return Passes
	case !found: // folders may leave Namespaces out
		return MayPass
	}
	return Stays
}

// holds says whether a block has an end with some addresses. Which of several a connection has is not known.
func holds(block *networkingv1.IPBlock, addresses []string) Verdict {
	if len(addresses) == 0 {
		if (block.CIDR == "0.0.0.0/0" || block.CIDR == "::/0") && len(block.Except) == 0 {
			return Passes
		}
		return MayPass
	}
	all, some := true, false
	for _, text := range addresses {
		in := isIn(block.CIDR, text) && !slices.ContainsFunc(block.Except, func(cidr string) bool { return isIn(cidr, text) })
		all, some = all && in, some || in
	}
	switch {
	case all:
		return Passes
	case some:
		return MayPass
	}
	return Stays
}

func isIn(cidr, address string) bool {
	block, err := netip.ParsePrefix(cidr)
	if err != nil {
		return false
	}
	a, err := netip.ParseAddr(address)
	return err == nil && block.Contains(a.Unmap())
}

// opens says whether a rule is for a TCP port.
func opens(r rule, at target) Verdict {
	if len(r.ports) == 0 {
		return Passes
	}
	best := Stays
	for _, of := range r.ports {
		if of.Protocol != nil && *of.Protocol != corev1.ProtocolTCP {
			continue
		}
		switch {
		case of.Port == nil:
			return Passes
		case of.Port.StrVal != "": // the name of a port of a container
			if number, known := at.names[of.Port.StrVal]; !known {
				best = min(best, MayPass)
			} else if number == at.port {
				return Passes
			}
		case of.EndPort != nil && of.Port.IntVal <= int32(at.port) && int32(at.port) <= *of.EndPort, of.Port.IntVal == int32(at.port):
			return Passes
		}
	}
	return best
}

// Selects are the policies that isolate a pod for connections into it, and do not let everything in, ascending.
func (p *Policies) Selects(pod Side) (out []snapshot.Ref) {
	if p == nil {
		return nil
	}
	for _, x := range p.of[pod.Namespace] {
		if !x.into || !x.pods.Matches(labels.Set(pod.Labels)) {
			continue
		}
		if slices.ContainsFunc(x.ingress, func(r rule) bool { return len(r.peers) == 0 && len(r.ports) == 0 }) {
			return nil // policies add up
		}
		out = append(out, snapshot.Ref{Kind: snapshot.NetworkPolicy, Cluster: p.cluster, Namespace: x.Namespace, Name: x.Name})
	}
	slices.SortFunc(out, snapshot.Ref.Compare)
	return out
}
