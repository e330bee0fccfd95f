package enroll

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/meshctl/meshctl/certs/identity"
)

// Record is what the hub knows of the agent of a cluster. The zero Record is that of one that was never invited.
type Record struct {
	// Token is the digest of the token that was made last, TokenUntil when it ends, and TokenUID the UID of the cluster that it is for;
	// empty if it is for any.
	Token      string
	TokenUntil time.Time
	TokenUID   string
	// Used is the key to which a certificate was issued for the token, and UsedAt when; empty if it was not used.
	Used   string
	UsedAt time.Time
	// UID is that of the cluster whose agent has a certificate; empty if none has.
	UID string
	// Key is the one to which a certificate was issued last.
	Key string
	// Issued is when a certificate was issued last, by the clock of the hub.
	Issued time.Time
	// RevokedBefore: certificates that were issued by then count no more.
	RevokedBefore time.Time
	// ApprovedKey and ApprovedUID are those of the agent with the shared token that an administrator has approved, and ApprovedUntil is
	// until when it may ask for its certificate; empty if none was.
	ApprovedKey, ApprovedUID string    `json:",omitempty"`
	ApprovedUntil            time.Time `json:",omitzero"`
	// OwesSince is when the cluster was deregistered without being cleaned, so that the agent is to do that when it comes back; zero if it
	// was not.
	OwesSince time.Time `json:",omitzero"`
}

// owe is the record of a cluster that is deregistered, and not cleaned. Its token counts no more.
func (r Record) owe(now time.Time) Record {
	r.Token, r.Used, r.UsedAt, r.TokenUntil, r.TokenUID = "", "", time.Time{}, time.Time{}, ""
	r.ApprovedKey, r.ApprovedUID, r.ApprovedUntil = "", "", time.Time{}
	r.OwesSince = now
	return r
}

// forgive is the record of a cluster that is registered again.
func (r Record) forgive() Record {
	r.OwesSince = time.Time{}
	return r
}

// answerAgain is how long an agent whose answer was lost may ask again with the same token and key.
const answerAgain = 10 * time.Minute

// KeyID names a public key.
func KeyID(public any) string {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:])
}

// invite is the record with a new token. An agent that has a certificate keeps it until the token is used.
func (r Record) invite(t identity.Token, uid string, until time.Time) Record {
	r.Token, r.TokenUntil, r.TokenUID, r.Used, r.UsedAt = t.Digest(), until, uid, "", time.Time{}
	return r.forgive()
}

// made returns an error if a token is not the one that was made last.
func (r Record) made(t identity.Token) error {
	if r.Token == "" || !t.Is(r.Token) {
		return fmt.Errorf("cluster %s: the token is not the one that was made last; make another one with `meshctl cluster invite %s`", t.Cluster, t.Cluster)
	}
	return nil
}

// enroll is the record after a certificate was issued for a token and a key. An error says why none is.
func (r Record) enroll(t identity.Token, key, uid string, now time.Time) (Record, error) {
	again := r.Used == key && key != "" && now.Before(r.UsedAt.Add(answerAgain))
	if err := r.made(t); err != nil {
		return r, err
	}
	switch {
	case r.Used != "" && !again:
		return r, fmt.Errorf("cluster %s: the token was used before; if that was not your agent, run `meshctl cluster revoke %s`, and then make another one with `meshctl cluster invite %s`", t.Cluster, t.Cluster, t.Cluster)
	case !again && !now.Before(r.TokenUntil):
		return r, fmt.Errorf("cluster %s: the token ended at %s, and the clock of the hub says %s; make another one with `meshctl cluster invite %s`, on a machine whose clock is right",
			t.Cluster, r.TokenUntil.UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339), t.Cluster)
	case uid == "":
		return r, fmt.Errorf("cluster %s: the agent does not say which cluster it is in", t.Cluster)
	case r.TokenUID != "" && r.TokenUID != uid:
		return r, fmt.Errorf("cluster %s: the token is for the cluster with UID %s, and the agent is in that with %s", t.Cluster, r.TokenUID, uid)
	}
	if !again {
		r.UsedAt = now
	}
	r.Used, r.Key, r.Issued, r.UID = key, key, now, uid
	return r, nil
}

// admit returns an error if an agent with a certificate is not to be heard. Issued: all certificates are issued here, so that none counts of
// an agent of which nothing is known any more: the cluster was deregistered, and its name may be another one's now.
func (r Record) admit(cluster, uid string, cert *x509.Certificate, issued bool) error {
	switch {
	case issued && r.UID == "" && r.RevokedBefore.IsZero():
		return fmt.Errorf("cluster %s: its agent has no certificate that counts; make a token with `meshctl cluster invite %s`", cluster, cluster)
	case !r.RevokedBefore.IsZero() && (issued && r.UID == "" || !r.since(cert)):
		return fmt.Errorf("cluster %s: the certificate of the agent was revoked; make a token with `meshctl cluster invite %s`", cluster, cluster)
	case r.UID != "" && uid != r.UID:
		return fmt.Errorf("cluster %s: the agent is in the cluster with UID %s, and was enrolled in that with %s; if the cluster was made anew, make a token with `meshctl cluster invite %s`", cluster, uid, r.UID, cluster)
	}
	return nil
}

// since reports whether a certificate was issued after the last revocation. The one that was issued last was: a revocation leaves none. Whoever
// revokes may have another clock than the hub.
func (r Record) since(cert *x509.Certificate) bool {
	return identity.IssuedAt(cert).After(r.RevokedBefore) || r.Key != "" && KeyID(cert.PublicKey) == r.Key
}

// renew is the record after a certificate was issued for another key to an agent that has shown one.
func (r Record) renew(cluster, uid string, shown *x509.Certificate, key string, now time.Time) (Record, error) {
	if err := r.admit(cluster, uid, shown, true); err != nil {
		return r, err
	}
	if now.After(shown.NotAfter) && r.Key != "" && r.Key != KeyID(shown.PublicKey) {
		return r, fmt.Errorf("cluster %s: the certificate expired, and is not the last one that was issued; make a token with `meshctl cluster invite %s`", cluster, cluster)
	}
	r.Key, r.Issued = key, now
	return r, nil
}

// revoke is the record after which no certificate that was issued so far counts. Now is by the clock of who revokes, which may be behind.
func (r Record) revoke(now time.Time) Record {
	if now.Before(r.Issued) {
		now = r.Issued
	}
	r.Token, r.Used, r.UsedAt, r.TokenUntil, r.TokenUID = "", "", time.Time{}, time.Time{}, ""
	r.UID, r.Key, r.RevokedBefore = "", "", now
	r.ApprovedKey, r.ApprovedUID, r.ApprovedUntil = "", "", time.Time{}
	return r.forgive()
}
