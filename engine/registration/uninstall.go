package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/webhook"
)

// objects are those of an installation in its namespace and around it, whether or not they are there,
// in the order in which they go.
func (u *Uninstallation) objects() []*object {
	monitored := true
	o := InstallOptions{Namespace: u.options.Namespace, Image: "any", Replicas: ptr.To[int32](1), Resources: DefaultResources(), ServiceMonitor: &monitored, Relay: InstallRelay{Enabled: &monitored},
		Webhook: InstallWebhook{Enabled: &monitored, Roles: webhook.Enforce}}
	out := o.objects()
	slices.Reverse(out)
	return slices.DeleteFunc(out, func(o *object) bool { return o.resource == namespaces })
}

// types are the custom resource types that meshctl has written.
func (u *Uninstallation) types(ctx context.Context) ([]*object, error) {
	if u.typesStay {
		return nil, nil
	}
	return crdsOn(u.server).writtenTypes(ctx, "")
}

// writtenTypes are the custom resource types of an API group that meshctl has written; of all groups if
// it is empty.
func (s crdInstaller) writtenTypes(ctx context.Context, group string) ([]*object, error) {
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
				"or with --force, which leaves there what is there and prints the commands that remove it", c.Name, c.Problem)
		}
	}
	steps := []func(context.Context) error{u.removeWebhooks, u.deregister, u.endServe, u.removeTypes, u.removeState, u.removeObjects, u.removeNamespace}
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

// removeWebhooks has API servers ask nobody: from here on, nobody answers.
func (u *Uninstallation) removeWebhooks(ctx context.Context) error {
	changes, err := removeWebhooks(ctx, u.server, u.options.Namespace, nil)
	u.report.add(changes...)
	return err
}

// deregister deregisters all clusters side by side: each may wait minutes for its meshes.
func (u *Uninstallation) deregister(ctx context.Context) error {
	var mu sync.Mutex
	progress := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		u.options.Progress(text)
	}
	reports := make([]Report, len(u.Clusters))
	errs := make([]error, len(u.Clusters))
	var group errgroup.Group
	group.SetLimit(parallelRenewals)
	for i, c := range u.Clusters {
		group.Go(func() error {
			progress("deregistering cluster " + c.Name)
			reports[i], errs[i] = u.deregisterOne(ctx, c, progress)
			return nil
		})
	}
	_ = group.Wait() // the functions above return nil
	for _, report := range reports {
		u.report.add(report.Changes...)
		u.report.Notes = append(u.report.Notes, report.Notes...)
		u.report.Leftovers = append(u.report.Leftovers, report.Leftovers...)
	}
	return errors.Join(errs...)
}

func (u *Uninstallation) deregisterOne(ctx context.Context, c UninstalledCluster, progress func(string)) (Report, error) {
	options := u.deregisterOptions(c.Name)
	options.RemoteConfig, options.RemoteContext, options.Progress = c.config, c.Context, progress
	if c.Agent {
		return u.deregisterThroughAgent(ctx, options)
	}
	report, err := Deregister(ctx, options)
	if err == nil && c.config != nil {
		var changes []Change
		changes, err = u.removeAgentTypes(ctx, c)
		report.add(changes...)
	}
	return report, err
}

// removeAgentTypes removes from a cluster the types of what agents are asked, unless another management
// plane has registered it.
func (u *Uninstallation) removeAgentTypes(ctx context.Context, c UninstalledCluster) ([]Change, error) {
	s, err := newServer(remoteSide, c.Context, c.config, u.options.Timeout)
	if err != nil {
		return nil, err
	}
	if err := s.probe(ctx); err != nil || s.uid == u.server.uid {
		return nil, err // those of the management cluster go with all others
	}
	used := false
	selector := labels.Set{cluster.ManagedByLabel: cluster.ManagedBy}.String() + "," + snapshot.PlaneLabel
	if err := collecting(s).each(ctx, clusterRoles, selector, func(*metav1.PartialObjectMetadata) { used = true }); err != nil || used {
		return nil, err
	}
	types, err := crdsOn(s).writtenTypes(ctx, agentGroup)
	if err != nil {
		return nil, err
	}
	return collecting(s).removeAll(ctx, types)
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
	began, said := time.Now(), false
	deadline := began.Add(endTimeout)
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
		if u.Server == nil && !said && time.Since(began) > announceAfter {
			u.options.Progress(fmt.Sprintf("waiting until the `meshctl serve` ends that holds Lease %s/%s and runs elsewhere: end it", u.options.Namespace, cluster.LeaseName))
			said = true
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
	changes, err := collecting(u.server).removeAll(ctx, types)
	u.report.add(changes...)
	return err
}

// removeAll removes types, and waits until their objects are gone with them.
func (s collector) removeAll(ctx context.Context, types []*object) (done []Change, err error) {
	for _, o := range types {
		changes, err := s.delete(ctx, o.resource, "", o.name)
		done = append(done, changes...)
		if err != nil {
			return done, err
		}
	}
	for _, o := range types {
		err := wait.PollUntilContextTimeout(ctx, collectPause, collectTimeout, true, func(ctx context.Context) (bool, error) {
			found, err := s.get(ctx, o.resource, "", o.name)
			return found == nil, err
		})
		if err != nil {
			return done, fmt.Errorf("%s: waiting until %s is gone: %w", s.label, o.describe(), err)
		}
	}
	return done, nil
}

// removeState removes what serve keeps in its namespace.
func (u *Uninstallation) removeState(ctx context.Context) error {
	ns := u.options.Namespace
	var failed []error
	remove := func(r resource, name string) {
		changes, err := u.server.delete(ctx, r, ns, name)
		u.report.add(changes...)
		failed = append(failed, err)
	}
	for _, ofType := range []string{snapshot.RootSecretType, snapshot.RelayRecordType} {
		list, err := u.server.clientset.CoreV1().Secrets(ns).List(ctx, metav1.ListOptions{FieldSelector: "type=" + ofType})
		if err != nil {
			return fmt.Errorf("%s: listing Secrets of namespace %s: %w", u.server.label, ns, err)
		}
		for i := range list.Items {
			remove(secrets, list.Items[i].Name)
		}
	}
	for _, name := range []string{snapshot.RelayServerSecret, snapshot.RelayRootSecret, snapshot.RelayWaitingSecret, webhook.Secret} {
		found, err := storedSecret(ctx, u.server.clientset, ns, name)
		switch {
		case err != nil:
			return err
		case found == nil:
		case found.Labels[cluster.ManagedByLabel] != cluster.ManagedBy:
			u.report.note(fmt.Sprintf("Secret %s/%s is kept: it was not created by meshctl", ns, name))
		default:
			remove(secrets, name)
		}
	}
	remove(configMaps, cluster.PlaneName)
	remove(configMaps, snapshot.TrustRecord)
	remove(configMaps, snapshot.ChangesRecord)
	remove(leases, cluster.LeaseName)
	remove(endpointSlices, webhook.Service)
	return errors.Join(failed...)
}

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
