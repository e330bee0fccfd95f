// Package enroll gives agents their certificates: it keeps the root of the relay, the certificate of the hub, and a Record of each agent, in
// Secrets of the management plane's namespace.
//
//	record.go  what is known of an agent, and what follows from it
//	store.go   the Secrets
//	hub.go     the root and the hub's own certificate
//	issuer.go  certificates of agents
//	agents.go  who an agent is that has one
//	shared.go  the token that all agents share, and who waits for approval
//	debt.go    agents of clusters that were deregistered while they were away
//	foreign.go certificates of a user's own PKI
package enroll

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"

	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Names of Secrets. Those of the root and of the server are as in Gloo Mesh.
const (
	// RootSecret has the root of the relay: tls.crt, tls.key and ca.crt; of a user's own PKI, ca.crt is enough.
	RootSecret = snapshot.RelayRootSecret
	// ServerSecret has the certificate of the hub: tls.crt, tls.key and ca.crt.
	ServerSecret = snapshot.RelayServerSecret
	// recordPrefix is before the name of a cluster in the name of the Secret with the Record of its agent.
	recordPrefix = snapshot.RelayRecordPrefix
	// recordKey is where the Record is.
	recordKey = "record"
)

// ServerName is the DNS name by which agents know the hub of a management plane in a namespace, as in Gloo Mesh.
func ServerName(namespace string) string { return snapshot.RelayServerName(namespace) }

// RecordType is the type of Secrets with Records.
const RecordType corev1.SecretType = snapshot.RelayRecordType

// Store keeps Secrets in the namespace of a management plane.
type Store struct {
	// Client reaches the management cluster, Namespace and Plane are those of the management plane.
	Client           kube.Clientset
	Namespace, Plane string
	// Now is the clock.
	Now func() time.Time
}

// Record is that of the agent of a cluster; zero if there is none.
func (s *Store) Record(ctx context.Context, cluster string) (Record, error) {
	r, _, err := s.read(ctx, cluster)
	return r, err
}

func (s *Store) read(ctx context.Context, cluster string) (Record, *corev1.Secret, error) {
	name := recordPrefix + cluster
	secret, err := s.Client.CoreV1().Secrets(s.Namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return Record{}, nil, nil
	}
	if err != nil {
		return Record{}, nil, fmt.Errorf("Secret %s/%s: %w", s.Namespace, name, err)
	}
	var r Record
	if secret.Type != RecordType {
		return r, nil, fmt.Errorf("Secret %s/%s: it is of type %s and not of %s: somebody else made it; delete it", s.Namespace, name, secret.Type, RecordType)
	}
	if err := json.Unmarshal(secret.Data[recordKey], &r); err != nil {
		return r, nil, fmt.Errorf("Secret %s/%s: its %s cannot be read: %w; delete it, and invite the cluster again", s.Namespace, name, recordKey, err)
	}
	return r, secret, nil
}

// change replaces the Record of a cluster by what f makes of it. Of two that do so at the same time, the later one sees what the other did.
func (s *Store) change(ctx context.Context, cluster string, f func(Record) (Record, error)) error {
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		before, secret, err := s.read(ctx, cluster)
		if err != nil {
			return err
		}
		after, err := f(before)
		if err != nil || after == before && secret != nil {
			return err
		}
		raw, err := json.Marshal(after)
		if err != nil {
			return err
		}
		secrets := s.Client.CoreV1().Secrets(s.Namespace)
		if secret == nil {
			secret = &corev1.Secret{ObjectMeta: madeMeta(recordPrefix + cluster), Type: RecordType}
			secret.Data = map[string][]byte{recordKey: raw}
			_, err = secrets.Create(ctx, secret, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return apierrors.NewConflict(corev1.Resource("secrets"), secret.Name, err)
			}
			return err
		}
		return s.put(ctx, secret, map[string][]byte{recordKey: raw})
	})
}

// madeMeta marks a Secret as one that was made here, and not by a user.
func madeMeta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Labels: map[string]string{snapshot.ManagedByLabel: snapshot.ManagedBy}}
}

// put changes the data of a Secret. It is a conflict if the Secret is not the one any more that was read.
func (s *Store) put(ctx context.Context, read *corev1.Secret, data map[string][]byte) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]string{"resourceVersion": read.ResourceVersion}, "data": data})
	if err != nil {
		return err
	}
	_, err = s.Client.CoreV1().Secrets(s.Namespace).Patch(ctx, read.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

// Revoke makes all certificates of the agent of a cluster count no more.
func (s *Store) Revoke(ctx context.Context, cluster string) error {
	return s.change(ctx, cluster, func(r Record) (Record, error) { return r.revoke(s.Now()), nil })
}
