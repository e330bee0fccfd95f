package enroll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/util/retry"

	"github.com/meshctl/meshctl/certs/identity"
	"github.com/meshctl/meshctl/certs/pki"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// As in Gloo Mesh, agents may share one token, which a user puts into TokenSecret of the management plane's namespace and of the agents'.
// Whoever has it can say any name, so it gives no certificate: an agent with it waits, and an administrator approves its name, its cluster's UID
// and its key together. Until then, nothing is read from its cluster or written to it.

// sharedToken is the token that agents share, as it was read.
type sharedToken struct {
	text string
	err  error
	read time.Time
	// asked is when an agent with the token was looked at last.
	asked time.Time
}

// readSharedAgain is for how long a shared token is used that was read: whoever reaches the hub may try tokens. sharedEvery is the least time
// between two agents with it that are looked at: each costs requests to the API server.
const (
	readSharedAgain = 10 * time.Second
	sharedEvery     = 50 * time.Millisecond
)

// WaitsError says that an agent waits for approval.
type WaitsError struct{ Agent snapshot.RelayWaiting }

func (e *WaitsError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements snapshot.Advice.
func (e *WaitsError) Advice() (what, hint string) {
	return fmt.Sprintf("cluster %s: the agent waits for approval (%s)", e.Agent.Cluster, e.Agent),
		fmt.Sprintf("compare the UID and the key with the log of the agent, and run `meshctl cluster approve %s` on the management cluster", e.Agent.Cluster)
}

// Code is that of the reason.
func (*WaitsError) Code() snapshot.Code { return snapshot.RelayNotApproved }

// enrollShared issues a certificate to an agent with the shared token that was approved, and notes any other. Without such a token, the
// error is bad.
func (a *Agents) enrollShared(ctx context.Context, text string, request []byte, uid, address string, bad error) (cluster string, chain, roots []byte, err error) {
	text = strings.TrimSpace(text)
	shared, err := a.sharedText(ctx)
	switch {
	case err != nil:
		return "", nil, nil, err
	case shared == "" || !identity.SameShared(shared, text):
		return "", nil, nil, bad
	case !a.turn():
		return "", nil, nil, errors.New("many agents with the shared token ask at once; the agent asks again by itself")
	}
	read, err := pki.ReadRequest(request)
	if err != nil {
		return "", nil, nil, err
	}
	if cluster, err = identity.SharedName(read); err != nil {
		return "", nil, nil, err
	}
	agent := snapshot.RelayWaiting{Cluster: cluster, UID: uid, Key: KeyID(read.Public()), Address: address, Since: a.Now().UTC(), Last: a.Now().UTC()}
	// Who has the token may have it noted at the name that it is refused.
	chain, roots, err = a.apply(ctx, agent, request)
	return cluster, chain, roots, err
}

// turn reports whether it is time to look at another agent with the shared token.
func (a *Agents) turn() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.Now()
	if now.Sub(a.shared.asked) < sharedEvery {
		return false
	}
	a.shared.asked = now
	return true
}

