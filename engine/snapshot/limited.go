package snapshot

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Limited trust: the members of a VirtualMesh keep their roots, and only their gateways trust
// each other (networkingv1.LimitedTrust). A connection between two members has three parts,
// each with TLS of its own:
//
//	caller to a gateway of its mesh     certificates of the caller's mesh
//	gateway to gateway                  certificates of the VirtualMesh's root (GatewaySecret)
//	gateway to service                  certificates of the service's mesh
//
// The SNI of all parts says which service is meant: RelayedSNI.

// inCluster stands between a trust domain and a cluster in IdentityDomain. It is in no trust
// domain (SPIFFE ID, 2.1).
const inCluster = "@"

// IdentityDomain is the trust domain of the mesh's callers as policies see them. Gateways of
// a Limited mesh know of which member a caller is, also if both have the same trust domain.
func (m *MeshPlan) IdentityDomain() string {
	if m.Limited {
		return m.TrustDomain + inCluster + m.Cluster
	}
	return m.TrustDomain
}

// InCluster divides an IdentityDomain into the trust domain and the cluster; that is empty where
// the trust domain alone tells callers apart.
func (id Identity) InCluster() (trustDomain, cluster string) {
	trustDomain, cluster, _ = strings.Cut(id.TrustDomain, inCluster)
	return trustDomain, cluster
}

// Names returns the trust domain by which the configuration of the mesh names callers; false
// if it cannot.
func (m *MeshPlan) Names(id Identity) (string, bool) {
	switch {
	case id.TrustDomain == m.IdentityDomain():
		return m.TrustDomain, m.Dialect.SPIFFE
	case strings.Contains(id.TrustDomain, inCluster):
		return "", false // it never connects to a service of the mesh itself
	case m.Limited && m.isOwnTrustDomain(id.TrustDomain):
		return "", false // it would be taken for a caller of the mesh
	}
	return id.TrustDomain, id.ExpressibleIn(m.TrustDomain)
}

// GatewayIdentity is what the gateways of a Limited mesh present to those of other members, as
// a SPIFFE ID. Its trust domain is no mesh's.
func GatewayIdentity(virtualMesh Ref, m *MeshPlan) string {
	return m.Dialect.Principal(virtualMesh.Name+"."+virtualMesh.Namespace+".virtualmesh", m.Namespace, m.Ref.Name)
}

// RelayedSNI names a port of a federated service, and a subset if it is not empty, to gateways.
// The hosts of Istio's Gateways are DNS names, which not all names of subsets can be part of.
func RelayedSNI(hostname string, port uint32, subset string) string {
	name := "p" + strconv.FormatUint(uint64(port), 10) + "." + hostname
	switch {
	case subset == "":
		return name
	case len(validation.IsDNS1123Label(subset)) > 0:
		sum := sha256.Sum256([]byte(subset))
		subset = "s" + hex.EncodeToString(sum[:8])
	}
	return subset + "." + name
}

// RelayedSNIs is the pattern, as of Istio's connection.sni, of all SNIs of a federated service.
func RelayedSNIs(hostname string) string { return "*." + hostname }

// RelayedHost is the host by which the gateways of callers know a federated service.
func RelayedHost(hostname, suffix string) string {
	return strings.TrimSuffix(hostname, suffix) + "relayed." + suffix
}
