package watch

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	endpointv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/meshctl/meshctl/engine/snapshot"
)

// What is not kept here cannot be read by the engine, and its changes wake
// nobody. Whoever makes the engine read another field adds it here.

// droppedAnnotations say nothing about what a user wants.
var droppedAnnotations = []string{
	corev1.LastAppliedConfigAnnotation,
	"control-plane.alpha.kubernetes.io/leader",
}

// stripOwn strips one of our own custom resources: all but bookkeeping stays.
func stripOwn[T object](o T) bool {
	o.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	annotations := o.GetAnnotations()
	for _, name := range droppedAnnotations {
		delete(annotations, name)
	}
	return true
}

// unless is stripOwn that also drops the status.
func unless[T object](keep statuses, drop func(T)) func(T) bool {
	if keep {
		return stripOwn[T]
	}
	return func(o T) bool {
		drop(o)
		return stripOwn(o)
	}
}

// aged are the essentials of what a namespace may have too many of: the newest are left out.
func aged(o metav1.ObjectMeta) metav1.ObjectMeta {
	kept := essential(o)
	kept.CreationTimestamp = o.CreationTimestamp
	return kept
}

// essential keeps name, labels, controller and the annotations that are read.
func essential(o metav1.ObjectMeta) metav1.ObjectMeta {
	kept := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name, Labels: o.Labels}
	if owner := metav1.GetControllerOfNoCopy(&o); owner != nil {
		kept.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: owner.APIVersion, Kind: owner.Kind, Name: owner.Name, Controller: owner.Controller,
		}}
	}
	for _, name := range append(detectors.ReadAnnotations(o.Annotations), snapshot.DiscoverServiceAnnotation) {
		if value, ok := o.Annotations[name]; ok {
			if kept.Annotations == nil {
				kept.Annotations = map[string]string{}
			}
			kept.Annotations[name] = value
		}
	}
	return kept
}

func stripDeployment(o *appsv1.Deployment) bool {
	*o = appsv1.Deployment{ObjectMeta: aged(o.ObjectMeta), Spec: appsv1.DeploymentSpec{Selector: o.Spec.Selector, Template: template(o.Spec.Template)}}
	return true
}

func stripDaemonSet(o *appsv1.DaemonSet) bool {
	*o = appsv1.DaemonSet{ObjectMeta: aged(o.ObjectMeta), Spec: appsv1.DaemonSetSpec{Selector: o.Spec.Selector, Template: template(o.Spec.Template)}}
	return true
}

func stripStatefulSet(o *appsv1.StatefulSet) bool {
	*o = appsv1.StatefulSet{ObjectMeta: aged(o.ObjectMeta), Spec: appsv1.StatefulSetSpec{Selector: o.Spec.Selector, Template: template(o.Spec.Template)}}
	return true
}

// stripReplicaSet keeps only the link between pods and their Deployment: a
// cluster holds ten old ReplicaSets for each one in use.
func stripReplicaSet(o *appsv1.ReplicaSet) bool {
	kept := essential(o.ObjectMeta)
	kept.Labels = nil
	*o = appsv1.ReplicaSet{ObjectMeta: kept}
	return true
}

func stripService(o *corev1.Service) bool {
	spec := o.Spec
	*o = corev1.Service{
		ObjectMeta: aged(o.ObjectMeta),
		Spec: corev1.ServiceSpec{
			Type: spec.Type, Selector: spec.Selector, Ports: spec.Ports, ExternalName: spec.ExternalName,
			ClusterIP: spec.ClusterIP, ClusterIPs: spec.ClusterIPs, ExternalIPs: spec.ExternalIPs, InternalTrafficPolicy: spec.InternalTrafficPolicy,
		},
		Status: corev1.ServiceStatus{LoadBalancer: o.Status.LoadBalancer},
	}
	return true
}

func stripEndpointSlice(o *endpointv1.EndpointSlice) bool {
	kept := metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}
	if service, ok := o.Labels[endpointv1.LabelServiceName]; ok {
		kept.Labels = map[string]string{endpointv1.LabelServiceName: service}
	}
	endpoints := make([]endpointv1.Endpoint, len(o.Endpoints))
	for i, e := range o.Endpoints {
		endpoints[i] = endpointv1.Endpoint{
			Addresses: e.Addresses, NodeName: e.NodeName, Zone: e.Zone,
			Conditions: endpointv1.EndpointConditions{Ready: e.Conditions.Ready},
		}
		if target := e.TargetRef; target != nil {
			endpoints[i].TargetRef = &corev1.ObjectReference{Kind: target.Kind, Namespace: target.Namespace, Name: target.Name}
		}
	}
	*o = endpointv1.EndpointSlice{ObjectMeta: kept, AddressType: o.AddressType, Endpoints: endpoints, Ports: o.Ports}
	return true
}

func stripNode(o *corev1.Node) bool {
	*o = corev1.Node{
		ObjectMeta: essential(o.ObjectMeta), Status: corev1.NodeStatus{Addresses: o.Status.Addresses},
	}
	return true
}

// stripConfigMap keeps what discovery reads, and nothing of other ConfigMaps.
func stripConfigMap(o *corev1.ConfigMap) bool {
	read := detectors.ReadConfigMap(o)
	if read == nil {
		*o = corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}}
		return false
	}
	*o = corev1.ConfigMap{ObjectMeta: essential(o.ObjectMeta), Data: read}
	return true
}

// stripWebhooks keeps where the webhooks lead.
func stripWebhooks(o *admissionv1.MutatingWebhookConfiguration) bool {
	webhooks := make([]admissionv1.MutatingWebhook, len(o.Webhooks))
	for i, w := range o.Webhooks {
		webhooks[i].Name = w.Name
		if s := w.ClientConfig.Service; s != nil {
			webhooks[i].ClientConfig.Service = &admissionv1.ServiceReference{Namespace: s.Namespace, Name: s.Name}
		}
	}
	*o = admissionv1.MutatingWebhookConfiguration{ObjectMeta: essential(o.ObjectMeta), Webhooks: webhooks}
	return true
}

// stripNamespace keeps the labels, by which meshes say whose a namespace is.
func stripNamespace(o *corev1.Namespace) bool {
	*o = corev1.Namespace{ObjectMeta: essential(o.ObjectMeta)}
	return true
}

// stripNetworkPolicy keeps what it says, all of which decides.
func stripNetworkPolicy(o *networkingv1.NetworkPolicy) bool {
	*o = networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: o.Namespace, Name: o.Name}, Spec: o.Spec}
	return true
}
