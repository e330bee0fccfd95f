package istio

import (
	"slices"
	"strconv"
	"strings"

	networking "istio.io/api/networking/v1alpha3"
	istionetworkingv1 "istio.io/client-go/pkg/apis/networking/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/meshctl/meshctl/engine/api/gateway/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ignorePolicy is the annotation of BackendTLSPolicies that are for other implementations.
const ignorePolicy = "istio.io/ignore-policy-attachment"

const (
	// backendTLSRelease is the first release 1.x of istiod that heeds BackendTLSPolicies of version v1, which it does unless told otherwise.
	backendTLSRelease = 28
	// userRuleRelease is the first one in which a DestinationRule for the same host prevails, and that heeds ignorePolicy.
	userRuleRelease = 31
)

// backendRules are the DestinationRules that Istio makes of BackendTLSPolicies (Istio, gateway.BackendTLSPolicyCollection).
type backendRules struct {
	of map[backendKey]*istionetworkingv1.DestinationRule
	// ref finds the policy of each.
	ref map[*istionetworkingv1.DestinationRule]snapshot.Ref
	// ignored are those with ignorePolicy.
	ignored map[snapshot.Ref]bool
	// named: some are for a port by its name, which Services tell.
	named bool
}

// backendKey is a policy and one of the hosts that it is for.
type backendKey struct {
	ref  snapshot.Ref
	host string
}

// newBackendRules reads the BackendTLSPolicies of a cluster, and adds them to an index.
func newBackendRules(c *snapshot.Cluster, index *hostIndex) backendRules {
	b := backendRules{
		of: map[backendKey]*istionetworkingv1.DestinationRule{}, ref: map[*istionetworkingv1.DestinationRule]snapshot.Ref{}, ignored: map[snapshot.Ref]bool{},
	}
	for o := range snapshot.Each[*gatewayv1.BackendTLSPolicy](c.OfMeshes[snapshot.BackendTLSPolicy]) {
		ref := snapshot.Ref{Kind: snapshot.BackendTLSPolicy, Cluster: c.Name, Namespace: o.Namespace, Name: o.Name}
		if strings.EqualFold(o.Annotations[ignorePolicy], "true") {
			b.ignored[ref] = true
		}
		for _, target := range o.Spec.TargetRefs {
			b.named = b.named || target.SectionName != nil
			for _, host := range backendHosts(c, o.Namespace, target) {
				key := backendKey{ref, host}
				rule := b.of[key]
				if rule == nil {
					rule = &istionetworkingv1.DestinationRule{
						ObjectMeta: aged(o.ObjectMeta),
						Spec:       networking.DestinationRule{Host: host, TrafficPolicy: &networking.TrafficPolicy{}},
					}
				}
				if !setBackendTLS(rule.Spec.TrafficPolicy, c, o.Namespace, target) {
					continue
				}
				if b.of[key] == nil {
					b.of[key], b.ref[rule] = rule, ref
					index.add(c, snapshot.BackendTLSPolicy, o, []string{host}, nil)
				}
			}
		}
	}
	return b
}

// backendHosts are the hosts of the target of a policy in a namespace; none if it is of a kind that is not heeded.
func backendHosts(c *snapshot.Cluster, namespace string, target gatewayv1.PolicyTarget) (hosts []string) {
	switch {
	case target.Group == "" && target.Kind == "Service":
		return []string{target.Name + "." + namespace + ".svc." + c.DomainOrDefault()}
	case target.Group == istionetworkingv1.SchemeGroupVersion.Group && target.Kind == snapshot.ServiceEntry.String():
		for o := range snapshot.Each[*istionetworkingv1.ServiceEntry](c.OfMeshes[snapshot.ServiceEntry]) {
			if o.Namespace == namespace && o.Name == target.Name {
				hosts = append(hosts, o.Spec.Hosts...)
			}
		}
	}
	return hosts
}

// setBackendTLS has callers of the target do TLS; false if the target has no port of the name. Ports of ServiceEntries have no names
// here: then it is for all.
func setBackendTLS(policy *networking.TrafficPolicy, c *snapshot.Cluster, namespace string, target gatewayv1.PolicyTarget) bool {
	tls := &networking.ClientTLSSettings{Mode: networking.ClientTLSSettings_SIMPLE}
	if target.SectionName == nil || *target.SectionName == "" || target.Kind != "Service" {
		policy.Tls = tls
		return true
	}
	at := slices.IndexFunc(c.Services, func(s *corev1.Service) bool { return s.Namespace == namespace && s.Name == target.Name })
	if at < 0 {
		return false
	}
	for _, port := range c.Services[at].Spec.Ports {
		if port.Name == *target.SectionName {
			policy.PortLevelSettings = append(policy.PortLevelSettings, &networking.TrafficPolicy_PortTrafficPolicy{
				Port: &networking.PortSelector{Number: uint32(port.Port)}, Tls: tls,
			})
			return true
		}
	}
	return false
}

// heeds reports whether the control plane of a mesh makes a rule of a policy. One whose release is not known is taken for a new one.
func (b *backendRules) heeds(mesh *snapshot.MeshPlan, ref snapshot.Ref) bool {
	if isBefore(mesh, backendTLSRelease) {
		return false
	}
	return !b.ignored[ref] || isBefore(mesh, userRuleRelease)
}

// isBefore reports whether the control plane of a mesh is known to be of a release before 1.minor.
func isBefore(mesh *snapshot.MeshPlan, minor int) bool {
	installation := installationOf(mesh)
	major, rest, _ := strings.Cut(strings.TrimPrefix(installation, "v"), ".")
	text, _, _ := strings.Cut(rest, ".")
	text, _, _ = strings.Cut(text, "-")
	found, err := strconv.Atoi(text)
	return err == nil && major == "1" && found < minor
}

// installationOf is the release of the control plane of a mesh; empty if it is not known.
func installationOf(mesh *snapshot.MeshPlan) string {
	if mesh.Mesh == nil || mesh.Mesh.Spec.Istio == nil {
		return ""
	}
	return mesh.Mesh.Spec.Istio.Installation.Version
}

// policyOf is what some rules that are merged say for a port, and the one that says it first. What users say of TLS prevails over
// BackendTLSPolicies, but not in each release: then unclear says so in a clause (Istio, PushContext.mergeDestinationRule).
func (b *backendRules) policyOf(mesh *snapshot.MeshPlan, rules []*istionetworkingv1.DestinationRule, port uint32) (policy *networking.TrafficPolicy, by *istionetworkingv1.DestinationRule, unclear string) {
	var backend *istionetworkingv1.DestinationRule
	for _, o := range rules {
		switch _, isBackend := b.ref[o]; {
		case isBackend && backend == nil:
			backend = o
		case !isBackend && policy == nil && o.Spec.TrafficPolicy != nil:
			policy, by = o.Spec.TrafficPolicy, o
		}
	}
	switch {
	case backend == nil:
		return policy, by, ""
	case policy == nil:
		return backend.Spec.TrafficPolicy, backend, ""
	}
	tls, _ := tlsFor(backend.Spec.TrafficPolicy, port)
	own := endpointTLS(port, policy)
	if tls == nil || own != nil && !isBefore(mesh, userRuleRelease) {
		return policy, by, ""
	}
	if own != nil {
		return policy, by, "says otherwise than " + b.ref[backend].String() + ": which of the two its mesh uses depends on the release"
	}
	merged := policy.DeepCopy()
	at := slices.IndexFunc(merged.PortLevelSettings, func(s *networking.TrafficPolicy_PortTrafficPolicy) bool {
		return s.GetPort().GetNumber() == port && port != 0
	})
	if at < 0 {
		merged.Tls = tls
		return merged, backend, ""
	}
	// Settings of a port inherit nothing of what is for all.
	for _, s := range backend.Spec.TrafficPolicy.PortLevelSettings {
		if s.GetPort().GetNumber() == port {
			merged.PortLevelSettings[at].Tls = s.GetTls()
			return merged, backend, ""
		}
	}
	merged.Tls = tls
	return merged, by, ""
}

// stripBackendTLS keeps for what it is, and that it is for Istio.
func stripBackendTLS(o *gatewayv1.BackendTLSPolicy) {
	ignore := o.Annotations[ignorePolicy]
	o.TypeMeta, o.ObjectMeta = metav1.TypeMeta{}, aged(o.ObjectMeta)
	if ignore != "" {
		o.Annotations = map[string]string{ignorePolicy: ignore}
	}
}
