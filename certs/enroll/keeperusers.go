package enroll

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// isUsers reports whether a Secret with the certificate of an agent is written by a user's own PKI, such as cert-manager: then it is read again
// when it changes, and nothing is asked of the hub.
func isUsers(secret *corev1.Secret) bool {
	if secret.Labels[snapshot.ManagedByLabel] == snapshot.ManagedBy {
		return false
	}
	leaf, _, err := leafOf(secret.Data[pki.TLSCertKey])
	return err == nil && !identity.IsRelays(leaf)
}

// leafOf reads a certificate that is no CA, and the others.
func leafOf(text []byte) (leaf *x509.Certificate, others []*x509.Certificate, err error) {
	read, err := pki.ReadBundle(text)
	if err != nil {
		return nil, nil, err
	}
	all := read.Certificates()
	i := slices.IndexFunc(all, func(c *x509.Certificate) bool { return !c.IsCA })
	if i < 0 {
		return nil, nil, errors.New("it is none of an agent, but of a CA")
	}
	return all[i], slices.Delete(slices.Clone(all), i, i+1), nil
}

// takeUsers uses the certificate that a user's PKI has written. The hub is known by ca.crt in RootSecret, and by that in the Secret itself.
func (k *Keeper) takeUsers(ctx context.Context, secret *corev1.Secret) error {
	own, err := k.readUsers(ctx, secret.Data)
	if err != nil {
		return fmt.Errorf("Secret %s/%s: %w", k.Namespace, ClientSecret, err)
	}
	k.set(own)
	k.users = secret.ResourceVersion
	k.Log.Info("the agent has a certificate of your own PKI", "cluster", k.Cluster, "until", own.Chain[0].NotAfter)
	return nil
}

func (k *Keeper) readUsers(ctx context.Context, data map[string][]byte) (identity.Own, error) {
	leaf, others, err := leafOf(data[pki.TLSCertKey])
	if err != nil {
		return identity.Own{}, err
	}
	key, err := pki.ReadKey(data[pki.TLSKeyKey])
	if err != nil {
		return identity.Own{}, err
	}
	if err := key.Check(leaf); err != nil {
		return identity.Own{}, err
	}
	if k.Now().After(leaf.NotAfter) {
		return identity.Own{}, fmt.Errorf("its certificate ended at %s, and is of your own PKI; have that issue another one", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	if err := k.nameUsers(leaf); err != nil {
		return identity.Own{}, err
	}
	var roots pki.Bundle
	if len(data[pki.TLSRootKey]) > 0 {
		if roots, err = pki.ReadBundle(data[pki.TLSRootKey]); err != nil {
			return identity.Own{}, fmt.Errorf("%s: %w", pki.TLSRootKey, err)
		}
	}
	hubs, err := k.hubRoots(ctx)
	if err != nil && len(roots.Certificates()) == 0 {
		return identity.Own{}, err
	}
	return identity.Own{Chain: append(pki.Chain{leaf}, others...), Key: key, Roots: hubs.Union(roots)}, nil
}

// nameUsers checks which cluster a certificate is of.
func (k *Keeper) nameUsers(leaf *x509.Certificate) error {
	plane, _, named := identity.Named(leaf)
	switch {
	case k.Plane == "" && named:
		k.Plane = plane
	case k.Plane == "":
		return errors.New("its certificate does not name the management plane; start the agent with --relay-plane UID, as `meshctl cluster invite --own-pki` prints it")
	}
	cluster, err := identity.ClusterOf(leaf, k.Plane)
	switch {
	case err != nil:
		return err
	case k.Cluster == "":
		k.Cluster = cluster
	case k.Cluster != cluster:
		return fmt.Errorf("its certificate is that of cluster %s, and the agent is to be that of %s; have a certificate of that name issued, or correct --relay-cluster", cluster, k.Cluster)
	}
	return nil
}

// follow reads the certificate again when a user's PKI has written another one, until ctx ends. The last one stays if that is of no use.
func (k *Keeper) follow(ctx context.Context) {
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(tokenEvery):
		}
		err := k.look(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			said = ""
		case err.Error() != said:
			said = err.Error() // said once: not a decision
			k.Log.Warn("the certificate of your own PKI was not read again; the last one is in use", "error", err)
		}
	}
}

// look reads the Secret once.
func (k *Keeper) look(ctx context.Context) error {
	secret, err := k.secret(ctx, ClientSecret)
	switch {
	case err != nil:
		return err
	case secret == nil:
		return fmt.Errorf("Secret %s/%s: it does not exist any more; have your PKI write it again", k.Namespace, ClientSecret)
	case secret.ResourceVersion == k.users:
		return nil
	}
	return k.takeUsers(ctx, secret)
}
