package pki

import (
	"crypto/x509"
	"slices"
	"strings"
)

// checkWanted checks whose a certificate is and that a workload's is no CA.
func checkWanted(cert *x509.Certificate, want Want) error {
	if want.Usage == ForWorkload && cert.IsCA {
		return &Error{Object: name(cert), Reason: WrongUsage, Problem: "is a CA, not a workload", Next: "use a certificate that istiod signed"}
	}
	have := hostsOf(cert.URIs, cert.DNSNames)
	if err := checkTrustDomains(name(cert), have, want.TrustDomains); err != nil {
		return err
	}
	if len(want.Hosts) == 0 || slices.ContainsFunc(have, func(host string) bool { return slices.Contains(want.Hosts, host) }) {
		return nil
	}
	return &Error{
		Object: name(cert), Reason: WrongIdentity, Problem: "is that of " + list(have) + ", not of " + list(sorted(want.Hosts)),
		Next: "check which workload answers, and its service account", Have: have, Want: sorted(want.Hosts),
	}
}

// checkTrustDomains checks that there is a SPIFFE identity, and that all URIs are identities of these trust domains.
func checkTrustDomains(object string, hosts, domains []string) error {
	if len(domains) == 0 {
		return nil
	}
	found := false
	for _, host := range hosts {
		if !strings.Contains(host, "://") {
			continue
		}
		domain, ok := TrustDomain(host)
		if found = true; ok && slices.Contains(domains, domain) {
			continue
		}
		found = false
		break
	}
	if found {
		return nil
	}
	return &Error{
		Object: object, Reason: WrongTrustDomain, Problem: "is for " + list(hosts) + ", not of the trust domain " + list(sorted(domains)),
		Next: "compare the trust domain in the mesh's MeshConfig, and its aliases", Have: hosts, Want: sorted(domains),
	}
}

// checkConstraints checks the constraints on URIs as BoringSSL does: a domain is that host, a domain with a leading dot is
// the hosts below it. crypto/x509 also takes the hosts below the former.
func (c Chain) checkConstraints() error {
	for i, ca := range c {
		if len(ca.PermittedURIDomains) == 0 {
			continue
		}
		for _, cert := range c[:i] {
			for _, uri := range cert.URIs {
				if slices.ContainsFunc(ca.PermittedURIDomains, func(domain string) bool { return permits(domain, uri.Hostname()) }) {
					continue
				}
				return &Error{
					Object: name(ca), Reason: NameNotPermitted,
					Problem: "permits only identities of " + list(ca.PermittedURIDomains) + ", not " + shown(uri.String()),
					Next:    "issue the CA again for the trust domains that the mesh has now, or correct the mesh's trust domain",
					Have:    []string{uri.String()}, Want: ca.PermittedURIDomains,
				}
			}
		}
	}
	return nil
}

func permits(domain, host string) bool {
	if strings.HasPrefix(domain, ".") {
		return len(host) > len(domain) && strings.EqualFold(host[len(host)-len(domain):], domain)
	}
	return strings.EqualFold(host, domain)
}
