package discovery

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	settingsv1 "github.com/meshctl/meshctl/engine/api/settings/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Index is one cluster, indexed once, so that no later question walks over all
// objects. It exists for one call of Discover.
type Index struct {
	// Cluster is the registration name.
	Cluster string
	// Objects are those of the cluster, in any order.
	Objects *snapshot.Cluster
	// Deployments are ascending by namespace and name.
	Deployments []*appsv1.Deployment
	// Namespaces need not be complete: files may leave them out.
	Namespaces map[string]*corev1.Namespace

	namespace string
	// labels are those of every discovered object of the cluster.
	labels map[string]string

	services    []*corev1.Service
	pods        []*corev1.Pod
	nodes       nodes
	configMaps  map[key]*corev1.ConfigMap
	unread      map[key]snapshot.Unread
	controllers []*controller
	// byPod finds the controller of a pod.
	byPod map[key]*controller
	// podsByKey has all pods.
	podsByKey map[key]*corev1.Pod
	// podsAt has the pods of a namespace by address; see podAt.
	podsAt map[key]*corev1.Pod
	// waypoints has those that Services ask for; see waypointOf.
	waypoints map[key]*discoveryv1.Waypoint
	// selectedBy are the labels by which Services of a namespace select pods.
	selectedBy map[string]map[string]bool
	// slices are the EndpointSlices of a Service.
	slices map[key][]*endpointv1.EndpointSlice

	// injected and subzones are the labels of all kinds of mesh; see Detector.
	injected, subzones []string
	// installed are the namespaces of control planes that the Settings name.
	installed map[string]bool

	stored           *snapshot.Management
	usedDestinations bool
	// absent are the names of meshes that stay without a control plane.
	absent []string
	// names are those of the stored objects; usedNames is set if a limit is exceeded.
	names     *StoredNames
	usedNames bool
	limits    settingsv1.DiscoveryLimits
	// lastMesh has the name of the mesh that a controller had; see stayed.
	lastMesh map[key]string
	// lastServices has the name of the mesh that a Service had; see lastMeshOf.
	lastServices map[key]string

	// meshNames gives out the names of meshes of all kinds.
	meshNames *names
	// clashes are those of the result.
	clashes map[snapshot.Ref]string

	issues []snapshot.Issue
}

// key names an object among those of its kind.
type key struct{ namespace, name string }

// object is the part of metav1.Object that keys need.
type object interface {
	GetNamespace() string
	GetName() string
}

func keyOf(o object) key { return key{o.GetNamespace(), o.GetName()} }

// controller is a Deployment, DaemonSet or StatefulSet with its pods, or what else owns pods.
type controller struct {
	// name and kind are those of the object; kind is Pod if nothing owns the pods.
	name, kind string
	// foreign: the object is not read. ref and source are those of its first pod then.
	foreign bool
	ref     snapshot.Ref
	source  metav1.Object
	// template is that of its pods.
	template *corev1.PodTemplateSpec
	// pods are ascending by name.
	pods []*corev1.Pod
}

func newIndex(c *snapshot.Cluster, opts Options) *Index {
	namespace := opts.namespace()
	x := &Index{
		Cluster:     c.Name,
		Objects:     c,
		Deployments: ordered(c.Deployments),
		Namespaces:  make(map[string]*corev1.Namespace, len(c.Namespaces)),
		namespace:   namespace,
		labels:      discoveredLabels(namespace, c.Name),
		services:    ordered(c.Services),
		pods:        ordered(c.Pods),
		nodes:       make(nodes, len(c.Nodes)),
		configMaps:  make(map[key]*corev1.ConfigMap, len(c.ConfigMaps)),
		unread:      make(map[key]snapshot.Unread, len(c.Unread)),
		stored:      opts.Stored,
		names:       opts.Names,
		limits:      opts.Limits,
		installed:   map[string]bool{},
		meshNames:   newNames(snapshot.Mesh, 1),
		slices:      make(map[key][]*endpointv1.EndpointSlice, len(c.Services)),
	}
	for i := range opts.Detectors {
		x.injected = append(x.injected, opts.Detectors[i].InjectedLabels...)
		x.subzones = append(x.subzones, opts.Detectors[i].SubzoneLabel)
	}
	for _, namespace := range opts.Installed {
		x.installed[namespace] = true
	}
	for _, n := range c.Nodes {
		x.nodes[n.Name] = n
	}
	for _, n := range c.Namespaces {
		x.Namespaces[n.Name] = n
	}
	for _, m := range c.ConfigMaps {
		x.configMaps[keyOf(m)] = m
	}
	for _, u := range c.Unread {
		x.unread[key{u.Ref.Namespace, u.Ref.Name}] = u
	}
	for _, s := range ordered(c.EndpointSlices) {
		if service := s.Labels[endpointv1.LabelServiceName]; service != "" {
			k := key{s.Namespace, service}
			x.slices[k] = append(x.slices[k], s)
		}
	}
	x.selectedBy = selectedBy(x.services)
	x.indexControllers(c)
	return x
}

