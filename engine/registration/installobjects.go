package registration

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	networkingk8sv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingk8sv1ac "k8s.io/client-go/applyconfigurations/networking/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"
	rbacv1ac "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/meshctl/meshctl/engine/cluster"
)

// Names of what an installation has in its namespace.
const (
	// ServeName is the name of the Deployment and of all that belongs to it.
	ServeName       = "meshctl"
	serveContainer  = "serve"
	metricsPortName = "metrics"
	metricsPort     = 9091
	// versionLabel is on the Deployment: the version of meshctl that installed it.
	versionLabel = "app.kubernetes.io/version"
	nameLabel    = "app.kubernetes.io/name"
)

var (
	services             = coreResource("services", "Service")
	networkPolicies      = resource{networkingk8sv1.SchemeGroupVersion.WithResource("networkpolicies"), "NetworkPolicy"}
	podDisruptionBudgets = resource{policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets"), "PodDisruptionBudget"}
	serviceMonitors      = resource{schema.GroupVersionResource{Group: "monitoring.coreos.com", Version: "v1", Resource: "servicemonitors"}, "ServiceMonitor"}
)

// serveClusterName is the ClusterRole of an installation, and its binding: several may be in one cluster.
func serveClusterName(namespace string) string { return ServeName + "-" + namespace }

// serveLabels are on each object of an installation.
func serveLabels() map[string]string {
	return map[string]string{cluster.ManagedByLabel: cluster.ManagedBy, nameLabel: ServeName}
}

// selected tells the pods of serve from others.
func selected() map[string]string { return map[string]string{nameLabel: ServeName} }

// objects are what an installation consists of beside the custom resource types, in the order in
// which they are written.
func (o *InstallOptions) objects() []*object {
	out := []*object{o.namespaceObject(), o.accountObject()}
	out = append(out, o.roleObjects()...)
	out = append(out, o.budgetObject(), o.networkPolicyObject(), o.serviceObject())
	if o.ServiceMonitor != nil && *o.ServiceMonitor {
		out = append(out, o.serviceMonitorObject())
	}
	if o.Relay.enabled() {
		out = append(out, o.relayServiceObject())
	}
	return append(append(out, o.Webhook.objects(o.Namespace)...), o.deploymentObject())
}

// installHint is the next step for objects that meshctl did not create.
const installHint = "delete it if nobody needs it, or choose another --namespace"

func (o *InstallOptions) namespaceObject() *object {
	return &object{
		resource: namespaces, name: o.Namespace,
		want: corev1ac.Namespace(o.Namespace).WithLabels(map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}).
			WithAnnotations(map[string]string{CreatedAnnotation: "true"}),
	}
}

func (o *InstallOptions) accountObject() *object {
	return &object{
		resource: serviceAccounts, namespace: o.Namespace, name: ServeName, foreignHint: installHint,
		want: corev1ac.ServiceAccount(ServeName, o.Namespace).WithLabels(serveLabels()).WithAutomountServiceAccountToken(false),
	}
}

func (o *InstallOptions) roleObjects() []*object {
	name, labels := serveClusterName(o.Namespace), serveLabels()
	subject := rbacv1ac.Subject().WithKind(rbacv1.ServiceAccountKind).WithNamespace(o.Namespace).WithName(ServeName)
	return []*object{
		{
			resource: clusterRoles, name: name, foreignHint: installHint,
			want: rbacv1ac.ClusterRole(name).WithLabels(labels).WithRules(ruleConfigurations(o.clusterRules())...),
		},
		{
			resource: clusterRoleBindings, name: name, foreignHint: installHint,
			want: rbacv1ac.ClusterRoleBinding(name).WithLabels(labels).WithSubjects(subject).
				WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("ClusterRole").WithName(name)),
		},
		{
			resource: roles, namespace: o.Namespace, name: ServeName, foreignHint: installHint,
			want: rbacv1ac.Role(ServeName, o.Namespace).WithLabels(labels).WithRules(ruleConfigurations(o.rules())...),
		},
		{
			resource: roleBindings, namespace: o.Namespace, name: ServeName, foreignHint: installHint,
			want: rbacv1ac.RoleBinding(ServeName, o.Namespace).WithLabels(labels).WithSubjects(subject).
				WithRoleRef(rbacv1ac.RoleRef().WithAPIGroup(rbacv1.GroupName).WithKind("Role").WithName(ServeName)),
		},
	}
}

// budgetObject keeps a standby while nodes are drained.
func (o *InstallOptions) budgetObject() *object {
	return &object{
		resource: podDisruptionBudgets, namespace: o.Namespace, name: ServeName, foreignHint: installHint,
		want: policyv1ac.PodDisruptionBudget(ServeName, o.Namespace).WithLabels(serveLabels()).WithSpec(policyv1ac.PodDisruptionBudgetSpec().
			WithMaxUnavailable(intstr.FromInt32(1)).WithSelector(metav1ac.LabelSelector().WithMatchLabels(selected()))),
	}
}