// sharedText is the shared token; empty if there is none.
func (a *Agents) sharedText(ctx context.Context) (string, error) {
	a.mu.Lock()
	known := a.shared
	a.mu.Unlock()
	if !known.read.IsZero() && a.Now().Sub(known.read) < readSharedAgain {
		return known.text, known.err
	}
	data, err := a.data(ctx, TokenSecret)
	if err != nil {
		return "", err
	}
	known.text, known.err, known.read = strings.TrimSpace(string(data[TokenKey])), nil, a.Now()
	if _, one := identity.ParseToken(known.text); one == nil {
		known.text = "" // that of the management cluster's own agent
	}
	if known.text != "" {
		if err := identity.CheckShared(known.text); err != nil {
			known.text, known.err = "", a.about(TokenSecret, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.shared.text, a.shared.err, a.shared.read = known.text, known.err, known.read
	return known.text, known.err
}

// apply issues a certificate if the agent was approved, and notes that it waits else.
func (s *Store) apply(ctx context.Context, agent snapshot.RelayWaiting, request []byte) (chain, roots []byte, err error) {
	if len(validation.IsDNS1123Label(agent.UID)) > 0 {
		return nil, nil, fmt.Errorf("cluster %s: the agent does not say which cluster it is in", agent.Cluster)
	}
	if err := s.checkName(ctx, agent); err != nil {
		return nil, nil, err
	}
	r, err := s.Record(ctx, agent.Cluster)
	if err != nil {
		return nil, nil, err
	}
	if !r.approved(agent, s.Now()) {
		if err := s.wait(ctx, agent); err != nil {
			return nil, nil, err
		}
		return nil, nil, &WaitsError{agent}
	}
	sameName := func(*pki.Request) error { return nil } // it was read from the request
	_, chain, roots, err = s.issue(ctx, agent.Cluster, request, sameName, func(r Record, _ string) (Record, error) { return r.enrollApproved(agent, s.Now()) })
	if err != nil {
		return nil, nil, err
	}
	return chain, roots, s.changeWaiting(ctx, func(w snapshot.RelayWaitings) (snapshot.RelayWaitings, bool) { return w.Without(agent.Cluster) })
}

// approved reports whether an administrator has approved this agent, and no other with its name.
func (r Record) approved(a snapshot.RelayWaiting, now time.Time) bool {
	return r.ApprovedKey != "" && r.ApprovedKey == a.Key && r.ApprovedUID == a.UID && now.Before(r.ApprovedUntil)
}

// approvalLasts is how long an agent that was approved has to ask for its certificate.
const approvalLasts = 24 * time.Hour

// approve is the record after an agent was approved.
func (r Record) approve(a snapshot.RelayWaiting, now time.Time) Record {
	r.ApprovedKey, r.ApprovedUID, r.ApprovedUntil = a.Key, a.UID, now.Add(approvalLasts)
	return r.forgive()
}

// enrollApproved is the record after a certificate was issued to an agent that was approved. It may ask again for a while: the answer may be lost.
func (r Record) enrollApproved(a snapshot.RelayWaiting, now time.Time) (Record, error) {
	switch {
	case !r.approved(a, now):
		return r, &WaitsError{a}
	case r.UID != "" && r.UID != a.UID:
		return r, otherUID(a, r.UID)
	}
	if again := now.Add(answerAgain); again.Before(r.ApprovedUntil) {
		r.ApprovedUntil = again
	}
	r.UID, r.Key = a.UID, a.Key
	return r, nil
}

func otherUID(a snapshot.RelayWaiting, uid string) error {
	return fmt.Errorf("cluster %s: the name is that of the cluster with UID %s, and the agent is in that with %s; choose another name with --relay-cluster or, if the cluster was made anew, run `meshctl cluster deregister %s` first",
		a.Cluster, uid, a.UID, a.Cluster)
}

// checkName refuses an agent whose name is another cluster's.
func (s *Store) checkName(ctx context.Context, a snapshot.RelayWaiting) error {
	r, err := s.Record(ctx, a.Cluster)
	if err != nil {
		return err
	}
	known, err := s.registered(ctx, a.Cluster)
	switch {
	case err != nil:
		return err
	case known.direct:
		return isDirect(a)
	case r.UID != "" && r.UID != a.UID:
		return otherUID(a, r.UID)
	case known.uid != "" && known.uid != a.UID:
		return otherUID(a, known.uid)
	}
	return nil
}

func isDirect(a snapshot.RelayWaiting) error {
	return fmt.Errorf("cluster %s: a cluster of this name is reached with a credential; give the agent another name, or move the cluster with `meshctl cluster register %s --relay`", a.Cluster, a.Cluster)
}

// registeredAs is what a KubernetesCluster says: the UID of its cluster, if that is known, and whether it is reached with a credential.
type registeredAs struct {
	found  bool
	uid    string
	direct bool
}

// registered reads the KubernetesCluster of a name.
func (s *Store) registered(ctx context.Context, name string) (r registeredAs, err error) {
	raw, err := s.Client.CoreV1().RESTClient().Get().AbsPath(kube.Path(snapshot.KubernetesCluster, s.Namespace, "", "")...).
		Param("fieldSelector", "metadata.name="+name).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if kube.IsAbsent(err) {
		return r, nil
	}
	if err != nil {
		return r, fmt.Errorf("KubernetesCluster %s/%s: %w", s.Namespace, name, err)
	}
	var list struct {
		Items []struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Spec     struct {
				SecretName string `json:"secretName"`
			} `json:"spec"`
		} `json:"items"`
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return r, fmt.Errorf("KubernetesCluster %s/%s: %w", s.Namespace, name, err)
	}
	for i := range list.Items {
		if found := &list.Items[i]; found.Metadata.Name == name {
			return registeredAs{true, found.Metadata.Annotations[snapshot.ClusterUIDAnnotation], found.Spec.SecretName != ""}, nil
		}
	}
	return r, nil
}

// Approve lets an agent that waits have its certificate. It refuses one whose name is another cluster's.
func (s *Store) Approve(ctx context.Context, a snapshot.RelayWaiting) error {
	if err := s.checkName(ctx, a); err != nil {
		return err
	}
	return s.change(ctx, a.Cluster, func(r Record) (Record, error) { return r.approve(a, s.Now()), nil })
}

// wait notes that an agent waits.
func (s *Store) wait(ctx context.Context, a snapshot.RelayWaiting) error {
	return s.changeWaiting(ctx, func(w snapshot.RelayWaitings) (snapshot.RelayWaitings, bool) { return w.With(a) })
}

// changeWaiting replaces who waits by what f makes of it, if that is something else.
func (s *Store) changeWaiting(ctx context.Context, f func(snapshot.RelayWaitings) (snapshot.RelayWaitings, bool)) error {
	secrets := s.Client.CoreV1().Secrets(s.Namespace)
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		secret, err := secrets.Get(ctx, snapshot.RelayWaitingSecret, metav1.GetOptions{})
		absent := apierrors.IsNotFound(err)
		if err != nil && !absent {
			return err
		}
		var before snapshot.RelayWaitings
		if !absent {
			// What cannot be read is replaced: its agents ask again.
			before, _ = snapshot.ParseRelayWaitings(secret.Data[snapshot.RelayWaitingKey], s.Now())
		}
		after, changed := f(before)
		if !changed {
			return nil
		}
		raw, err := after.JSON()
		if err != nil {
			return err
		}
		data := map[string][]byte{snapshot.RelayWaitingKey: raw}
		if !absent {
			return s.put(ctx, secret, data)
		}
		_, err = secrets.Create(ctx, &corev1.Secret{ObjectMeta: madeMeta(snapshot.RelayWaitingSecret), Data: data}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return apierrors.NewConflict(corev1.Resource("secrets"), snapshot.RelayWaitingSecret, err)
		}
		return err
	})
	if err != nil {
		return s.about(snapshot.RelayWaitingSecret, err)
	}
	return nil
}
