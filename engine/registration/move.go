package registration

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/kube"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// This file keeps the accounts of registrations out of the namespaces of management planes. Such a namespace has the keys of
// roots and the credentials of all clusters, and whoever has the credential of an agent must have no right there. Versions
// before had the accounts of the management cluster's own registration in it: they move when it is registered again.

// ownSuffix makes a namespace for accounts from one that is a management plane's.
const ownSuffix = "-agent"

// former is what a registration had in the namespace of a management plane.
type former struct {
	// namespace is that one; empty if nothing moves.
	namespace string
	// rights are those of its agent, and go first. The rest goes when there is another: the account of serve, and the Deployment
	// of the agent, which says of which image it is.
	rights, rest []*object
}

// mover moves it to the namespace that the registration has now.
type mover struct{ *registration }

func moving(r *registration) mover { return mover{r} }

// place decides the namespace of the accounts, and finds what is to move.
func (r *registration) place(ctx context.Context) error {
	registered, err := r.management.getKubernetesCluster(ctx, r.MgmtNamespace, r.Name)
	if unlessForbidden(err) != nil {
		return err
	}
	was := cluster.DefaultNamespace
	if registered != nil && registered.Annotations[cluster.UIDAnnotation] == string(r.remote.uid) {
		was = cmp.Or(registered.Status.Namespace, was)
	}
	planes, err := r.isPlanes(ctx, was)
	if err != nil {
		return err
	}
	own := was
	if planes {
		own += ownSuffix
		if err := moving(r).inspectFormer(ctx, was); err != nil {
			return err
		}
		if registered != nil && registered.Status.Namespace == was {
			r.former.namespace = was // as long as it is said, not all has moved
		}
	}
	r.RemoteNamespace = cmp.Or(r.RemoteNamespace, own)
	if planes, err = r.isPlanes(ctx, r.RemoteNamespace); err != nil {
		return err
	}
	if planes {
		return fmt.Errorf("cluster %s: namespace %s belongs to a management plane, in which the agent of a cluster must have no rights; "+
			"name another one with --remote-namespace, or leave it out (%s)", r.Name, r.RemoteNamespace, r.RemoteNamespace+ownSuffix)
	}
	if len(validation.IsDNS1123Label(r.RemoteNamespace)) > 0 {
		return fmt.Errorf("cluster %s: namespace %s, for the accounts of meshctl, has more than 63 characters; use --remote-namespace", r.Name, r.RemoteNamespace)
	}
	return nil
}

// isPlanes reports whether a namespace of the cluster is that of a management plane, ours or another.
func (r *registration) isPlanes(ctx context.Context, namespace string) (bool, error) {
	if r.remote.uid == r.management.uid && namespace == r.MgmtNamespace {
		return true, nil // it has no identity before its first registration
	}
	identity, err := r.remote.get(ctx, configMaps, namespace, cluster.PlaneName)
	return identity != nil, unlessForbidden(err)
}

// inspectFormer finds the objects of the registration in a namespace.
func (r mover) inspectFormer(ctx context.Context, namespace string) error {
	plane, err := r.management.plane(ctx, r.MgmtNamespace)
	if unlessForbidden(err) != nil {
		return err
	}
	find := func(out *[]*object, name string, resources ...resource) error {
		for _, of := range resources {
			o := &object{resource: of, namespace: namespace, name: name}
			found, err := r.remote.get(ctx, of, o.namespace, o.name)
			if unlessForbidden(err) != nil {
				return err
			}
			if found != nil && found.GetLabels()[cluster.ManagedByLabel] == cluster.ManagedBy && found.GetLabels()[snapshot.ClusterLabel] == r.Name &&
				isOf(found, plane, string(r.management.uid)) {
				*out = append(*out, o)
				r.former.namespace = namespace
			}
		}
		return nil
	}
	agent, more := AgentName(plane.ID), moreName(plane.ID)
	// Without its account, no token of an agent is valid any more.
	return errors.Join(
		find(&r.former.rights, agent, serviceAccounts, roleBindings, roles),
		find(&r.former.rights, more, roleBindings, roles),
		find(&r.former.rest, TokenRoleName(r.Name), roleBindings, roles),
		find(&r.former.rest, agent, deployments),
		find(&r.former.rest, r.Name, serviceAccounts),
	)
}

