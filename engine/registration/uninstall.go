package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
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
	if err := u.lookAtPlanes(ctx); err != nil {
		return nil, err
	}
	if !u.typesStay {
		if err := u.countPolicies(ctx); err != nil {
			return nil, err
		}
	}
	return u, u.lookAtClusters(ctx)
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

// lookAtPlanes finds other management planes in the same cluster. They use the same types.
func (u *Uninstallation) lookAtPlanes(ctx context.Context) error {
	others := map[string]bool{}
	err := u.server.each(ctx, kubernetesClusters, "", func(o *metav1.PartialObjectMetadata) { others[o.Namespace] = true })
	if err != nil {
		return err
	}
	selector := labels.Set{cluster.ManagedByLabel: cluster.ManagedBy, nameLabel: ServeName}.String()
	if err := u.server.each(ctx, serviceAccounts, selector, func(o *metav1.PartialObjectMetadata) { others[o.Namespace] = true }); err != nil {
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
		err := u.server.each(ctx, kindResource(k), "", func(*metav1.PartialObjectMetadata) { u.Policies[k.String()]++ })
		if err != nil {
			return err
		}
	}
	return nil
}

// lookAtClusters finds a context for each registered cluster, and counts what is there.
func (u *Uninstallation) lookAtClusters(ctx context.Context) error {
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
			u.Clusters[i] = u.lookAtCluster(ctx, kc, plane, contexts[kc.Annotations[cluster.UIDAnnotation]])
			return nil
		})
	}
	_ = group.Wait() // the functions above return nil
	return ctx.Err()
}

func (u *Uninstallation) lookAtCluster(ctx context.Context, kc *multiclusterv1alpha1.KubernetesCluster, plane snapshot.Plane, contexts []Context) UninstalledCluster {
	out := UninstalledCluster{Name: kc.Name, Objects: -1}
	var remote *server
	switch {
	case kc.Annotations[cluster.UIDAnnotation] == string(u.server.uid):
		out.Context, out.config, remote = u.options.Context, u.options.Config, u.server
	case len(contexts) == 0:
		out.Problem = "no context of the kubeconfig leads to it"
		return out
	default:
		out.Context, out.config = contexts[0].Name, contexts[0].Config
		var err error
		if remote, err = newServer(remoteSide, out.Context, out.config, u.options.Timeout); err != nil {
			out.Problem = err.Error()
			return out
		}
	}
	count := 0
	for _, selector := range translatedSelectors(plane, kc.Name) {
		for _, k := range translatedKinds() {
			if err := remote.each(ctx, kindResource(k), selector, func(*metav1.PartialObjectMetadata) { count++ }); err != nil {
				out.Problem = err.Error()
				return out
			}
		}
	}
	out.Objects = count
	return out
}

// objects are those of an installation in its namespace and around it, whether or not they are there,
// in the order in which they go.
func (u *Uninstallation) objects() []*object {
	monitored := true
	o := InstallOptions{Namespace: u.options.Namespace, Image: "any", Replicas: 1, Resources: DefaultResources(), ServiceMonitor: &monitored}
	out := o.objects()
	slices.Reverse(out)
	return slices.DeleteFunc(out, func(o *object) bool { return o.resource == namespaces })
}

// types are the custom resource types that meshctl has written.
func (u *Uninstallation) types(ctx context.Context) ([]*object, error) {
	if u.typesStay {
		return nil, nil
	}
	return u.server.writtenTypes(ctx, "")
}

// writtenTypes are the custom resource types of an API group that meshctl has written; of all groups if
// it is empty.
func (s *server) writtenTypes(ctx context.Context, group string) ([]*object, error) {
	all, err := allCRDs()
	if err != nil {
		return nil, err
	}
	var out []*object
	for _, o := range all {
		if group != "" && !strings.HasSuffix(o.name, "."+group) {
			continue
		}
		found, err := s.get(ctx, crdResource, "", o.name)
		if err != nil {
			return nil, err
		}
		if found != nil && found.GetAnnotations()[hashAnnotation] != "" {
			out = append(out, o)
		}
	}
	return out, nil
}

// Run removes what was found: it deregisters the clusters while serve still runs, so that their meshes
// get back the certificates that they had, then ends serve, and then removes all that is left. With
// KeepTraffic, serve ends first. Repeating it finishes what was interrupted.
func (u *Uninstallation) Run(ctx context.Context) (Report, error) {
	for _, c := range u.Clusters {
		if c.Problem != "" && !u.options.Force {
			return u.report, fmt.Errorf("cluster %s: nothing was changed, because it cannot be cleaned: %s; run the command with a kubeconfig that leads there, "+
				"or with --force, which leaves there what is there", c.Name, c.Problem)
		}
	}
	steps := []func(context.Context) error{u.deregister, u.endServe, u.removeTypes, u.removeState, u.removeObjects, u.removeNamespace}
	if u.options.KeepTraffic {
		steps = slices.Insert(steps, 0, u.endServe) // it would write again what loses its labels
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return u.report, fmt.Errorf("namespace %s: uninstalling: %w; run the command again", u.options.Namespace, err)
		}
	}
	return u.report, nil
}

