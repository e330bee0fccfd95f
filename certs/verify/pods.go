package verify

import (
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Names in the pods of Istio.
const (
	proxyContainer   = "istio-proxy"
	controlContainer = "discovery"
	caAddress        = "CA_ADDR"
	secretTTL        = "SECRET_TTL"
	dynamicProxy     = "PROXY_CONFIG_XDS_AGENT"
	multiRootMesh    = "ISTIO_MULTIROOT_MESH"
	clusterID        = "CLUSTER_ID"
	revisionLabel    = "istio.io/rev"
	injectedStatus   = "sidecar.istio.io/status"
	excludedPorts    = "traffic.sidecar.istio.io/excludeInboundPorts"
	defaultRevision  = "default"
	defaultClusterID = "Kubernetes" // pilot/pkg/features, ClusterName
)

// defaultTTL is the life of certificates if SECRET_TTL is not set (pilot-agent's default).
const defaultTTL = 24 * time.Hour

// maxPorts bounds on how many ports of a pod a handshake is tried.
const maxPorts = 3

// mesh says whose pods are whose.
type mesh struct {
	// namespace of the control plane, labels of its pods.
	namespace    string
	controlPlane labels.Selector
	// hosts are further names of the control plane in CA_ADDR.
	hosts []string
}

// isControlPlane reports whether a pod is of the control plane and may sign: one that is being started may not yet.
func (m *mesh) isControlPlane(pod *corev1.Pod) bool {
	return pod.Namespace == m.namespace && m.controlPlane.Matches(labels.Set(pod.Labels)) && isRunning(pod, controlContainer)
}

func newReplica(pod *corev1.Pod) Replica {
	r := Replica{Name: pod.Namespace + "/" + pod.Name, Started: started(pod, controlContainer), ip: pod.Status.PodIP, revision: pod.Labels[revisionLabel]}
	if c, _ := container(pod, controlContainer); c != nil {
		value, _ := environment(c, multiRootMesh)
		r.MultiRoot, _ = strconv.ParseBool(value)
		r.clusterID, _ = environment(c, clusterID)
	}
	return r
}

// newWorkload reads a pod. It is false for pods that do not count, and for those of other meshes.
func (m *mesh) newWorkload(pod *corev1.Pod, now time.Time) (Workload, bool) {
	proxy, alone := container(pod, proxyContainer)
	if proxy == nil || !isRunning(pod, proxyContainer) || isLost(pod, now) {
		return Workload{}, false
	}
	if address, _ := environment(proxy, caAddress); !m.isAddress(address) {
		return Workload{}, false
	}
	w := Workload{
		Namespace: pod.Namespace, Name: pod.Name, UID: string(pod.UID),
		Created: pod.CreationTimestamp.Time, Started: started(pod, proxyContainer), TTL: ttl(proxy),
		Gateway: alone || isRouter(proxy), Ending: pod.DeletionTimestamp != nil,
		ip: pod.Status.PodIP, account: pod.Spec.ServiceAccountName,
	}
	value, _ := environment(proxy, dynamicProxy)
	w.FollowsRoots, _ = strconv.ParseBool(value)
	w.Injected = w.Gateway || pod.Annotations[injectedStatus] != ""
	if !w.Gateway {
		w.ports = ports(pod)
	}
	return w, true
}

// isAddress reports whether a CA_ADDR is the control plane's: istiod, of any revision, in its namespace.
func (m *mesh) isAddress(address string) bool {
	host := address
	if h, _, err := net.SplitHostPort(address); err == nil {
		host = h
	}
	if host != "" && slices.Contains(m.hosts, host) {
		return true
	}
	parts := strings.SplitN(host, ".", 4)
	if len(parts) < 3 || parts[1] != m.namespace || parts[2] != "svc" {
		return false
	}
	return parts[0] == "istiod" || strings.HasPrefix(parts[0], "istiod-")
}

// container finds a container; alone says that the pod has no other.
func container(pod *corev1.Pod, name string) (found *corev1.Container, alone bool) {
	for i := range pod.Spec.Containers {
		if pod.Spec.Containers[i].Name == name {
			return &pod.Spec.Containers[i], len(pod.Spec.Containers) == 1
		}
	}
	for i := range pod.Spec.InitContainers { // a native sidecar
		if pod.Spec.InitContainers[i].Name == name {
			return &pod.Spec.InitContainers[i], false
		}
	}
	return nil, false
}

func isRouter(proxy *corev1.Container) bool { return slices.Contains(proxy.Args, "router") }

// environment is the value of a variable; it is not known if it comes from elsewhere.
func environment(c *corev1.Container, name string) (value string, known bool) {
	known = true
	for i := range c.Env { // the last one counts
		if c.Env[i].Name == name {
			value, known = c.Env[i].Value, c.Env[i].ValueFrom == nil
		}
	}
	return value, known
}

// ttl is how long the certificates of a proxy live; 0 if that is for the control plane to say.
func ttl(proxy *corev1.Container) time.Duration {
	value, known := environment(proxy, secretTTL)
	if !known || len(proxy.EnvFrom) > 0 && value == "" {
		return 0
	}
	if value == "" {
		return defaultTTL
	}
	d, err := time.ParseDuration(value)
	if err != nil { // as pilot-agent does
		return defaultTTL
	}
	return max(d, 0)
}

func statusOf(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, all := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range all {
			if all[i].Name == name {
				return &all[i]
			}
		}
	}
	return nil
}

func isRunning(pod *corev1.Pod, name string) bool {
	s := statusOf(pod, name)
	return pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed && s != nil && s.State.Running != nil
}

func started(pod *corev1.Pod, name string) time.Time {
	if s := statusOf(pod, name); s != nil && s.State.Running != nil {
		return s.State.Running.StartedAt.Time
	}
	return time.Time{}
}

// isLost reports whether a pod should have ended. Its deletionTimestamp is when its grace period ends.
func isLost(pod *corev1.Pod, now time.Time) bool {
	return pod.DeletionTimestamp != nil && now.After(pod.DeletionTimestamp.Add(nodeClock))
}

// ports are the first of those at which the sidecar may answer for the application.
func ports(pod *corev1.Pod) []uint16 {
	excluded := strings.FieldsFunc(pod.Annotations[excludedPorts], func(r rune) bool { return r == ',' || r == ' ' })
	var out []uint16
	add := func(containers []corev1.Container) {
		for i := range containers {
			for _, p := range containers[i].Ports {
				if containers[i].Name == proxyContainer || p.Protocol != corev1.ProtocolTCP && p.Protocol != "" || p.ContainerPort < 1 || p.ContainerPort > 65535 ||
					slices.Contains(excluded, strconv.Itoa(int(p.ContainerPort))) || len(out) == maxPorts {
					continue
				}
				out = append(out, uint16(p.ContainerPort))
			}
		}
	}
	add(pod.Spec.Containers)
	return out
}
