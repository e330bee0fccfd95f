package osm

import (
	"fmt"
	"strings"

	osmconfigv1alpha2 "github.com/openservicemesh/osm/pkg/apis/config/v1alpha2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	controllerName = "osm-controller"
	meshNameKey    = "meshName"
	versionKey     = "app.kubernetes.io/version"
	usualName      = "osm"
	configName     = "osm-mesh-config"
	proxyName      = "envoy"
	// proxyKey is the label by which the controller finds the pod of a proxy
	// that connects; without it a proxy gets no configuration.
	proxyKey = "osm-proxy-uuid"
	// monitorKey is the label of namespaces with the name of their mesh.
	monitorKey = "openservicemesh.io/monitored-by"

	trustDomainFlag = "--trust-domain"
	meshNameFlag    = "--mesh-name"
)

// Detector detects Open Service Mesh as of 1.2.
func Detector() discovery.Detector {
	return discovery.Detector{
		Name:          "Open Service Mesh",
		ControlPlanes: controlPlanes,
		Sidecar:       sidecarOf,
		Namespace:     namespaceClaim,
		Stored:        storedRevision,
		OptIn:         true,
		RevisionName:  "mesh name",
		Fix:           "give its namespace the label " + monitorKey + " with the name of a mesh that runs",
		Reads:         discovery.Reads{Args: argsRead},
	}
}

// sidecarOf checks what the injector writes and the controller relies on, rather than
// images, which may come from any registry.
func sidecarOf(x *discovery.Index, pod *corev1.Pod) (discovery.Claim, bool) {
	if pod.Labels[proxyKey] == "" || !hasContainer(pod, proxyName) {
		return discovery.Claim{}, false
	}
	ns := x.Namespaces[pod.Namespace]
	if ns == nil {
		return discovery.Claim{}, true
	}
	c, monitored := namespaceClaim(ns)
	if !monitored {
		c.Doubt = "it has a sidecar of Open Service Mesh, which gets no configuration: no mesh monitors its namespace"
		c.Cause = snapshot.Ref{Kind: snapshot.Namespace, Cluster: x.Cluster, Name: ns.Name}
	}
	return c, true
}

func hasContainer(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return true
		}
	}
	return false
}

func namespaceClaim(ns *corev1.Namespace) (discovery.Claim, bool) {
	name := ns.Labels[monitorKey]
	return discovery.Claim{Revision: name}, name != ""
}

// controlPlanes finds every osm-controller.
func controlPlanes(x *discovery.Index) []*discovery.ControlPlane {
	var out []*discovery.ControlPlane
	for _, d := range x.Deployments {
		c := controllerOf(d)
		if c == nil {
			continue
		}
		evidence := x.Objects.WebhooksUnknown || meshConfigOf(x, d.Namespace) != nil
		if x.Believed(d, evidence, "Open Service Mesh", "its namespace has no MeshConfig "+configName) {
			out = append(out, newControlPlane(x, d, c))
		}
	}
	return out
}

// storedRevision implements Detector.Stored.
func storedRevision(spec *discoveryv1.MeshSpec, _ string) (revision string, standard, ok bool) {
	if spec.Osm == nil {
		return "", false, false
	}
	return spec.Osm.MeshName, spec.Osm.MeshName == usualName, true
}

// controllerOf returns the container of a Deployment that is an OSM control
// plane, or nil. The Deployment's name is fixed in the product; the container
// has it, too, or its image does, in any registry.
func controllerOf(d *appsv1.Deployment) *corev1.Container {
	if d.Name != controllerName {
		return nil
	}
	containers := d.Spec.Template.Spec.Containers
	for i := range containers {
		if isController(&containers[i]) {
			return &containers[i]
		}
	}
	return nil
}

func isController(c *corev1.Container) bool {
	if c.Name == controllerName {
		return true
	}
	if !strings.Contains(c.Image, controllerName) {
		return false // parsing is slow, and most images are others
	}
	img, ok := discovery.ParseImage(c.Image)
	return ok && strings.HasSuffix(img.Base(), controllerName)
}

