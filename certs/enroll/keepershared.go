package enroll

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
)

// useShared gets a certificate for a token that all agents share, once an administrator has approved this one. An agent that has a
// certificate does not use it. Bad is why the token is not one for this agent alone.
func (k *Keeper) useShared(ctx context.Context, secret *corev1.Secret, bad error) (found bool, err error) {
	if _, err := k.Own(); err == nil {
		return false, nil
	}
	text := strings.TrimSpace(string(secret.Data[TokenKey]))
	switch {
	case identity.CheckShared(text) != nil:
		return true, fmt.Errorf("Secret %s/%s: %w", k.Namespace, TokenSecret, bad)
	case k.Cluster == "":
		return true, fmt.Errorf("Secret %s/%s: the token does not say which cluster this is; start the agent with --relay-cluster NAME if all agents share it, or make one with `meshctl cluster invite`", k.Namespace, TokenSecret)
	}
	roots, err := k.hubRoots(ctx)
	if err != nil {
		return true, err
	}
	if k.asked.token != text {
		k.asked.token = ""
		if k.asked.key, err = identity.NewKey(rand.Reader); err != nil {
			return true, err
		}
		if k.asked.request, err = identity.SharedRequest(rand.Reader, k.asked.key, k.Cluster); err != nil {
			return true, err
		}
		k.asked.token = text
	}
	cluster, chain, rootsText, err := k.Hub.Enroll(ctx, identity.SharedTLS(roots, k.ServerName, k.Now), text, k.asked.request)
	if err != nil {
		return true, fmt.Errorf("cluster %s: key SHA-256 %s: %w", k.Cluster, KeyID(k.asked.key.Public()), err)
	}
	if cluster != k.Cluster {
		return true, fmt.Errorf("cluster %s: the hub has issued a certificate of cluster %s", k.Cluster, cluster)
	}
	read, err := readChain(chain)
	if err != nil {
		return true, fmt.Errorf("certificate from the hub: %w", err)
	}
	plane, _, ok := identity.Named(read[0])
	if !ok || k.Plane != "" && plane != k.Plane {
		return true, errors.New("certificate from the hub: it is none of an agent of this management plane")
	}
	k.Plane = plane
	if err := k.take(ctx, k.asked.key, chain, rootsText, nil); err != nil {
		return true, err
	}
	k.used(ctx, secret)
	return true, nil
}

// hubRoots are those by which an agent knows the hub that has no certificate, and no token that names the root.
func (k *Keeper) hubRoots(ctx context.Context) (pki.Bundle, error) {
	secret, err := k.secret(ctx, RootSecret)
	if err != nil {
		return pki.Bundle{}, err
	}
	if secret == nil {
		return pki.Bundle{}, fmt.Errorf("Secret %s/%s: it does not exist, and without the hub's root in its %s the shared token is sent to nobody; copy %s of the Secret of this name in the management plane's namespace",
			k.Namespace, RootSecret, pki.TLSRootKey, pki.TLSRootKey)
	}
	roots, err := pki.ReadBundle(secret.Data[pki.TLSRootKey])
	if err != nil {
		return pki.Bundle{}, fmt.Errorf("Secret %s/%s: %s: %w", k.Namespace, RootSecret, pki.TLSRootKey, err)
	}
	return roots, nil
}
