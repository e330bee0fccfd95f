package registration

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// ApproveOptions configure Approve. Store and Confirm are required.
type ApproveOptions struct {
	// Name for which the agent asks.
	Name string
	// Key is the beginning of the SHA-256 of the agent's key; it may be empty if only one agent asks for the name.
	Key string
	// MgmtConfig is the client configuration of the management cluster, with the permissions of an administrator, and MgmtContext what
	// messages call it; optional.
	MgmtConfig  *rest.Config
	MgmtContext string
	// MgmtNamespace is that of the management plane; cluster.DefaultNamespace if empty. RemoteNamespace is that of the agent on its
	// cluster; as it is registered or, for a new cluster, cluster.DefaultNamespace if empty.
	MgmtNamespace, RemoteNamespace string
	// ClusterDomain is the DNS suffix of the cluster's Services; as it is registered or else cluster.local if empty.
	ClusterDomain string
	// Store returns what knows the agents of a management plane.
	Store func(client kube.Clientset, plane snapshot.Plane) RelayStore
	// Confirm is asked before anything is written. If it returns false, Approve does nothing and returns no error.
	Confirm func(snapshot.RelayWaiting) (bool, error)
	// Timeout bounds the server's first answer; DefaultTimeout if zero.
	Timeout time.Duration
}

// NotWaitingError says that no agent waits for approval that fits.
type NotWaitingError struct {
	Name, Key string
	// Agents wait for the name, and more than one fits.
	Agents []snapshot.RelayWaiting
}

func (e *NotWaitingError) Error() string { return snapshot.Sentences(e.Advice()) }

// Advice implements [snapshot.Advice].
func (e *NotWaitingError) Advice() (what, hint string) {
	if len(e.Agents) == 0 {
		what = fmt.Sprintf("cluster %s: no agent waits for approval", e.Name)
		if e.Key != "" {
			what += " whose key begins with " + e.Key
		}
		return what, "an agent waits that has the token which all agents share (`meshctl help relay`), and asks again each minute; `meshctl cluster list` has those that wait"
	}
	var all []string
	for _, a := range e.Agents {
		all = append(all, "\n  "+a.String())
	}
	return fmt.Sprintf("cluster %s: %d agents wait for approval under this name:%s\n", e.Name, len(e.Agents), strings.Join(all, "")),
		"compare the keys with the log of your agent, and name its key with --key"
}

// Approve registers the cluster of an agent that waits, to be reached through it, and lets the agent have a certificate: this key, of the
// cluster with this UID, and no other. It can be repeated.
func Approve(ctx context.Context, o ApproveOptions) (Report, error) {
	r, err := newInvited(InviteOptions{
		Name: o.Name, MgmtConfig: o.MgmtConfig, MgmtContext: o.MgmtContext, MgmtNamespace: o.MgmtNamespace, RemoteNamespace: o.RemoteNamespace,
		ClusterDomain: o.ClusterDomain, Relay: &Relay{Store: o.Store}, Agent: &Agent{}, Timeout: o.Timeout,
	})
	if err != nil {
		return Report{}, err
	}
	agent, err := r.inspectWaiting(ctx, o)
	if err != nil {
		return Report{}, err
	}
	if agreed, err := o.Confirm(agent); err != nil || !agreed {
		return r.report, err
	}
	steps := []func(context.Context) error{
		r.writeManagementCRDs, r.writeManagementNamespace, r.writeIdentity,
		// The cluster is known before its agent has a certificate; until then, the agent can be approved again.
		r.writeKubernetesCluster,
		func(ctx context.Context) error { return r.approve(ctx, agent) },
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return r.report, fmt.Errorf("cluster %s: approving: %w; run the same command again to finish", r.Name, err)
		}
	}
	return r.report, nil
}

// inspectWaiting finds the agent that is to be approved, and whether it can be. It changes nothing.
func (r *via) inspectWaiting(ctx context.Context, o ApproveOptions) (a snapshot.RelayWaiting, err error) {
	if err := r.management.probe(ctx); err != nil {
		return a, err
	}
	if r.missing.managementNamespace, err = r.management.lacksNamespace(ctx, r.MgmtNamespace); err != nil {
		return a, err
	}
	if r.missing.crds, err = crdsOn(r.management).outdatedCRDs(ctx, ""); err != nil {
		return a, err
	}
	if err := r.readIdentity(ctx); err != nil {
		return a, err
	}
	wanted := append(r.managementAccess(), secrets.access(r.MgmtNamespace, snapshot.RelayWaitingSecret).each("get")...)
	if err := r.management.require(ctx, wanted); err != nil {
		return a, err
	}
	all, err := waiting(ctx, r.management, r.MgmtNamespace, time.Now())
	if err != nil {
		return a, err
	}
	var fit []snapshot.RelayWaiting
	for _, one := range all.Of(r.Name) {
		if strings.HasPrefix(one.Key, strings.ToLower(o.Key)) {
			fit = append(fit, one)
		}
	}
	if len(fit) != 1 {
		return a, &NotWaitingError{Name: r.Name, Key: o.Key, Agents: fit}
	}
	return fit[0], r.checkWaiting(ctx, fit[0], o)
}

