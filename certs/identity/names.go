package identity

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"github.com/meshctl/meshctl/certs/pki"
)

// domainSuffix is that of the trust domain of a management plane's relay. It is no domain of a mesh.
const domainSuffix = ".meshctl"

// hubName is the path of the hub's identity.
const hubName = "/hub"

// clusterPath is the path of an agent's identity, before the name of its cluster.
const clusterPath = "/cluster/"

func domainOf(plane string) string { return "spiffe://" + strings.ToLower(plane) + domainSuffix }

// AgentName is the SPIFFE identity of the agent of a cluster.
func AgentName(plane, cluster string) string { return domainOf(plane) + clusterPath + cluster }

// HubName is the SPIFFE identity of the hub of a management plane.
func HubName(plane string) string { return domainOf(plane) + hubName }

// Named are the management plane and the cluster in the identity of an agent; false if it has none.
func Named(cert *x509.Certificate) (plane, cluster string, ok bool) {
	for _, uri := range cert.URIs {
		domain, isOurs := strings.CutSuffix(uri.Host, domainSuffix)
		if cluster, ok = strings.CutPrefix(uri.Path, clusterPath); ok && isOurs {
			return domain, cluster, true
		}
	}
	return "", "", false
}

// IsRelays reports whether a certificate says that it is of the relay's own root, and not of a user's PKI.
func IsRelays(cert *x509.Certificate) bool {
	return slices.Contains(cert.Subject.Organization, organization)
}

// ClusterOf is the cluster whose agent a certificate is of. In one of the user's own PKI, whose names cannot be chosen, it is the only DNS
// name, as in Gloo Mesh.
func ClusterOf(cert *x509.Certificate, plane string) (string, error) {
	for _, uri := range cert.URIs {
		if cluster, ok := strings.CutPrefix(uri.String(), domainOf(plane)+clusterPath); ok && cluster != "" && !strings.Contains(cluster, "/") {
			return cluster, nil
		}
	}
	if len(cert.URIs) == 0 && len(cert.DNSNames) == 1 {
		return cert.DNSNames[0], nil
	}
	return "", &pki.Error{
		Object: "certificate of an agent", Reason: pki.NotAllowed, Problem: fmt.Sprintf("names no cluster of the management plane %s", plane),
		Next: "use one with the URI " + AgentName(plane, "NAME") + ", or with the name of the cluster as its only DNS name",
	}
}
