package cluster

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Registration is what matters of a KubernetesCluster.
type Registration struct {
	Name string
	// Domain is the DNS suffix of Services; empty for the default.
	Domain string
	// SecretName is the Secret with the kubeconfig.
	SecretName string
}

func readRegistration(content map[string]any) Registration {
	// Fields of another type than the CRD's cannot be stored: absent is absent.
	name, _, _ := unstructured.NestedString(content, "metadata", "name")
	domain, _, _ := unstructured.NestedString(content, "spec", "clusterDomain")
	secretName, _, _ := unstructured.NestedString(content, "spec", "secretName")
	return Registration{Name: name, Domain: domain, SecretName: cmp.Or(secretName, name)}
}

// entry is a cluster in the registry.
type entry struct {
	// connection is what the handler was called with.
	connection Connection
	// secret is the Secret last read, and sum that of its kubeconfig; life is that of
	// its token.
	secret *corev1.Secret
	sum    [sha256.Size]byte
	life   Lifetime
	stored *Credential
	client *Client
}

// Registrations returns the registered clusters by name: a cluster is registered
// by its Secret or by its KubernetesCluster. A Secret that a KubernetesCluster of
// another name uses is no cluster of its own.
func Registrations(secrets map[string]*corev1.Secret, clusters map[string]Registration) map[string]Registration {
	out := maps.Clone(clusters)
	used := map[string]bool{}
	for _, r := range clusters {
		used[r.SecretName] = true
	}
	for name := range secrets {
		if _, ok := out[name]; !ok && !used[name] {
			out[name] = Registration{Name: name, SecretName: name}
		}
	}
	return out
}

// resync compares what is registered with what the handler has, and calls the
// handler for each difference.
func (r *Registry) resync(handler Handler) error {
	secrets, clusters, err := r.read()
	if err != nil {
		return err
	}
	registered := Registrations(secrets, clusters)
	for _, name := range slices.Sorted(maps.Keys(registered)) {
		if connection, changed := r.update(registered[name], secrets[registered[name].SecretName]); changed {
			handler.Set(connection)
		}
	}
	for _, name := range r.names() {
		if _, ok := registered[name]; !ok {
			handler.Remove(name)
			r.forget(name)
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
	if e := r.entries[name]; e.client != nil {
		e.client.Close()
	}
	delete(r.entries, name)
}

// update brings one entry up to date and reports whether the handler has to be
// called: a new token alone changes nothing for it.
func (r *Registry) update(registration Registration, secret *corev1.Secret) (Connection, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, isOld := r.entries[registration.Name]
	if !isOld {
		e = &entry{}
		r.entries[registration.Name] = e
	}
	before := e.connection
	e.connection.Name, e.connection.Domain = registration.Name, registration.Domain
	e.read(secret, r.userAgent)
	now := e.connection
	if isOld && now.Domain == before.Domain && now.Config == before.Config && sameText(now.Err, before.Err) {
		return now, false
	}
	if now.Err != nil {
		r.log.Warn("cluster has no usable credential", "cluster", registration.Name, "error", now.Err)
	}
	return now, true
}

// read updates the entry from the Secret.
func (e *entry) read(secret *corev1.Secret, userAgent string) {
	e.secret = secret
	if secret == nil {
		e.reject(ErrNoSecret)
		return
	}
	sum := sha256.Sum256(secret.Data[SecretKey])
	if e.connection.Err == nil && e.client != nil && sum == e.sum {
		e.life = secretLifetime(secret, e.stored.Token)
		return
	}
	e.sum = sum
	credential, life, err := ParseSecret(secret)
	if err != nil {
		e.reject(err)
		return
	}
	if e.client == nil || !credential.SameEndpoint(e.stored) {
		next, err := NewClient(credential, userAgent)
		if err != nil {
			e.reject(err)
			return
		}
		if e.client != nil {
			e.client.Close()
		}
		e.client = next
	}
	e.client.setToken(credential.Token)
	e.stored, e.life = credential, life
	e.connection.Config, e.connection.Err = e.client.Config, nil
}

// reject leaves the entry without a connection. The client is kept, and used again
// if the next credential is for the same server.
func (e *entry) reject(err error) {
	e.connection.Config, e.connection.Err, e.life = nil, err, Lifetime{}
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
		out = append(out, CredentialStatus{Cluster: name, Lifetime: e.life, RenewAt: e.life.RenewAt(name), Err: e.connection.Err})
	}
	return out
}