// checkFormer says what keeps the accounts from moving.
func (r mover) checkFormer() error {
	for _, o := range r.former.rights {
		if o.name == moreName(r.plane.ID) && o.resource == roles && r.Agent != nil && len(r.Agent.MoreRules) == 0 {
			return fmt.Errorf("cluster %s: its agent moves from namespace %s to %s, and %s lets it read what Vault needs in the former; "+
				"create the same Secrets and ServiceAccounts in %s, and use --vault-token-secret or --vault-service-account",
				r.Name, r.former.namespace, r.RemoteNamespace, o.describe(), r.RemoteNamespace)
		}
	}
	return nil
}

// formerAccess is what moving needs.
func (r mover) formerAccess() []access {
	if r.former.namespace == "" {
		return nil
	}
	var wanted []access
	for _, o := range slices.Concat(r.former.rights, r.former.rest) {
		wanted = append(wanted, o.access(o.namespace, o.name).each("delete")...)
	}
	for _, namespace := range r.meshNamespaces {
		wanted = append(wanted, secrets.access(namespace, "").each("list", "patch")...)
	}
	wanted = append(wanted, secrets.access(r.former.namespace, "").each("list", "delete")...)
	wanted = append(wanted, issuedCertificates.access(r.former.namespace, "").each("list")...)
	if r.Agent != nil {
		there := issuedCertificates.access(r.RemoteNamespace, "")
		wanted = append(wanted, there.each("get", "create", "patch")...)
		there.resource += "/status"
		wanted = append(wanted, there.each("patch")...)
	}
	wanted = append(wanted, certificateRequests.access(r.former.namespace, "").each("list", "delete")...)
	return append(wanted, leases.access(r.former.namespace, snapshot.AgentLease).each("delete")...)
}

// endFormer takes the agent of versions before its rights, and gives what it made to its successor, which goes on with it: the
// certificates stay as they are until the successor has others below the same root.
func (r mover) endFormer(ctx context.Context) error {
	if r.former.namespace == "" {
		return nil
	}
	if err := r.deleteAll(ctx, r.former.rights); err != nil {
		return err
	}
	if r.Agent == nil {
		return nil
	}
	for _, namespace := range r.meshNamespaces {
		if err := r.handOver(ctx, namespace); err != nil {
			return err
		}
	}
	if err := r.handOverRequests(ctx); err != nil {
		return err
	}
	return r.removeFormerState(ctx)
}

// handOverRequests copies what the agent is asked for, and what it has reported, to its new namespace. It goes on with that: else
// it would have to restart workloads of which it does not know any more what they hold.
func (r mover) handOverRequests(ctx context.Context) error {
	list, err := r.remote.dynamic.Resource(issuedCertificates.GroupVersionResource).Namespace(r.former.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("%s: listing %s of namespace %s: %w", r.remote.label, issuedCertificates.Resource, r.former.namespace, err)
	}
	for i := range list.Items {
		if o := &list.Items[i]; r.plane.Owns(o.GetLabels()) {
			if err := r.handOverRequest(ctx, o); err != nil {
				return fmt.Errorf("%s: IssuedCertificate %s/%s: giving it to the agent in namespace %s: %w; try again",
					r.remote.label, o.GetNamespace(), o.GetName(), r.RemoteNamespace, err)
			}
		}
	}
	return nil
}

