package cluster

import (
	"cmp"
	"context"
	"crypto/sha256"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Registration is what matters of a KubernetesCluster.
type Registration struct {
	Name string
	// Domain is the DNS suffix of Services; empty for the default.
	Domain string
	// SecretName is the Secret with the kubeconfig. Relayed: none is named, so that the cluster is reached through its agent unless there
	// is a Secret of its own name.
	SecretName string
	Relayed    bool
	// UID is the identity that is stored with it; empty if none is.
	UID types.UID
	// Created is when the cluster was registered.
	Created time.Time
	// Lifetime is what to ask for when the token is renewed; zero for that of the token
	// in use.
	Lifetime time.Duration
}

func readRegistration(content map[string]any) Registration {
	// Fields of another type than the CRD's cannot be stored: absent is absent.
	name, _, _ := unstructured.NestedString(content, "metadata", "name")
	domain, _, _ := unstructured.NestedString(content, "spec", "clusterDomain")
	secretName, _, _ := unstructured.NestedString(content, "spec", "secretName")
	uid, _, _ := unstructured.NestedString(content, "metadata", "annotations", UIDAnnotation)
	text, _, _ := unstructured.NestedString(content, "metadata", "creationTimestamp")
	created, _ := time.Parse(time.RFC3339, text) // the zero time is the oldest
	text, _, _ = unstructured.NestedString(content, "metadata", "annotations", LifetimeAnnotation)
	return Registration{
		Name: name, Domain: domain, SecretName: cmp.Or(secretName, name), Relayed: secretName == "", UID: types.UID(uid), Created: created, Lifetime: ParseLifetime(text),
	}
}

// ParseLifetime reads a LifetimeAnnotation; zero if there is none that API servers accept.
func ParseLifetime(text string) time.Duration {
	lifetime, err := time.ParseDuration(text)
	if err != nil || lifetime < MinTokenLifetime || lifetime > MaxTokenLifetime {
		return 0
	}
	return lifetime
}

// entry is a cluster in the registry.
type entry struct {
	// connection is what the handler was called with.
	connection   Connection
	registration Registration
	// err is why the Secret cannot be used.
	err error
	// secret is the Secret last read, and sum that of its kubeconfig; life is that of
	// its token.
	secret *corev1.Secret
	sum    [sha256.Size]byte
	life   Lifetime
	stored *Credential
	client *Client
	// next is what the Secret leads to if that is not known to be the same cluster.
	next *candidate
	// seen is the identity that the cluster told; empty before it did. unknown: the
	// credential may not read it.
	seen    types.UID
	unknown bool
	// renewed: the client has another token, and the handler does not know yet.
	renewed bool
	// observed is the fingerprint with which the handler was called.
	observed string
}

// Unregistered lists the Secrets that no KubernetesCluster names, ascending. They are not used: who may
// create a Secret in the management plane's namespace may not register a cluster by that.
func Unregistered(secrets map[string]*corev1.Secret, clusters map[string]Registration) []string {
	used := map[string]bool{}
	for _, r := range clusters {
		used[r.SecretName] = true
	}
	return slices.DeleteFunc(slices.Sorted(maps.Keys(secrets)), func(name string) bool { return used[name] })
}

// resync compares what is registered with what the handler has, and calls the
// handler for each difference.
func (r *Registry) resync(ctx context.Context, handler Handler) error {
	secrets, registered, err := r.read()
	if err != nil {
		return err
	}
	if unnamed := Unregistered(secrets, registered); !slices.Equal(unnamed, r.unregistered) {
		r.unregistered = unnamed
		if len(unnamed) > 0 {
			r.log.Warn("no KubernetesCluster names these Secrets with a kubeconfig, so they are not used; register the clusters, or delete the Secrets",
				"namespace", r.namespace, "secrets", strings.Join(unnamed, ", "))
		}
	}
	names := slices.Sorted(maps.Keys(registered))
	for _, name := range names {
		r.update(ctx, registered[name], secrets[registered[name].SecretName])
	}
	for _, name := range r.names() {
		if _, ok := registered[name]; !ok {
			handler.Remove(name)
			r.forget(name)
		}
	}
	for _, name := range names {
		if connection, changed := r.connect(name); changed {
			handler.Set(connection)
		}
		if r.takeRenewed(name) {
			handler.Renewed(name)
		}
		if fingerprint, changed := r.takeObserved(name); changed {
			handler.CredentialObserved(name, fingerprint)
		}
	}
	return nil
}

func (r *Registry) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.entries))
}

func (r *Registry) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[name]
	e.dropCandidate()
	if e.client != nil {
		e.client.Close()
	}
	delete(r.entries, name)
}

// update brings one entry up to date with what is registered.
func (r *Registry) update(ctx context.Context, registration Registration, secret *corev1.Secret) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[registration.Name]
	if e == nil {
		e = &entry{}
		r.entries[registration.Name] = e
	}
	e.registration = registration
	if err := r.readSecret(ctx, e, secret); err != nil {
		e.err, e.life = err, Lifetime{}
		e.dropCandidate()
	}
}

