package enroll

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Agents may have certificates of a user's own PKI. The hub takes those of the roots in ClientRootSecret, beside its own; if its own root has
// no key, the user's PKI signs all of them. Who gets certificates of such a root may take any name in them, so the name must be that of a
// registered cluster, and is bound to the UID of the first cluster that has it.

// ClientRootSecret has further roots of agents' certificates, in the key ca.crt.
const ClientRootSecret = snapshot.RelayClientRootSecret

// trusted are the roots of agents' certificates.
type trusted struct {
	// own is the root of the relay. Issues: it has its key, so that its certificates are issued here, and by nobody else.
	own    pki.Bundle
	issues bool
	// users are those of the user's own PKI; usersErr is why they could not be read.
	users    pki.Bundle
	usersErr error
}

// trust reads the roots of agents' certificates.
func (s *Store) trust(ctx context.Context) (t trusted, err error) {
	own, authority, err := s.Root(ctx)
	if err != nil {
		return t, err
	}
	t.own, t.issues = own, authority != nil
	data, err := s.data(ctx, ClientRootSecret)
	switch {
	case err != nil:
		t.usersErr = err
	case len(data[pki.TLSRootKey]) > 0:
		if t.users, err = pki.ReadBundle(data[pki.TLSRootKey]); err != nil {
			t.usersErr = s.about(ClientRootSecret, err)
		}
	}
	return t, nil
}

// namedBy is the cluster whose agent has shown certificates, and whether they were issued here.
func (a *Agents) namedBy(t trusted, shown []*x509.Certificate) (cluster string, issued bool, err error) {
	if cluster, err = identity.AgentOf(shown, t.own, a.Plane, a.Now(), 0); err == nil {
		return cluster, t.issues, nil
	}
	if len(t.users.Certificates()) > 0 {
		if theirs, other := identity.AgentOf(shown, t.users, a.Plane, a.Now(), 0); other == nil {
			return theirs, false, nil
		}
	}
	return "", false, errors.Join(err, t.usersErr)
}

// bind has the record of a cluster say which cluster it is, by the first agent with a certificate of the user's PKI. It returns the record.
func (a *Agents) bind(ctx context.Context, cluster, uid string) (Record, error) {
	r, err := a.record(ctx, cluster)
	if err != nil || r.UID != "" {
		return r, err
	}
	agent := snapshot.RelayWaiting{Cluster: cluster, UID: uid}
	known, err := a.registered(ctx, cluster)
	switch {
	case err != nil:
		return r, err
	case uid == "":
		return r, fmt.Errorf("cluster %s: the agent does not say which cluster it is in", cluster)
	case !known.found:
		return r, fmt.Errorf("cluster %s: its agent has a certificate that counts, and no cluster of this name is registered; register it with `meshctl cluster invite %s --own-pki`", cluster, cluster)
	case known.direct:
		return r, isDirect(agent)
	case known.uid != "" && known.uid != uid:
		return r, otherUID(agent, known.uid)
	}
	err = a.change(ctx, cluster, func(now Record) (Record, error) {
		if now.UID == "" {
			now.UID = uid
		}
		r = now
		return now, nil
	})
	return r, err
}
