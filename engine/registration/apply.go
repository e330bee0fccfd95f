package registration

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// resource is a type that registration writes.
type resource struct {
	schema.GroupVersionResource
	kind string
}

func coreResource(plural, kind string) resource {
	return resource{schema.GroupVersionResource{Version: "v1", Resource: plural}, kind}
}

func rbacResource(plural, kind string) resource {
	return resource{schema.GroupVersionResource{Group: rbacv1.GroupName, Version: "v1", Resource: plural}, kind}
}

func admissionResource(plural, kind string) resource {
	return resource{admissionv1.SchemeGroupVersion.WithResource(plural), kind}
}

// The types that registration writes; read-only.
var (
	namespaces          = coreResource("namespaces", "Namespace")
	serviceAccounts     = coreResource("serviceaccounts", "ServiceAccount")
	secrets             = coreResource("secrets", "Secret")
	configMaps          = coreResource("configmaps", "ConfigMap")
	clusterRoles        = rbacResource("clusterroles", "ClusterRole")
	clusterRoleBindings = rbacResource("clusterrolebindings", "ClusterRoleBinding")
	roles               = rbacResource("roles", "Role")
	roleBindings        = rbacResource("rolebindings", "RoleBinding")
	crdResource         = resource{schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "CustomResourceDefinition"}
	leases             = resource{coordinationv1.SchemeGroupVersion.WithResource("leases"), "Lease"}
	kubernetesClusters = kindResource(snapshot.KubernetesCluster)
)

// kindResource is the type of objects of a kind.
func kindResource(k snapshot.Kind) resource {
	return resource{k.GroupVersionResource(), k.String()}
}

// access asks for the right to do something with an object of the type.
func (r resource) access(namespace, name string) access {
	return access{group: r.Group, resource: r.Resource, namespace: namespace, name: name}
}

// object is one thing that registration wants to have on a server.
type object struct {
	resource
	namespace, name string
	// want is an apply configuration.
	want any
	// foreignHint is the next step if the object is there and not ours; empty
	// if anybody's may be taken over.
	foreignHint string
	// owner takes the object with it when it goes; nil if there is none.
	owner *metav1.OwnerReference
}

// describe is "KIND [NAMESPACE/]NAME".
func (o *object) describe() string {
	if o.namespace == "" {
		return o.kind + " " + o.name
	}
	return o.kind + " " + o.namespace + "/" + o.name
}

func (s *server) client(r resource, namespace string) dynamic.ResourceInterface {
	if namespace == "" {
		return s.dynamic.Resource(r.GroupVersionResource)
	}
	return s.dynamic.Resource(r.GroupVersionResource).Namespace(namespace)
}

// get returns an object as it is, or nil if it is not there.
func (s *server) get(ctx context.Context, r resource, namespace, name string) (*unstructured.Unstructured, error) {
	found, err := s.client(r, namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil // absence is an answer
	}
	if err != nil {
		return nil, fmt.Errorf("%s: reading %s %s: %w", s.label, r.kind, name, err)
	}
	return found, nil
}

// owned returns what is there under the object's name, nil if nothing is, and a
// *ForeignObjectError if meshctl did not create it.
func (s *server) owned(ctx context.Context, o *object) (*unstructured.Unstructured, error) {
	found, err := s.get(ctx, o.resource, o.namespace, o.name)
	if err == nil && found != nil && o.foreignHint != "" && found.GetLabels()[cluster.ManagedByLabel] != cluster.ManagedBy {
		err = &ForeignObjectError{Server: s.label, Object: o.describe(), Hint: o.foreignHint}
	}
	return found, err
}

// apply makes the object so, by server-side apply, and reports what changed.
// The API server writes nothing if it is so already.
func (s *server) apply(ctx context.Context, o *object) (Change, error) {
	change := o.change(s, Created)
	before, err := s.owned(ctx, o)
	if err != nil {
		return change, err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.want)
	if err != nil {
		return change, fmt.Errorf("%s: %s: encoding: %w", s.label, o.describe(), err)
	}
	wanted := &unstructured.Unstructured{Object: content}
	if o.owner != nil {
		wanted.SetOwnerReferences([]metav1.OwnerReference{*o.owner})
	}
	after, err := s.client(o.resource, o.namespace).Apply(ctx, o.name, wanted,
		metav1.ApplyOptions{FieldManager: snapshot.FieldManager, Force: true})
	if err != nil {
		return change, fmt.Errorf("%s: writing %s: %w", s.label, o.describe(), err)
	}
	change.Action = action(before, after)
	return change, nil
}

// change is a Change of the object.
func (o *object) change(s *server, a Action) Change {
	return Change{Action: a, Server: s.side, Kind: o.kind, Namespace: o.namespace, Name: o.name, Count: 1}
}

func action(before, after *unstructured.Unstructured) Action {
	switch {
	case before == nil:
		return Created
	case before.GetResourceVersion() == after.GetResourceVersion(), equality.Semantic.DeepEqual(contentOf(before), contentOf(after)):
		return Unchanged
	}
	return Updated
}

// contentOf is an object without what the API server and controllers note in it: who wrote
// what is noted anew when a controller has written the status of a ValidatingAdmissionPolicy.
func contentOf(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	return o.Object
}
