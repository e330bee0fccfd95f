package identity

import (
	"crypto/elliptic"
	"crypto/x509"
	"io"
	"net/url"
	"slices"
	"time"

	"github.com/meshctl/meshctl/certs/pki"
)

// Lives of what is issued, and when it is renewed. A certificate that has expired may be renewed for a time: a hub that was away for two
// weeks costs no administrator.
const (
	rootLife = 10 * 365 * 24 * time.Hour
	// AgentLife is that of agents' certificates, and RenewAfter how long one is used.
	AgentLife  = 7 * 24 * time.Hour
	RenewAfter = 24 * time.Hour
	// Overdue is how long after its end a certificate may be renewed.
	Overdue = 30 * 24 * time.Hour
	// hubLife is that of the hub's.
	hubLife  = 30 * 24 * time.Hour
	backdate = time.Hour
)

const organization = "meshctl relay"

// NewKey makes a key for either side.
func NewKey(random io.Reader) (pki.Key, error) { return pki.NewECDSAKey(random, elliptic.P256()) }

// NewRoot makes the root of a management plane's relay.
func NewRoot(random io.Reader, now time.Time, plane string) (*pki.Authority, error) {
	key, err := NewKey(random)
	if err != nil {
		return nil, err
	}
	return pki.NewRoot(random, now, key, pki.Subject{Organization: organization, CommonName: plane}, pki.Life{Lasts: rootLife, Backdate: backdate})
}

// Request asks for a certificate. The name in it is for people: the hub chooses.
func Request(random io.Reader, key pki.Key, plane, cluster string) ([]byte, error) {
	return pki.NewRequest(random, key, organization, []string{AgentName(plane, cluster)})
}

// IssueAgent makes a certificate of the agent of a cluster for the key of a request.
func IssueAgent(random io.Reader, now time.Time, by *pki.Authority, request []byte, plane, cluster string) (pki.Chain, error) {
	return issue(random, now, by, request, AgentLife, AgentName(plane, cluster))
}

// IssueHub makes a certificate of the hub for its own key, with the DNS names by which agents dial it.
func IssueHub(random io.Reader, now time.Time, by *pki.Authority, key pki.Key, plane string, dns ...string) (pki.Chain, error) {
	names := append([]string{HubName(plane)}, dns...)
	request, err := pki.NewRequest(random, key, organization, names)
	if err != nil {
		return nil, err
	}
	return issue(random, now, by, request, hubLife, names...)
}

func issue(random io.Reader, now time.Time, by *pki.Authority, request []byte, life time.Duration, names ...string) (pki.Chain, error) {
	read, err := pki.ReadRequest(request)
	if err != nil {
		return nil, err
	}
	// The names are not those that were asked for.
	issued, err := by.SignLeaf(random, now, read.Named(names...), pki.Grant{
		Subject: pki.Subject{Organization: organization}, Hosts: names, Life: pki.Life{Lasts: life, Backdate: backdate},
	})
	return issued.Chain, err
}

// IssuedAt is when a certificate was issued, in seconds. One of the user's own PKI does not say, and counts from its begin.
func IssuedAt(cert *x509.Certificate) time.Time {
	if cert.NotAfter.Sub(cert.NotBefore) == AgentLife+backdate {
		return cert.NotBefore.Add(backdate)
	}
	return cert.NotBefore
}

// HubDue reports whether a certificate of the hub that was issued here is to be replaced: a third of its life is left, or agents dial by
// other names now.
func HubDue(cert *x509.Certificate, plane string, now time.Time, dns ...string) bool {
	if !slices.ContainsFunc(cert.URIs, func(u *url.URL) bool { return u.String() == HubName(plane) }) {
		return false // one of the user's own PKI
	}
	missing := slices.ContainsFunc(dns, func(name string) bool { return !slices.Contains(cert.DNSNames, name) })
	return missing || now.After(cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore)/3))
}

// RenewAt is when a certificate of an agent is to be renewed: a day after its life began, or with two thirds of a shorter life gone.
func RenewAt(cert *x509.Certificate) time.Time {
	life := cert.NotAfter.Sub(cert.NotBefore)
	return cert.NotBefore.Add(min(RenewAfter+backdate, life*2/3))
}
