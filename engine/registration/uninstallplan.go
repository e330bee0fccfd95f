package registration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// UninstallOptions configure PlanUninstall.
type UninstallOptions struct {
	// Config is the client configuration of the management cluster, with the permissions of an
	// administrator, and Context what messages call it; optional.
	Config  *rest.Config
	Context string
	// Namespace of the management plane; cluster.DefaultNamespace if empty.
	Namespace string
	// Contexts are ways to the registered clusters; which cluster is whose is asked of the servers.
	Contexts []Context
	// Force goes on where a cluster cannot be cleaned.
	Force bool
	// KeepTraffic leaves in the clusters what was written for their meshes, without an owner.
	KeepTraffic bool
	// Progress gets a sentence for each step and each long wait; nil for none.
	Progress func(string)
	// Timeout bounds each server's first answer; DefaultTimeout if zero.
	Timeout time.Duration
	// UserAgent is shown to other clusters.
	UserAgent string
	// Store returns what knows the agents of a management plane: a cluster to which no context leads is left through its agent. If it is
	// nil, each cluster needs a context.
	Store func(client kube.Clientset, plane snapshot.Plane) RelayStore
}

// Uninstallation is what PlanUninstall has found.
type Uninstallation struct {
	// Clusters are the registered ones, ascending.
	Clusters []UninstalledCluster `json:"clusters,omitempty"`
	// Policies counts what users ask for, by kind; it goes with the types.
	Policies map[string]int `json:"policies,omitempty"`
	// Server is nil if serve does not run in the cluster.
	Server *InstalledServer `json:"server,omitempty"`
	// Kept says what stays, and why.
	Kept []string `json:"kept,omitempty"`

	options UninstallOptions
	server  *server
	// typesStay: another management plane uses the types.
	typesStay bool
	report    Report
}

// UninstalledCluster is a cluster to be deregistered.
type UninstalledCluster struct {
	Name string `json:"name"`
	// Objects are those that meshctl has written there; -1 if they cannot be counted.
	Objects int `json:"objects"`
	// Context is with which it is cleaned; empty if none leads there.
	Context string `json:"context,omitempty"`
	// Agent: no context leads there, and its agent cleans it.
	Agent bool `json:"agent,omitempty"`
	// Problem is why it cannot be cleaned; empty if it can.
	Problem string `json:"problem,omitempty"`

	config *rest.Config
}

// PlanUninstall finds what there is to remove, and writes nothing.
func PlanUninstall(ctx context.Context, o UninstallOptions) (*Uninstallation, error) {
	orDefault(&o.Namespace, cluster.DefaultNamespace)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	u := &Uninstallation{options: o, Policies: map[string]int{}}
	var err error
	if u.server, err = newServer(managementSide, o.Context, o.Config, o.Timeout); err != nil {
		return nil, err
	}
	if err := u.server.probe(ctx); err != nil {
		return nil, err
	}
	if u.Server, err = u.server.installedServer(ctx, o.Namespace); err != nil {
		return nil, err
	}
	if err := u.inspectPlanes(ctx); err != nil {
		return nil, err
	}
	if !u.typesStay {
		if err := u.countPolicies(ctx); err != nil {
			return nil, err
		}
	}
	return u, u.inspectClusters(ctx)
}

// Empty reports whether there is nothing to remove.
func (u *Uninstallation) Empty(ctx context.Context) (bool, error) {
	if u.Server != nil || len(u.Clusters) > 0 || len(u.Policies) > 0 {
		return false, nil
	}
	for _, o := range u.objects() {
		if found, err := u.server.get(ctx, o.resource, o.namespace, o.name); found != nil || err != nil && !kube.IsAbsent(err) {
			return false, err
		}
	}
	types, err := u.types(ctx)
	return len(types) == 0, err
}

// inspectPlanes finds other management planes in the same cluster. They use the same types.
func (u *Uninstallation) inspectPlanes(ctx context.Context) error {
	others := map[string]bool{}
	err := collecting(u.server).each(ctx, kubernetesClusters, "", func(o *metav1.PartialObjectMetadata) { others[o.Namespace] = true })
	if err != nil {
		return err
	}
	selector := labels.Set{cluster.ManagedByLabel: cluster.ManagedBy, nameLabel: ServeName}.String()
	if err := collecting(u.server).each(ctx, serviceAccounts, selector, func(o *metav1.PartialObjectMetadata) { others[o.Namespace] = true }); err != nil {
		return err
	}
	delete(others, u.options.Namespace)
	for _, namespace := range slices.Sorted(maps.Keys(others)) {
		u.typesStay = true
		u.Kept = append(u.Kept, fmt.Sprintf("the custom resource types and all policies: the management plane in namespace %s uses them", namespace))
	}
	return nil
}

func (u *Uninstallation) countPolicies(ctx context.Context) error {
	for _, k := range snapshot.Kinds(snapshot.ManagementSide, snapshot.Watch) {
		if k == snapshot.KubernetesCluster {
			continue
		}
		err := collecting(u.server).each(ctx, kindResource(k), "", func(*metav1.PartialObjectMetadata) { u.Policies[k.String()]++ })
		if err != nil {
			return err
		}
	}
	return nil
}

// inspectClusters finds a context for each registered cluster, and counts what is there.
func (u *Uninstallation) inspectClusters(ctx context.Context) error {
	registered, err := u.server.listKubernetesClusters(ctx, u.options.Namespace)
	if err != nil || len(registered) == 0 {
		return err
	}
	plane, err := u.server.plane(ctx, u.options.Namespace)
	if err != nil {
		return err
	}
	contexts, _, err := contextsByUID(ctx, u.options.Contexts, u.options.Timeout)
	if err != nil {
		return err
	}
	u.Clusters = make([]UninstalledCluster, len(registered))
	var group errgroup.Group
	group.SetLimit(parallelChecks)
	for i, kc := range registered {
		group.Go(func() error {
			u.Clusters[i] = u.inspectCluster(ctx, kc, plane, contexts[kc.Annotations[cluster.UIDAnnotation]])
			return nil
		})
	}
	_ = group.Wait() // the functions above return nil
	return ctx.Err()
}

func (u *Uninstallation) inspectCluster(ctx context.Context, kc *multiclusterv1alpha1.KubernetesCluster, plane snapshot.Plane, contexts []Context) UninstalledCluster {
	out := UninstalledCluster{Name: kc.Name, Objects: -1}
	var remote *server
	switch {
	case kc.Annotations[cluster.UIDAnnotation] == string(u.server.uid):
		out.Context, out.config, remote = u.options.Context, u.options.Config, u.server
	case len(contexts) == 0:
		u.inspectAgent(ctx, &out)
		return out
	default:
		out.Context, out.config = contexts[0].Name, contexts[0].Config
		var err error
		if remote, err = newServer(remoteSide, out.Context, out.config, u.options.Timeout); err != nil {
			out.Problem = kube.Text(err)
			return out
		}
	}
	count := 0
	for _, selector := range translatedSelectors(plane, kc.Name) {
		for _, k := range translatedKinds() {
			if err := collecting(remote).each(ctx, kindResource(k), selector, func(*metav1.PartialObjectMetadata) { count++ }); err != nil {
				out.Problem = kube.Text(err)
				return out
			}
		}
	}
	out.Objects = count
	return out
}
