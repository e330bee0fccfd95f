package discovery

import (
	"fmt"
	"strings"

	osmconfigv1alpha2 "github.com/openservicemesh/osm/pkg/apis/config/v1alpha2"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

const (
	osmControllerName = "osm-controller"
	osmMeshNameKey    = "meshName"
	osmVersionKey     = "app.kubernetes.io/version"
	osmUsualName      = "osm"
	osmConfigName     = "osm-mesh-config"
	osmProxyName      = "envoy"
	// osmProxyKey is the label by which the controller finds the pod of a proxy
	// that connects; without it a proxy gets no configuration.
	osmProxyKey = "osm-proxy-uuid"
	// osmMonitorKey is the label of namespaces with the name of their mesh.
	osmMonitorKey = "openservicemesh.io/monitored-by"

	osmTrustDomainFlag = "--trust-domain"
	osmMeshNameFlag    = "--mesh-name"
)

// OSM detects Open Service Mesh as of 1.2.
func OSM() Detector {
	return Detector{
		Name:          "Open Service Mesh",
		ControlPlanes: osmControlPlanes,
		Sidecar:       osmSidecar,
		Namespace:     osmNamespace,
		Stored:        osmStored,
		OptIn:         true,
		RevisionName:  "mesh name",
		Fix:           "give its namespace the label " + osmMonitorKey + " with the name of a mesh that runs",
		Reads:         Reads{Args: osmArgs},
	}
}

// osmSidecar checks what the injector writes and the controller relies on, rather than
// images, which may come from any registry.
func osmSidecar(x *Index, pod *corev1.Pod) (Claim, bool) {
	if pod.Labels[osmProxyKey] == "" || !hasContainer(pod, osmProxyName) {
		return Claim{}, false
	}
	ns := x.Namespaces[pod.Namespace]
	if ns == nil {
		return Claim{}, true
	}
	c, monitored := osmNamespace(ns)
	if !monitored {
		c.Doubt = "it has a sidecar of Open Service Mesh, which gets no configuration: no mesh monitors its namespace"
		c.Cause = x.namespaceRef(ns.Name)
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

func osmNamespace(ns *corev1.Namespace) (Claim, bool) {
	name := ns.Labels[osmMonitorKey]
	return Claim{Revision: name}, name != ""
}

// osmControlPlanes finds every osm-controller.
func osmControlPlanes(x *Index) []*ControlPlane {
	var out []*ControlPlane
	for _, d := range x.Deployments {
		c := osmControllerOf(d)
		if c == nil {
			continue
		}
		evidence := x.injectors.unknown || x.meshConfigs[key{d.Namespace, osmConfigName}] != nil
		if x.believed(d, evidence, "Open Service Mesh", "its namespace has no MeshConfig "+osmConfigName) {
			out = append(out, osmControlPlane(x, d, c))
		}
	}
	return out
}

// osmStored implements Detector.Stored.
func osmStored(spec *discoveryv1.MeshSpec, _ string) (revision string, standard, ok bool) {
	if spec.Osm == nil {
		return "", false, false
	}
	return spec.Osm.MeshName, spec.Osm.MeshName == osmUsualName, true
}

// osmControllerOf returns the container of a Deployment that is an OSM control
// plane, or nil. The Deployment's name is fixed in the product; the container
// has it, too, or its image does, in any registry.
func osmControllerOf(d *appsv1.Deployment) *corev1.Container {
	if d.Name != osmControllerName {
		return nil
	}
	containers := d.Spec.Template.Spec.Containers
	for i := range containers {
		if isOSMController(&containers[i]) {
			return &containers[i]
		}
	}
	return nil
}

func isOSMController(c *corev1.Container) bool {
	if c.Name == osmControllerName {
		return true
	}
	if !strings.Contains(c.Image, osmControllerName) {
		return false // parsing is slow, and most images are others
	}
	img, ok := parseImage(c.Image)
	return ok && strings.HasSuffix(img.base(), osmControllerName)
}

func osmControlPlane(x *Index, d *appsv1.Deployment, c *corev1.Container) *ControlPlane {
	mesh := x.NewMesh(d)
	ref := snapshot.RefOf(snapshot.Mesh, mesh)
	meshName := osmMeshName(d, c)
	mesh.Spec.Osm = &discoveryv1.OSMMesh{
		Installation:                x.Installation(d, x.osmVersion(d, c, ref)),
		MeshName:                    meshName,
		TrustDomain:                 flag(c.Args, osmTrustDomainFlag),
		PermissiveTrafficPolicyMode: x.osmPermissive(d.Namespace, ref),
	}
	return &ControlPlane{Mesh: mesh, Revision: meshName, Default: meshName == osmUsualName}
}

func osmMeshName(d *appsv1.Deployment, c *corev1.Container) string {
	for _, name := range []string{flag(c.Args, osmMeshNameFlag), d.Labels[osmMeshNameKey]} {
		if name != "" {
			return name
		}
	}
	return osmUsualName
}

// osmVersion is the image's tag or, as the product's own charts name images by digest,
// the label with the version.
func (x *Index) osmVersion(d *appsv1.Deployment, c *corev1.Container, mesh snapshot.Ref) string {
	if img, ok := parseImage(c.Image); !ok || img.version == "" || strings.Contains(img.version, ":") {
		if v := d.Labels[osmVersionKey]; v != "" {
			return v
		}
	}
	return x.Version(c.Image, d, mesh)
}

// osmConfigs are the settings of meshes.
type osmConfigs map[key]*osmconfigv1alpha2.MeshConfig

// meshConfigs are those of a cluster.
func meshConfigs(c *snapshot.Cluster) osmConfigs {
	out := osmConfigs{}
	for m := range snapshot.Each[*osmconfigv1alpha2.MeshConfig](c.OfMeshes[snapshot.MeshConfig]) {
		out[keyOf(m)] = m
	}
	return out
}

// osmPermissive reports whether a mesh allows all calls. Without its settings the
// controller does not; those that are gone stay as they were last.
func (x *Index) osmPermissive(namespace string, mesh snapshot.Ref) bool {
	if config := x.meshConfigs[key{namespace, osmConfigName}]; config != nil {
		return config.Spec.Traffic.EnablePermissiveTrafficPolicyMode
	}
	assumed, permissive := "the mesh is assumed to deny what no policy allows", false
	if last := x.storedMesh(mesh.Name, namespace); last != nil && last.Spec.Osm != nil {
		assumed, permissive = "its last settings stay", last.Spec.Osm.PermissiveTrafficPolicyMode
	}
	x.Report(snapshot.Issue{
		Code: snapshot.MeshUnreadable, Severity: snapshot.Warning, Target: mesh,
		Ref:     snapshot.Ref{Kind: snapshot.MeshConfig, Cluster: x.Cluster, Namespace: namespace, Name: osmConfigName},
		Message: fmt.Sprintf("there is no such MeshConfig of version %s, so %s", snapshot.MeshConfig.Info().Version, assumed),
		Hint:    "install Open Service Mesh 1.2; its bootstrap creates the MeshConfig",
	})
	return permissive
}

// flag is the value of a command-line flag, given as --flag=value or as two
// arguments; the last one counts.
func flag(args []string, name string) string {
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

// osmArgs are the flags of an osm-controller that are read.
func osmArgs(c *corev1.Container) []string {
	if !isOSMController(c) {
		return nil
	}
	var out []string
	for _, name := range []string{osmMeshNameFlag, osmTrustDomainFlag} {
		if value := flag(c.Args, name); value != "" {
			out = append(out, name+"="+value)
		}
	}
	return out
}
