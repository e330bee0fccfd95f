package registration

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// readIdentity finds out which management plane this is. An identity that may not be
// read counts as not stored: the permission to read it is on the list of what is needed.
func (r *registration) readIdentity(ctx context.Context) error {
	stored, err := r.management.get(ctx, configMaps, r.MgmtNamespace, cluster.PlaneName)
	if err := unlessForbidden(err); err != nil {
		return err
	}
	r.missing.identity = stored == nil
	r.plane, err = r.management.plane(ctx, r.MgmtNamespace)
	return unlessForbidden(err)
}

// plane is the management plane in a namespace of the server.
func (s *server) plane(ctx context.Context, namespace string) (snapshot.Plane, error) {
	id, err := cluster.PlaneID(ctx, s.clientset, namespace)
	if err != nil {
		return snapshot.Plane{Namespace: namespace}, fmt.Errorf("%s: %w", s.label, err)
	}
	return snapshot.Plane{Namespace: namespace, ID: id}, nil
}

// isOf reports whether a management plane made an object of a registration. Those of
// versions before name only the management cluster, and only the ServiceAccount does.
func isOf(o metav1.Object, plane snapshot.Plane, managementUID string) bool {
	if id, marked := o.GetLabels()[snapshot.PlaneLabel]; marked {
		return id == plane.ID
	}
	uid := o.GetAnnotations()[ManagementUIDAnnotation]
	return uid == "" || uid == managementUID
}

func (r *registration) wrote(o metav1.Object) bool {
	return isOf(o, r.plane, string(r.management.uid))
}

// planeOf names the management plane that made an object of a registration.
func planeOf(o metav1.Object) string {
	if id := o.GetLabels()[snapshot.PlaneLabel]; id != "" {
		return "management plane " + id
	}
	return "a management plane in the cluster with UID " + o.GetAnnotations()[ManagementUIDAnnotation]
}

// checkPlanes looks for other management planes that have registered the cluster. Those of
// versions that wrote no identity take the objects of others for their own.
func (r *registration) checkPlanes(ctx context.Context) error {
	bindings, err := r.remote.clientset.RbacV1().ClusterRoleBindings().List(ctx, metav1.ListOptions{
		LabelSelector: cluster.ManagedByLabel + "=" + cluster.ManagedBy + "," + snapshot.ClusterLabel,
	})
	if err != nil {
		return fmt.Errorf("%s: listing ClusterRoleBindings: %w", r.remote.label, err)
	}
	for i := range bindings.Items {
		b := &bindings.Items[i]
		if b.Labels[snapshot.PlaneLabel] == r.plane.ID || len(b.Subjects) == 0 {
			continue
		}
		name, subject := b.Labels[snapshot.ClusterLabel], b.Subjects[0]
		account, err := r.remote.get(ctx, serviceAccounts, subject.Namespace, subject.Name)
		switch {
		case err != nil:
			return err
		case account == nil || r.wrote(account):
			continue
		case account.GetLabels()[snapshot.PlaneLabel] == "":
			return &OldPlaneError{Server: r.remote.label, Name: name, Account: subject.Namespace + "/" + subject.Name, Why: "may delete what others write"}
		}
		may, err := r.remote.mayUseHosts(ctx, b.Labels[snapshot.PlaneLabel])
		if err != nil {
			return err
		}
		if !may {
			return &OldPlaneError{
				Server: r.remote.label, Name: name, Account: subject.Namespace + "/" + subject.Name,
				Why: "could not write the names of federated services any more, which registration keeps to those who have a permission that it lacks",
			}
		}
		r.report.note(fmt.Sprintf("%s has registered this cluster, too, as %s; each leaves alone what the other writes, and of two objects with one name the first stays",
			planeOf(account), name))
	}
	return nil
}

// mayUseHosts reports whether the role of another management plane has the permission for names of federated services.
func (s *server) mayUseHosts(ctx context.Context, planeID string) (bool, error) {
	role, err := s.clientset.RbacV1().ClusterRoles().Get(ctx, RoleName(planeID), metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return true, nil // it may do nothing at all, or that is not known
	}
	if err != nil {
		return false, fmt.Errorf("%s: ClusterRole %s: %w", s.label, RoleName(planeID), err)
	}
	return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return reflect.DeepEqual(rule, hostsRule()) }), nil
}

// oldObjects are the objects on a cluster that registrations had under other names, in the
// order in which they go. They are there if a registration was not renewed since.
func (s *server) oldObjects(ctx context.Context, name, namespace string) ([]*object, error) {
	var out []*object
	for _, o := range []*object{
		{resource: clusterRoleBindings, name: oldBindingName(name)},
		{resource: clusterRoles, name: oldRoleName},
	} {
		found, err := s.get(ctx, o.resource, "", o.name)
		if err != nil {
			return nil, err
		}
		if found != nil && found.GetLabels()[cluster.ManagedByLabel] == cluster.ManagedBy &&
			(o.resource == clusterRoles || boundTo(found, namespace, name)) {
			out = append(out, o)
		}
	}
	return out, nil
}

// boundTo reports whether a binding is that of an account.
func boundTo(binding *unstructured.Unstructured, namespace, name string) bool {
	subjects, _, err := unstructured.NestedSlice(binding.Object, "subjects")
	return err == nil && slices.ContainsFunc(subjects, func(s any) bool {
		subject, ok := s.(map[string]any)
		return ok && subject["namespace"] == namespace && subject["name"] == name
	})
}

// removeOld removes what a registration before had under other names.
func (r *registration) removeOld(ctx context.Context) error {
	for _, o := range r.old {
		if o.resource == clusterRoles {
			used, err := r.remote.roleUsed(ctx, o.name)
			if err != nil || used {
				return err
			}
		}
		changes, err := r.remote.delete(ctx, o.resource, "", o.name)
		r.report.add(changes...)
		if err != nil {
			return err
		}
	}
	return nil
}