// controllerKey names a controller, or a ReplicaSet, of a pod.
type controllerKey struct {
	kind string
	key
}

// indexControllers fills controllers, byPod and podsByKey.
func (x *Index) indexControllers(c *snapshot.Cluster) {
	size := len(x.Deployments) + len(c.DaemonSets) + len(c.StatefulSets)
	byKey := make(map[controllerKey]*controller, size)
	x.controllers = make([]*controller, 0, size)
	add := func(kind snapshot.Kind, o metav1.Object, template *corev1.PodTemplateSpec) {
		ctl := &controller{
			name: o.GetName(), kind: kind.String(),
			ref:      x.Ref(kind, o),
			source:   o,
			template: template,
		}
		x.controllers = append(x.controllers, ctl)
		byKey[controllerKey{kind.String(), keyOf(o)}] = ctl
	}
	for _, d := range x.Deployments {
		add(snapshot.Deployment, d, &d.Spec.Template)
	}
	for _, d := range ordered(c.DaemonSets) {
		add(snapshot.DaemonSet, d, &d.Spec.Template)
	}
	for _, s := range ordered(c.StatefulSets) {
		add(snapshot.StatefulSet, s, &s.Spec.Template)
	}
	for _, rs := range c.ReplicaSets {
		if ctl := byKey[ownerOf(rs)]; ctl != nil {
			byKey[controllerKey{snapshot.ReplicaSet.String(), keyOf(rs)}] = ctl
		}
	}
	x.byPod = make(map[key]*controller, len(x.pods))
	x.podsByKey = make(map[key]*corev1.Pod, len(x.pods))
	for _, pod := range x.pods {
		x.podsByKey[keyOf(pod)] = pod
		if ctl := byKey[ownerOf(pod)]; ctl != nil {
			ctl.pods = append(ctl.pods, pod)
			x.byPod[keyOf(pod)] = ctl
		}
	}
	addOwners(x, c)
}

// ownerOf names the controller of an object, or nothing if Kubernetes' own
// apps group does not have its kind: others have a StatefulSet, too.
func ownerOf(o metav1.Object) controllerKey {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil || !strings.HasPrefix(owner.APIVersion, appsv1.GroupName+"/") {
		return controllerKey{}
	}
	return controllerKey{owner.Kind, key{o.GetNamespace(), owner.Name}}
}

// meta is the metadata of a discovered object.
func (x *Index) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: x.namespace, Labels: x.labels}
}

// Ref refers to an object of the cluster.
func (x *Index) Ref(kind snapshot.Kind, o object) snapshot.Ref {
	return snapshot.Ref{Kind: kind, Cluster: x.Cluster, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// namespaceRef refers to a namespace of the cluster.
func (x *Index) namespaceRef(name string) snapshot.Ref {
	return snapshot.Ref{Kind: snapshot.Namespace, Cluster: x.Cluster, Name: name}
}

// Report adds an issue.
func (x *Index) Report(i snapshot.Issue) { x.issues = append(x.issues, i) }

// name gives out the name of what is discovered from source.
func (x *Index) name(n *names, joined string, source snapshot.Ref) string {
	name := n.claim(joined, source)
	if name != joined {
		if x.clashes == nil {
			x.clashes = map[snapshot.Ref]string{}
		}
		x.clashes[snapshot.Ref{Kind: n.kind, Namespace: x.namespace, Name: name}] = joined
	}
	return name
}

// ordered returns list ascending by namespace and name: list itself if it is sorted,
// as it usually is, else a sorted copy.
func ordered[T object](list []T) []T {
	compare := func(a, b T) int {
		return cmp.Or(strings.Compare(a.GetNamespace(), b.GetNamespace()), strings.Compare(a.GetName(), b.GetName()))
	}
	if slices.IsSortedFunc(list, compare) {
		return list
	}
	list = slices.Clone(list)
	slices.SortFunc(list, compare)
	return list
}