func (u *Uninstallation) deregister(ctx context.Context) error {
	for _, c := range u.Clusters {
		u.options.Progress("deregistering cluster " + c.Name)
		report, err := Deregister(ctx, DeregisterOptions{
			Name: c.Name, MgmtConfig: u.options.Config, MgmtContext: u.options.Context, MgmtNamespace: u.options.Namespace,
			RemoteConfig: c.config, RemoteContext: c.Context, Force: u.options.Force, KeepTraffic: u.options.KeepTraffic, Timeout: u.options.Timeout,
			Progress: u.options.Progress, UserAgent: u.options.UserAgent,
		})
		u.report.add(report.Changes...)
		u.report.Notes = append(u.report.Notes, report.Notes...)
		u.report.Leftovers = append(u.report.Leftovers, report.Leftovers...)
		if err != nil {
			return err
		}
		if c.config != nil {
			if err := u.removeAgentTypes(ctx, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeAgentTypes removes from a cluster the types of what agents are asked, unless another management
// plane has registered it.
func (u *Uninstallation) removeAgentTypes(ctx context.Context, c UninstalledCluster) error {
	s, err := newServer(remoteSide, c.Context, c.config, u.options.Timeout)
	if err != nil {
		return err
	}
	if err := s.probe(ctx); err != nil || s.uid == u.server.uid {
		return err // those of the management cluster go with all others
	}
	used := false
	selector := labels.Set{cluster.ManagedByLabel: cluster.ManagedBy}.String() + "," + snapshot.PlaneLabel
	if err := s.each(ctx, clusterRoles, selector, func(*metav1.PartialObjectMetadata) { used = true }); err != nil || used {
		return err
	}
	types, err := s.writtenTypes(ctx, agentGroup)
	if err != nil {
		return err
	}
	return u.removeAll(ctx, s, types)
}

// endTimeout bounds the wait until serve has ended: it gets 30 s for that.
const endTimeout = time.Minute

// endServe removes the Deployment, and waits until nobody holds the Lease: what is removed after it
// must not be written again. A serve that runs elsewhere has to be ended by who runs it.
func (u *Uninstallation) endServe(ctx context.Context) error {
	if u.Server != nil {
		u.options.Progress("ending serve")
		changes, err := u.server.delete(ctx, deployments, u.options.Namespace, ServeName)
		u.report.add(changes...)
		if err != nil {
			return err
		}
	}
	deadline := time.Now().Add(endTimeout)
	for {
		held, err := u.server.isHeld(ctx, u.options.Namespace, cluster.LeaseName)
		switch {
		case err != nil:
			return fmt.Errorf("%s: reading Lease %s/%s: %w", u.server.label, u.options.Namespace, cluster.LeaseName, err)
		case !held:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("%s: a `meshctl serve` holds Lease %s/%s; end it", u.server.label, u.options.Namespace, cluster.LeaseName)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(collectPause):
		}
	}
}

// removeTypes removes the types, and with them what users have asked for.
func (u *Uninstallation) removeTypes(ctx context.Context) error {
	types, err := u.types(ctx)
	if err != nil {
		return err
	}
	return u.removeAll(ctx, u.server, types)
}

// removeAll removes types, and waits until their objects are gone with them.
func (u *Uninstallation) removeAll(ctx context.Context, s *server, types []*object) error {
	for _, o := range types {
		changes, err := s.delete(ctx, o.resource, "", o.name)
		u.report.add(changes...)
		if err != nil {
			return err
		}
	}
	for _, o := range types {
		err := wait.PollUntilContextTimeout(ctx, collectPause, collectTimeout, true, func(ctx context.Context) (bool, error) {
			found, err := s.get(ctx, o.resource, "", o.name)
			return found == nil, err
		})
		if err != nil {
			return fmt.Errorf("%s: waiting until %s is gone: %w", s.label, o.describe(), err)
		}
	}
	return nil
}

// removeState removes what serve keeps in its namespace.
func (u *Uninstallation) removeState(ctx context.Context) error {
	ns := u.options.Namespace
	var failed []error
	list, err := u.server.clientset.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{FieldSelector: "type=" + rootSecretType})
	if err != nil {
		return fmt.Errorf("%s: listing Secrets of namespace %s: %w", u.server.label, ns, err)
	}
	remove := func(r resource, name string) {
		changes, err := u.server.delete(ctx, r, ns, name)
		u.report.add(changes...)
		failed = append(failed, err)
	}
	for i := range list.Items {
		remove(secrets, list.Items[i].Name)
	}
	remove(configMaps, cluster.PlaneName)
	remove(leases, cluster.LeaseName)
	return errors.Join(failed...)
}

// rootSecretType is that of the roots that serve has made for VirtualMeshes.
const rootSecretType = "certificates.mesh.gloo.solo.io/generated_signing_cert"

func (u *Uninstallation) removeObjects(ctx context.Context) error {
	for _, o := range u.objects() {
		found, err := u.server.get(ctx, o.resource, o.namespace, o.name)
		switch {
		case kube.IsAbsent(err) || err == nil && found == nil:
			continue
		case err != nil:
			return err
		case found.GetLabels()[cluster.ManagedByLabel] != cluster.ManagedBy:
			u.report.note(o.describe() + " is kept: it was not created by meshctl")
			continue
		}
		changes, err := u.server.delete(ctx, o.resource, o.namespace, o.name)
		u.report.add(changes...)
		if err != nil {
			return err
		}
	}
	return nil
}

// removeNamespace removes the namespace if meshctl made it and nothing else is in it.
func (u *Uninstallation) removeNamespace(ctx context.Context) error {
	changes, note, err := u.server.removeCreatedNamespace(ctx, u.options.Namespace)
	u.report.add(changes...)
	if note != "" {
		u.report.note(note)
	}
	return err
}
