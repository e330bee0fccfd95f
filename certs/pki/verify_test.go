package pki

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVerify(t *testing.T) {
	t.Parallel()
	root, next := newRoot(t), newRoot(t)
	mesh := newMesh(t, root, grant)
	free := grant
	free.TrustDomains = nil
	unlimited := newMesh(t, root, free)
	roots := NewBundle(root.chain[0])
	workload, key := newWorkload(t, mesh, reviews)
	altered := func(cert *x509.Certificate) *x509.Certificate {
		other := *cert
		other.Signature = slices.Clone(cert.Signature)
		other.Signature[10] ^= 1
		return &other
	}
	chainOf := func(mesh *Authority, host string, change ...func(*x509.Certificate)) Chain {
		chain, _ := newWorkload(t, mesh, host, change...)
		return chain
	}
	meshOfMesh, subKey := newMesh(t, root, grant), newKey(t)
	sub := sign(t, meshOfMesh, subKey.Public(), &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	deep, err := NewAuthority(append(Chain{sub}, meshOfMesh.chain...), subKey)
	require.NoError(t, err)
	forWorkload := Want{Usage: ForWorkload}

	for name, tt := range map[string]struct {
		chain  Chain
		roots  Bundle
		at     time.Time
		want   Want
		reason Reason
		says   string
	}{
		"workload":             {chain: workload, want: Want{Usage: ForWorkload, Hosts: []string{foreign, reviews}, TrustDomains: []string{"cluster.local"}, Key: key}},
		"without its root":     {chain: workload[:2]},
		"while roots change":   {chain: workload, roots: roots.Union(NewBundle(next.chain...))},
		"istiod's CA":          {chain: mesh.chain, want: Want{Usage: ForCA, Hosts: []string{istiod}, Key: mesh.key}},
		"the root itself":      {chain: root.chain, want: Want{Usage: ForCA}},
		"DNS name":             {chain: chainOf(mesh, reviews, func(c *x509.Certificate) { c.DNSNames = []string{"a.example"} }), want: Want{Hosts: []string{"a.example"}}},
		"the last second":      {chain: workload, at: now.Add(day).Truncate(time.Second)},
		"alias":                {chain: chainOf(unlimited, foreign), want: Want{TrustDomains: []string{"cluster.local", "other.example"}}},
		"any identity, no SAN": {chain: chainOf(mesh, reviews, func(c *x509.Certificate) { c.URIs = nil; c.Subject.CommonName = "x" })},

		"nothing":         {chain: Chain{}, reason: Missing, says: "has no certificate"},
		"expired":         {chain: workload, at: now.Add(day + time.Minute).Truncate(time.Second), reason: Expired, says: "expired at 2026-03-02T12:00:00Z, 1m0s before 2026-03-02T12:01:00Z; renew it, or correct the clock if it is fast"},
		"long expired":    {chain: workload, at: now.Add(10 * day), reason: Expired, says: `certificate "` + reviews + `" (SHA-256 ` + Fingerprint(workload[0])[:16] + "...) expired at 2026-03-02T12:00:00Z, 9 days before 2026-03-11T12:00:00Z; renew it"},
		"root expired":    {chain: chainOf(mesh, reviews, func(c *x509.Certificate) { c.NotBefore, c.NotAfter = now, now.Add(50*testYear) }), at: now.Add(11 * testYear), reason: Expired, says: "CN=mesh"},
		"not yet":         {chain: workload, at: now.Add(-10 * day), reason: NotYetValid, says: "9 days after 2026-02-19T12:00:00Z; wait"},
		"another root":    {chain: workload, roots: NewBundle(next.chain...), reason: UnknownRoot, says: `has the root "` + Fingerprint(root.chain[0]) + `", which is not trusted; trusted are "` + Fingerprint(next.chain[0]) + `"`},
		"no root":         {chain: workload[:2], roots: NewBundle(next.chain...), reason: UnknownRoot, says: "has a root that is not in its chain"},
		"nobody trusted":  {chain: workload, roots: Bundle{}.Union(), reason: UnknownRoot, says: "trusted are none"},
		"impostor":        {chain: workload[:2], roots: NewBundle(impostor(t, root)), reason: UnknownRoot, says: "a trusted root has the same name, but another key"},
		"mesh is missing": {chain: Chain{workload[0], root.chain[0]}, reason: Incomplete, says: "CN=mesh"},
		"altered":         {chain: Chain{altered(workload[0]), mesh.chain[0]}, reason: BadSignature, says: "is not signed by the key of"},
		"altered, direct": {chain: Chain{altered(mesh.chain[0])}, reason: BadSignature, says: "is not signed by the key of"},
		"another's key":   {chain: workload, want: Want{Key: mesh.key}, reason: KeyMismatch, says: "is not for this private key: private key ECDSA P-256"},
		"not a CA":        {chain: workload, want: Want{Usage: ForCA}, reason: NotCA, says: "is not a CA"},
		"CA as workload":  {chain: mesh.chain, want: forWorkload, reason: WrongUsage, says: "is a CA"},
		"client only":     {chain: chainOf(mesh, reviews, func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[1:] }), want: forWorkload, reason: WrongUsage, says: "key usage"},
		"server only":     {chain: chainOf(mesh, reviews, func(c *x509.Certificate) { c.ExtKeyUsage = c.ExtKeyUsage[:1] }), want: forWorkload, reason: WrongUsage, says: "key usage"},
		"CA below a mesh": {chain: chainOf(deep, reviews), reason: PathTooLong, says: "permits 0 CAs below it, but there are 1"},
		"same, as a CA":   {chain: deep.chain, want: Want{Usage: ForCA}, reason: PathTooLong, says: "permits 0 CAs below it, but there are 1"},
		"somebody else":   {chain: workload, want: Want{Hosts: []string{istiod}}, reason: WrongIdentity, says: `is that of "` + reviews + `", not of "` + istiod + `"`},
		"trust domain":    {chain: workload, want: Want{TrustDomains: []string{"other.example"}}, reason: WrongTrustDomain, says: `not of the trust domain "other.example"`},
		"web address":     {chain: chainOf(unlimited, "https://cluster.local/ns/a"), want: Want{TrustDomains: []string{"cluster.local"}}, reason: WrongTrustDomain, says: "https://cluster.local/ns/a"},
		"nobody's":        {chain: chainOf(mesh, reviews, func(c *x509.Certificate) { c.URIs = nil; c.DNSNames = []string{"a.example"} }), want: Want{TrustDomains: []string{"cluster.local"}}, reason: WrongTrustDomain, says: "a.example"},
		"another mesh's":  {chain: chainOf(mesh, foreign), reason: NameNotPermitted, says: `permits only identities of "cluster.local", not "` + foreign + `"`},
		"below it":        {chain: chainOf(mesh, "spiffe://a.cluster.local/ns/a"), reason: NameNotPermitted, says: `not "spiffe://a.cluster.local/ns/a"`},
	} {
		if tt.at.IsZero() {
			tt.at = now
		}
		if tt.roots.certs == nil && name != "nobody trusted" {
			tt.roots = roots
		}
		err := Verify(tt.chain, tt.roots, tt.at, tt.want)
		if tt.reason == "" {
			assert.NoError(t, err, name)
			continue
		}
		if assert.Error(t, err, name) {
			assertError(t, err, tt.reason, tt.says)
		}
	}
}

