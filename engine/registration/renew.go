package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// parallelRenewals bounds how many clusters are registered again at once.
const parallelRenewals = 8

// Context is a way to a cluster as one of its administrators.
type Context struct {
	Name   string
	Config *rest.Config
}

// RenewOptions configure Renew.
type RenewOptions struct {
	MgmtConfig  *rest.Config
	MgmtContext string
	// MgmtNamespace defaults to cluster.DefaultNamespace.
	MgmtNamespace string
	// Contexts are tried in this order; which cluster is whose is asked of the servers.
	Contexts []Context
	// Agent is what the agents of the clusters get; nil for nothing.
	Agent *Agent
	// Timeout bounds each server's first answer; DefaultTimeout if zero.
	Timeout time.Duration
	// UserAgent is shown to the clusters.
	UserAgent string
}

// Renewal is what was done for a cluster whose credential is not good.
type Renewal struct {
	Cluster string `json:"cluster"`
	// Problem is what was wrong.
	Problem string `json:"problem"`
	// Context is with which it was registered again; empty if it was not.
	Context string `json:"context,omitempty"`
	// Reason is why it was not registered again, and the next step.
	Reason string `json:"reason,omitempty"`
	// Notes are sentences that the user should read.
	Notes []string `json:"notes,omitempty"`
}

// renewing is one run of Renew.
type renewing struct {
	RenewOptions
	clusters map[string]*multiclusterv1alpha1.KubernetesCluster
	secrets  map[string]*corev1.Secret
	// contexts are those that lead to a cluster, by the UID of its kube-system.
	contexts map[string][]Context
	// unusable are the names of the contexts that lead nowhere.
	unusable []string
}

// Renew registers again, as they were, all clusters whose credential is expired, refused,
// broken or cannot be renewed. It finds by itself which contexts lead to them. The result
// is ascending by cluster, and empty if all credentials are good.
func Renew(ctx context.Context, o RenewOptions) ([]Renewal, error) {
	orDefault(&o.MgmtNamespace, cluster.DefaultNamespace)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	r := &renewing{RenewOptions: o, clusters: map[string]*multiclusterv1alpha1.KubernetesCluster{}}
	all, err := List(ctx, ListOptions{MgmtConfig: o.MgmtConfig, MgmtContext: o.MgmtContext, MgmtNamespace: o.MgmtNamespace, UserAgent: o.UserAgent,
		Detours: NewDetours(func() []Context { return o.Contexts }, o.Timeout)})
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(s ClusterStatus) bool { return !s.needsCredential(time.Now()) })
	if len(all) == 0 {
		return nil, nil
	}
	if err := r.inspect(ctx); err != nil {
		return nil, err
	}
	out := make([]Renewal, len(all))
	var group errgroup.Group
	group.SetLimit(parallelRenewals)
	for i := range all {
		group.Go(func() error {
			out[i] = r.renew(ctx, &all[i])
			return nil
		})
	}
	_ = group.Wait() // the functions above return nil
	return out, ctx.Err()
}

// needsCredential reports whether registering the cluster again is what it needs.
func (s *ClusterStatus) needsCredential(now time.Time) bool {
	switch s.Health {
	case snapshot.HealthDenied, snapshot.HealthInvalid:
		return true
	case snapshot.HealthDegraded:
		return s.Reasons.Of(credentialCodes...) != nil
	case snapshot.HealthLeftover, snapshot.HealthUnregistered, snapshot.HealthPending:
		return false
	}
	return s.Expires != nil && !now.Before(*s.Expires)
}

// inspect reads the registrations and asks the server of each context which cluster it is.
func (r *renewing) inspect(ctx context.Context) error {
	s, err := newServer(managementSide, r.MgmtContext, r.MgmtConfig, r.Timeout)
	if err != nil {
		return err
	}
	if _, r.secrets, err = s.known(ctx, r.MgmtNamespace); err != nil {
		return err
	}
	all, err := s.listKubernetesClusters(ctx, r.MgmtNamespace)
	if err != nil {
		return err
	}
	for _, kc := range all {
		r.clusters[kc.Name] = kc
	}
	r.contexts, r.unusable, err = contextsByUID(ctx, r.Contexts, r.Timeout)
	return err
}

