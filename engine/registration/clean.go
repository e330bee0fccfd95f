package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"

	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// stored connects to a cluster with the credential in its Secret, and proves
// that the API server accepts it.
func (s *server) stored(ctx context.Context, secret *corev1.Secret, userAgent string, timeout time.Duration) (*server, error) {
	credential, _, err := cluster.ParseSecret(secret)
	if err != nil {
		return nil, err
	}
	client, err := cluster.NewClient(credential, userAgent)
	if err != nil {
		return nil, err
	}
	out, err := newServer(remoteSide, "", client.Config, timeout)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if _, err := cluster.WhoAmI(ctx, out.clientset); err != nil {
		return nil, out.unreachable(ctx, err)
	}
	return out, nil
}

// accessObjects are the objects that give access to the cluster, in the order in which
// they go; the role and the account go after what was written with them.
func (d *deregistration) accessObjects() (bindings, rest []*object) {
	own := TokenRoleName(d.Name)
	bindings = []*object{
		{resource: clusterRoleBindings, name: BindingName(d.Name, d.plane.ID)},
		{resource: clusterRoleBindings, name: oldBindingName(d.Name)},
		// An agent without a hub would write again what is deleted.
		{resource: clusterRoleBindings, name: RelayRoleName(d.plane.ID)},
		{resource: clusterRoleBindings, name: ReadProxiesName(d.Name, d.plane.ID)},
		{resource: roleBindings, namespace: d.RemoteNamespace, name: own},
		{resource: roles, namespace: d.RemoteNamespace, name: own},
		{resource: policyBindings, name: TokenPolicyName(d.Name, d.plane.ID)},
		{resource: policies, name: TokenPolicyName(d.Name, d.plane.ID)},
	}
	rest = []*object{
		{resource: policyBindings, name: HostsPolicyName(d.plane.ID)},
		{resource: policies, name: HostsPolicyName(d.plane.ID)},
		{resource: clusterRoles, name: ReadProxiesName(d.Name, d.plane.ID)},
		{resource: clusterRoles, name: RoleName(d.plane.ID)},
		{resource: clusterRoles, name: oldRoleName},
		{resource: serviceAccounts, namespace: d.RemoteNamespace, name: d.Name},
	}
	return bindings, rest
}

func (d *deregistration) remoteAccess() []access {
	var wanted []access
	for _, k := range translatedKinds() {
		wanted = append(wanted, kindResource(k).access("", "").each("list", "delete")...)
		if d.KeepTraffic {
			wanted = append(wanted, kindResource(k).access("", "").each("patch")...)
		}
	}
	bindings, after := d.accessObjects()
	for _, o := range slices.Concat(bindings, after) {
		wanted = append(wanted, o.access(o.namespace, o.name).each("get", "delete")...)
	}
	for _, r := range []resource{roleBindings, roles} {
		wanted = append(wanted, r.access("", "").each("list")...)
		for _, name := range []string{SettingsRoleName(d.Name, d.plane.ID), AgentName(d.plane.ID), RelayRoleName(d.plane.ID)} {
			wanted = append(wanted, r.access("", name).each("get", "delete")...)
		}
	}
	rights, rest := d.agentObjects()
	for _, o := range slices.Concat(rights, rest, relayLeftovers(d.plane.ID, d.RemoteNamespace)) {
		wanted = append(wanted, o.access(o.namespace, o.name).each("get", "delete")...)
	}
	wanted = append(wanted, configMaps.access(d.RemoteNamespace, "").each("list", "delete")...)
	for _, r := range []resource{certificateRequests, issuedCertificates} {
		wanted = append(wanted, r.access(d.RemoteNamespace, "").each("list")...)
	}
	wanted = append(wanted, leases.access(d.RemoteNamespace, snapshot.AgentLease).each("get", "delete")...)
	wanted = append(wanted, serviceAccounts.access(d.RemoteNamespace, "").each("list", "delete")...)
	return append(wanted, clusterRoleBindings.access("", "").each("list")...)
}