// networkPolicyObject lets only metrics in, and agents. What API servers serve connects to is not known in
// advance, so nothing limits what goes out.
func (o *InstallOptions) networkPolicyObject() *object {
	return &object{
		resource: networkPolicies, namespace: o.Namespace, name: ServeName, foreignHint: installHint,
		want: networkingk8sv1ac.NetworkPolicy(ServeName, o.Namespace).WithLabels(serveLabels()).WithSpec(networkingk8sv1ac.NetworkPolicySpec().
			WithPodSelector(metav1ac.LabelSelector().WithMatchLabels(selected())).
			WithPolicyTypes(networkingk8sv1.PolicyTypeIngress).
			WithIngress(ingressTo(metricsPortName)).WithIngress(o.Relay.ingress()...).WithIngress(o.Webhook.ingress()...)),
	}
}

func (o *InstallOptions) serviceObject() *object {
	return &object{
		resource: services, namespace: o.Namespace, name: ServeName, foreignHint: installHint,
		want: corev1ac.Service(ServeName, o.Namespace).WithLabels(serveLabels()).WithSpec(corev1ac.ServiceSpec().
			WithSelector(selected()).
			WithPorts(corev1ac.ServicePort().WithName(metricsPortName).WithPort(metricsPort).
				WithTargetPort(intstr.FromString(metricsPortName)).WithProtocol(corev1.ProtocolTCP).WithAppProtocol("http"))),
	}
}

// serviceMonitorObject is for the Prometheus operator, whose types this binary does not have.
func (o *InstallOptions) serviceMonitorObject() *object {
	u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"selector":  map[string]any{"matchLabels": map[string]any{nameLabel: ServeName}},
		"endpoints": []any{map[string]any{"port": metricsPortName, "path": "/metrics"}},
	}}}
	u.SetAPIVersion(serviceMonitors.GroupVersion().String())
	u.SetKind(serviceMonitors.kind)
	u.SetNamespace(o.Namespace)
	u.SetName(ServeName)
	u.SetLabels(serveLabels())
	return &object{resource: serviceMonitors, namespace: o.Namespace, name: ServeName, foreignHint: installHint, want: u}
}

// deploymentObject runs serve, under the restricted Pod Security Standard. A new pod is there
// before an old one goes: it stands by.
func (o *InstallOptions) deploymentObject() *object {
	labels := serveLabels()
	if o.Version != "" {
		labels[versionLabel] = o.Version
	}
	requests, limits := o.Resources.lists()
	container := corev1ac.Container().WithName(serveContainer).WithImage(o.Image).
		WithArgs("serve", "--namespace", o.Namespace, "--metrics-bind", ":"+strconv.Itoa(metricsPort)).
		WithPorts(corev1ac.ContainerPort().WithName(metricsPortName).WithContainerPort(metricsPort).WithProtocol(corev1.ProtocolTCP)).
		WithLivenessProbe(httpProbe("/healthz").WithPeriodSeconds(10).WithFailureThreshold(3)).
		WithReadinessProbe(httpProbe("/readyz").WithPeriodSeconds(2).WithFailureThreshold(3)).
		WithResources(corev1ac.ResourceRequirements().WithRequests(requests).WithLimits(limits)).
		WithSecurityContext(restricted())
	o.Relay.extendContainer(container, o.Namespace)
	o.Webhook.extendContainer(container)
	spec := corev1ac.PodSpec().WithServiceAccountName(ServeName).WithAutomountServiceAccountToken(true).
		WithSecurityContext(nonRootPod()).WithContainers(container).
		WithAffinity(corev1ac.Affinity().WithPodAntiAffinity(corev1ac.PodAntiAffinity().WithPreferredDuringSchedulingIgnoredDuringExecution(
			corev1ac.WeightedPodAffinityTerm().WithWeight(100).WithPodAffinityTerm(corev1ac.PodAffinityTerm().
				WithTopologyKey(corev1.LabelHostname).WithLabelSelector(metav1ac.LabelSelector().WithMatchLabels(selected()))))))
	for _, name := range o.PullSecrets {
		spec.WithImagePullSecrets(corev1ac.LocalObjectReference().WithName(name))
	}
	pod := selected()
	pod["sidecar.istio.io/inject"] = "false"
	return &object{
		resource: deployments, namespace: o.Namespace, name: ServeName, foreignHint: installHint,
		want: appsv1ac.Deployment(ServeName, o.Namespace).WithLabels(labels).WithAnnotations(o.Webhook.annotations()).WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(*o.Replicas).WithSelector(metav1ac.LabelSelector().WithMatchLabels(selected())).
			WithStrategy(appsv1ac.DeploymentStrategy().WithType("RollingUpdate").WithRollingUpdate(appsv1ac.RollingUpdateDeployment().
				WithMaxUnavailable(intstr.FromInt32(0)).WithMaxSurge(intstr.FromInt32(1)))).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(pod).WithSpec(spec))),
	}
}

func httpProbe(path string) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString(metricsPortName)))
}

// restricted is the security context of containers of meshctl.
func restricted() *corev1ac.SecurityContextApplyConfiguration {
	return corev1ac.SecurityContext().WithAllowPrivilegeEscalation(false).WithReadOnlyRootFilesystem(true).
		WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))
}

// nonRootPod is the security context of pods of meshctl.
func nonRootPod() *corev1ac.PodSecurityContextApplyConfiguration {
	return corev1ac.PodSecurityContext().WithRunAsNonRoot(true).WithRunAsUser(nonRoot).WithRunAsGroup(nonRoot).
		WithSeccompProfile(corev1ac.SeccompProfile().WithType(corev1.SeccompProfileTypeRuntimeDefault))
}