// checkWaiting rejects a name that another cluster has, and takes over how the cluster is registered.
func (r *via) checkWaiting(ctx context.Context, a snapshot.RelayWaiting, o ApproveOptions) error {
	r.invitedUID = a.UID
	known, err := r.management.getKubernetesCluster(ctx, r.MgmtNamespace, r.Name)
	if err != nil {
		return err
	}
	secret, err := storedSecret(ctx, r.management.clientset, r.MgmtNamespace, r.Name)
	if err != nil {
		return err
	}
	if secret != nil && secret.Type == cluster.SecretType || known != nil && known.Spec.SecretName != "" {
		return &NameTakenError{Name: r.Name, Reason: "a cluster of this name is reached with a credential; have the agent ask for another name with --relay-cluster"}
	}
	if known == nil {
		orDefault(&r.RemoteNamespace, cluster.DefaultNamespace)
		return nil
	}
	if uid := known.Annotations[cluster.UIDAnnotation]; uid != "" && uid != a.UID {
		return &NameTakenError{Name: r.Name, Reason: fmt.Sprintf(
			"it is that of the cluster with kube-system UID %s, and the agent is in that with %s; have the agent ask for another name with --relay-cluster or, if the cluster was made anew, deregister it first", uid, a.UID)}
	}
	if kept := known.Annotations[cluster.SuffixesAnnotation]; kept != "" {
		r.suffixes = strings.Split(kept, ",")
	}
	if o.ClusterDomain == "" && known.Spec.ClusterDomain != "" {
		r.ClusterDomain = known.Spec.ClusterDomain
	}
	orDefault(&r.RemoteNamespace, known.Status.Namespace)
	orDefault(&r.RemoteNamespace, cluster.DefaultNamespace)
	return nil
}

func (r *via) approve(ctx context.Context, a snapshot.RelayWaiting) error {
	if err := r.Relay.Store(r.management.clientset, r.plane).Approve(ctx, a); err != nil {
		return fmt.Errorf("%s: %w", r.management.label, err)
	}
	r.report.add((&object{resource: secrets, namespace: r.MgmtNamespace, name: snapshot.RelayRecordPrefix + r.Name}).change(r.management, Updated))
	return nil
}

// Waiting lists the agents that wait for approval on the management cluster that config leads to: those that asked within
// snapshot.RelayWaitingLasts before now.
func Waiting(ctx context.Context, config *rest.Config, namespace string, now time.Time) ([]snapshot.RelayWaiting, error) {
	s, err := newServer(managementSide, "", config, 0)
	if err != nil {
		return nil, err
	}
	all, err := waiting(ctx, s, namespace, now)
	return all.Agents, err
}

// waiting are the agents that wait for approval.
func waiting(ctx context.Context, s *server, namespace string, now time.Time) (snapshot.RelayWaitings, error) {
	secret, err := storedSecret(ctx, s.clientset, namespace, snapshot.RelayWaitingSecret)
	if err != nil || secret == nil {
		return snapshot.RelayWaitings{}, err
	}
	all, err := snapshot.ParseRelayWaitings(secret.Data[snapshot.RelayWaitingKey], now)
	if err != nil {
		return all, fmt.Errorf("%s: Secret %s/%s: %w; delete it, and the agents ask again", s.label, namespace, secret.Name, err)
	}
	return all, nil
}

// addWaiting adds the clusters whose agents wait for approval, and says so of those that are registered.
func addWaiting(ctx context.Context, s *server, namespace string, now time.Time, all []ClusterStatus) ([]ClusterStatus, error) {
	found, err := waiting(ctx, s, namespace, now)
	if err := unlessForbidden(err); err != nil {
		return all, err
	}
	byName := map[string]int{}
	for i := range all {
		if all[i].Health.Registered() {
			byName[all[i].Name] = i
		}
	}
	said := map[string]bool{}
	for _, a := range found.Agents {
		if said[a.Cluster] {
			continue
		}
		said[a.Cluster] = true
		reason := waitingReason(found, a)
		if i, known := byName[a.Cluster]; known {
			if all[i].Reasons.Of(snapshot.RelayNotApproved) == nil { // serve says so, too, while the agent has no connection
				all[i].because(append(all[i].Reasons, reason)...)
			}
			continue
		}
		status := ClusterStatus{Name: a.Cluster, Health: snapshot.HealthPending}
		status.because(reason)
		all = append(all, status)
	}
	return all, nil
}

// waitingReason says that an agent waits, and how many else do for its name.
func waitingReason(all snapshot.RelayWaitings, a snapshot.RelayWaiting) snapshot.Reason {
	what := "its agent waits for approval: " + a.String()
	if n := len(all.Of(a.Cluster)); n > 1 {
		what = fmt.Sprintf("%d agents wait for approval under its name, the first one with %s", n, a)
	}
	if all.Dropped > 0 {
		what += fmt.Sprintf("; there were too many that wait, and %d were dropped so far", all.Dropped)
	}
	return snapshot.Reason{Code: snapshot.RelayNotApproved, What: what, Hint: "if you know it, run `meshctl cluster approve " + a.Cluster + "`"}
}