// clean removes from the cluster what was written there, and what gave access.
// Access goes first: whatever still runs cannot write behind our back. But the agent
// has work to do. With Force, a step that fails does not keep the others from being done.
func (d *deregistration) clean(ctx context.Context) error {
	bindings, rest := d.accessObjects()
	agentRights, agentRest := d.agentObjects()
	var steps []func(context.Context) error
	remove := func(objects []*object) {
		for _, o := range objects {
			steps = append(steps, func(ctx context.Context) error { return d.remove(ctx, o) })
		}
	}
	removeRoles := func(name string) {
		steps = append(steps, func(ctx context.Context) error { return d.removeRoles(ctx, name) })
	}
	remove(bindings)
	removeRoles(SettingsRoleName(d.Name, d.plane.ID))
	if d.KeepTraffic {
		steps = append(steps, d.disown)
	} else {
		steps = append(steps, d.collectTranslated, d.awaitAgent)
	}
	removeRoles(AgentName(d.plane.ID))
	removeRoles(RelayRoleName(d.plane.ID))
	remove(agentRights)
	remove(agentRest)
	remove(relayLeftovers(d.plane.ID, d.RemoteNamespace))
	steps = append(steps, d.removeRelayOutput)
	if d.KeepTraffic {
		steps = append(steps, d.collectTranslated, d.removeAgentState)
	}
	steps = append(steps, d.removeAgentLease)
	remove(rest)
	steps = append(steps, d.removeAccounts, d.removeNamespace)
	var failed []error
	for _, step := range steps {
		if err := step(ctx); err != nil {
			failed = append(failed, err)
			if !d.Force {
				break
			}
		}
	}
	return errors.Join(failed...)
}

// notePolicies says of a cluster whose users' policies counted that their types stay: with these, the policies would go.
func (d *deregistration) notePolicies() {
	if d.cluster == nil {
		return
	}
	granted := func(k snapshot.Kind) bool {
		return slices.ContainsFunc(d.cluster.Status.PolicyRules, func(rule multiclusterv1alpha1.PolicyRule) bool {
			return slices.Contains(rule.ApiGroups, k.Info().Group) && slices.Contains(rule.Resources, k.Info().Resource)
		})
	}
	var types []string
	for _, k := range userKinds() {
		if granted(k) {
			types = append(types, k.Info().Resource+"."+k.Info().Group)
		}
	}
	if len(types) > 0 {
		d.report.note("what users wrote in cluster " + d.Name + " of " + strings.Join(types, ", ") + " stays there without effect; to delete it with its types: kubectl delete crd " + strings.Join(types, " "))
	}
}

func (d *deregistration) collectTranslated(ctx context.Context) error {
	quiet := time.Duration(0)
	if d.serving(ctx) || d.relayed() {
		quiet = quietWhileServed
	}
	for _, selector := range translatedSelectors(d.plane, d.Name) {
		changes, err := collecting(d.remote).collect(ctx, translatedKinds(), selector, quiet)
		d.report.add(changes...)
		if err != nil {
			return err
		}
		quiet = 0 // nothing of versions before is written any more
	}
	return nil
}

// remove deletes an object that meshctl created; others are kept and noted.
func (d *deregistration) remove(ctx context.Context, o *object) error {
	found, err := d.remote.get(ctx, o.resource, o.namespace, o.name)
	if err != nil || found == nil {
		return err
	}
	if found.GetLabels()[cluster.ManagedByLabel] != cluster.ManagedBy {
		d.report.note(fmt.Sprintf("%s on %s is kept: it was not created by meshctl", o.describe(), d.remote.label))
		return nil
	}
	if !isOf(found, d.plane, string(d.management.uid)) || o.name == oldBindingName(d.Name) && !boundTo(found, d.RemoteNamespace, d.Name) {
		d.report.note(fmt.Sprintf("%s on %s is kept: it belongs to another management plane", o.describe(), d.remote.label))
		return nil
	}
	if o.resource == clusterRoles {
		used, err := d.remote.roleUsed(ctx, o.name)
		if err != nil || used {
			return err
		}
	}
	changes, err := d.remote.delete(ctx, o.resource, o.namespace, o.name)
	d.report.add(changes...)
	return err
}

// relayed reports whether the cluster is reached through its agent.
func (d *deregistration) relayed() bool {
	return d.cluster != nil && d.cluster.Spec.SecretName == "" && d.secret == nil
}

// removeRelayOutput removes what the agent keeps for its own restart.
func (d *deregistration) removeRelayOutput(ctx context.Context) error {
	changes, err := removeRelayOutput(ctx, d.remote, d.RemoteNamespace)
	d.report.add(changes...)
	return err
}

// removeAccounts removes what is left of the accounts of the registration.
func (d *deregistration) removeAccounts(ctx context.Context) error {
	left, err := d.remote.accounts(ctx, d.RemoteNamespace, d.Name, d.plane, string(d.management.uid))
	if err != nil {
		return err
	}
	for i := range left {
		changes, err := d.remote.delete(ctx, serviceAccounts, d.RemoteNamespace, left[i].GetName())
		d.report.add(changes...)
		if err != nil {
			return err
		}
	}
	return nil
}