func (r mover) handOverRequest(ctx context.Context, o *unstructured.Unstructured) error {
	there := r.remote.dynamic.Resource(issuedCertificates.GroupVersionResource).Namespace(r.RemoteNamespace)
	is, err := there.Get(ctx, o.GetName(), metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	if err != nil {
		spec, _, _ := unstructured.NestedMap(o.Object, "spec") // an object without one is asked for nothing
		if at, _, _ := unstructured.NestedString(spec, "podBounceDirective", "namespace"); at == r.former.namespace {
			if err := unstructured.SetNestedField(spec, r.RemoteNamespace, "podBounceDirective", "namespace"); err != nil {
				return err
			}
		}
		is, err = there.Apply(ctx, o.GetName(), r.copied(o, "spec", spec), metav1.ApplyOptions{FieldManager: snapshot.FieldManager})
		if err != nil {
			return err
		}
		r.report.add((&object{resource: issuedCertificates, namespace: r.RemoteNamespace, name: o.GetName()}).change(r.remote, Created))
	}
	status, reported, _ := unstructured.NestedMap(o.Object, "status")
	if now, _, _ := unstructured.NestedMap(is.Object, "status"); !reported || len(now) > 0 {
		return nil
	}
	if status["observedGeneration"] == o.GetGeneration() {
		status["observedGeneration"] = is.GetGeneration()
	}
	copied := r.copied(o, "status", status)
	copied.SetLabels(nil)
	_, err = there.ApplyStatus(ctx, o.GetName(), copied, metav1.ApplyOptions{FieldManager: r.Agent.FieldManager})
	return err
}

// copied is an object in the agent's new namespace, with one part of it.
func (r mover) copied(o *unstructured.Unstructured, part string, value map[string]any) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{}}
	if value != nil {
		out.Object[part] = value
	}
	out.SetGroupVersionKind(o.GroupVersionKind())
	out.SetNamespace(r.RemoteNamespace)
	out.SetName(o.GetName())
	out.SetLabels(o.GetLabels())
	return out
}

// removeFormerState removes the keys and requests of the old agent, but not those of an agent of another management plane, which
// may be in the same namespace.
func (r mover) removeFormerState(ctx context.Context) error {
	its, others := map[string]bool{}, false
	list, err := r.remote.meta.Resource(issuedCertificates.GroupVersionResource).Namespace(r.former.namespace).List(ctx, metav1.ListOptions{})
	if err != nil && !kube.IsAbsent(err) {
		return fmt.Errorf("%s: listing %s: %w", r.remote.label, issuedCertificates.Resource, err)
	}
	if list != nil {
		for i := range list.Items {
			its[list.Items[i].Name] = r.plane.Owns(list.Items[i].Labels)
			others = others || !its[list.Items[i].Name]
		}
	}
	changes, err := r.remote.removeAgentState(ctx, r.former.namespace, func(name string) bool { return its[name] })
	r.report.add(changes...)
	if err != nil || others {
		return err
	}
	changes, err = r.remote.delete(ctx, leases, r.former.namespace, snapshot.AgentLease)
	r.report.add(changes...)
	return err
}

func (r *registration) deleteAll(ctx context.Context, objects []*object) error {
	for _, o := range objects {
		changes, err := r.remote.delete(ctx, o.resource, o.namespace, o.name)
		r.report.add(changes...)
		if err != nil {
			return err
		}
	}
	return nil
}

// handOver marks the Secrets of the control planes of a namespace as those of the agent in its new namespace.
func (r mover) handOver(ctx context.Context, namespace string) error {
	client := r.remote.meta.Resource(secrets.GroupVersionResource).Namespace(namespace)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("%s: listing Secrets of namespace %s: %w", r.remote.label, namespace, err)
	}
	for i := range list.Items {
		o := &list.Items[i]
		mesh, is := strings.CutPrefix(o.Annotations[r.Agent.OwnerAnnotation], r.former.namespace+"/")
		if !is {
			continue
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": o.ResourceVersion, "annotations": map[string]any{r.Agent.OwnerAnnotation: r.RemoteNamespace + "/" + mesh},
		}})
		if err != nil {
			return fmt.Errorf("Secret %s/%s: encoding its annotation: %w", namespace, o.Name, err)
		}
		if _, err := client.Patch(ctx, o.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: statusManager}); err != nil && !kube.IsAbsent(err) {
			return fmt.Errorf("%s: Secret %s/%s: marking it as the agent's in namespace %s: %w; try again", r.remote.label, namespace, o.Name, r.RemoteNamespace, err)
		}
		r.report.add((&object{resource: secrets, namespace: namespace, name: o.Name}).change(r.remote, Updated))
	}
	return nil
}

// removeFormer removes the rest.
func (r mover) removeFormer(ctx context.Context) error {
	if err := r.deleteAll(ctx, r.former.rest); err != nil {
		return err
	}
	if r.former.namespace != "" {
		r.report.note(fmt.Sprintf("its accounts have moved from namespace %s, which belongs to a management plane, to %s; "+
			"an agent that you run yourself needs --namespace %s, and a credential of its account there", r.former.namespace, r.RemoteNamespace, r.RemoteNamespace))
	}
	return nil
}
