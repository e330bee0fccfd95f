package snapshot

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	enterprisev1beta1 "github.com/meshctl/meshctl/engine/api/enterprise/v1beta1"
	multiclusterv1alpha1 "github.com/meshctl/meshctl/engine/api/multicluster/v1alpha1"
	networkingv1 "github.com/meshctl/meshctl/engine/api/networking/v1"
	observabilityv1 "github.com/meshctl/meshctl/engine/api/observability/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
)

// managementLists and clusterLists say which list of an Input holds the objects
// of a kind, and discoveredLists which list of a Discovered does. They are
// read-only. A kind that an Input holds is one line here and one field of
// Management or Cluster.
var (
	managementLists = [kindCount]func(*Management) ObjectList{
		Mesh:               func(m *Management) ObjectList { return newList(&m.Meshes) },
		Workload:           func(m *Management) ObjectList { return newList(&m.Workloads) },
		Destination:        func(m *Management) ObjectList { return newList(&m.Destinations) },
		KubernetesCluster:  func(m *Management) ObjectList { return newList(&m.KubernetesClusters) },
		Settings:           func(m *Management) ObjectList { return newList(&m.Settings) },
		VirtualMesh:        func(m *Management) ObjectList { return newList(&m.VirtualMeshes) },
		TrafficPolicy:      func(m *Management) ObjectList { return newList(&m.TrafficPolicies) },
		AccessPolicy:       func(m *Management) ObjectList { return newList(&m.AccessPolicies) },
		VirtualDestination: func(m *Management) ObjectList { return newList(&m.VirtualDestinations) },
		ServiceDependency:  func(m *Management) ObjectList { return newList(&m.ServiceDependencies) },
		WasmDeployment:     func(m *Management) ObjectList { return newList(&m.WasmDeployments) },
		AccessLogRecord:    func(m *Management) ObjectList { return newList(&m.AccessLogRecords) },
		Role:               func(m *Management) ObjectList { return newList(&m.Roles) },
		RoleBinding:        func(m *Management) ObjectList { return newList(&m.RoleBindings) },
	}
	clusterLists = [kindCount]func(*Cluster) ObjectList{
		TrafficPolicy:                func(c *Cluster) ObjectList { return newList(&c.TrafficPolicies) },
		AccessPolicy:                 func(c *Cluster) ObjectList { return newList(&c.AccessPolicies) },
		VirtualDestination:           func(c *Cluster) ObjectList { return newList(&c.VirtualDestinations) },
		ServiceDependency:            func(c *Cluster) ObjectList { return newList(&c.ServiceDependencies) },
		AccessLogRecord:              func(c *Cluster) ObjectList { return newList(&c.AccessLogRecords) },
		IssuedCertificate:            func(c *Cluster) ObjectList { return newList(&c.IssuedCertificates) },
		CertificateRequest:           func(c *Cluster) ObjectList { return newList(&c.CertificateRequests) },
		Deployment:                   func(c *Cluster) ObjectList { return newList(&c.Deployments) },
		DaemonSet:                    func(c *Cluster) ObjectList { return newList(&c.DaemonSets) },
		StatefulSet:                  func(c *Cluster) ObjectList { return newList(&c.StatefulSets) },
		ReplicaSet:                   func(c *Cluster) ObjectList { return newList(&c.ReplicaSets) },
		Pod:                          func(c *Cluster) ObjectList { return newList(&c.Pods) },
		Service:                      func(c *Cluster) ObjectList { return newList(&c.Services) },
		EndpointSlice:                func(c *Cluster) ObjectList { return newList(&c.EndpointSlices) },
		Node:                         func(c *Cluster) ObjectList { return newList(&c.Nodes) },
		Namespace:                    func(c *Cluster) ObjectList { return newList(&c.Namespaces) },
		NetworkPolicy:                func(c *Cluster) ObjectList { return newList(&c.NetworkPolicies) },
		ConfigMap:                    func(c *Cluster) ObjectList { return newList(&c.ConfigMaps) },
		MutatingWebhookConfiguration: func(c *Cluster) ObjectList { return newList(&c.MutatingWebhookConfigurations) },
	}
	discoveredLists = [kindCount]func(*Discovered) ObjectList{
		Mesh:        func(d *Discovered) ObjectList { return newList(&d.Meshes) },
		Workload:    func(d *Discovered) ObjectList { return newList(&d.Workloads) },
		Destination: func(d *Discovered) ObjectList { return newList(&d.Destinations) },
	}
)

// APIObject is a pointer to a Kubernetes API type.
type APIObject interface {
	metav1.Object
	runtime.Object
}

// ObjectLists is what has lists of objects: a Cluster or a Management.
type ObjectLists interface {
	// List returns the list of a kind; nil if there is none.
	List(k Kind) ObjectList
	// Lists calls yield for each list, in the order of the kinds, until it returns false.
	Lists(yield func(Kind, ObjectList) bool)
}

// ObjectList is one list of a Cluster or Management, whatever the type of its
// objects. Slice gives access by type.
type ObjectList interface {
	// New returns an empty object of the list's type.
	New() APIObject
	// Len is the number of objects.
	Len() int
	// At is the object at an index.
	At(i int) APIObject
	// Find returns the object of a name, nil if there is none. The list must be
	// ascending.
	Find(namespace, name string) APIObject
	// Same reports whether two lists are the same memory: then nothing differs.
	// False says nothing.
	Same(other ObjectList) bool
	// Set replaces the list by a new slice of the given objects, in their order.
	// It changes the Cluster or Management: only who builds one may call it.
	Set(objects []APIObject) error

	holds(o APIObject) bool
	// put and remove replace the list by a copy with the change.
	put(o APIObject)
	remove(namespace, name string)
}

