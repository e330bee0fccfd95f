package registration

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/meshctl/meshctl/engine"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
	"github.com/meshctl/meshctl/engine/virtualmesh"
)

// The settings of a control plane are in a ConfigMap. That of one without a revision has a
// name that is known in advance, so that the ClusterRole allows to read it wherever it is.
// Those of revisions may be read in the namespaces that have a control plane when the
// cluster is registered: a new revision beside another one needs nothing.

var (
	deployments = kindResource(snapshot.Deployment)
	webhooks    = kindResource(snapshot.MutatingWebhookConfiguration)
	settings    = kindResource(snapshot.Settings)
)

// settingsAccess is what the account may do in the namespaces of control planes.
func (r *registration) settingsAccess() []access {
	var out []access
	for _, namespace := range r.meshNamespaces {
		out = append(out, configMaps.access(namespace, "").each(readVerbs...)...)
	}
	return out
}

// inspectUserTypes finds the types of what users write in the cluster that are to be installed there.
func inspectUserTypes(ctx context.Context, r *registration) error {
	var groups []string
	for _, k := range userKinds() {
		if group := k.Info().Group; !slices.Contains(groups, group) {
			groups = append(groups, group)
		}
	}
	for _, group := range groups {
		types, err := crdsOn(r.remote).outdatedCRDs(ctx, group)
		if err != nil {
			return err
		}
		r.missing.remoteCRDs = append(r.missing.remoteCRDs, slices.DeleteFunc(types, func(o *object) bool {
			return !slices.ContainsFunc(userKinds(), func(k snapshot.Kind) bool { return o.name == k.Info().Resource+"."+k.Info().Group })
		})...)
	}
	return nil
}

// inspectMeshes finds the namespaces of control planes. What may not be read counts as
// absent.
func (r *registration) inspectMeshes(ctx context.Context) error {
	m, err := r.management.inScope(ctx, r.MgmtNamespace)
	if err != nil {
		return err
	}
	r.suffixes = suffixes(m)
	if r.policies = virtualmesh.PoliciesCountIn(m, r.Name); r.policies {
		if err := inspectUserTypes(ctx, r); err != nil {
			return err
		}
	}
	r.meshNamespaces, r.meshNames, err = r.remote.istios(ctx, r.Name, virtualmesh.ControlPlaneNamespaces(virtualmesh.SettingsInForce(m), r.Name))
	return unlessForbidden(err)
}

// inScope reads what decides about registrations in a management cluster: its Settings, and the VirtualMeshes that count.
// What may not be read counts as absent; the permission is asked for, too. One that cannot be decoded is left out: serve says
// so.
func (s *server) inScope(ctx context.Context, namespace string) (*snapshot.Management, error) {
	m := &snapshot.Management{Namespace: namespace}
	var err error
	if m.KubernetesClusters, err = s.listKubernetesClusters(ctx, namespace); unlessForbidden(err) != nil {
		return nil, err
	}
	if m.Settings, err = listAll[settingsv1.Settings](ctx, s, settings); err != nil {
		return nil, err
	}
	if m.VirtualMeshes, err = listAll[networkingv1.VirtualMesh](ctx, s, virtualMeshes); err != nil {
		return nil, err
	}
	scope := virtualmesh.ScopeOf(m)
	m.VirtualMeshes = slices.DeleteFunc(m.VirtualMeshes, func(vm *networkingv1.VirtualMesh) bool { return !scope.Counts(vm.Namespace) })
	return m, nil
}

// listAll lists objects in all namespaces.
func listAll[T any](ctx context.Context, s *server, of resource) ([]*T, error) {
	list, err := s.client(of, "").List(ctx, metav1.ListOptions{})
	if kube.IsAbsent(err) || apierrors.IsForbidden(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: listing %s: %w", s.label, of.Resource, err)
	}
	var out []*T
	for i := range list.Items {
		o := new(T)
		if runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, o) == nil {
			out = append(out, o)
		}
	}
	return out, nil
}

// istios are the namespaces with a control plane of Istio, as discovery finds them, and the
// names that their Meshes get, ascending. In installed ones, everything that looks like one
// is one.
func (s *server) istios(ctx context.Context, name string, installed []string) (inNamespaces, names []string, err error) {
	injectors, err := s.clientset.AdmissionregistrationV1().MutatingWebhookConfigurations().List(ctx,
		metav1.ListOptions{LabelSelector: engine.Detectors().InjectorSelector()})
	if err != nil {
		return nil, nil, fmt.Errorf("%s: listing MutatingWebhookConfigurations: %w", s.label, err)
	}
	seen := &snapshot.Cluster{Name: name}
	for i := range injectors.Items {
		seen.MutatingWebhookConfigurations = append(seen.MutatingWebhookConfigurations, &injectors.Items[i])
	}
	found := map[string]bool{}
	options := metav1.ListOptions{Limit: pageSize}
	for {
		page, err := s.clientset.AppsV1().Deployments(corev1.NamespaceAll).List(ctx, options)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: listing Deployments: %w", s.label, err)
		}
		seen.Deployments = nil
		for i := range page.Items {
			seen.Deployments = append(seen.Deployments, &page.Items[i])
		}
		for _, mesh := range discovery.Discover(seen, discovery.Options{Detectors: engine.Detectors(), Installed: installed}).Meshes {
			if mesh.Spec.Istio != nil {
				found[mesh.Spec.Istio.Installation.Namespace] = true
				names = append(names, mesh.Name)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" {
			slices.Sort(names)
			return slices.Sorted(maps.Keys(found)), names, nil
		}
	}
}

// rolesNamed finds Roles and their bindings in all namespaces, the bindings first.
func (d *deregistration) rolesNamed(ctx context.Context, name string) ([]*object, error) {
	var out []*object
	named := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", name).String()}
	for _, r := range []resource{roleBindings, roles} {
		list, err := d.remote.meta.Resource(r.GroupVersionResource).List(ctx, named)
		if err != nil {
			return nil, fmt.Errorf("%s: listing %s: %w", d.remote.label, r.Resource, err)
		}
		for i := range list.Items {
			out = append(out, &object{resource: r, namespace: list.Items[i].Namespace, name: list.Items[i].Name})
		}
	}
	return out, nil
}

// removeRoles removes Roles and their bindings in all namespaces.
func (d *deregistration) removeRoles(ctx context.Context, name string) error {
	all, err := d.rolesNamed(ctx, name)
	if err != nil {
		return err
	}
	for _, o := range all {
		if err := d.remove(ctx, o); err != nil {
			return err
		}
	}
	return nil
}