// TestReasonsAreTyped: views show the values, not the text.
func TestReasonsAreTyped(t *testing.T) {
	t.Parallel()
	root, next := newRoot(t), newRoot(t)
	workload, _ := newWorkload(t, newMesh(t, root, grant), reviews)
	var e *Error
	require.ErrorAs(t, Verify(workload, NewBundle(next.chain...), now, Want{}), &e)
	assert.Equal(t, []string{Fingerprint(root.chain[0])}, e.Have)
	assert.Equal(t, []string{Fingerprint(next.chain[0])}, e.Want)
	require.ErrorAs(t, Verify(workload, NewBundle(root.chain...), now.Add(3*day).Truncate(time.Second), Want{}), &e)
	assert.Equal(t, 2*day, e.By)
	assert.Equal(t, Reason(""), ReasonOf(nil))
	assert.Equal(t, Reason(""), ReasonOf(assert.AnError))
}

// TestTextsStaySmall: a certificate of somebody else must not fill a status, or break a line.
func TestTextsStaySmall(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	mesh := newMesh(t, root, grant)
	workload, _ := newWorkload(t, mesh, reviews, func(c *x509.Certificate) {
		c.Subject.CommonName = "a\nb\x1b[31m"
		for i := range 40 {
			c.Subject.Organization = append(c.Subject.Organization, "organisation")
			c.URIs = append(c.URIs, &url.URL{Scheme: "spiffe", Host: "cluster.local", Path: fmt.Sprintf("/%d%300c", i, 0)})
		}
	})
	err := Verify(workload, NewBundle(root.chain...), now, Want{Hosts: []string{istiod}})
	assertError(t, err, WrongIdentity, "and 38 more")
	assert.NotContains(t, err.Error(), "\n")
	assert.NotContains(t, err.Error(), "\x1b")
}