// List implements ObjectLists.
func (m *Management) List(k Kind) ObjectList {
	if managementLists[k] == nil {
		return nil
	}
	return managementLists[k](m)
}

// Lists implements ObjectLists.
func (m *Management) Lists(yield func(Kind, ObjectList) bool) {
	for k, list := range managementLists {
		if list != nil && !yield(Kind(k), list(m)) {
			return
		}
	}
}

// List implements ObjectLists.
func (c *Cluster) List(k Kind) ObjectList {
	switch {
	case clusterLists[k] != nil:
		return clusterLists[k](c)
	case kinds[k].ByHand:
		return listOfMesh(k, &c.OfMeshes[k])
	}
	return nil
}

// Lists implements ObjectLists.
func (c *Cluster) Lists(yield func(Kind, ObjectList) bool) {
	for k := NoKind + 1; k < kindCount; k++ {
		if list := c.List(k); list != nil && !yield(k, list) {
			return
		}
	}
}

// List returns the list of a kind; nil if there is none.
func (d *Discovered) List(k Kind) ObjectList {
	if discoveredLists[k] == nil {
		return nil
	}
	return discoveredLists[k](d)
}

// New returns an empty object of the kind; nil if an Input holds none of it.
func (k Kind) New() APIObject {
	switch {
	case managementLists[k] != nil:
		return managementLists[k](&Management{}).New()
	case clusterLists[k] != nil:
		return clusterLists[k](&Cluster{}).New()
	case kinds[k].ByHand:
		return newOfMesh(k)
	}
	return nil
}

// KindOfObject finds the kind of an object by its Go type; false if an Input
// holds no such objects.
func KindOfObject(o APIObject) (Kind, bool) {
	for k, list := range (&Management{}).Lists {
		if list.holds(o) {
			return k, true
		}
	}
	for k, list := range (&Cluster{}).Lists {
		if list.holds(o) {
			return k, true
		}
	}
	return NoKind, false
}

// StatusOf returns a pointer to the status of an object for which the server
// writes one; nil for others.
func StatusOf(o APIObject) any {
	switch o := o.(type) {
	case *discoveryv1.Mesh:
		return &o.Status
	case *discoveryv1.Workload:
		return &o.Status
	case *discoveryv1.Destination:
		return &o.Status
	case *multiclusterv1alpha1.KubernetesCluster:
		return &o.Status
	case *settingsv1.Settings:
		return &o.Status
	case *networkingv1.VirtualMesh:
		return &o.Status
	case *networkingv1.TrafficPolicy:
		return &o.Status
	case *networkingv1.AccessPolicy:
		return &o.Status
	case *enterprisev1beta1.VirtualDestination:
		return &o.Status
	case *enterprisev1beta1.ServiceDependency:
		return &o.Status
	case *observabilityv1.AccessLogRecord:
		return &o.Status
	}
	return nil
}

// Slice returns the slice behind a list, to read or, while its Cluster or
// Management is being built, to set. It is nil if the list holds another type.
func Slice[P any](l ObjectList) *[]P {
	if typed, ok := l.(interface{ slice() *[]P }); ok {
		return typed.slice()
	}
	return nil
}

// CompareNames orders objects by namespace and name, as every list of an Input is.
func CompareNames[T named](a, b T) int {
	return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
}

// typedList is the ObjectList of a slice.
type typedList[E APIObject] struct {
	objects *[]E
	empty   func() E
	has     func(APIObject) bool
}

func newList[T any, P interface {
	*T
	APIObject
}](objects *[]P) ObjectList {
	return typedList[P]{objects, func() P { return new(T) }, func(o APIObject) bool { _, ok := o.(P); return ok }}
}

func (l typedList[E]) slice() *[]E { return l.objects }

func (l typedList[E]) New() APIObject { return l.empty() }

func (l typedList[E]) Len() int { return len(*l.objects) }

func (l typedList[E]) At(i int) APIObject { return (*l.objects)[i] }

func (l typedList[E]) Find(namespace, name string) APIObject {
	if i, found := l.search(namespace, name); found {
		return (*l.objects)[i]
	}
	return nil
}

func (l typedList[E]) search(namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(*l.objects, Ref{Namespace: namespace, Name: name}, func(o E, r Ref) int {
		return cmp.Or(strings.Compare(o.GetNamespace(), r.Namespace), strings.Compare(o.GetName(), r.Name))
	})
}

func (l typedList[E]) Same(other ObjectList) bool {
	o, ok := other.(typedList[E])
	return ok && SameSlice(*l.objects, *o.objects)
}

func (l typedList[E]) Set(objects []APIObject) error {
	list := make([]E, len(objects))
	for i, o := range objects {
		typed, ok := o.(E)
		if !ok || !l.has(o) {
			return fmt.Errorf("object %s/%s is a %T; the list holds %T", o.GetNamespace(), o.GetName(), o, l.empty())
		}
		list[i] = typed
	}
	*l.objects = list
	return nil
}

func (l typedList[E]) holds(o APIObject) bool { return l.has(o) }

func (l typedList[E]) put(o APIObject) {
	i, found := l.search(o.GetNamespace(), o.GetName())
	list := slices.Clone(*l.objects)
	if !found {
		var none E
		list = slices.Insert(list, i, none)
	}
	list[i] = o.(E)
	*l.objects = list
}

func (l typedList[E]) remove(namespace, name string) {
	if i, found := l.search(namespace, name); found {
		*l.objects = slices.Delete(slices.Clone(*l.objects), i, i+1)
	}
}
