package enroll

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A cluster that is deregistered while its agent is away leaves a debt: what stands there. Its Record stays until the agent has come back
// and removed that. Until then, the agent is who it was, and is told nothing else.

// Owe notes that a cluster is deregistered, and what is there was not removed. It is false if no agent has a certificate with which it
// could come back.
func (s *Store) Owe(ctx context.Context, cluster string) (owes bool, err error) {
	r, secret, err := s.read(ctx, cluster)
	if err != nil || secret == nil || r.UID == "" {
		return false, err
	}
	err = s.change(ctx, cluster, func(r Record) (Record, error) { return r.owe(s.Now()), nil })
	return err == nil, err
}

// Forgive notes that a cluster is registered again: what is there is wanted.
func (s *Store) Forgive(ctx context.Context, cluster string) error {
	r, _, err := s.read(ctx, cluster)
	if err != nil || r.OwesSince.IsZero() {
		return err
	}
	return s.change(ctx, cluster, func(r Record) (Record, error) { return r.forgive(), nil })
}

// Owes reports whether what is ours was left in a cluster that was deregistered.
func (a *Agents) Owes(cluster string) bool {
	r, known := a.known(cluster)
	return known && !r.OwesSince.IsZero()
}

// Paid drops the Record of a cluster in which nothing is left, and with it what is recorded of that, which it owns.
func (s *Store) Paid(ctx context.Context, cluster string) error {
	r, secret, err := s.read(ctx, cluster)
	if err != nil || secret == nil || r.OwesSince.IsZero() {
		return err // registered again
	}
	err = s.Client.CoreV1().Secrets(s.Namespace).Delete(ctx, secret.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &secret.UID, ResourceVersion: &secret.ResourceVersion},
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("Secret %s/%s: deleting: %w", s.Namespace, secret.Name, err)
	}
	return nil
}
