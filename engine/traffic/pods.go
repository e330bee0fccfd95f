package traffic

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/discovery"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// Reason says why there are no numbers; empty if there are.
type Reason string

// The reasons.
const (
	// NotSupported: what proxies of this kind of mesh count is not read. Ambient: its pods have no proxies of their own.
	NotSupported Reason = "NOT_SUPPORTED"
	Ambient      Reason = "AMBIENT"
	// NoPods: no pod of it with a proxy runs.
	NoPods Reason = "NO_PODS"
	// Disabled: the KubernetesCluster of its cluster says that proxies are not read. Closed: it says that they are read in a way that is not
	// possible there.
	Disabled Reason = "DISABLED"
	Closed   Reason = "DOOR_CLOSED"
	// Relayed: its cluster is reached through its agent, which sends no readings. Unreachable: its cluster is not read.
	Relayed     Reason = "RELAYED"
	Unreachable Reason = "UNREACHABLE"
	// NoPrometheus: the Prometheus of its cluster does not answer. NotInPrometheus: it answers, and has nothing of the proxy.
	NoPrometheus    Reason = "NO_PROMETHEUS"
	NotInPrometheus Reason = "NOT_IN_PROMETHEUS"
	// NotAllowed: the account of the management plane has no right to read proxies there.
	NotAllowed Reason = "NOT_ALLOWED"
	// NotYet: its proxies are new, or the leader is. Failed: they did not answer. TooMany: others are read in their place.
	NotYet  Reason = "NOT_YET"
	Failed  Reason = "FAILED"
	TooMany Reason = "TOO_MANY"
	// NotCounted: its proxies answer, and count no requests.
	NotCounted Reason = "NOT_COUNTED"
	// Altered: what its proxies count lacks a label without which nobody knows what it is about.
	Altered Reason = "ALTERED"
	// Uncounted: a Telemetry disables what its proxies would count. Unread: whether one does could not be read.
	Uncounted Reason = "DISABLED_BY_TELEMETRY"
	Unread    Reason = "TELEMETRY_UNREAD"
)

var reasons = map[Reason]string{
	NotSupported:    "what proxies of this kind of mesh count is not read",
	Ambient:         "its pods are in ambient mode: what ztunnel and waypoints count is not read",
	NoPods:          "no pod of it with a proxy runs",
	Disabled:        "reading proxies is disabled in its cluster; `meshctl telemetry enable` enables it",
	Closed:          "its proxies cannot be read in the way that its KubernetesCluster asks for",
	Relayed:         "its cluster is reached through its agent, which sends no readings of proxies",
	Unreachable:     "its cluster is not read",
	NotAllowed:      "meshctl serve may not create pods/portforward in its cluster; see: meshctl telemetry enable --help",
	NotYet:          "its proxies were not read yet",
	Failed:          "its proxies do not answer",
	TooMany:         "its cluster has more proxies than are read",
	NoPrometheus:    "the Prometheus of its cluster does not answer",
	NotInPrometheus: "the Prometheus of its cluster has nothing of its pods",
	NotCounted:      "its proxies count no requests; see: meshctl top --help",
	Altered:         "a Telemetry of the mesh has removed labels without which nobody knows what its proxies count",
	Uncounted:       "a Telemetry of the mesh disables what its proxies would count",
	Unread:          "whether a Telemetry disables what its proxies would count is not known",
}

// String is the reason as the rest of a sentence.
func (r Reason) String() string { return reasons[r] }

// Pod is one whose proxy is read.
type Pod struct {
	Proxy    Proxy
	Workload *discoveryv1.Workload
	Stats    *snapshot.ProxyStats
	// Door is that of its cluster.
	Door Door
	// Uncounted is what the proxy does not count of the mesh's own metrics.
	Uncounted snapshot.Uncounted
}

// Survey is what there is to read of a State.
type Survey struct {
	// Pods are ascending by cluster, namespace and name.
	Pods []Pod
	// Without are the workloads that have none, with the reason.
	Without map[snapshot.Ref]Reason
	// Entrances are those of the clusters, by name.
	Entrances map[string]Entrance
}