// roleUsed reports whether a ClusterRole is bound to anybody.
func (s *server) roleUsed(ctx context.Context, role string) (bool, error) {
	list, err := s.clientset.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{})
	if err != nil {
		return false, fmt.Errorf("%s: listing ClusterRoleBindings: %w", s.label, err)
	}
	for i := range list.Items {
		if list.Items[i].RoleRef.Name == role {
			return true, nil
		}
	}
	return false, nil
}

func (d *deregistration) removeNamespace(ctx context.Context) error {
	changes, note, err := d.remote.removeCreatedNamespace(ctx, d.RemoteNamespace)
	d.report.add(changes...)
	if note != "" {
		d.report.note(note)
	}
	return err
}

// lookPause is the time between two looks at everything in a namespace, which is a request for each type.
const lookPause = 2 * time.Second

// removeCreatedNamespace deletes a namespace if meshctl created it and it is empty. If that
// cannot be checked, it is kept, and the note says so. What ends by itself, as the pods of a Deployment
// that was deleted, gets the time to do so.
func (s *server) removeCreatedNamespace(ctx context.Context, name string) (changes []Change, note string, err error) {
	ns, err := s.get(ctx, namespaces, "", name)
	if err != nil || ns == nil || ns.GetAnnotations()[CreatedAnnotation] == "" {
		return nil, "", unlessForbidden(err)
	}
	var inhabitant string
	var unknown error
	// Whatever ends the wait, the last look says what is there.
	_ = wait.PollUntilContextTimeout(ctx, lookPause, collectTimeout, true, func(context.Context) (bool, error) {
		var ends bool
		// ctx, so that a look is not cut off: what was not seen must not count as not there.
		inhabitant, ends, unknown = s.inhabitant(ctx, name)
		return !ends || unknown != nil, nil
	})
	switch {
	case ctx.Err() != nil:
		return nil, "", ctx.Err()
	case unknown != nil:
		return nil, fmt.Sprintf("namespace %s on %s is kept: cannot check whether it is empty: %s", name, s.label, unknown), nil //nolint:nilerr // the note says it
	case inhabitant != "":
		return nil, fmt.Sprintf("namespace %s on %s is kept: it contains %s", name, s.label, inhabitant), nil
	}
	changes, err = s.delete(ctx, namespaces, "", name)
	return changes, "", err
}

// natives are in every namespace; Kubernetes and Istio put them there.
var natives = map[string]string{
	"configmaps":      "kube-root-ca.crt istio-ca-root-cert istio-ca-crl",
	"serviceaccounts": "default",
}

// inhabitant names one object that lives in a namespace, if any does; one that ends by itself only if
// no other does: it is being deleted, or belongs to another object.
func (s *server) inhabitant(ctx context.Context, namespace string) (name string, ends bool, err error) {
	lists, err := s.clientset.Discovery().ServerPreferredNamespacedResources()
	if err != nil {
		return "", false, fmt.Errorf("listing the types of objects: %w", err)
	}
	lists = discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "delete"}}, lists)
	for _, list := range lists {
		for i := range list.APIResources {
			found, passing, err := s.inhabitantOf(ctx, list, &list.APIResources[i], namespace)
			if err != nil || found != "" && !passing {
				return found, false, err
			}
			if found != "" {
				name, ends = found, true
			}
		}
	}
	return name, ends, nil
}

func (s *server) inhabitantOf(ctx context.Context, list *metav1.APIResourceList, r *metav1.APIResource, namespace string) (name string, ends bool, err error) {
	if r.Name == "events" {
		return "", false, nil
	}
	gvr, err := groupVersionResource(list.GroupVersion, r.Name)
	if err != nil {
		return "", false, err
	}
	objects, err := s.meta.Resource(gvr).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: 20})
	if kube.IsAbsent(err) {
		return "", false, nil
	}
	if err != nil {
		return "", false, fmt.Errorf("listing %s: %w", r.Name, err)
	}
	for i := range objects.Items {
		o := &objects.Items[i]
		if isNative(r.Name, o.Name) {
			continue
		}
		name, ends = r.Kind+" "+o.Name, o.DeletionTimestamp != nil || len(o.OwnerReferences) > 0
		if !ends {
			break
		}
	}
	return name, ends, nil
}