// TestNoTime: crypto/x509 would look at the clock.
func TestNoTime(t *testing.T) {
	t.Parallel()
	root := newRoot(t)
	assertError(t, Verify(root.chain, NewBundle(root.chain...), time.Time{}, Want{}), Unsupported, "at no time")
}

// TestHandshakes: what Verify passes and refuses, Go's TLS passes and refuses, except for what Verify is stricter about.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	root, next := newRoot(t), newRoot(t)
	mesh, other := newMesh(t, root, grant), newMesh(t, next, grant)
	good, goodKey := newWorkload(t, mesh, reviews)
	bad, badKey := newWorkload(t, mesh, foreign)
	newer, newerKey := newWorkload(t, other, reviews)
	both := NewBundle(root.chain[0], next.chain[0])
	for name, tt := range map[string]struct {
		client    Chain
		clientKey Key
		roots     Bundle
	}{
		"one root":               {good, goodKey, NewBundle(root.chain...)},
		"old and new root":       {newer, newerKey, both},
		"root is not trusted":    {newer, newerKey, NewBundle(root.chain...)},
		"another mesh's names":   {bad, badKey, both},
		"the root was taken out": {good, goodKey, both.Without(root.chain[0])},
	} {
		err := Verify(tt.client, tt.roots, now, Want{Usage: ForWorkload})
		shook := handshake(t, tt.client, tt.clientKey, tt.roots, good, goodKey)
		assert.Equal(t, err == nil, shook == nil, "%s: %v, TLS: %v", name, err, shook)
	}
}

// handshake is what the server says of the client.
func handshake(t *testing.T, client Chain, clientKey Key, roots Bundle, server Chain, serverKey Key) error {
	t.Helper()
	pair := func(chain Chain, key Key) []tls.Certificate {
		out := tls.Certificate{PrivateKey: key}
		for _, cert := range chain {
			out.Certificate = append(out.Certificate, cert.Raw)
		}
		return []tls.Certificate{out}
	}
	near, far := net.Pipe()
	t.Cleanup(func() { _, _ = near.Close(), far.Close() })
	clock := func() time.Time { return now }
	go func() {
		// Servers are identified by SPIFFE, which crypto/tls does not know.
		conn := tls.Client(far, &tls.Config{Certificates: pair(client, clientKey), Time: clock, InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12})
		_ = conn.Handshake()
		_ = far.Close()
	}()
	return tls.Server(near, &tls.Config{
		Certificates: pair(server, serverKey), Time: clock, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: roots.pool(), MaxVersion: tls.VersionTLS12,
	}).Handshake()
}
