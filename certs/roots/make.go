package roots

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/meshctl/meshctl/certs/pki"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	// backdate is for machines whose clocks are slow.
	backdate = time.Hour
	// maxCommonName is in bytes (X.520, upper bounds).
	maxCommonName = 64
	// requestTimeout bounds one request.
	requestTimeout = 15 * time.Second
)

// Pauses after a root could not be made.
const (
	retryFirst = time.Second
	retryLast  = time.Minute
)

// making is a root that is being made, or could not be.
type making struct {
	order order
	// done is set when the attempt has ended.
	done     bool
	failures int
	// again is when to try again, and problem why the attempt failed.
	again   time.Time
	problem string
}

// start makes a root unless that is under way, and returns why the last attempt failed. A large
// key takes minutes, for which nothing else waits.
func (s *Store) start(ctx context.Context, vm *networkingv1.VirtualMesh, o order) string {
	ref := snapshot.RefOf(snapshot.VirtualMesh, vm)
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.making[ref]
	if m == nil || m.done && m.order != o {
		m = &making{order: o, done: true}
		s.making[ref] = m
	}
	if !m.done || s.Now().Before(m.again) {
		return m.problem
	}
	m.done = false
	s.group.Go(func() {
		var err error
		if broken := kube.Catch(func() { err = s.generate(ctx, vm, o) }); broken != nil {
			err = broken
		}
		s.mu.Lock()
		m.done = true
		if err != nil {
			m.failures++
			m.problem = fmt.Sprintf("no root was generated: %v", err)
			m.again = s.Now().Add(kube.Jitter(kube.Backoff(retryFirst, retryLast, m.failures)))
		} else {
			m.failures, m.problem, m.again = 0, "", s.Now().Add(retryFirst)
		}
		s.mu.Unlock()
		if err != nil && ctx.Err() == nil {
			s.Log.Warn("no root certificate was made; trying again", "virtualMesh", vm.Namespace+"/"+vm.Name, "error", err)
		}
		s.wake()
	})
	return m.problem
}

// generate makes a key and a root, and stores them.
func (s *Store) generate(ctx context.Context, vm *networkingv1.VirtualMesh, o order) error {
	select {
	case s.turns <- struct{}{}:
		defer func() { <-s.turns }()
	case <-ctx.Done():
		return ctx.Err()
	}
	key, err := pki.NewRSAKey(rand.Reader, int(o.options.RsaKeySizeBytes))
	if err != nil {
		return err //nolint:wrapcheck // a whole sentence
	}
	name := vm.Name + "." + vm.Namespace
	root, err := pki.NewRoot(rand.Reader, s.Now(), key,
		pki.Subject{Organization: o.options.OrgName, CommonName: name[:min(len(name), maxCommonName)]},
		pki.Life{Lasts: time.Duration(o.options.TtlDays) * day, Backdate: backdate})
	if err != nil {
		return err //nolint:wrapcheck // a whole sentence
	}
	data, err := root.RootSecret()
	if err != nil {
		return err //nolint:wrapcheck // a whole sentence
	}
	secret := s.secretFor(vm, o.name, o.cause, data)
	err = s.record(ctx, snapshot.RefOf(snapshot.VirtualMesh, vm), func(r *Record) *Record {
		if r.Making == "" {
			r.Making = rand.Text()
		}
		secret.Annotations[MakingAnnotation] = r.Making
		return r
	})
	if err != nil {
		return err
	}
	if o.rotate != "" {
		secret.Annotations[snapshot.TrustRotateAnnotation] = o.rotate
	}
	made, err := s.create(ctx, secret)
	if err == nil && made {
		s.Log.Info("made a root certificate", "virtualMesh", vm.Namespace+"/"+vm.Name, "secret", secret.Namespace+"/"+secret.Name,
			"fingerprint", pki.Fingerprint(root.Chain().Root()), "expires", root.Chain().Root().NotAfter, "because", o.cause)
	}
	return err
}

// keep stores the certificate of a root whose key is somebody else's, or gone.
func (s *Store) keep(ctx context.Context, vm *networkingv1.VirtualMesh, root *x509.Certificate) error {
	fingerprint := pki.Fingerprint(root)
	ref := snapshot.RefOf(snapshot.VirtualMesh, vm)
	secret := s.secretFor(vm, laterName(ref, "certificate", fingerprint), keptCause,
		map[string][]byte{pki.RootCertKey: pki.Chain{root}.PEM()})
	made, err := s.create(ctx, secret)
	if err == nil && made {
		s.Log.Info("keeping the certificate of a root", "virtualMesh", vm.Namespace+"/"+vm.Name,
			"secret", secret.Namespace+"/"+secret.Name, "fingerprint", fingerprint)
	}
	return err
}

// create creates a Secret. One that is there is left alone: it is either ours, and will be read soon,
// or somebody else's, which is an error.
func (s *Store) create(ctx context.Context, secret *corev1.Secret) (made bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ref := snapshot.Ref{Kind: snapshot.Secret, Namespace: secret.Namespace, Name: secret.Name}
	_, err = s.clientset.CoreV1().Secrets(secret.Namespace).Create(ctx, secret, metav1.CreateOptions{FieldManager: snapshot.FieldManager})
	if err == nil {
		return true, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return false, fmt.Errorf("%s cannot be created: %s", describe(ref), kube.Message(err))
	}
	found, err := s.clientset.CoreV1().Secrets(secret.Namespace).Get(ctx, secret.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil // it will be made again
	case err != nil:
		return false, fmt.Errorf("%s cannot be read: %s", describe(ref), kube.Message(err))
	case found.Type != SecretType:
		return false, fmt.Errorf("%s is of type %s and not made by meshctl; rename it, or delete it if nothing uses it", describe(ref), found.Type)
	}
	return false, nil
}
