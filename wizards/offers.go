package wizards

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	discoveryv1 "github.com/meshctl/meshctl/engine/api/discovery/v1"
	"github.com/meshctl/meshctl/engine/snapshot"
)

// valueCounts are the values to offer, and how often each occurs.
type valueCounts map[string]int

func (v valueCounts) options(what string) []Option {
	out := make([]Option, 0, len(v))
	for _, value := range slices.Sorted(maps.Keys(v)) {
		out = append(out, Option{Value: value, Text: fmt.Sprintf("%s (%s)", value, snapshot.Count(v[value], what))})
	}
	return out
}

// services are the Destinations that are Services.
func (c *Catalog) services() []*discoveryv1.KubeService {
	var out []*discoveryv1.KubeService
	for d := range c.Plan.Destinations.All() {
		if k := d.Destination.Spec.KubeService; k != nil {
			out = append(out, k)
		}
	}
	return out
}

func serviceName(k *discoveryv1.KubeService) string {
	return k.Ref.Name + "." + k.Ref.Namespace + "." + k.Ref.ClusterName
}

func (c *Catalog) serviceOptions() []Option {
	var out []Option
	for _, k := range c.services() {
		out = append(out, Option{Value: serviceName(k)})
	}
	return out
}

func (c *Catalog) service(name string) *discoveryv1.KubeService {
	for _, k := range c.services() {
		if serviceName(k) == name {
			return k
		}
	}
	return nil
}

func (c *Catalog) workloads() []*discoveryv1.KubernetesWorkload {
	var out []*discoveryv1.KubernetesWorkload
	for _, o := range c.Plan.Workloads {
		if o.Spec.Kubernetes != nil {
			out = append(out, o.Spec.Kubernetes)
		}
	}
	return out
}

func (c *Catalog) accountOptions() []Option {
	seen := valueCounts{}
	for _, k := range c.workloads() {
		account := k.ServiceAccountName
		if account == "" {
			account = "default"
		}
		seen[account+"."+k.Controller.Namespace+"."+k.Controller.ClusterName]++
	}
	return seen.options("workload")
}

func (c *Catalog) meshOptions() []Option {
	var out []Option
	for _, m := range c.Plan.Meshes {
		text := m.Ref.Namespace + "/" + m.Ref.Name + " (cluster " + m.Cluster
		if m.VirtualMesh != nil {
			text += ", already in " + m.VirtualMesh.Name
		}
		out = append(out, Option{Value: m.Ref.Namespace + "/" + m.Ref.Name, Text: text + ")"})
	}
	return out
}

// matcherValues are namespaces, clusters and labels of services or of workloads.
func (c *Catalog) matcherValues(ofWorkloads bool) (namespaces, clusters, labels valueCounts) {
	namespaces, clusters, labels = valueCounts{}, valueCounts{}, valueCounts{}
	add := func(namespace, cluster string, with map[string]string) {
		namespaces[namespace]++
		clusters[cluster]++
		for k, v := range with {
			labels[joinCommas([]string{k + "=" + v})]++
		}
	}
	if ofWorkloads {
		for _, k := range c.workloads() {
			add(k.Controller.Namespace, k.Controller.ClusterName, k.PodLabels)
		}
		return namespaces, clusters, labels
	}
	for _, k := range c.services() {
		add(k.Ref.Namespace, k.Ref.ClusterName, k.Labels)
	}
	return namespaces, clusters, labels
}

// subsetOptions are the labels by which the pods of services differ.
func subsetOptions(services ...*discoveryv1.KubeService) []Option {
	values := valueCounts{}
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
