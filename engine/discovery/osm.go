package discovery

import (
	"fmt"
	"strings"

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

// osm detects Open Service Mesh as of 1.2.
func osm() detector {
	return detector{
		title:     "Open Service Mesh",
		meshes:    osmMeshes,
		sidecar:   osmSidecar,
		namespace: osmNamespace,
		listed:    true,
		variant:   "mesh name",
		mend:      "give its namespace the label " + osmMonitorKey + " with the name of a mesh that runs",
	}
}

// osmSidecar goes by what the injector writes and the controller relies on,
// not by images, which may come from anywhere.
func osmSidecar(w *world, pod *corev1.Pod) (claim, bool) {
	if pod.Labels[osmProxyKey] == "" || !hasContainer(pod, osmProxyName) {
		return claim{}, false
	}
	ns := w.namespaces[pod.Namespace]
	if ns == nil {
		return claim{}, true
	}
	c, monitored := osmNamespace(ns)
	if !monitored {
		c.doubt = "it has a sidecar of Open Service Mesh, which gets no configuration: no mesh monitors its namespace"
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

func osmNamespace(ns *corev1.Namespace) (claim, bool) {
	name := ns.Labels[osmMonitorKey]
	return claim{revision: name}, name != ""
}

// osmMeshes makes a mesh of every osm-controller.
func osmMeshes(w *world) []*mesh {
	var out []*mesh
	for _, d := range w.deployments {
		if c := osmControllerOf(d); c != nil {
			out = append(out, w.osmMesh(d, c))
		}
	}
	return out
}

// osmControllerOf returns the container of a Deployment that is an OSM control
// plane, or nil. The Deployment's name is fixed in the product; the container
// bears it, too, or its image does, whatever the registry.
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
		return false // most images are spared the parsing
	}
	img, ok := parseImage(c.Image)
	return ok && strings.HasSuffix(img.base(), osmControllerName)
}

func (w *world) osmMesh(d *appsv1.Deployment, c *corev1.Container) *mesh {
	source := snapshot.Ref{Kind: snapshot.Deployment, Cluster: w.cluster, Namespace: d.Namespace, Name: d.Name}
	name := w.name(w.meshNames, objectName(d.Name, d.Namespace, w.cluster), source)
	ref := snapshot.Ref{Kind: snapshot.Mesh, Namespace: w.namespace, Name: name}
	installation := discoveryv1.MeshInstallation{Namespace: d.Namespace, Cluster: w.cluster, Version: w.osmVersion(d, c, source, ref)}
	if d.Spec.Selector != nil {
		installation.PodLabels = d.Spec.Selector.MatchLabels
	}
	meshName := osmMeshName(d, c)
	return &mesh{
		revision: meshName,
		usual:    meshName == osmUsualName,
		object: &discoveryv1.Mesh{
			ObjectMeta: w.meta(name),
			Spec: discoveryv1.MeshSpec{Osm: &discoveryv1.OSMMesh{
				Installation:                installation,
				MeshName:                    meshName,
				TrustDomain:                 flag(c.Args, osmTrustDomainFlag),
				PermissiveTrafficPolicyMode: w.osmPermissive(d.Namespace, ref),
			}},
		},
	}
}

func osmMeshName(d *appsv1.Deployment, c *corev1.Container) string {
	for _, name := range []string{flag(c.Args, osmMeshNameFlag), d.Labels[osmMeshNameKey]} {
		if name != "" {
			return name
		}
	}
	return osmUsualName
}

// osmVersion is the image's tag; the product's own charts name images by
// digest, which says less than the label beside it.
func (w *world) osmVersion(d *appsv1.Deployment, c *corev1.Container, source, mesh snapshot.Ref) string {
	if img, ok := parseImage(c.Image); !ok || img.version == "" || strings.Contains(img.version, ":") {
		if v := d.Labels[osmVersionKey]; v != "" {
			return v
		}
	}
	return w.version(c.Image, source, mesh)
}

// osmPermissive reports whether a mesh lets everybody call everybody. Without
// its settings the controller does not.
func (w *world) osmPermissive(namespace string, mesh snapshot.Ref) bool {
	if config := w.meshConfigs[key{namespace, osmConfigName}]; config != nil {
		return config.Spec.Traffic.EnablePermissiveTrafficPolicyMode
	}
	w.report(snapshot.Issue{
		Code: snapshot.MeshUnreadable, Severity: snapshot.Warning, Target: mesh,
		Ref:     snapshot.Ref{Kind: snapshot.MeshConfig, Cluster: w.cluster, Namespace: namespace, Name: osmConfigName},
		Message: fmt.Sprintf("there is no such MeshConfig of version %s, so the mesh is taken to deny what no policy allows", snapshot.MeshConfig.Info().Version),
		Hint:    "install Open Service Mesh 1.2; its bootstrap makes the MeshConfig",
	})
	return false
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

// KeptArgs are the arguments of a container that discovery reads, so that a
// source need not keep the others, which may hold secrets.
func KeptArgs(c *corev1.Container) []string {
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