// contextsByUID asks the server of each context which cluster it is: the contexts by the UID of
// its kube-system, and the names of those that lead nowhere.
func contextsByUID(ctx context.Context, contexts []Context, timeout time.Duration) (byUID map[string][]Context, unusable []string, err error) {
	uids := make([]string, len(contexts))
	var group errgroup.Group
	group.SetLimit(parallelChecks)
	for i, c := range contexts {
		group.Go(func() error {
			// One that cannot be used is named where it may have been the one.
			if s, err := newServer(remoteSide, c.Name, c.Config, timeout); err == nil && s.probe(ctx) == nil {
				uids[i] = string(s.uid)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions above return nil
	byUID = map[string][]Context{}
	for i, c := range contexts {
		if uids[i] == "" {
			unusable = append(unusable, c.Name)
			continue
		}
		byUID[uids[i]] = append(byUID[uids[i]], c)
	}
	return byUID, unusable, ctx.Err()
}

// renew registers one cluster again, with the first context that may do so.
func (r *renewing) renew(ctx context.Context, status *ClusterStatus) Renewal {
	out := Renewal{Cluster: status.Name, Problem: status.Reason}
	kc := r.clusters[status.Name]
	switch {
	case kc == nil || kc.Annotations[cluster.UIDAnnotation] == "":
		out.Reason = "its registration does not have the UID of the cluster; run `meshctl cluster register " + status.Name + " --remote-context ...`"
		return out
	case cmp.Or(kc.Spec.SecretName, kc.Name) != kc.Name:
		out.Reason = fmt.Sprintf("it was registered by hand; replace the kubeconfig in its Secret %s/%s", kc.Namespace, kc.Spec.SecretName)
		return out
	}
	uid := kc.Annotations[cluster.UIDAnnotation]
	candidates := r.contexts[uid]
	if len(candidates) == 0 {
		out.Reason = "no context of the kubeconfig leads to it (its kube-system has UID " + uid + ")"
		if len(r.unusable) > 0 {
			out.Reason += "; these contexts could not be used: " + strings.Join(r.unusable, ", ")
		}
		out.Reason += "; run the command again with the kubeconfig of one of its administrators"
		return out
	}
	var failed []error
	for _, c := range candidates {
		report, err := Register(ctx, r.options(kc, c, status.Health))
		if err == nil {
			out.Context, out.Notes = c.Name, report.Notes
			return out
		}
		failed = append(failed, err)
	}
	out.Reason = errors.Join(failed...).Error()
	return out
}

// options are those with which the cluster was registered.
func (r *renewing) options(kc *multiclusterv1alpha1.KubernetesCluster, c Context, health snapshot.Health) Options {
	o := Options{
		Agent: r.Agent,
		Name:  kc.Name, RemoteConfig: c.Config, MgmtConfig: r.MgmtConfig, RemoteContext: c.Name, MgmtContext: r.MgmtContext,
		MgmtNamespace: r.MgmtNamespace, ClusterDomain: kc.Spec.ClusterDomain, Timeout: r.Timeout,
	}
	// What an invalid Secret leads to is not to be kept.
	if health != snapshot.HealthInvalid {
		o.APIServerAddress = storedAddress(r.secrets[kc.Name], c.Config.Host)
	}
	return o
}

// storedAddress is the HOST:PORT in a Secret; empty if it cannot be read, or is that of
// the context.
func storedAddress(secret *corev1.Secret, contextHost string) string {
	if secret == nil {
		return ""
	}
	stored, _, err := cluster.ParseSecret(secret)
	if err != nil || stored.Server == strings.TrimSuffix(contextHost, "/") {
		return ""
	}
	return hostPort(stored.Server)
}