func newControlPlane(x *discovery.Index, d *appsv1.Deployment, c *corev1.Container) *discovery.ControlPlane {
	mesh := x.NewMesh(d)
	ref := snapshot.RefOf(snapshot.Mesh, mesh)
	meshName := meshNameOf(d, c)
	mesh.Spec.Osm = &discoveryv1.OSMMesh{
		Installation:                x.Installation(d, versionOf(x, d, c, ref)),
		MeshName:                    meshName,
		TrustDomain:                 flagOf(c.Args, trustDomainFlag),
		PermissiveTrafficPolicyMode: isPermissive(x, d.Namespace, ref),
	}
	return &discovery.ControlPlane{Mesh: mesh, Revision: meshName, Default: meshName == usualName}
}

func meshNameOf(d *appsv1.Deployment, c *corev1.Container) string {
	for _, name := range []string{flagOf(c.Args, meshNameFlag), d.Labels[meshNameKey]} {
		if name != "" {
			return name
		}
	}
	return usualName
}

// versionOf is the image's tag or, as the product's own charts name images by digest,
// the label with the version.
func versionOf(x *discovery.Index, d *appsv1.Deployment, c *corev1.Container, mesh snapshot.Ref) string {
	if img, ok := discovery.ParseImage(c.Image); !ok || img.Version == "" || strings.Contains(img.Version, ":") {
		if v := d.Labels[versionKey]; v != "" {
			return v
		}
	}
	return x.Version(c.Image, d, mesh)
}

// meshConfigOf are the settings of the mesh in a namespace; nil if there are none.
func meshConfigOf(x *discovery.Index, namespace string) *osmconfigv1alpha2.MeshConfig {
	for m := range snapshot.Each[*osmconfigv1alpha2.MeshConfig](x.Objects.OfMeshes[snapshot.MeshConfig]) {
		if m.Namespace == namespace && m.Name == configName {
			return m
		}
	}
	return nil
}

// isPermissive reports whether a mesh allows all calls. Without its settings the
// controller does not; those that are gone stay as they were last.
func isPermissive(x *discovery.Index, namespace string, mesh snapshot.Ref) bool {
	if config := meshConfigOf(x, namespace); config != nil {
		return config.Spec.Traffic.EnablePermissiveTrafficPolicyMode
	}
	assumed, permissive := "the mesh is assumed to deny what no policy allows", false
	if last := x.StoredMesh(mesh.Name, namespace); last != nil && last.Spec.Osm != nil {
		assumed, permissive = "its last settings stay", last.Spec.Osm.PermissiveTrafficPolicyMode
	}
	x.Report(snapshot.Issue{
		Code: snapshot.MeshUnreadable, Severity: snapshot.Warning, Target: mesh,
		Ref:     snapshot.Ref{Kind: snapshot.MeshConfig, Cluster: x.Cluster, Namespace: namespace, Name: configName},
		Message: fmt.Sprintf("there is no such MeshConfig of version %s, so %s", snapshot.MeshConfig.Info().Version, assumed),
		Hint:    "install Open Service Mesh 1.2; its bootstrap creates the MeshConfig",
	})
	return permissive
}

// flagOf is the value of a command-line flag, given as --flag=value or as two
// arguments; the last one counts.
func flagOf(args []string, name string) string {
	value := ""
	for i, arg := range args {
		if rest, ok := strings.CutPrefix(arg, name+"="); ok {
			value = rest
		} else if arg == name && i+1 < len(args) {
			value = args[i+1]
		}
	}
	return value
}

// argsRead are the flags of an osm-controller that are read.
func argsRead(c *corev1.Container) []string {
	if !isController(c) {
		return nil
	}
	var out []string
	for _, name := range []string{meshNameFlag, trustDomainFlag} {
		if value := flagOf(c.Args, name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	return out
}
