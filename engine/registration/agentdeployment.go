package registration

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	"github.com/meshctl/meshctl/engine/cluster"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	agentContainer  = "agent"
	agentAppName    = "meshctl-agent"
	agentHealthPort = 9093
	// istioTokens is where `meshctl agent` expects its token for istiod, as proxies have theirs.
	istioTokens = "/var/run/secrets/tokens"
	// vaultTokens is where it expects its token for Vault.
	vaultTokens = "/var/run/secrets/vault"
	// vaultTokenSeconds is how long that token lasts: the shortest that kubelets ask for.
	vaultTokenSeconds = 600
	// nonRoot is the user of images that have none of their own.
	nonRoot = 65532
)

// agentDeployment runs the agent, under the restricted Pod Security Standard.
func (r wantedObjects) agentDeployment(name, image string) *object {
	selector := map[string]string{"app.kubernetes.io/name": agentAppName, snapshot.PlaneLabel: r.plane.ID}
	pod := map[string]string{"sidecar.istio.io/inject": "false"}
	for k, v := range selector {
		pod[k] = v
	}
	probe := func(path string) *corev1ac.ProbeApplyConfiguration {
		return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromInt32(agentHealthPort)))
	}
	container := corev1ac.Container().WithName(agentContainer).WithImage(image).
		WithArgs("agent", "--namespace", r.RemoteNamespace, "--health-bind", ":9093").WithArgs(r.via.relayArgs()...).
		WithPorts(corev1ac.ContainerPort().WithName("health").WithContainerPort(agentHealthPort)).
		WithLivenessProbe(probe("/healthz")).WithReadinessProbe(probe("/readyz")).
		WithResources(corev1ac.ResourceRequirements().
			WithRequests(corev1.ResourceList{corev1.ResourceCPU: resourceapi.MustParse("10m"), corev1.ResourceMemory: resourceapi.MustParse("64Mi")}).
			WithLimits(corev1.ResourceList{corev1.ResourceMemory: resourceapi.MustParse("256Mi")})).
		WithVolumeMounts(corev1ac.VolumeMount().WithName("istio-token").WithMountPath(istioTokens).WithReadOnly(true)).
		WithSecurityContext(restricted())
	// A pod of the mesh asks istiod with such a token, too.
	token := corev1ac.Volume().WithName("istio-token").WithProjected(corev1ac.ProjectedVolumeSource().WithSources(
		corev1ac.VolumeProjection().WithServiceAccountToken(corev1ac.ServiceAccountTokenProjection().
			WithAudience("istio-ca").WithExpirationSeconds(43200).WithPath("istio-token"))))
	volumes := []*corev1ac.VolumeApplyConfiguration{token}
	if len(r.vault.Servers) > 0 {
		container.WithArgs("--vault-server", strings.Join(r.vault.Servers, ","), "--vault-audience", r.vault.Audience).
			WithVolumeMounts(corev1ac.VolumeMount().WithName("vault-token").WithMountPath(vaultTokens).WithReadOnly(true))
		volumes = append(volumes, corev1ac.Volume().WithName("vault-token").WithProjected(corev1ac.ProjectedVolumeSource().WithSources(
			corev1ac.VolumeProjection().WithServiceAccountToken(corev1ac.ServiceAccountTokenProjection().
				WithAudience(r.vault.Audience).WithExpirationSeconds(vaultTokenSeconds).WithPath("token")))))
	}
	spec := corev1ac.PodSpec().WithServiceAccountName(name).WithAutomountServiceAccountToken(true).
		WithSecurityContext(nonRootPod()).
		WithContainers(container).WithVolumes(volumes...)
	labels := r.labels()
	labels["app.kubernetes.io/name"] = selector["app.kubernetes.io/name"]
	return &object{
		resource: deployments, namespace: r.RemoteNamespace, name: name, foreignHint: nameHint,
		want: appsv1ac.Deployment(name, r.RemoteNamespace).WithLabels(labels).WithSpec(appsv1ac.DeploymentSpec().
			WithReplicas(1).WithSelector(metav1ac.LabelSelector().WithMatchLabels(selector)).
			WithTemplate(corev1ac.PodTemplateSpec().WithLabels(pod).WithAnnotations(map[string]string{AccountAnnotation: r.account}).WithSpec(spec))),
	}
}

// imageOf is the image of the agent in its Deployment; empty if that is not one of ours.
func imageOf(deployment *unstructured.Unstructured) string {
	var d appsv1.Deployment
	if deployment.GetLabels()[cluster.ManagedByLabel] != cluster.ManagedBy ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(deployment.Object, &d) != nil {
		return ""
	}
	for i := range d.Spec.Template.Spec.Containers {
		if c := &d.Spec.Template.Spec.Containers[i]; c.Name == agentContainer {
			return c.Image
		}
	}
	return ""
}
