package cluster

import (
	"cmp"
	"crypto/sha256"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// knownCluster is what matters of a KubernetesCluster.
type knownCluster struct {
	name, domain, secretName string
}

func readKnown(content map[string]any) knownCluster {
	// Fields of another type than the CRD's cannot be stored: absent is absent.
	name, _, _ := unstructured.NestedString(content, "metadata", "name")
	domain, _, _ := unstructured.NestedString(content, "spec", "clusterDomain")
	secretName, _, _ := unstructured.NestedString(content, "spec", "secretName")
	return knownCluster{name: name, domain: domain, secretName: cmp.Or(secretName, name)}
}

// member is a cluster in the registry.
type member struct {
	told Member
	// secret is the Secret last read, and sum what it said; life is that of
	// its token.
	secret *corev1.Secret
	sum    [sha256.Size]byte
	life   Lifetime
	stored *Credential
	client *client
}

// registrations says, for each name, which Secret has its credential: a
// cluster is known by its Secret or by its KubernetesCluster. A Secret that a
// KubernetesCluster of another name uses is no cluster of its own.
func registrations(secrets map[string]*corev1.Secret, clusters map[string]knownCluster) map[string]knownCluster {
	out := maps.Clone(clusters)
	used := map[string]bool{}
	for _, known := range clusters {
		used[known.secretName] = true
	}
	for name := range secrets {
		if _, ok := out[name]; !ok && !used[name] {
			out[name] = knownCluster{name: name, secretName: name}
		}
	}
	return out
}

// resync compares what is registered with what the handler knows, and tells
// the handler what is new.
func (r *Registry) resync(handler Handler) error {
	secrets, clusters, err := r.read()
	if err != nil {
		return err
	}
	known := registrations(secrets, clusters)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if told, news := r.update(known[name], secrets[known[name].secretName]); news {
			handler.Set(told)
		}
	}
	for _, name := range r.names() {
		if _, ok := known[name]; !ok {
			handler.Remove(name)
			r.forget(name)
		}
	}
	return nil
}

func (r *Registry) names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.members))
}

func (r *Registry) forget(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[name]; m.client != nil {
		m.client.close()
	}
	delete(r.members, name)
}

// update brings one member up to date and reports whether the handler should
// be told: a new token alone is no news.
func (r *Registry) update(known knownCluster, secret *corev1.Secret) (Member, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m, isOld := r.members[known.name]
	if !isOld {
		m = &member{}
		r.members[known.name] = m
	}
	before := m.told
	m.told.Name, m.told.Domain = known.name, known.domain
	m.read(secret, r.userAgent)
	if isOld && m.told.Domain == before.Domain && m.told.Config == before.Config && sameText(m.told.Err, before.Err) {
		return m.told, false
	}
	if m.told.Err != nil {
		r.log.Warn("cluster cannot be reached: its credential is no good", "cluster", known.name, "err", m.told.Err)
	}
	return m.told, true
}

// read takes over what the Secret says.
func (m *member) read(secret *corev1.Secret, userAgent string) {
	m.secret = secret
	if secret == nil {
		m.refuse(ErrNoSecret)
		return
	}
	sum := sha256.Sum256(secret.Data[SecretKey])
	if m.told.Err == nil && m.client != nil && sum == m.sum {
		m.life = secretLifetime(secret, m.stored.Token)
		return
	}
	m.sum = sum
	credential, life, err := parseSecret(secret)
	if err != nil {
		m.refuse(err)
		return
	}
	if m.client == nil || !credential.sameEndpoint(m.stored) {
		next, err := newClient(credential, userAgent)
		if err != nil {
			m.refuse(err)
			return
		}
		if m.client != nil {
			m.client.close()
		}
		m.client = next
	}
	m.client.setToken(credential.Token)
	m.stored, m.life = credential, life
	m.told.Config, m.told.Err = m.client.config, nil
}

// refuse leaves the member without a way in. The client is kept: if the next
// credential leads to the same server, whoever still holds it goes on.
func (m *member) refuse(err error) {
	m.told.Config, m.told.Err, m.life = nil, err, Lifetime{}
}

func sameText(a, b error) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return a.Error() == b.Error()
}

// credentials are copies of the members that have one, by name.
func (r *Registry) credentials() map[string]member {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[string]member, len(r.members))
	for name, m := range r.members {
		out[name] = *m
	}
	return out
}

// Credentials says how the stored credentials stand, ascending by cluster,
// apart from what became of renewals.
func (r *Registry) Credentials() []CredentialStatus {
	members := r.credentials()
	out := make([]CredentialStatus, 0, len(members))
	for _, name := range slices.Sorted(maps.Keys(members)) {
		m := members[name]
		out = append(out, CredentialStatus{Cluster: name, Lifetime: m.life, RenewAt: m.life.RenewAt(name), Err: m.told.Err})
	}
	return out
}
