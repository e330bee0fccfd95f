package wizards

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// offer collects the values to offer, ascending, with how often each occurs.
type offer map[string]int

func (o offer) options(what string) []Option {
	out := make([]Option, 0, len(o))
	for _, value := range slices.Sorted(maps.Keys(o)) {
		out = append(out, Option{Value: value, Text: fmt.Sprintf("%s (%s)", value, snapshot.Count(o[value], what))})
	}
	return out
}

// services are the Destinations that are Services.
func (w *World) services() []*discoveryv1.KubeService {
	var out []*discoveryv1.KubeService
	for d := range w.Plan.Destinations.All() {
		if k := d.Destination.Spec.KubeService; k != nil {
			out = append(out, k)
		}
	}
	return out
}

func serviceName(k *discoveryv1.KubeService) string {
	return k.Ref.Name + "." + k.Ref.Namespace + "." + k.Ref.ClusterName
}

func (w *World) serviceOptions() []Option {
	var out []Option
	for _, k := range w.services() {
		out = append(out, Option{Value: serviceName(k)})
	}
	return out
}

func (w *World) service(name string) *discoveryv1.KubeService {
	for _, k := range w.services() {
		if serviceName(k) == name {
			return k
		}
	}
	return nil
}

func (w *World) workloads() []*discoveryv1.KubernetesWorkload {
	var out []*discoveryv1.KubernetesWorkload
	for _, o := range w.Plan.Workloads {
		if o.Spec.Kubernetes != nil {
			out = append(out, o.Spec.Kubernetes)
		}
	}
	return out
}

func (w *World) accountOptions() []Option {
	seen := offer{}
	for _, k := range w.workloads() {
		account := k.ServiceAccountName
		if account == "" {
			account = "default"
		}
		seen[account+"."+k.Controller.Namespace+"."+k.Controller.ClusterName]++
	}
	return seen.options("workload")
}

func (w *World) meshOptions() []Option {
	var out []Option
	for _, m := range w.Plan.Meshes {
		text := m.Ref.Namespace + "/" + m.Ref.Name + " (cluster " + m.Cluster
		if m.VirtualMesh != nil {
			text += ", already in " + m.VirtualMesh.Name
		}
		out = append(out, Option{Value: m.Ref.Namespace + "/" + m.Ref.Name, Text: text + ")"})
	}
	return out
}

// places offers namespaces, clusters and labels of services or of workloads.
func (w *World) places(ofWorkloads bool) (namespaces, clusters, labels offer) {
	namespaces, clusters, labels = offer{}, offer{}, offer{}
	add := func(namespace, cluster string, with map[string]string) {
		namespaces[namespace]++
		clusters[cluster]++
		for k, v := range with {
			labels[joinCommas([]string{k + "=" + v})]++
		}
	}
	if ofWorkloads {
		for _, k := range w.workloads() {
			add(k.Controller.Namespace, k.Controller.ClusterName, k.PodLabels)
		}
		return namespaces, clusters, labels
	}
	for _, k := range w.services() {
		add(k.Ref.Namespace, k.Ref.ClusterName, k.Labels)
	}
	return namespaces, clusters, labels
}

// subsetOptions are the labels by which the pods behind services differ.
func subsetOptions(services ...*discoveryv1.KubeService) []Option {
	values := offer{}
	for _, k := range services {
		for key := range k.Subsets {
			for _, value := range k.Subsets[key].Values {
				values[key+"="+value]++
			}
		}
	}
	out := []Option{{Value: "", Text: "all of its pods"}}
	for _, value := range slices.Sorted(maps.Keys(values)) {
		out = append(out, Option{Value: value, Text: "pods with " + value})
	}
	return out
}

// portOptions are the ports of a service.
func portOptions(k *discoveryv1.KubeService) []Option {
	var out []Option
	for _, p := range k.Ports {
		out = append(out, Option{Value: fmt.Sprint(p.Port), Text: strings.TrimSpace(fmt.Sprintf("%d %s", p.Port, p.Name))})
	}
	return out
}