// Look finds the pods whose proxies count requests.
func Look(state *snapshot.State) *Survey {
	s := &Survey{Without: map[snapshot.Ref]Reason{}, Entrances: Entrances(state.Input)}
	meshes := map[snapshot.Ref]*snapshot.MeshPlan{}
	for _, m := range state.Plan.Meshes {
		meshes[snapshot.Ref{Namespace: m.Ref.Namespace, Name: m.Ref.Name}] = m
	}
	clusters := map[string]*snapshot.Cluster{}
	for _, c := range state.Input.Clusters {
		clusters[c.Name] = c
	}
	found := map[workloadAt]*discoveryv1.Workload{}
	for _, w := range state.Plan.Workloads {
		k := w.Spec.Kubernetes
		if k == nil {
			s.Without[snapshot.RefOf(snapshot.Workload, w)] = NotSupported
			continue
		}
		mesh := meshes[snapshot.Ref{Namespace: w.Spec.Mesh.Namespace, Name: w.Spec.Mesh.Name}]
		if reason := unread(clusters[k.Controller.ClusterName], mesh, k, s.Entrances[k.Controller.ClusterName]); reason != "" {
			s.Without[snapshot.RefOf(snapshot.Workload, w)] = reason
			continue
		}
		s.Without[snapshot.RefOf(snapshot.Workload, w)] = NoPods // until one is found
		found[workloadAt{k.Controller.ClusterName, k.Controller.Namespace, kindOf(w), k.Controller.Name}] = w
	}
	for _, c := range state.Input.Clusters {
		owner, uncounted := discovery.PodOwners(c), uncountedIn(c)
		for _, pod := range c.Pods {
			kind, name := owner(pod)
			w := found[workloadAt{c.Name, pod.Namespace, strings.ToLower(kind), name}]
			if w == nil || pod.Status.Phase != corev1.PodRunning {
				continue
			}
			mesh := meshes[snapshot.Ref{Namespace: w.Spec.Mesh.Namespace, Name: w.Spec.Mesh.Name}]
			names := mesh.Dialect.Proxies
			if !hasContainer(pod, names.Container) {
				continue
			}
			delete(s.Without, snapshot.RefOf(snapshot.Workload, w))
			s.Pods = append(s.Pods, Pod{ProxyOf(c.Name, pod), w, names.Stats, s.Entrances[c.Name].Door, uncounted(mesh, pod)})
		}
	}
	return s
}

// uncountedIn says of the pods of a cluster what their proxies do not count.
func uncountedIn(c *snapshot.Cluster) func(*snapshot.MeshPlan, *corev1.Pod) snapshot.Uncounted {
	type ofMesh = func(mesh *snapshot.MeshPlan, namespace string, labels map[string]string) snapshot.Uncounted
	byStats := map[*snapshot.ProxyStats]ofMesh{}
	return func(mesh *snapshot.MeshPlan, pod *corev1.Pod) snapshot.Uncounted {
		stats := mesh.Dialect.Proxies.Stats
		if stats.Uncounted == nil {
			return snapshot.Uncounted{}
		}
		if byStats[stats] == nil {
			byStats[stats] = stats.Uncounted(c)
		}
		return byStats[stats](mesh, pod.Namespace, pod.Labels)
	}
}

// ProxyOf is that of a pod.
func ProxyOf(cluster string, pod *corev1.Pod) Proxy {
	return Proxy{cluster, pod.Namespace, pod.Name, pod.CreationTimestamp.Unix()}
}

// workloadAt is where a workload is.
type workloadAt struct{ cluster, namespace, kind, name string }

// kindOf is the kind of what owns the pods, in lower case: without a ControllerKind, the name ends with it.
func kindOf(w *discoveryv1.Workload) string {
	if kind := w.Spec.Kubernetes.ControllerKind; kind != "" {
		return strings.ToLower(kind)
	}
	return w.Name[strings.LastIndexByte(w.Name, '-')+1:]
}

// unread is why no pod of a workload can be read.
func unread(c *snapshot.Cluster, mesh *snapshot.MeshPlan, k *discoveryv1.KubernetesWorkload, by Entrance) Reason {
	switch {
	case c == nil || c.Sync == snapshot.Unsynced:
		return Unreachable
	case by.Closed != "":
		return Closed
	case by.Door == Off:
		return Disabled
	case k.DataPlaneMode.IsAmbient():
		return Ambient
	case mesh == nil || mesh.Dialect.Proxies == nil || mesh.Dialect.Proxies.Stats == nil:
		return NotSupported
	}
	return ""
}

func hasContainer(pod *corev1.Pod, name string) bool {
	is := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(pod.Spec.Containers, is) || slices.ContainsFunc(pod.Spec.InitContainers, is)
}

// Status is what became of the readings of a proxy.
type Status struct {
	// Read is when the last one succeeded; zero if none did.
	Read time.Time
	// Own: it counts by the mesh's own metrics, which a Telemetry may disable.
	Own bool
	// Reason is why the last one did not, and Detail what else is known, for people.
	Reason Reason
	Detail string
}