// connect computes the connection of an entry, and reports whether the handler has to be
// called: a new token alone changes nothing for it.
func (r *Registry) connect(name string) (Connection, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[name]
	before := e.connection
	now := Connection{Name: name, Domain: e.registration.Domain, Relayed: e.registration.Relayed && e.secret == nil, Err: e.err}
	switch {
	case now.Relayed:
		now.Err = nil
	case now.Err == nil:
		now.Err = r.identityError(e)
	}
	if now.Err == nil && !now.Relayed {
		now.Config, now.UID, now.Refused = e.client.Config, e.identity(), e.next.refusal()
	}
	e.connection = now
	if before.Name != "" && now.Domain == before.Domain && now.Relayed == before.Relayed && now.Config == before.Config && now.UID == before.UID && sameText(now.Err, before.Err) && sameText(now.Refused, before.Refused) {
		return now, false
	}
	switch {
	case now.Err != nil:
		r.log.Warn("cluster has no usable credential", "cluster", name, "error", now.Err)
	case now.Refused != nil:
		r.log.Error("what the Secret of a cluster leads to is not used; the previous connection stays in use", "cluster", name, "error", now.Refused)
	}
	return now, true
}

// takeRenewed reports whether an entry has got another token, once.
func (r *Registry) takeRenewed(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[name]
	renewed := e.renewed
	e.renewed = false
	return renewed
}

// takeObserved returns the fingerprint of the Secret that the connection is about, and reports
// whether it is another one. While a changed Secret is being checked, it is the one before.
func (r *Registry) takeObserved(name string) (string, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[name]
	now := Fingerprint(e.secret)
	if now == e.observed || e.next != nil && e.next.err == nil {
		return e.observed, false
	}
	e.observed = now
	return now, true
}

// readSecret updates the entry from the Secret; an error says why it cannot be used. The
// client is kept then, and used again if the next credential is for the same server.
func (r *Registry) readSecret(ctx context.Context, e *entry, secret *corev1.Secret) error {
	e.secret = secret
	if secret == nil {
		return ErrNoSecret
	}
	sum := sha256.Sum256(secret.Data[SecretKey])
	if e.err == nil && e.client != nil && sum == e.sum {
		return r.reconcileCandidate(ctx, e)
	}
	credential, life, err := ParseSecret(secret)
	if e.works() {
		e.sum = sum
		r.replace(ctx, e, credential, life, err)
		return nil
	}
	if err != nil {
		return err
	}
	if e.client != nil && credential.SameEndpoint(e.stored) {
		e.client.setToken(credential.Token)
		e.renewed = true
		e.use(e.client, credential, life)
	} else if client, err := newClient(credential, r.userAgent, r.acceptFor(e), r.around(e, credential)); err != nil {
		return err
	} else {
		e.use(client, credential, life)
	}
	e.sum, e.err = sum, nil
	return nil
}

// replace deals with a Secret that was changed while a client works: what it holds now has
// to be as good first. err is why that cannot be read.
func (r *Registry) replace(ctx context.Context, e *entry, credential *Credential, life Lifetime, err error) {
	e.dropCandidate()
	if err == nil && credential.SameEndpoint(e.stored) && credential.Token == e.stored.Token {
		e.life = life
		return
	}
	if err == nil {
		e.next, err = r.probeCandidate(ctx, e, credential)
	}
	if err != nil {
		e.next = &candidate{err: &NotSwitchedError{Reason: err.Error()}}
	}
}

// reconcileCandidate updates the entry whose Secret is as it was: a candidate may have been checked,
// or the registration be that of another cluster.
func (r *Registry) reconcileCandidate(ctx context.Context, e *entry) error {
	switch {
	case e.next == nil && e.moved():
		next, err := r.probeCandidate(ctx, e, e.stored)
		if err != nil {
			return err
		}
		e.next = next
	case e.next == nil:
		e.life = secretLifetime(e.secret, e.stored.Token)
	case e.next.checked:
		e.take(secretLifetime(e.secret, e.next.stored.Token))
	}
	return nil
}

// use makes a client the one in use.
func (e *entry) use(client *Client, stored *Credential, life Lifetime) {
	if e.next != nil && e.next.client == client {
		e.next = nil
	}
	e.dropCandidate()
	if e.client != nil && e.client != client {
		e.client.Close()
	}
	e.client, e.stored, e.life = client, stored, life
}

func sameText(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Error() == b.Error()
}

// copies returns copies of the entries, by name.
func (r *Registry) copies() map[string]entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]entry, len(r.entries))
	for name, e := range r.entries {
		out[name] = *e
	}
	return out
}

// Credentials returns the state of the stored credentials, ascending by cluster,
// without the results of renewals.
func (r *Registry) Credentials() []CredentialStatus {
	entries := r.copies()
	out := make([]CredentialStatus, 0, len(entries))
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e := entries[name]
		out = append(out, CredentialStatus{Cluster: name, Lifetime: e.life, RenewAt: e.life.RenewAt(name), Err: cmp.Or(e.connection.Err, e.connection.Refused)})
	}
	return out
}
